"""Reads roles in PromptX's format (DPML): Markdown files with a few tags that refer to one another.

Files are recognised by name alone: `<id>.role.md`, `<id>.thought.md`, `<id>.execution.md` and
`<id>.knowledge.md`, anywhere below a folder, so that the layouts of every PromptX work alike. A reference
such as `@!thought://recall` is looked up among the files found, never as a path.
"""

import logging
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from threadkeep.domain.errors import RoleNotFound
from threadkeep.domain.text import normalized, storable
from threadkeep.ports.roles import Role

log = logging.getLogger("threadkeep.mcp")

MOST_FILES = 500
MOST_FILE_BYTES = 128 * 1024
MOST_BYTES = 4 * 1024 * 1024
MOST_FOLDERS_DEEP = 6
MOST_NESTED = 16
MOST_CHARACTERS = 60_000
MOST_KNOWN_ROLES = 50
MOST_NAME_CHARACTERS = 255
"""Applies to a file's name, to references to it, and to a role's title in a call."""

_FILE_NAME = re.compile(r"([\w.-]+)\.(role|thought|execution|knowledge)\.md")
_REFERENCE = re.compile(r"@!(thought|execution|knowledge)://([\w./\\~%-]*)")
_TITLE = re.compile(r"^#[ \t]+(\S.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Resource:
    """One file: its kind, its name, its folder, and its text."""

    kind: str
    id: str
    folder: str
    text: str

    @property
    def title(self) -> str:
        """The display name of a role: the heading above its tags, or else its id."""
        heading = _TITLE.search(self.text.partition("<role")[0])
        return heading[1].strip() if heading else self.id


def read_resources(top: Path) -> list[Resource]:
    """The role files below a folder, in the order of their paths. Follows no links.

    Skips and logs files that are too large, too deep or too many.
    """
    found: list[Resource] = []
    left = MOST_BYTES
    for folder, file, content in _files(top):
        if content is None or len(content) > left or len(found) == MOST_FILES:
            log.warning("skipped a role file that is too large or not a regular file: %s", file[0])
            continue
        left -= len(content)
        text = storable(content.decode("utf-8-sig", errors="replace"))
        found.append(Resource(file[2], file[1], folder, text))
    return found


def compose(role_id: str, resources: Sequence[Resource]) -> Role:
    """A role, by its id or its title, with its references expanded.

    Of two files with one name the earlier wins, except that a role's own folder comes first.
    """
    wanted = _name(role_id.strip())
    roles = [resource for resource in resources if resource.kind == "role"]
    role = next((it for it in roles if it.id == wanted), None)
    role = role or next((it for it in roles if it.title == wanted), None)
    if role is None:
        raise RoleNotFound(f"Role {wanted[:100]!r} not found. Available roles: {_names(roles)}.")
    others = [it for it in resources if not _lies_in(it, role.folder)]
    own = [it for it in resources if _lies_in(it, role.folder)]
    composition = _Composition({(it.kind, it.id): it for it in reversed([*own, *others])})
    text = composition.expand(_tagged(role.text)).strip()
    if len(text) > MOST_CHARACTERS:
        text = f"{text[:MOST_CHARACTERS]}\n[cut here: a role may have {MOST_CHARACTERS} characters]"
    return Role(role.id, role.title, text, tuple(composition.missing))


@dataclass(slots=True)
class _Composition:
    """Expands references. Each file is inserted once: cycles end, nothing grows."""

    known: Mapping[tuple[str, str], Resource]
    used: set[Resource] = field(default_factory=set[Resource])
    missing: dict[str, None] = field(default_factory=dict[str, None])

    def expand(self, text: str, depth: int = 0) -> str:
        def text_of(reference: re.Match[str]) -> str:
            kind, id_ = reference[1], _name(reference[2].rstrip("."))
            resource = self.known.get((kind, id_))
            if resource is None or depth == MOST_NESTED:
                self.missing[f"{kind}://{id_}"] = None
                return f"[{kind}://{id_} is missing]"
            if resource in self.used:
                return f"[{kind}://{id_}: see above]"
            self.used.add(resource)
            return self.expand(_without_comments(resource.text).strip(), depth + 1)

        return _REFERENCE.sub(text_of, text)


def _name(given: str) -> str:
    """A name as files have it, whichever way its letters are written."""
    return normalized("NFC", given, most=MOST_NAME_CHARACTERS)


def _tagged(text: str) -> str:
    """The text within a role's tags; all of it if there are none."""
    text = _without_comments(text)
    begin, end = text.find("<role"), text.rfind("</role>")
    return text[begin : end + len("</role>")] if 0 <= begin < end else text


def _without_comments(text: str) -> str:
    kept: list[str] = []
    at = 0
    while (opened := text.find("<!--", at)) >= 0 and (closed := text.find("-->", opened)) >= 0:
        kept.append(text[at:opened])
        at = closed + len("-->")
    return "".join([*kept, text[at:]])


def _lies_in(resource: Resource, folder: str) -> bool:
    return f"{resource.folder}{os.sep}".startswith(f"{folder}{os.sep}")


def _names(roles: Sequence[Resource]) -> str:
    titles = {role.id: role.title for role in reversed(roles)}
    names = [id_ if title == id_ else f"{id_} ({title})" for id_, title in sorted(titles.items())]
    return ", ".join(names[:MOST_KNOWN_ROLES]) or "none"


def _files(top: Path) -> Iterator[tuple[str, re.Match[str], bytes | None]]:
    """Each file with such a name: its folder, its name, and its content if it is small and regular."""

    def warn(error: OSError) -> None:
        log.warning("couldn't read roles: %s", error)

    try:
        for folder, inner, names, descriptor in os.fwalk(top, onerror=warn):
            depth = folder.count(os.sep) - str(top).count(os.sep)
            inner[:] = sorted(inner) if depth < MOST_FOLDERS_DEEP else []
            for name in sorted(names):
                if file := _FILE_NAME.fullmatch(_name(name)):
                    yield folder, file, _read(name, descriptor)
    except FileNotFoundError:
        pass  # most agents have no roles of their own
    except OSError as exc:
        warn(exc)


def _read(name: str, folder: int) -> bytes | None:
    """A small regular file in an open folder; never a link, a pipe or a device."""
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        content = file.read(MOST_FILE_BYTES + 1)
    return content if len(content) <= MOST_FILE_BYTES else None
