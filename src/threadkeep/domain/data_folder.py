"""What Threadkeep creates in a data folder: one list for writing, backup and restore."""

import re
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from threadkeep.domain.workspace import AGENTS, CACHE, LINKED_FOLDERS, PERSONAL

DATABASE = "threadkeep.db"
LOCK = "threadkeep.lock"
GITIGNORE = ".gitignore"
"""Keeps git from adding conversations and keys, wherever the folder lies."""
RESTORING = "threadkeep.restoring"
"""Exists while a backup is being restored into the folder."""
SECRET_KEY = "secret.key"  # noqa: S105 - a file's name
TOKEN = "token"  # noqa: S105 - a file's name
TOKEN_REQUIRED = "token-required"  # noqa: S105 - a file's name
"""Exists once a program has been configured."""
OPEN_PAGE = "open.html"
BACKING_UP = ".threadkeep-backup-"
"""Begins the name of a folder in which a backup is written; it lies here if the backup does."""
PAYLOADS = "payloads"
UPLOADS = "uploads"
BEFORE = ".before-"
"""Stands between a database's name and the version that a copy of it was made for."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Files of one kind, by their paths in the folder: `*` stands for part of a name, `**` for any path."""

    pattern: str
    backed_up: bool
    others_write: bool = False
    """Whether programs and people put files there too: one that can't be copied doesn't spoil a backup."""
    _matches: re.Pattern[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        signs = {"**": ".+", "*": "[^/]+"}
        parts = re.split(r"(\*\*|\*)", self.pattern)
        expression = "".join(signs.get(part) or re.escape(part) for part in parts)
        object.__setattr__(self, "_matches", re.compile(expression, re.DOTALL))

    @property
    def root(self) -> str:
        """The name of its files, or of the folder that they lie in."""
        return self.pattern.partition("/")[0]

    @property
    def has_folder(self) -> bool:
        """Whether its files lie in a folder of the data folder."""
        return "/" in self.pattern

    def matches(self, path: PurePosixPath) -> bool:
        """Whether a path is one of this kind."""
        return self._matches.fullmatch(str(path)) is not None


# The first that matches a path counts.
KINDS = (
    Kind(DATABASE, backed_up=True),
    Kind(f"{DATABASE}-*", backed_up=False),  # the log: the copy of the database contains it
    Kind(f"{DATABASE}{BEFORE}*", backed_up=False),
    Kind(LOCK, backed_up=False),
    Kind(GITIGNORE, backed_up=False),
    Kind(RESTORING, backed_up=False),
    Kind(SECRET_KEY, backed_up=True),
    Kind("secret.new", backed_up=False),  # a key that is being written
    Kind(TOKEN, backed_up=True),
    Kind(TOKEN_REQUIRED, backed_up=True),
    Kind(f".{TOKEN}.*", backed_up=False),  # a token that is being written
    Kind(OPEN_PAGE, backed_up=False),
    Kind(f"{BACKING_UP}*", backed_up=False),
    # The request that brings a file still runs, and brings it again if it fails.
    Kind(f"{UPLOADS}/**", backed_up=False),
    Kind(f"{PAYLOADS}/**.part", backed_up=False),  # a content that is being written
    Kind(f"{PAYLOADS}/**", backed_up=True),
    Kind(f"{AGENTS}/*/{CACHE}/**", backed_up=False),  # programs can download it again
    # Links to an agent's roles, made again when a user's program starts.
    *(Kind(f"{AGENTS}/*/{PERSONAL}/*/{it}", backed_up=False) for it in LINKED_FOLDERS),
    Kind(f"{AGENTS}/**", backed_up=True, others_write=True),
)


def make_data_folder(folder: Path) -> None:
    """Makes a folder that only this account can read, and that git leaves out; leaves an existing one."""
    try:
        folder.mkdir(parents=True, mode=0o700)
    except FileExistsError:
        if not folder.is_dir():
            raise
    else:
        file = folder / GITIGNORE
        file.touch(mode=0o600)
        file.write_text("# Conversations and keys: not for git.\n*\n")


def kind_of(path: PurePosixPath) -> Kind | None:
    """The kind of a file, by its path in the folder; None if Threadkeep creates no such file."""
    return next((kind for kind in KINDS if kind.matches(path)), None)


def is_backed_up(path: PurePosixPath) -> bool:
    """Whether a backup contains a file."""
    kind = kind_of(path)
    return kind is not None and kind.backed_up
