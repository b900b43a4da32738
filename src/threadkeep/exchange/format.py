"""Our own format: one JSON object per line, described in docs/data.md.

Domain values have the same field names there as here. The tests' files of version 1 must always be readable,
so renaming a field here means still reading the old name. Messages of version 1 have no parts.
"""

from dataclasses import dataclass, field, fields
from typing import Any, TypeVar, assert_never, cast, get_args

import msgspec

from threadkeep.domain.agent import Agent
from threadkeep.domain.briefing import Briefing, BriefingCard
from threadkeep.domain.compaction import Compaction
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.document import Document
from threadkeep.domain.ids import AgentId, ConversationId, MessageId, PayloadId, TurnId
from threadkeep.domain.mcp import McpServer, RemoteServer, StdioServer
from threadkeep.domain.memory import Memory
from threadkeep.domain.message import Failure, Message, MessageRole, MessageStatus, Usage
from threadkeep.domain.old_reply import OldReply
from threadkeep.domain.parts import CardPart, FilePart, Part, Parts, ThoughtStep, text_parts
from threadkeep.domain.payload import Payload, PayloadKind
from threadkeep.domain.retrieval import Citation
from threadkeep.domain.secret import Secret
from threadkeep.domain.times import nearest_time
from threadkeep.domain.tool_call import ToolCall
from threadkeep.domain.turn import Turn
from threadkeep.ports.exchange import (
    ConversationEnd,
    ExportEnd,
    ExportHeader,
    KeptMemory,
    KeptTurn,
    KnownAgent,
    OwnAgent,
    Record,
)

HEADER = "threadkeep-export"

# What belongs to one database or one user only, or must stay private.
_LEFT_OUT = {
    "agent": {"owner_id": None, "is_default": False, "deleted_at": None},
    "conversation": {"user_id": "", "session_id": Secret(""), "active_turn_id": None, "deleted_at": None},
    "briefing": {"user_id": ""},
}
_PLAIN: dict[str, type[Record]] = {
    HEADER: ExportHeader,
    "known_agent": KnownAgent,
    "document": Document,
    "conversation": Conversation,
    "payload": Payload,
    "compaction": Compaction,
    "conversation_end": ConversationEnd,
    "briefing": Briefing,
    "end": ExportEnd,
}
_PARTS: dict[object, type[Part]] = {kind.type: kind for kind in get_args(Part)}
_KINDS = {type_: kind for kind, type_ in _PLAIN.items()}

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


@dataclass(frozen=True, slots=True)
class Before:
    """What earlier lines say about a message: how turns ended, and which files there are."""

    ends: dict[str, MessageStatus] = field(default_factory=dict[str, MessageStatus])
    files: dict[PayloadId, FilePart] = field(default_factory=dict[PayloadId, FilePart])

    def note(self, record: KeptTurn | Payload) -> None:
        """Remembers a line."""
        if isinstance(record, KeptTurn):
            if not record.turn.is_active:
                self.ends[record.turn.id] = MessageStatus(record.turn.status.value)
        elif record.kind is PayloadKind.ARTIFACT:
            self.files[record.id] = FilePart(
                file_id=record.id,
                file_name=record.file_name or "",
                media_type=record.media_type,
                size=record.size,
            )


NOTHING_BEFORE = Before()


class _MessageLine(msgspec.Struct, kw_only=True):
    """A message without its parts."""

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


class _OldMessageLine(_MessageLine, kw_only=True):
    """A message of version 1."""

    content: str | BriefingCard
    thought_process: tuple[ThoughtStep, ...] = ()
    citations: tuple[Citation, ...] = ()
    artifact_ids: tuple[PayloadId, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()


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
            ExportHeader() | KnownAgent() | Document() | Conversation() | Payload() | Compaction()
            | ConversationEnd() | Briefing() | ExportEnd()
        ):  # fmt: skip
            kind, values = _KINDS[type(record)], _builtins(record)
        case _ as never:
            assert_never(never)
    left_out = _LEFT_OUT.get(kind, {})
    return _encode({"type": kind, **{name: it for name, it in values.items() if name not in left_out}})


def decode(line: bytes, before: Before = NOTHING_BEFORE) -> Record | None:
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
            return _message(values, before)
        case _:
            return _convert(values, _PLAIN[kind]) if kind in _PLAIN else None


# Where else times occur; arguments and results of tools stay as they are.
_WITH_TIMES = {"parts", "call", "card", "content", "thought_process", "tool_calls"}


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
    values["parts"] = [{"type": part.type, **_builtins(part)} for part in message.parts]
    return {name: msgspec.to_builtins(value) for name, value in values.items()}


def _message(values: dict[str, Any], before: Before) -> Message:
    if "parts" in values:
        line = _convert(values, _MessageLine)
        parts = tuple(map(_part, msgspec.convert(values["parts"], list[dict[str, Any]])))
    else:
        line = _convert(values, _OldMessageLine)
        parts = _old_parts(line, before)
    on_path = line.status is not MessageStatus.OVERWRITTEN
    kept = {name: getattr(line, name) for name in _MessageLine.__struct_fields__}
    kept["status"] = line.status if on_path else _ended(line, before)
    return Message(**kept, parts=parts, on_path=on_path)


def _old_parts(line: "_OldMessageLine", before: Before) -> Parts:
    """The parts of a message of version 1."""
    if isinstance(line.content, BriefingCard):
        return (CardPart(card=line.content),)
    if line.role is not MessageRole.ASSISTANT:
        return text_parts(line.content)
    old = OldReply(
        content=line.content,
        created_at=line.created_at,
        steps=line.thought_process,
        citations=line.citations,
        files=tuple(before.files.get(it, FilePart(file_id=it)) for it in line.artifact_ids),
        calls=line.tool_calls,
    )
    return old.parts()


def _ended(line: "_MessageLine", before: Before) -> MessageStatus:
    """The final status of a message off the path: a reply has its turn's."""
    is_reply = line.role is MessageRole.ASSISTANT and line.turn_id is not None
    return (
        before.ends.get(line.turn_id or "", MessageStatus.COMPLETED) if is_reply else MessageStatus.COMPLETED
    )


def _part(values: dict[str, Any]) -> Part:
    kind = values.get("type")
    if not isinstance(kind, str) or kind not in _PARTS:
        raise msgspec.ValidationError(f"unknown part type {kind!r}")
    return _convert(values, _PARTS[kind])


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
