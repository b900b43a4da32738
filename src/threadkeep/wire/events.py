"""Events of a turn as JSON: flat objects that begin with `type`, `turn_id`, `seq` and `at`, in this order.

Changing this file changes what is stored: a turn's log consists of these objects (`log/format.py`), and logs
are kept. A later version must still read every field that an earlier one wrote. A version that writes what
earlier ones can't read has a higher `LOG_VERSION` (`storage/turns.py`), so that their nodes leave such turns
alone.
"""

from dataclasses import fields
from typing import Any, assert_never, get_args

import msgspec

from threadkeep.domain.errors import ThreadkeepError
from threadkeep.domain.events import (
    ApprovalRequest,
    ApprovalResponse,
    Done,
    EventBody,
    Failed,
    IterationRestart,
    IterationStart,
    Notice,
    Retrieval,
    ReturnedImage,
    StepChanged,
    Text,
    Thought,
    ToolCalled,
    ToolProgress,
    ToolResultStored,
    TurnEvent,
    TurnResumed,
    TurnStart,
    UsageReported,
    UserMessage,
)
from threadkeep.domain.message import Usage
from threadkeep.domain.retrieval import RetrievalHit


class UnreadableEvent(ThreadkeepError):
    """An event that this version can't read."""


class _Head(msgspec.Struct):
    type: str
    turn_id: str
    seq: int
    at: int


PRIVATE = frozenset({"model_name"})
"""Fields of events that only the server needs: no client sees them."""

_encode = msgspec.json.Encoder().encode
_decode_head = msgspec.json.Decoder(_Head).decode
_BODIES: dict[str, msgspec.json.Decoder[EventBody]] = {
    body.type: msgspec.json.Decoder(body) for body in get_args(EventBody)
}


def encode_event(event: TurnEvent) -> bytes:
    """An event as JSON, as clients may see it."""
    # The head is formatted by hand, since it is the same for all: ids and types need no escaping.
    head = f'{{"type":"{event.body.type}","turn_id":"{event.turn_id}","seq":{event.seq},"at":{event.at},'
    return head.encode() + _encode(_further_fields(event.body))[1:]


def _further_fields(body: EventBody) -> object:
    match body:
        case Text() | Thought():
            return body
        case TurnStart() | Notice() | Failed():
            return body
        case IterationStart() | IterationRestart():
            return _without_empty(body, "step_id", "is_checked")
        case UsageReported():
            return _without_empty(body, "model", "cost")
        case Done():
            return _present(body, "output") | {"usage": _present(body.usage, "cost")}
        case TurnResumed() | UserMessage():
            return body
        case ApprovalRequest():
            return _without_empty(body, "tool_call_id", "schema", "url")
        case ApprovalResponse():
            return _without_empty(body, "scope", "arguments", "content")
        case ToolCalled():
            return _without_empty(body, "asks", "parent_id")
        case Retrieval():
            hits = [_present(hit, "url", "file_name") for hit in body.hits]
            return _without_empty(body, "tool_call_id") | {"hits": hits}
        case ToolProgress():
            return _without_empty(body, "total", "message")
        case StepChanged():
            return _without_empty(body, "title", "duration_ms", "parent_id", "agent")
        case ToolResultStored():
            other = "error" if body.error is None else "result"
            values = _without_empty(body, other, "chart_data", "artifact_ids", "images")
            return values | {"images": list(map(_shown_image, body.images))} if body.images else values
        case _ as never:
            assert_never(never)


_WithOptional = (
    IterationStart
    | IterationRestart
    | Retrieval
    | ToolCalled
    | ToolProgress
    | ToolResultStored
    | StepChanged
    | ApprovalRequest
    | ApprovalResponse
    | UsageReported
)


def _without_empty(body: _WithOptional, *optional: str) -> dict[str, Any]:
    values = _present(body, *optional)
    if not values.get("refs"):
        values.pop("refs", None)
    return values


def _present(value: _WithOptional | RetrievalHit | Done | Usage, *optional: str) -> dict[str, Any]:
    """The fields that clients see; optional ones with their default are left out."""
    shown = ((it, getattr(value, it.name)) for it in fields(value) if it.name not in PRIVATE)
    return {it.name: said for it, said in shown if it.name not in optional or said != it.default}


def _shown_image(image: ReturnedImage) -> dict[str, Any]:
    return {it.name: getattr(image, it.name) for it in fields(image) if it.name != "refs"}


def decode_event(raw: bytes | str) -> TurnEvent:
    """An event from its JSON."""
    try:
        head = _decode_head(raw)
        body = _BODIES.get(head.type)
        if body is None:
            raise UnreadableEvent(f"Unknown event type {head.type!r}.")
        return TurnEvent(head.turn_id, head.seq, head.at, body.decode(raw))
    except msgspec.DecodeError as exc:
        raise UnreadableEvent(f"Couldn't read an event: {exc}") from exc
