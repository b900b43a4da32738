"""The token of a server without sign-in: in the data folder, for those who can read it.

Once the server runs programs, it requires the token from everybody: they run under its account, so that
nothing else tells them from its user. They can't read the data folder from their sandbox.
"""

import os
import secrets
from contextlib import suppress
from pathlib import Path

from threadkeep.domain.data_folder import TOKEN, TOKEN_REQUIRED, make_data_folder
from threadkeep.domain.errors import StorageRefused


def read_token(data: Path) -> str | None:
    """The token; None if none exists yet."""
    try:
        return (data / TOKEN).read_text(encoding="ascii").strip() or None
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as exc:
        raise StorageRefused(f"Couldn't read the token {data / TOKEN}: {exc}.") from exc


def is_token_required(data: Path) -> bool:
    """Whether a program has been configured here, on whichever node and however long ago.

    A program that was removed since may have left a process behind.
    """
    return (data / TOKEN_REQUIRED).exists()


def require_token(data: Path) -> None:
    """From now on, the token is required on every node with this data folder."""
    file = data / TOKEN_REQUIRED
    try:
        make_data_folder(data)
        file.touch(mode=0o600)
    except OSError as exc:
        raise StorageRefused(f"Couldn't write {file}: {exc.strerror}.") from exc


def make_token(data: Path) -> str:
    """The token, created if there is none; only this account can read it."""
    file, fresh = data / TOKEN, data / f".{TOKEN}.{secrets.token_hex(8)}"
    try:
        make_data_folder(data)
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as written:
            written.write(f"{secrets.token_urlsafe(32)}\n")
        # Others may create one at the same time: the first one counts, and it is complete.
        with suppress(FileExistsError):
            os.link(fresh, file)
        fresh.unlink()
        file.chmod(0o600)
    except OSError as exc:
        raise StorageRefused(f"Can't write to the data folder {data}: {exc.strerror}.") from exc
    token = read_token(data)
    if token is None:
        raise StorageRefused(f"The token {file} is empty. Delete it; the next start creates a new one.")
    return token
