"""Our own format: one JSON object per line, described in docs/data.md.

Domain values have the same field names there as here, except for `decision`, which is `answer` in files. The
files of version 2 must always be readable: if a domain value's field is renamed, files keep the old name.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar, assert_never, cast, get_args

import msgspec

from threadkeep.domain.agent import Agent
from threadkeep.domain.briefing import Briefing
from threadkeep.domain.compaction import Compaction
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.document import Document
from threadkeep.domain.feedback import Feedback
from threadkeep.domain.ids import AgentId, ConversationId, MessageId, TurnId
from threadkeep.domain.mcp import McpServer, RemoteServer, StdioServer
from threadkeep.domain.memory import KeptMemory, Memory
from threadkeep.domain.message import Failure, Message, MessageRole, MessageStatus, Usage
from threadkeep.domain.parts import Part
from threadkeep.domain.payload import Payload
from threadkeep.domain.secret import Secret
from threadkeep.domain.times import nearest_time
from threadkeep.domain.turn import KeptTurn, Turn
from threadkeep.exports.records import (
    ConversationEnd,
    ExportEnd,
    ExportHeader,
    KnownAgent,
    OwnAgent,
    OwnInstructions,
    Record,
)

HEADER = "threadkeep-export"

# What belongs to one database or one user only, or must stay private.
_LEFT_OUT = {
    "agent": {"owner_id": None, "is_default": False, "deleted_at": None, "code": None},
    "conversation": {"user_id": "", "session_id": Secret(""), "active_turn_id": None, "deleted_at": None},
    "briefing": {"user_id": ""},
    "turn": {"key_id": None, "begun_with": None, "code": None},
}
_PLAIN: dict[str, type[Record]] = {
    HEADER: ExportHeader,
    "instructions": OwnInstructions,
    "known_agent": KnownAgent,
    "document": Document,
    "conversation": Conversation,
    "payload": Payload,
    "compaction": Compaction,
    "feedback": Feedback,
    "conversation_end": ConversationEnd,
    "briefing": Briefing,
    "end": ExportEnd,
}
_PARTS: dict[object, type[Part]] = {kind.type: kind for kind in get_args(Part)}
_KINDS = {type_: kind for kind, type_ in _PLAIN.items()}

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


TurnEnds = Mapping[TurnId, MessageStatus]
"""How the turns of earlier lines ended."""


class _MessageLine(msgspec.Struct, kw_only=True):
    """A message; `_part` reads its parts."""

    id: MessageId
    conversation_id: ConversationId
    seq: int
    turn_id: TurnId | None
    role: MessageRole
    status: MessageStatus
    created_at: int
    completed_at: int | None = None
    token_count: int | None = None
    usage: Usage | None = None
    model: str | None = None
    error: Failure | None = None
    parent_id: MessageId | None = None
    parts: list[dict[str, Any]]


def encode(record: Record) -> bytes:
    """A record as a line, without the line break."""
    match record:
        case OwnAgent():
            kind, values = "agent", _builtins(record.agent) | {"prompt_files": record.prompt_files}
        case KeptMemory():
            kind, values = "memory", _builtins(record.memory) | {"agent_id": record.agent_id}
        case KeptTurn():
            kind, values = "turn", _builtins(record.turn) | {"run_id": record.run_id}
        case Message():
            kind, values = "message", _message_values(record)
        case (
            ExportHeader() | OwnInstructions() | KnownAgent() | Document() | Conversation() | Payload()
            | Compaction() | Feedback() | ConversationEnd() | Briefing() | ExportEnd()
        ):  # fmt: skip
            kind, values = _KINDS[type(record)], _builtins(record)
        case _ as never:
            assert_never(never)
    left_out = _LEFT_OUT.get(kind, {})
    return _encode({"type": kind, **{name: it for name, it in values.items() if name not in left_out}})


def decode(line: bytes, turn_ends: TurnEnds | None = None) -> Record | None:
    """A line as a record; None for a kind that a later version added. MsgspecError otherwise."""
    values = _decode(line)
    kind = values.pop("type", None)
    if not isinstance(kind, str):
        raise msgspec.ValidationError("Object missing required field `type`")
    values = _with_valid_times(values | _LEFT_OUT.get(kind, {}))
    match kind:
        case "agent":
            files = values.pop("prompt_files", {})
            return OwnAgent(_convert(values, Agent), msgspec.convert(files, dict[str, str]))
        case "memory":
            agent_id = AgentId(msgspec.convert(values.pop("agent_id", None), str))
            return KeptMemory(agent_id, _convert(values, Memory))
        case "turn":
            run_id = msgspec.convert(values.pop("run_id", None), str | None)
            return KeptTurn(_convert(values, Turn), run_id)
        case "message":
            return _message(values, turn_ends or {})
        case _:
            return _convert(values, _PLAIN[kind]) if kind in _PLAIN else None


# Where else times occur; arguments and results of tools stay as they are.
_WITH_TIMES = {"parts", "call", "card"}


def _with_valid_times(value: Any) -> Any:
    """A line's values, with each time that can't be written replaced by the nearest valid one."""
    if isinstance(value, list):
        return [_with_valid_times(it) for it in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    return {name: _with_valid_time(name, it) for name, it in cast("dict[str, Any]", value).items()}


def _with_valid_time(name: str, value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool) and (name == "at" or name.endswith("_at")):
        return nearest_time(value)
    return _with_valid_times(value) if name in _WITH_TIMES else value


def _message_values(message: Message) -> dict[str, Any]:
    """A message with the status that clients see; each part names its type."""
    values = {it.name: getattr(message, it.name) for it in fields(message) if it.name != "on_path"}
    values["status"] = message.shown_status
    values["parts"] = [
        _renamed({"type": part.type, **_builtins(part)}, "decision", "answer") for part in message.parts
    ]
    return {name: msgspec.to_builtins(value) for name, value in values.items()}


def _message(values: dict[str, Any], turn_ends: TurnEnds) -> Message:
    line = _convert(values, _MessageLine)
    on_path = line.status is not MessageStatus.OVERWRITTEN
    kept = {name: getattr(line, name) for name in _MessageLine.__struct_fields__ if name != "parts"}
    kept["status"] = line.status if on_path else _ended(line, turn_ends)
    return Message(**kept, parts=tuple(map(_part, line.parts)), on_path=on_path)


def _ended(line: "_MessageLine", turn_ends: TurnEnds) -> MessageStatus:
    """The final status of a message off the path: a reply has its turn's."""
    if line.role is not MessageRole.ASSISTANT or line.turn_id is None:
        return MessageStatus.COMPLETED
    return turn_ends.get(line.turn_id, MessageStatus.COMPLETED)


def _part(values: dict[str, Any]) -> Part:
    kind = values.get("type")
    if not isinstance(kind, str) or kind not in _PARTS:
        raise msgspec.ValidationError(f"unknown part type {kind!r}")
    return _convert(_renamed(values, "answer", "decision"), _PARTS[kind])


def _renamed(values: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    """The values of a part, or of the requests about it, with another name for one of them."""
    for name in ("approval", "client_request"):
        if isinstance(request := values.get(name), dict):
            values = values | {name: _renamed(cast("dict[str, Any]", request), old, new)}
    return {new if name == old else name: it for name, it in values.items()}


def _builtins(value: object) -> dict[str, Any]:
    return msgspec.to_builtins(value, enc_hook=_without_secrets)


def _without_secrets(value: object) -> None:
    """An export contains only the names of a server's secrets."""
    if not isinstance(value, Secret):
        raise NotImplementedError(f"{type(value).__name__} can't be exported")


T = TypeVar("T")


def _convert(values: dict[str, Any], wanted: type[T]) -> T:
    return msgspec.convert(values, wanted, dec_hook=_built)


def _built(wanted: type, value: Any) -> object:
    """A server from a file that may be a stranger's: disabled until someone has reviewed it."""
    if wanted is object:  # any JSON, such as a tool's result
        return value
    if wanted is Secret and isinstance(value, Secret):  # our own, in place of what was left out
        return value
    if wanted is not McpServer or not isinstance(value, dict):
        raise TypeError(f"Expected `{wanted.__name__}`")
    kept = cast("dict[str, Any]", value)
    kept = {name: it for name, it in kept.items() if name not in {"env", "headers"}} | {"disabled": True}
    return msgspec.convert(kept, StdioServer if "command" in kept else RemoteServer)
