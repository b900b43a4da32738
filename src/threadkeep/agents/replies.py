"""What models are asked, and what they reply."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, cast

import msgspec

from threadkeep.agents.errors import NotJson, TurnMisused
from threadkeep.agents.json_schemas import schema_of
from threadkeep.agents.values import Unstorable, decode, encode, is_structured, plain, with_article
from threadkeep.domain.errors import InvalidRequest
from threadkeep.domain.money import parse_amount
from threadkeep.domain.outputs.json_text import json_in
from threadkeep.wire.programs import ModelMessageItem, ModelReply, ModelToolCall


@dataclass(frozen=True, slots=True)
class Usage:
    """What a model call used. A step that streams yields it for a call of its own."""

    model: str
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int = 0
    cost: str | Decimal | None = None
    """In the currency of the server's prices."""

    def __post_init__(self) -> None:
        if self.cost is not None:
            try:
                parse_amount(str(self.cost))
            except InvalidRequest as exc:
                raise ValueError(f"`cost` can't be {self.cost!r}. {exc.message}") from None


@dataclass(frozen=True, slots=True)
class Thought:
    """A piece of reasoning, from a step that streams."""

    text: str


@dataclass(frozen=True, slots=True)
class Result:
    """What a step that streams returns instead of its text."""

    value: Any


@dataclass(frozen=True, slots=True)
class Shown:
    """What a tool returns whose value says nothing to people."""

    value: Any
    shows: Any
    """What is shown instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a model replied."""

    text: str
    tool_calls: tuple[ModelToolCall, ...] = ()
    usage: Usage
    model: str
    stop_reason: str
    output: Any = None
    """The reply as the `output` that was asked for."""
    steering: tuple[str, ...] = ()
    """What the user sent meanwhile; the model was given it after the messages."""
    blocks: tuple[dict[str, Any], ...] = ()
    is_shown: bool = True

    @property
    def message(self) -> ModelMessageItem:
        """The reply as it goes back to a model."""
        return ModelMessageItem("assistant", list(self.blocks) or self.text)


@dataclass(frozen=True, slots=True)
class StructuredReply:
    """What a function returns whose reply is a value, too; the text is None if it was said before."""

    value: Any
    text: str | None

    @staticmethod
    def of(value: Any) -> "StructuredReply":
        """A value with its JSON as the text; raises Unstorable."""
        return StructuredReply(value, msgspec.json.format(encode(value), indent=2).decode())


def text_and_value(returned: object, agent: str) -> tuple[str | None, object]:
    """What an agent's function has returned: its text, unless that was said before, and the value that it is,
    if it is one.
    """
    match returned:
        case None | str():
            return returned, None
        case Reply():
            return None if returned.is_shown else returned.text, returned.output
        case StructuredReply():
            return returned.text, returned.value
        case _ if is_structured(returned):
            try:
                return StructuredReply.of(returned).text, returned
            except Unstorable as exc:
                raise NotJson(f"What agent {agent!r} returned isn't JSON", str(exc)) from exc
        case _:
            kind = with_article(type(returned).__qualname__)
            raise TurnMisused(f"Agent {agent!r} returned {kind}; return a text, an object, or nothing.")


Messages = str | Sequence["ModelMessageItem | dict[str, Any] | str"]


def read_messages(given: Messages) -> list[ModelMessageItem]:
    """Messages for a model as code writes them: a text, dicts with `role` and `content`, or messages."""
    items = [given] if isinstance(given, str) else given
    return [_read_message(it) for it in items]


def _read_message(given: "ModelMessageItem | dict[str, Any] | str") -> ModelMessageItem:
    if isinstance(given, ModelMessageItem):
        return given
    if isinstance(given, str):
        return ModelMessageItem("user", given)
    try:
        return msgspec.convert(plain(given), ModelMessageItem)
    except (Unstorable, msgspec.ValidationError) as exc:
        raise NotJson(
            "A message for a model is a text, or has `role` (user, assistant) and `content`", str(exc)
        ) from exc


def user_message(content: "str | list[dict[str, Any]]") -> ModelMessageItem:
    """A message for a model."""
    return ModelMessageItem("user", content)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a reply is to be, besides a text."""

    kind: Any = None
    schema: dict[str, Any] | None = None

    @staticmethod
    def of(output: Any) -> "Wanted":
        """A type, a JSON schema, or nothing."""
        if output is None:
            return Wanted()
        if isinstance(output, dict):
            return Wanted(Any, cast("dict[str, Any]", output))
        return Wanted(output, schema_of(output))

    def read(self, reply: ModelReply, *, is_shown: bool, steering: tuple[str, ...]) -> Reply:
        """A reply as it was recorded; raises Unstorable if it isn't what was wanted."""
        return Reply(
            text=reply.text,
            tool_calls=reply.tool_calls,
            usage=Usage(reply.model, reply.input_tokens, reply.output_tokens),
            model=reply.model,
            stop_reason=reply.stop_reason,
            output=reply.output
            if self.schema is None or reply.tool_calls or reply.stop_reason == "refusal"
            else decode(json_in(reply.text).encode(), self.kind),
            steering=steering,
            blocks=reply.blocks,
            is_shown=is_shown,
        )


def tool_result(call_id: str, text: str, *, is_error: bool) -> dict[str, Any]:
    """What a tool returned, as a block of a message."""
    return {"type": "tool_result", "tool_use_id": call_id, "content": text, "is_error": is_error}
