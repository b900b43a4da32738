"""Checks a whole conversation from a file, as strictly as if it had been made here; pure."""

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import assert_never

from threadkeep.domain.conversation import WholeConversation
from threadkeep.domain.document import MOST_NAME_CHARACTERS
from threadkeep.domain.errors import InvalidRequest
from threadkeep.domain.execution import MOST_ID_CHARACTERS
from threadkeep.domain.ids import MessageId, PayloadId, is_uuid
from threadkeep.domain.message import Message, MessageRole, MessageStatus, Usage
from threadkeep.domain.money import parse_amount
from threadkeep.domain.parts import (
    MOST_STEP_NAME_CHARACTERS,
    MOST_STEP_TITLE_CHARACTERS,
    CardPart,
    FilePart,
    NoticePart,
    OutputPart,
    QuestionPart,
    RetrievalPart,
    StepPart,
    TextPart,
    ThoughtPart,
    ToolCallPart,
    UserTextPart,
)
from threadkeep.domain.payload import Payload, PayloadKind
from threadkeep.domain.text import check_line, check_storable, is_blank, one_line
from threadkeep.domain.tool_call import ToolCall, ToolCallStatus
from threadkeep.engine.large_values import safe_file_name, safe_media_type

_SHA256 = re.compile(r"[0-9a-f]{64}")
_UNFINISHED = {MessageStatus.PENDING, MessageStatus.STREAMING}


def check_whole(whole: WholeConversation) -> WholeConversation:
    """The conversation with its counts recomputed, and types and names of files as an upload could have them.

    InvalidRequest if a reference in it is broken.
    """
    conversation = whole.conversation
    turn_ids = _unique("turn", (kept.turn.id for kept in whole.turns))
    for kept in whole.turns:
        _check_cost(kept.turn.usage)
    message_ids = _unique("message", (message.id for message in whole.messages))
    payload_ids = _unique("payload", (payload.id for payload in whole.payloads))
    _unique("compaction", (compaction.id for compaction in whole.compactions))
    _unique("conversation", [conversation.id])
    parts = (*whole.messages, *whole.payloads, *whole.compactions, *(kept.turn for kept in whole.turns))
    for part in parts:
        _require(part.conversation_id == conversation.id, f"{part.id} belongs to another conversation")
    for kept in whole.turns:
        turn = kept.turn
        _require(not turn.is_active, f"turn {turn.id} has not ended")
        for id_ in (turn.user_message_id, turn.assistant_message_id):
            _require(id_ in message_ids, f"turn {turn.id} refers to the missing message {id_!r}")
    for payload in whole.payloads:
        _require(_SHA256.fullmatch(payload.sha256) is not None, f"payload {payload.id} has no SHA-256")
    artifact_ids = {it.id for it in whole.payloads if it.kind is PayloadKind.FILE}
    last_seq = 0
    earlier_ids: set[MessageId | None] = {None}
    for message in whole.messages:
        _require(message.seq > last_seq, f"message {message.id} is out of order")
        _require(
            message.parent_id in earlier_ids, f"message {message.id} comes before the message it follows"
        )
        last_seq = message.seq
        earlier_ids.add(message.id)
        _check_message(message, turn_ids, artifact_ids, payload_ids)
    replies = {it.id for it in whole.messages if it.role is MessageRole.ASSISTANT}
    for rated in _unique("rating", (it.message_id for it in whole.feedback)):
        _require(rated in replies, f"the rating of {rated} belongs to no reply")
    ends = {0, *(compaction.to_seq for compaction in whole.compactions)}
    _require(conversation.archived_to_seq in ends, "it has archived messages but no summary")
    _require(max(ends) <= last_seq, "a summary covers messages that are missing")
    title = None if conversation.title is None else one_line(conversation.title)
    if title is not None:
        check_line(title, "title", most=10_000)
    on_path = [message.id for message in whole.messages if message.on_path]
    counted = replace(
        conversation,
        title=title,
        last_seq=last_seq,
        message_count=len(on_path),
        tip_id=on_path[-1] if on_path else None,
    )
    return replace(
        whole,
        conversation=counted,
        messages=[_with_safe_files(it) for it in whole.messages],
        payloads=[_safe_payload(it) for it in whole.payloads],
    )


def safe_name(file_name: str, media_type: str) -> str:
    """A file's name; one that a header or a list can't show as it is becomes one that they can."""
    is_safe = file_name.isprintable() and not is_blank(file_name) and len(file_name) <= MOST_NAME_CHARACTERS
    return file_name if is_safe else safe_file_name(file_name, media_type)


def _safe_payload(payload: Payload) -> Payload:
    """A payload whose type and name can be in a header, whatever its file said."""
    media_type = safe_media_type(payload.media_type)
    name = None if payload.file_name is None else safe_name(payload.file_name, media_type)
    if (media_type, name) == (payload.media_type, payload.file_name):
        return payload
    return replace(payload, media_type=media_type, file_name=name)


def _with_safe_files(message: Message) -> Message:
    if not any(isinstance(part, FilePart) for part in message.parts):
        return message
    parts = (_safe_file(part) if isinstance(part, FilePart) else part for part in message.parts)
    return replace(message, parts=tuple(parts))


def _safe_file(part: FilePart) -> FilePart:
    media_type = part.media_type and safe_media_type(part.media_type)
    return replace(
        part, media_type=media_type, file_name=part.file_name and safe_name(part.file_name, media_type)
    )


def _check_message(
    message: Message, turn_ids: set[str], artifact_ids: set[PayloadId], payload_ids: set[str]
) -> None:
    _require(message.status not in _UNFINISHED, f"message {message.id} is not finished")
    _require(message.turn_id is None or message.turn_id in turn_ids, f"message {message.id} has no turn")
    _check_cost(message.usage)
    for part in message.parts:
        match part:
            case ToolCallPart(call=call):
                _check_call(call, message, turn_ids, payload_ids)
                produced = set(call.artifact_ids)
                _require(produced <= artifact_ids, f"a file of message {message.id} is missing")
            case FilePart(is_elsewhere=True):
                check_line(part.file_id, "fileId", most=MOST_ID_CHARACTERS)
                is_plain = message.role is MessageRole.ASSISTANT and not part.refs and not part.tool_call_id
                _require(is_plain, f"message {message.id} has a file of another engine in the wrong place")
            case FilePart():
                _require(part.file_id in artifact_ids, f"a file of message {message.id} is missing")
                _require(payload_ids.issuperset(part.refs.values()), f"an image of {message.id} is missing")
            case TextPart() | ThoughtPart() | UserTextPart():
                check_storable(part.text, "parts")
            case StepPart():
                _check_step(part, message)
            case RetrievalPart() | QuestionPart() | NoticePart() | CardPart() | OutputPart():
                pass
            case _ as never:
                assert_never(never)
    _unique_call_ids(message)


def _check_call(call: ToolCall, message: Message, turn_ids: set[str], payload_ids: set[str]) -> None:
    fits = call.message_id == message.id and call.turn_id in turn_ids
    _require(fits, f"a tool call of {message.id} belongs to another message")
    _require(call.status is not ToolCallStatus.RUNNING, f"a tool call of {message.id} has not ended")
    _require(payload_ids.issuperset(call.refs.values()), f"a value of {call.tool_call_id} is missing")
    for text in (call.tool_call_id, call.tool_name, call.server, call.error or "", call.model_name):
        check_storable(text, "toolCalls")


def _check_step(step: StepPart, message: Message) -> None:
    _require(step.status != "running", f"a step of message {message.id} has not ended")
    check_line(step.step_id, "stepId", most=MOST_ID_CHARACTERS)
    check_line(step.name, "name", most=MOST_STEP_NAME_CHARACTERS)
    if step.title is not None:
        check_line(step.title, "title", most=MOST_STEP_TITLE_CHARACTERS)
    for id_ in (step.parent_id, step.agent):
        if id_ is not None:
            check_line(id_, "parts", most=MOST_ID_CHARACTERS)


def check_id(id_: str) -> str:
    """Rejects invalid ids."""
    _require(is_uuid(id_) and id_ == id_.lower(), f"{id_!r} is not a valid id")
    return id_


def _unique(noun: str, ids: Iterable[str]) -> set[str]:
    known: set[str] = set()
    for id_ in ids:
        check_id(id_)
        _require(id_ not in known, f"two of its {noun}s share the id {id_!r}")
        known.add(id_)
    return known


def _unique_call_ids(message: Message) -> None:
    calls = (part.call for part in message.parts if isinstance(part, ToolCallPart))
    names = [(call.turn_id, call.tool_call_id) for call in calls]
    _require(len(set(names)) == len(names), f"two tool calls of message {message.id} share an id")


def _check_cost(usage: Usage | None) -> None:
    if usage is not None and usage.cost is not None:
        parse_amount(usage.cost.amount)
        check_line(usage.cost.currency, "currency", most=3)


def _require(fits: bool, why: str) -> None:
    if not fits:
        raise InvalidRequest(why)
