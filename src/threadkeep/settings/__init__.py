"""All settings, grouped by what an operator wants to do; only this package reads the environment.

    reach.py      where the server listens, who may call it, how long it waits
    sign_in.py    whose tokens are accepted, how people sign in, and who is an admin
    providers.py  the providers with which people sign in
    models.py     which model answers
    storage.py    where data is stored, and for how long
    documents.py  how documents and files are read and searched
    tools.py      which tools agents have, and what they may do
    limits.py     what agents may do, and how much one user may
    running.py    how the server stops, continues after a crash, and logs

To add a setting, add one field with its description to its group, and put the output of `threadkeep settings
--markdown` in docs/operating.md. The groups extend one another because a msgspec struct has only one base.
"""

import difflib
import functools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_type_hints

import msgspec
from msgspec import Meta

from threadkeep.choices import with_choices
from threadkeep.domain.errors import SettingsError
from threadkeep.settings.running import RunningSettings
from threadkeep.settings.sources import (
    FILE_NAME,
    IN_FILE,
    choose_gateway,
    open_to_others,
    promptx_project,
    read_agents,
    read_file,
    read_secret_files,
    read_secrets,
    settings_file,
)
from threadkeep.settings.storage import USUAL_DATA
from threadkeep.settings.values import PREFIX, is_missing, list_in, value_in

__all__ = [
    "FILE_NAME",
    "IN_FILE",
    "PREFIX",
    "USUAL_DATA",
    "Described",
    "Misnamed",
    "Settings",
    "misnamed",
    "open_to_others",
    "promptx_project",
    "settings_file",
]

# Not settings: we set USER_ID for MCP servers (a Threadkeep may be one), and our docs keep keys in KEY.
_OF_PROGRAMS = {"USER_ID", "KEY"}
# Earlier names, which still count.
_RENAMED = {"workers": "processes"}


class Settings(RunningSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Threadkeep's settings. Each field is an environment variable in lower case without its prefix."""

    @staticmethod
    def load(
        environment: Mapping[str, str] = os.environ, file: Path | None = None, **overrides: object
    ) -> "Settings":
        """Reads `threadkeep.toml`, then the environment, then the arguments; later ones take precedence.

        A secret's variable may end with `_FILE`: then it names the file with the value.
        A blank value counts as missing, wherever it is.
        """
        given: dict[str, object] = {}
        lists = _lists()
        file = file or settings_file(environment)
        in_file = read_file(file, required=value_in(environment, f"{PREFIX}CONFIG") is not None)
        given |= _renamed({name: it for name, it in in_file.items() if name in lists or not is_missing(it)})
        names = (*_RENAMED, *Settings.__struct_fields__)
        read_agents(given)
        found = {name: value_in(environment, PREFIX + name.upper()) for name in names}
        given |= _renamed({name: value for name, value in found.items() if value is not None})
        given |= read_secret_files(_secrets(), environment)
        given |= _renamed({name: value for name, value in overrides.items() if not is_missing(value)})
        choose_gateway(given, environment)
        read_secrets(given, environment, "gateways", "api_key")
        read_secrets(given, environment, "sign_in", "client_secret")
        for name in lists:
            if isinstance(text := given.get(name), str):
                given[name] = list_in(text)
        try:
            settings = msgspec.convert(given, Settings, strict=False, dec_hook=_to_path)
        except msgspec.ValidationError as exc:
            message, _, place = str(exc).partition(" - at `$.")
            name = f"{PREFIX}{place.rstrip('`').upper()}: " if place else "Settings: "
            raise SettingsError(f"{name}{with_choices(message, Settings, place)}.") from exc
        settings.check()
        return settings

    def check(self) -> None:
        """Rejects combinations that can't work or would be unsafe."""
        self.check_sign_in()
        self.check_gateway()
        self.check_embedding()
        self.check_storage()
        self.check_timezone()
        self.check_budgets()
        self.check_tools()
        self.check_reach()
        self.check_processes()

    def __repr__(self) -> str:
        shown = ((s.name, "…" if s.secret and s.value else s.value) for s in self.describe())
        return f"Settings({', '.join(f'{name}={value!r}' for name, value in shown)})"

    def describe(self) -> list["Described"]:
        """Every setting with its documentation, for people."""
        hints = get_type_hints(Settings, include_extras=True)
        return [_describe(name, hints[name], getattr(self, name)) for name in self.__struct_fields__]


class Described(msgspec.Struct, frozen=True):
    """One setting as `threadkeep settings` prints it."""

    name: str
    value: object
    documentation: str
    secret: bool


class Misnamed(msgspec.Struct, frozen=True):
    """A name in the environment that looks like a setting but isn't: mistyped, or from another version."""

    name: str
    meant: str | None
    """The setting with a similar name."""

    @property
    def message(self) -> str:
        """What is wrong."""
        return f"{self.name} is not a setting and has no effect."

    @property
    def advice(self) -> str:
        """What to do about it."""
        return f"Did you mean {self.meant}?" if self.meant else "Run `threadkeep settings` for a list."


def misnamed(environment: Mapping[str, str] = os.environ) -> list[Misnamed]:
    """Variables without effect. Not refused: orchestrators such as Kubernetes add their own names."""
    known = [name.upper() for name in (*Settings.__struct_fields__, *_RENAMED, "config")]
    known += [f"{name.upper()}{IN_FILE}" for name in _secrets()]
    given = sorted(name.removeprefix(PREFIX) for name in environment if name.startswith(PREFIX))
    found: list[Misnamed] = []
    for name in given:
        if name not in known and name not in _OF_PROGRAMS:
            near = difflib.get_close_matches(name, known, 1)
            found.append(Misnamed(PREFIX + name, PREFIX + near[0] if near else None))
    return found


def _renamed(given: Mapping[str, object]) -> dict[str, object]:
    """By today's names. Where a setting has both names, today's counts."""
    earlier = {_RENAMED[name]: value for name, value in given.items() if name in _RENAMED}
    return earlier | {name: value for name, value in given.items() if name not in _RENAMED}


def _lists() -> set[str]:
    """The settings that are lists."""
    defaults = zip(Settings.__struct_fields__, Settings.__struct_defaults__, strict=True)
    return {name for name, default in defaults if isinstance(default, tuple)}


@functools.cache
def _secrets() -> tuple[str, ...]:
    """The settings that nothing prints."""
    hints = get_type_hints(Settings, include_extras=True)
    return tuple(name for name in Settings.__struct_fields__ if _is_secret(hints[name]))


def _describe(name: str, hint: Any, value: object) -> Described:
    documentation = next(meta.description for meta in _metas(hint) if meta.description)
    return Described(name, value, documentation, _is_secret(hint))


def _is_secret(hint: Any) -> bool:
    return any((meta.extra or {}).get("secret") for meta in _metas(hint))


def _metas(hint: Any) -> list[Meta]:
    return [meta for meta in hint.__metadata__ if isinstance(meta, Meta)]


def _to_path(wanted: type, value: object) -> object:
    if wanted is Path and isinstance(value, str | Path):
        return Path(value).expanduser()
    raise TypeError(f"expected {wanted.__name__}")
