"""Agents in files: TOML with the API's names, and `{ env = "NAME" }` in place of each secret."""

import difflib
import json
import os
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from msgspec.structs import fields

from threadkeep.domain.errors import SettingsError
from threadkeep.wire.mcp_servers import McpServerSettingsView
from threadkeep.wire.tool_rules import ToolRuleView
from threadkeep.wire.views import AgentSettingsView

MOST_FILE_BYTES = 1024 * 1024

FIELDS = ("name", "description", "primaryRoleId", "systemPrompt", "model", "visibility", "engine", "settings")
_SECRETS = ("env", "headers")
_ENGINE = ("kind", "url", "headers", "repeat")
_USUAL_IN_SERVERS: Mapping[str, object] = {
    "args": [],
    "disabled": False,
    "timeoutS": 60,
    "scope": "agent",
    "trustAnnotations": False,
}
_BARE = re.compile(r"[A-Za-z0-9_-]+")

Json = dict[str, Any]
Steps = Sequence[str]


def _names(view: type[Any]) -> tuple[str, ...]:
    return tuple(field.encode_name for field in fields(view))


_SETTINGS, _SERVER, _RULE = _names(AgentSettingsView), _names(McpServerSettingsView), _names(ToolRuleView)


@dataclass(frozen=True, slots=True)
class AgentFile:
    """An agent as a file describes it, with its secrets; without the keys that are wrong."""

    path: Path
    text: str
    body: Json
    faults: Sequence[str]
    """Everything that is wrong with the file, as far as one sees that without the server."""

    @property
    def name(self) -> str:
        """The agent's name, by which it is found; empty if the file doesn't say it."""
        return self.body.get("name", "")

    def place(self, steps: Steps) -> str:
        """The file and, as far as it is known, the line of a key."""
        return _place(self.path, self.text, steps)

    def without(self, steps: Steps) -> "AgentFile":
        """The same without one of its keys."""
        return replace(self, body=_without(self.body, steps))

    def renamed(self) -> "AgentFile":
        """The same under a name that the server accepts, to check the rest."""
        return replace(self, body={**self.body, "name": "An agent without a name"})

    def steps_to(self, param: str) -> list[str]:
        """The keys to a field of the API, as far as the file has them; keys may have dots themselves."""
        steps: list[str] = []
        place: Any = self.body
        while isinstance(place, dict):
            table = cast("Json", place)
            named = [it for it in table if param == it or param.startswith((f"{it}.", f"{it}["))]
            if not named:
                break
            steps.append(max(named, key=len))
            place, param = table[steps[-1]], param[len(steps[-1]) :].removeprefix(".")
        return steps


def _without(table: Json, steps: Steps) -> Json:
    first, *others = steps
    left = {key: value for key, value in table.items() if key != first}
    return {**left, first: _without(table[first], others)} if others else left


def read(path: Path) -> AgentFile:
    """A file's agent, with everything that is wrong with the file."""
    try:
        if path.stat().st_size > MOST_FILE_BYTES:
            return _unreadable(path, f"The file has more than {MOST_FILE_BYTES:,} bytes.")
        text = path.read_text(encoding="utf-8")
        body = tomllib.loads(text)
    except OSError as exc:
        return _unreadable(path, f"{exc.strerror or exc}.")
    except UnicodeDecodeError:
        return _unreadable(path, "The file isn't UTF-8.")
    except tomllib.TOMLDecodeError as exc:
        return _unreadable(path, f"This isn't valid TOML: {exc}.")
    found = [*_faults(body)]
    file = AgentFile(path, text, body, [f"{_place(path, text, steps)}: {fault}" for steps, fault in found])
    for steps, _ in found:
        if file.steps_to(".".join(steps)) == [*steps]:
            file = file.without(steps)
    return file


def _unreadable(path: Path, why: str) -> AgentFile:
    return AgentFile(path, "", {}, [f"{path}: {why}"])


def _faults(body: Json) -> Iterable[tuple[Steps, str]]:
    """Misspelled keys and secrets that are missing; also puts the secrets' values in their places."""
    yield from _unknown((), body, FIELDS)
    if not isinstance(body.get("name"), str) or not body["name"].strip():
        yield ("name",), "`name` is required: the agent is found by it."
    if "engine" in body:
        yield from _faults_of_engine(body["engine"])
    settings = body.get("settings", {})
    if not isinstance(settings, dict):
        yield ("settings",), "`settings` is a table: [settings]."
        return
    settings = cast("Json", settings)
    yield from _unknown(("settings",), settings, _SETTINGS)
    for group, known in (("mcpServers", _SERVER), ("tools", _RULE)):
        for name, entry in cast("Json", _table(settings.get(group))).items():
            steps = ("settings", group, name)
            if not isinstance(entry, dict):
                yield steps, f"This is a table: [{'.'.join(map(_key, steps))}]."
                continue
            yield from _unknown(steps, cast("Json", entry), known)
            if group == "mcpServers":
                yield from _fill_in_secrets(steps, cast("Json", entry))


def _faults_of_engine(engine: object) -> Iterable[tuple[Steps, str]]:
    if not isinstance(engine, dict):
        yield ("engine",), "`engine` is a table: [engine]."
        return
    yield from _unknown(("engine",), cast("Json", engine), _ENGINE)
    yield from _fill_in_secrets(("engine",), cast("Json", engine))


def _table(value: object) -> object:
    return cast("Json", value) if isinstance(value, dict) else {}


def _unknown(steps: Steps, table: Json, known: Sequence[str]) -> Iterable[tuple[Steps, str]]:
    by_lower = {name.lower(): name for name in known}
    for key in table:
        if key in known:
            continue
        near = difflib.get_close_matches(key.replace("_", "").lower(), by_lower, 1)
        hint = f"Did you mean `{by_lower[near[0]]}`?" if near else f"Known keys: {', '.join(known)}."
        yield (*steps, key), f"Unknown key `{key}`. {hint}"


def _fill_in_secrets(steps: Steps, server: Json) -> Iterable[tuple[Steps, str]]:
    for group in _SECRETS:
        for name, value in cast("Json", _table(server.get(group))).items():
            match value:
                case {"env": str(variable)} if len(cast("Json", value)) == 1:
                    if variable in os.environ:
                        server[group][name] = os.environ[variable]
                    else:
                        yield (*steps, group, name), f"The environment variable {variable} isn't set."
                case _:
                    text = (
                        f'Write {_key(name)} = {{ env = "VARIABLE" }}: the value comes from the environment, '
                        "so that no secret is in the file."
                    )
                    yield (*steps, group, name), text


def read_all(paths: Iterable[Path]) -> list[AgentFile]:
    """The agents in files, with everything that is wrong with the files."""
    files = [*map(read, paths)]
    first: dict[str, AgentFile] = {}
    for file in files:
        first.setdefault(file.name.casefold(), file)
    return [_checked_name(it, first[it.name.casefold()]) for it in files]


def _checked_name(file: AgentFile, first: AgentFile) -> AgentFile:
    """A file, with a fault if another one describes its agent, too."""
    if first is file or not file.name:
        return file
    twice = f"{file.place(('name',))}: {first.path} describes the agent {file.name!r}, too."
    return replace(file, faults=[*file.faults, twice])


def found_in(paths: Iterable[Path]) -> list[Path]:
    """The files that are named, and those in named folders, in order and each once."""
    found: dict[Path, Path] = {}
    for path in paths:
        inside = sorted(path.glob("*.toml")) if path.is_dir() else [path]
        if not inside:
            raise SettingsError(f"{path} has no files that end with .toml.")
        found |= {it.resolve(): it for it in inside}
    return list(found.values())


# Where a key is


def _place(path: Path, text: str, steps: Steps) -> str:
    for end in range(len(steps), 0, -1):
        if (line := line_of(text, steps[:end])) is not None:
            return f"{path}:{line}"
    return str(path)


def line_of(text: str, steps: Steps) -> int | None:
    """The line of a key: the last one that names it before which the file doesn't have it yet."""
    lines = text.splitlines()
    found = None
    for number, line in enumerate(lines):
        if steps[-1] in line and _lacks("\n".join(lines[:number]), steps):
            found = number + 1
    return found if not _lacks(text, steps) else None


def _lacks(text: str, steps: Steps) -> bool:
    try:
        value: Any = tomllib.loads(text)
    except tomllib.TOMLDecodeError:  # the text ends in the middle of a value
        return False
    for step in steps:
        if not isinstance(value, dict) or step not in value:
            return True
        value = cast("Json", value)[step]
    return False


# A file for an agent


def written(name: str, values: Iterable[tuple[Steps, Any]]) -> str:
    """A file for an agent with these values; its secrets become references to variables."""
    body: Json = {"name": name}
    for steps, value in values:
        if len(steps) > 3 and steps[1] == "mcpServers" and _USUAL_IN_SERVERS.get(steps[3]) == value:
            continue
        if [*steps] == ["engine", "repeat"] and value is False:
            continue
        place = body
        for step in steps[:-1]:
            place = place.setdefault(step, {})
        place[steps[-1]] = {"env": _variable(steps)} if _is_secret(steps) else value
    return "\n".join(_lines(body, ())).strip() + "\n"


def _is_secret(steps: Steps) -> bool:
    return (len(steps) > 3 and steps[3] in _SECRETS) or [*steps[:2]] == ["engine", "headers"]


def _variable(steps: Steps) -> str:
    if steps[0] == "engine":
        return re.sub(r"\W", "_", f"{steps[0]}_{steps[2]}").upper()
    name = steps[4] if steps[3] == "env" else f"{steps[2]}_{steps[4]}"
    return re.sub(r"\W", "_", name).upper()


def _lines(table: Json, steps: Steps) -> Iterable[str]:
    tables = {key: value for key, value in table.items() if _is_table(value)}
    if steps and len(tables) < len(table):
        yield f"\n[{'.'.join(map(_key, steps))}]"
    for key, value in table.items():
        if key not in tables:
            yield f"{_key(key)} = {_value(value)}"
    for key, value in tables.items():
        yield from _lines(value, (*steps, key))


def _is_table(value: object) -> bool:
    return isinstance(value, dict) and not isinstance(cast("Json", value).get("env"), str)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _value(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return _long_text(value) if "\n" in value else _text(value)
        case dict():
            return f"{{ env = {_text(cast('Json', value)['env'])} }}"
        case list():
            return f"[{', '.join(map(_value, cast('list[Any]', value)))}]"
        case _:
            return repr(value)


def _text(value: str) -> str:
    """A text as TOML writes it, which is JSON but for one character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _long_text(value: str) -> str:
    lines = (_text(line)[1:-1].replace('\\"', '"') for line in value.split("\n"))
    return '"""\n' + "\n".join(lines).replace('"""', '""\\"') + _closing(value)


def _closing(value: str) -> str:
    """The end of a long text; a quotation mark before it would count as part of the end."""
    return '\\\n"""' if value.endswith('"') else '"""'
