"""A turn's requests in the terminal: approval of a tool, a question, a form, an address, a client's tool."""

import json
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from msgspec import UNSET

from threadkeep.client.client import AnswerAction, AnswerScope
from threadkeep.domain.approval import ApprovalKind
from threadkeep.domain.text import visible
from threadkeep.wire.approvals import ApprovalView

# Rows of the terminal that a request takes beside its arguments, and those that arguments get in any case.
ROOM_FOR_QUESTION = 4
FEWEST_ROWS = 10

TOOL_KEYS = "[y] allow  [a] always here  [n] deny  [e] edit: "
LONG_TOOL_KEYS = "[s] show all  [n] deny  [e] edit: "
CLIENT_TOOL_KEYS = "Only the client that brought this tool can run it. [n] deny: "
FORM_KEYS = "[y] send  [c] change  [n] decline: "
_YES_NO = {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}

Show = Callable[[str], None]
Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedDecision:
    """The user's decision, or answer to a question."""

    action: AnswerAction
    scope: AnswerScope | None = None
    arguments: Json | None = None
    content: str | Json | None = None


DENY = TypedDecision(action="deny")


class Read:
    """Reads lines: `read(prompt)`, or `read(prompt, begin_with=text)` for a line that begins with a text."""

    def __init__(self, read: Callable[[str, str], str]) -> None:
        self._read = read

    def __call__(self, prompt: str, *, begin_with: str = "") -> str:
        """The line."""
        return self._read(prompt, begin_with).strip()

    def key(self, prompt: str, keys: str) -> str:
        """One of these keys."""
        while (key := self(prompt).lower()) not in {*keys}:
            pass
        return key


def ask(asked: ApprovalView, read: Read, show: Show) -> TypedDecision:
    """Asks for what a turn waits for; its message is already shown."""
    match asked.kind:
        case ApprovalKind.TOOL:
            return _ask_for_permission(asked, read, show)
        case ApprovalKind.QUESTION:
            return _ask_question(asked, read, show)
        case ApprovalKind.ELICITATION:
            if asked.url is not UNSET:
                return _send_to(asked.url, read, show)
            return _fill_in(asked.schema or {}, read, show)
        case ApprovalKind.CLIENT_TOOL:
            return _wait_for_client(asked, read, show)


def readable(arguments: Json) -> str:
    """Arguments for people, one per line."""
    return "\n".join(
        f"    {visible(name)}: {visible(_text(value))}".replace("\n", "\n      ")
        for name, value in arguments.items()
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _ask_for_permission(asked: ApprovalView, read: Read, show: Show) -> TypedDecision:
    """The user can allow a call only after all of its arguments were shown."""
    arguments = asked.arguments or {}
    whole = readable(arguments)
    shown = _on_screen(whole)
    if shown:
        show(shown)
    is_whole = shown == whole
    while True:
        match read.key(TOOL_KEYS, "yane") if is_whole else read.key(LONG_TOOL_KEYS, "sne"):
            case "s":
                show(whole)
                is_whole = True
            case "y":
                return TypedDecision(action="allow")
            case "a":
                return TypedDecision(action="allow", scope="conversation")
            case "n":
                return DENY
            case _:
                if (edited := _edit(arguments, read, show)) is not None:
                    return TypedDecision(action="edit", arguments=edited)


def _on_screen(text: str) -> str:
    """The text, if it fits on the screen with the question; otherwise its first and last rows."""
    screen = shutil.get_terminal_size()
    rows = [row for line in text.split("\n") for row in _rows(line, screen.columns)]
    half = max(screen.lines - ROOM_FOR_QUESTION, FEWEST_ROWS) // 2
    if len(rows) <= 2 * half:
        return text
    left_out = sum(map(len, rows[half:-half]))
    return "\n".join([*rows[:half], f"… {left_out:,} characters not shown …", *rows[-half:]])


def _rows(line: str, columns: int) -> Sequence[str]:
    """A line as a terminal breaks it, or in shorter pieces: some characters take two columns."""
    width = max(columns if line.isascii() else columns // 2, 1)
    return [line[at : at + width] for at in range(0, len(line), width)] or [""]


def _wait_for_client(asked: ApprovalView, read: Read, show: Show) -> TypedDecision:
    """Another client runs the call; until it does, the user can deny it."""
    if asked.arguments:
        show(_on_screen(readable(asked.arguments)))
    read.key(CLIENT_TOOL_KEYS, "n")
    return DENY


def _edit(arguments: Json, read: Read, show: Show) -> Json | None:
    """The edited arguments; None if the user leaves them as they are."""
    line = read("Arguments, as JSON: ", begin_with=visible(json.dumps(arguments, ensure_ascii=False)))
    if not line:
        return None
    try:
        edited = json.loads(line)
    except ValueError as exc:
        show(f"That isn't valid JSON: {exc}")
        return None
    if not isinstance(edited, dict):
        show("Arguments are a JSON object: {…}")
        return None
    return cast("Json", edited)


def _ask_question(asked: ApprovalView, read: Read, show: Show) -> TypedDecision:
    choices = _options(asked.schema or {})
    _show_options(choices, show)
    answer = read("Number, or empty line to decline: " if choices else "Empty line to decline: ")
    return TypedDecision(action="answer", content=_chosen(answer, choices)) if answer else DENY


def _send_to(url: str, read: Read, show: Show) -> TypedDecision:
    show(f"    {visible(url)}")
    while (line := read("Open this address in a browser. [Enter] done  [n] decline: ").lower()) not in {
        "",
        "n",
    }:
        pass
    return DENY if line else TypedDecision(action="answer")


def _fill_in(schema: Json, read: Read, show: Show) -> TypedDecision:
    """Fills in a form, field by field; the user can review it before it is sent."""
    given: dict[str, Any] = {}
    while True:
        for name, field in cast("Mapping[str, Json]", schema.get("properties", {})).items():
            _Field(name, given.get(name, field.get("default")), field, schema).fill(given, read, show)
        if given:
            show(readable(given))
        match read.key(FORM_KEYS, "ycn"):
            case "y":
                return TypedDecision(action="answer", content=given)
            case "n":
                return DENY
            case _:
                continue


class _Field:
    """One field of a form."""

    def __init__(self, name: str, default: object, field: Json, schema: Json) -> None:
        self._name = name
        self._default = default
        self._type = str(field.get("type", "string"))
        self._title = visible(str(field.get("title") or name))
        self._description = visible(str(field.get("description") or ""))
        self._is_required = name in schema.get("required", ())
        self._options = _options(field.get("items") or {} if self._type == "array" else field)

    def fill(self, given: dict[str, Any], read: Read, show: Show) -> None:
        """Asks until there is a value, or none is needed."""
        if self._description:
            show(f"  {self._description}")
        _show_options(self._options, show)
        given.pop(self._name, None)
        while True:
            line = read(self._prompt)
            if not line and self._default is not None:
                given[self._name] = self._default
                return
            if not line and not self._is_required:
                return
            try:
                given[self._name] = self._parse(line)
            except ValueError as exc:
                show(f"  {exc}")
            else:
                return

    @property
    def _prompt(self) -> str:
        kind = {"boolean": "y or n", "integer": "whole number", "number": "a number"}.get(self._type, "")
        if self._options:
            kind = "numbers separated by commas" if self._type == "array" else "a number"
        hints = [kind, "required" if self._is_required else "optional"]
        if self._default is not None:
            hints.append(f"Enter for {visible(_describe(self._default, self._options))}")
        return f"  {self._title} ({', '.join(filter(None, hints))}): "

    def _parse(self, line: str) -> object:
        if not line:
            raise ValueError("An answer is required.")
        match self._type:
            case "boolean":
                if line.lower() not in _YES_NO:
                    raise ValueError("Answer y or n.")
                return _YES_NO[line.lower()]
            case "integer" | "number" as kind:
                return _number(line, is_whole=kind == "integer")
            case "array":
                return [self._choose(it.strip()) for it in line.split(",") if it.strip()]
            case _:
                return self._choose(line) if self._options else line

    def _choose(self, line: str) -> str:
        chosen = _chosen(line, self._options)
        if chosen not in {value for value, _ in self._options}:
            raise ValueError(f"Choose a number from 1 to {len(self._options)}.")
        return chosen


def _number(line: str, *, is_whole: bool) -> int | float:
    try:
        return int(line) if is_whole or re.fullmatch(r"[+-]?\d+", line) else float(line)
    except ValueError:
        raise ValueError("That isn't a whole number." if is_whole else "That isn't a number.") from None


Options = Sequence[tuple[str, str]]
"""The choices: values, and how they are shown."""


def _options(schema: Json) -> Options:
    if choices := schema.get("oneOf") or schema.get("anyOf"):
        return [(it["const"], it.get("title") or it["const"]) for it in cast("Sequence[Json]", choices)]
    values = cast("Sequence[str]", schema.get("enum") or ())
    names = cast("Sequence[str]", schema.get("enumNames") or ())
    return list(zip(values, names if len(names) == len(values) else values, strict=True))


def _show_options(options: Options, show: Show) -> None:
    if options:
        show("\n".join(f"    {at}. {visible(title)}" for at, (_, title) in enumerate(options, 1)))


def _chosen(line: str, options: Options) -> str:
    """The option with this number, the only one that begins like this, or the text itself."""
    if line.isdecimal() and 0 < int(line) <= len(options):
        return options[int(line) - 1][0]
    typed = line.casefold()
    titles = [(value, title.casefold()) for value, title in options]
    exact = [value for value, title in titles if title == typed]
    begun = [value for value, title in titles if title.startswith(typed)]
    return exact[0] if exact else begun[0] if len(begun) == 1 else line


def _describe(value: object, options: Options) -> str:
    if isinstance(value, bool):
        return "y" if value else "n"
    if isinstance(value, list):
        return ", ".join(_describe(it, options) for it in cast("list[object]", value))
    return next((title for it, title in options if it == value), str(value))
