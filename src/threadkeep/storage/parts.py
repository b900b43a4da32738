"""A message's parts as its row stores them, pure.

`content` is the text, or the card as JSON: what SQL checks, searches and makes titles from. It is not stored
twice. `parts` is NULL if the content says it all: one text, one card, or nothing yet. Otherwise it is a
JSON list in which a text is a slice of the content, and a tool call the id of its row in `tk_tool_calls`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from threadkeep.domain.approval import CallApproval, Decision
from threadkeep.domain.briefing import BriefingCard
from threadkeep.domain.errors import StorageConflict
from threadkeep.domain.ids import PayloadId
from threadkeep.domain.message import ContentType, Message, MessageRole
from threadkeep.domain.parts import (
    CardPart,
    FilePart,
    NoticePart,
    OutputPart,
    Part,
    Parts,
    QuestionPart,
    RetrievalPart,
    StepPart,
    StepStatus,
    TextPart,
    ThoughtPart,
    ToolCallPart,
    UserTextPart,
    card_of,
    joined_texts,
)
from threadkeep.domain.retrieval import RetrievalHit
from threadkeep.domain.tool_call import ToolCall
from threadkeep.storage.database.columns import to_json
from threadkeep.storage.database.unchecked import unchecked

Calls = Mapping[str, ToolCall]

_text_part, _tool_call_part = unchecked(TextPart), unchecked(ToolCallPart)
# Naming an enumeration's member is slow, and pages have many messages.
_TEXT, _CARD, _ASSISTANT = ContentType.TEXT.value, ContentType.BRIEFING_CARD.value, MessageRole.ASSISTANT
decode_card = msgspec.json.Decoder(BriefingCard).decode


class _Kept(msgspec.Struct, tag_field="type", omit_defaults=True, kw_only=True):
    iteration: int = 0
    superseded: bool = False

    def part(self, content: str, calls: Calls) -> Part | None:
        """The part; None for a call whose row a purge has deleted since the message was read."""
        return _ALIKE[type(self)](**msgspec.structs.asdict(self))


class _Text(_Kept, tag="text", kw_only=True):
    """A slice of the content; superseded text is not in the content."""

    begin: int = 0
    length: int = 0
    text: str | None = None

    def part(self, content: str, calls: Calls) -> Part:
        text = content[self.begin : self.begin + self.length] if self.text is None else self.text
        return _text_part(text=text, iteration=self.iteration, superseded=self.superseded)


class _Thought(_Kept, tag="thought", kw_only=True):
    text: str
    started_at: int
    duration_ms: int = 0
    title: str | None = None


class _Approval(msgspec.Struct, kw_only=True):
    request_id: str
    message: str
    expires_at: int
    decision: Decision | None = msgspec.field(name="answer", default=None)


class _ToolCall(_Kept, tag="tool_call", kw_only=True):
    id: str
    approval: _Approval | None = None
    client_request: _Approval | None = None
    parent_id: str | None = None

    def part(self, content: str, calls: Calls) -> Part | None:
        call = calls.get(self.id)
        if call is None:
            return None
        return _tool_call_part(
            call=call,
            approval=_call_approval(self.approval),
            client_request=_call_approval(self.client_request),
            parent_id=self.parent_id,
            iteration=self.iteration,
            superseded=self.superseded,
        )


class _Retrieval(_Kept, tag="retrieval", kw_only=True):
    query: str
    hits: tuple[RetrievalHit, ...]
    at: int
    tool_call_id: str | None = None


class _Question(_Kept, tag="question", kw_only=True):
    request_id: str
    message: str
    at: int
    expires_at: int
    tool_call_id: str | None = None
    schema: dict[str, Any] | None = None
    url: str | None = None
    decision: Decision | None = msgspec.field(name="answer", default=None)


class _UserText(_Kept, tag="user_text", kw_only=True):
    message_id: str
    text: str
    at: int


class _Step(_Kept, tag="step", kw_only=True):
    step_id: str
    name: str
    status: StepStatus
    at: int
    title: str | None = None
    duration_ms: int | None = None
    parent_id: str | None = None
    agent: str | None = None


class _Notice(_Kept, tag="notice", kw_only=True):
    code: str
    message: str
    at: int


class _File(_Kept, tag="file", kw_only=True):
    file_id: PayloadId
    file_name: str = ""
    media_type: str = ""
    size: int = 0
    width: int | None = None
    height: int | None = None
    refs: dict[str, PayloadId] = {}
    pages: int | None = None
    tool_call_id: str | None = None
    is_elsewhere: bool = False


class _Output(_Kept, tag="output", kw_only=True):
    value: Any


_AnyKept = (
    _Text | _Thought | _ToolCall | _Retrieval | _Question | _UserText | _Step | _Notice | _File | _Output
)
_decode = msgspec.json.Decoder(list[_AnyKept]).decode

# Those with the fields of their parts.
_KEPT: Mapping[type[Part], type[_AnyKept]] = {
    ThoughtPart: _Thought,
    RetrievalPart: _Retrieval,
    QuestionPart: _Question,
    UserTextPart: _UserText,
    StepPart: _Step,
    NoticePart: _Notice,
    FilePart: _File,
    OutputPart: _Output,
}
_ALIKE: Mapping[type[_Kept], Callable[..., Part]] = {kept: unchecked(part) for part, kept in _KEPT.items()}


def to_columns(message: Message) -> dict[str, Any]:
    """The columns of a message's row that hold its parts."""
    parts, card = message.parts, card_of(message.parts)
    content = message.text if card is None else to_json(card)
    columns: dict[str, Any] = {
        "content": content,
        "content_type": _TEXT if card is None else _CARD,
        "parts": None,
        "tool_call_count": 0,
        "file_count": 0,
    }
    if not _is_implied(parts, message.role):
        columns["parts"] = to_json(_kept(parts))
        columns["tool_call_count"] = len(calls_in(parts))
        columns["file_count"] = sum(isinstance(part, FilePart) for part in parts)
    return columns


def calls_in(parts: Parts) -> list[ToolCall]:
    """The tool calls in parts; each has a row."""
    return [part.call for part in parts if isinstance(part, ToolCallPart)]


def to_parts(
    role: MessageRole, content_type: str, content: str, kept: str | None, calls: Iterable[ToolCall]
) -> Parts:
    """The parts of a message from the columns of its row and its tool calls."""
    if kept is None:  # the content says it all
        if content_type != _TEXT:
            return (CardPart(card=decode_card(content)),)
        return (_text_part(text=content, iteration=_iteration(role)),) if content else ()
    by_id = {call.tool_call_id: call for call in calls}
    parts = (it.part(content, by_id) for it in _decode(kept))
    return tuple(part for part in parts if part is not None)


def _is_implied(parts: Parts, role: MessageRole) -> bool:
    """Whether the content says it all: nothing, a card, or one text (a reply's of its first model call)."""
    match parts:
        case () | (CardPart(),):
            return True
        case (TextPart(superseded=False) as part,):
            return bool(part.text) and part.iteration == _iteration(role)
        case _:
            return False


def _iteration(role: MessageRole) -> int:
    return 1 if role is _ASSISTANT else 0


def _kept(parts: Parts) -> list[_AnyKept]:
    begins = _begins(parts)
    return [_keep(part, begins) for part in parts]


def _begins(parts: Parts) -> Iterator[int]:
    """Where in the content each text that counts begins."""
    end = 0
    for part, joined in joined_texts(parts):
        end += len(joined)
        yield end - len(part.text)


def _keep(part: Part, begins: Iterator[int]) -> _AnyKept:
    common: dict[str, Any] = {"iteration": part.iteration, "superseded": part.superseded}
    match part:
        case TextPart(superseded=True):
            return _Text(text=part.text, **common)
        case TextPart():
            return _Text(begin=next(begins), length=len(part.text), **common)
        case ToolCallPart():
            return _ToolCall(
                id=part.call.tool_call_id,
                approval=_approval(part.approval),
                client_request=_approval(part.client_request),
                parent_id=part.parent_id,
                **common,
            )
        case CardPart():
            raise StorageConflict("A card is a message of its own.")
        case _:
            return msgspec.convert(part, _KEPT[type(part)], from_attributes=True)


def _call_approval(kept: _Approval | None) -> CallApproval | None:
    return None if kept is None else CallApproval(**msgspec.structs.asdict(kept))


def _approval(approval: CallApproval | None) -> _Approval | None:
    return None if approval is None else msgspec.convert(approval, _Approval, from_attributes=True)
