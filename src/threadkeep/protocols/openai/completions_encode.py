"""A turn's events → a chat completion, streamed or whole.

One message of the assistant, however many times its model was called: calls of the agent's own tools are not
shown, since `tool_calls` ask the client to run them. A turn that waits for its user ends with what it asks.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from threadkeep.domain import events
from threadkeep.domain.approval import ApprovalKind
from threadkeep.domain.events import LogChunk
from threadkeep.domain.message import Usage
from threadkeep.domain.parts import BLANK_LINE
from threadkeep.domain.turn import Turn
from threadkeep.handling.stream import StreamEnd
from threadkeep.log.format import decode_chunk
from threadkeep.protocols.checked import CheckedReplies
from threadkeep.protocols.narrator import JoiningNarrator, Narrator
from threadkeep.protocols.openai.errors import error_of, told
from threadkeep.sse import frame

FinishReason = Literal["stop", "length", "tool_calls", "content_filter"]

_FINISH: Mapping[str, FinishReason] = {"max_tokens": "length", "refusal": "content_filter"}
_DONE = frame(b"[DONE]")
_encode = msgspec.json.Encoder().encode


class Function(Struct, frozen=True):
    """A function with its arguments as JSON."""

    name: str
    arguments: str


class FunctionCall(Struct, frozen=True, omit_defaults=True):
    """A call for the client to run; pieces of a stream are numbered."""

    id: str
    function: Function
    type: Literal["function"] | UnsetType = UNSET
    index: int | UnsetType = UNSET


class PromptDetails(Struct, frozen=True):
    """How much of the input the provider had cached."""

    cached_tokens: int


class CompletionUsage(Struct, frozen=True):
    """The tokens of all model calls."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptDetails


class ReplyMessage(Struct, frozen=True, kw_only=True):
    """The reply."""

    role: Literal["assistant"] = "assistant"
    content: str | None
    refusal: str | None = None
    reasoning_content: str | UnsetType = UNSET
    tool_calls: Sequence[FunctionCall] | UnsetType = UNSET


class Choice(Struct, frozen=True, kw_only=True):
    """The one reply, and why it ends."""

    index: int = 0
    message: ReplyMessage
    logprobs: None = None
    finish_reason: FinishReason


class ChatCompletion(Struct, frozen=True, kw_only=True):
    """A whole chat completion."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: Sequence[Choice]
    usage: CompletionUsage


@dataclass(frozen=True, slots=True)
class CompletionHead:
    """What is known about a chat completion before its first event."""

    id: str
    created: int
    model: str
    """As the client named it."""
    after: int = 0
    """The number of the last event of the turn that belongs to an earlier completion."""

    @staticmethod
    def of(turn: Turn, model: str, after: int = 0) -> "CompletionHead":
        """That of a turn's completion."""
        id_ = f"chatcmpl-{turn.id.replace('-', '')}"
        return CompletionHead(f"{id_}-{after}" if after else id_, turn.started_at // 1000, model, after)


def _question(narrator: Narrator[bytes]) -> str:
    """What the turn asks its user, if it waits for that."""
    asked = (it.request for it in narrator.open_requests)
    return BLANK_LINE.join(it.message for it in asked if it.kind is not ApprovalKind.CLIENT_TOOL)


def _calls(narrator: Narrator[bytes]) -> Sequence[events.ToolCalled]:
    """The calls that wait for the client."""
    asked = narrator.open_requests
    return [it.call.event for it in asked if it.call and it.request.kind is ApprovalKind.CLIENT_TOOL]


def _finish_reason(narrator: Narrator[bytes], refusal: str | None) -> FinishReason:
    """Why the completion ends."""
    if refusal is not None:
        return "stop"
    if isinstance(narrator.end, events.Done):
        return _FINISH.get(narrator.end.stop_reason, "stop")
    return "tool_calls" if _calls(narrator) else "stop"


def _usage(used: Usage) -> CompletionUsage:
    return CompletionUsage(
        prompt_tokens=used.input_tokens,
        completion_tokens=used.output_tokens,
        total_tokens=used.input_tokens + used.output_tokens,
        prompt_tokens_details=PromptDetails(used.cache_read_tokens),
    )


def _function_call(call: events.ToolCalled, index: int | UnsetType = UNSET) -> FunctionCall:
    function = Function(call.tool_name, _encode(call.arguments).decode())
    return FunctionCall(call.tool_call_id, function, type="function", index=index)


class WholeCompletion:
    """A chat completion from all events of its turn, in order."""

    def __init__(self, head: CompletionHead) -> None:
        self._head = head
        self._narrator = JoiningNarrator[bytes]()
        self._checked = CheckedReplies(only_json=True)

    def add(self, events_: Iterable[events.TurnEvent]) -> None:
        """The next events."""
        for event in events_:
            for body in self._checked.passing(event.body):
                self._narrator.narrate(body)
            if event.seq <= self._head.after:
                self._narrator.begin_response()

    def completion(self) -> ChatCompletion:
        """The completion once its turn has ended or waits; raises the error of a turn that failed."""
        narrator = self._narrator
        if isinstance(narrator.end, events.Failed):
            raise error_of(narrator.end)
        if question := _question(narrator):
            narrator.say(question)
        text = narrator.said("text")
        calls = [_function_call(it) for it in _calls(narrator)]
        refusal = self._checked.refusal
        message = ReplyMessage(
            content=text or (None if calls or refusal else ""),
            refusal=refusal,
            reasoning_content=narrator.said("thought") or UNSET,
            tool_calls=calls or UNSET,
        )
        return ChatCompletion(
            id=self._head.id,
            created=self._head.created,
            model=self._head.model,
            choices=[Choice(message=message, finish_reason=_finish_reason(narrator, refusal))],
            usage=_usage(narrator.usage),
        )


class CompletionEncoder:
    """The chunks of one chat completion; takes all events of its turn, in order."""

    def __init__(self, head: CompletionHead, *, with_usage: bool = False) -> None:
        self._after = head.after
        self._with_usage = with_usage
        self._narrator = JoiningNarrator(text=self._text, thought=self._thought)
        self._checked = CheckedReplies(only_json=True)
        self._has_begun = False
        common = _encode({"id": head.id, "object": "chat.completion.chunk", "created": head.created})
        # Nearly all chunks are pieces of text, and differ in nothing else.
        self._common = b"data: %b,%b" % (common[:-1], _encode({"model": head.model})[1:-1])
        self._usage_field = b',"usage":null}\n\n' if with_usage else b"}\n\n"
        self._before_text = self._common + b',"choices":[{"index":0,"delta":{"content":'
        self._before_thought = self._common + b',"choices":[{"index":0,"delta":{"reasoning_content":'
        self._after_piece = b'},"finish_reason":null}]' + self._usage_field

    def encode_chunk(self, chunk: LogChunk) -> bytes:
        """The next chunk of a stored turn's log."""
        return b"".join(map(self.encode, decode_chunk(chunk.events)))

    def encode(self, event: events.TurnEvent) -> bytes:
        """The next event."""
        passing = self._checked.passing(event.body)
        pieces = b"".join(chain.from_iterable(map(self._narrator.narrate, passing)))
        if event.seq <= self._after:
            self._narrator.begin_response()
            return b""
        return pieces if self._has_begun else self._begin() + pieces

    def end(self, how: StreamEnd) -> bytes:
        """The last chunks: why it ends, and what it used."""
        narrator = self._narrator
        if isinstance(narrator.end, events.Failed):
            return frame(_encode(told(error_of(narrator.end))))
        last = b"" if self._has_begun else self._begin()
        if question := _question(narrator):
            last += b"".join(narrator.say(question))
        if calls := [_function_call(it, at) for at, it in enumerate(_calls(narrator))]:
            last += self._chunk({"tool_calls": calls})
        if refusal := self._checked.refusal:
            last += self._chunk({"refusal": refusal})
        last += self._chunk({}, _finish_reason(narrator, refusal))
        if self._with_usage:
            last += self._common + b',"choices":[],"usage":' + _encode(_usage(narrator.usage)) + b"}\n\n"
        return last + _DONE

    def _text(self, text: str) -> Sequence[bytes]:
        return (self._before_text + _encode(text) + self._after_piece,)

    def _thought(self, text: str) -> Sequence[bytes]:
        return (self._before_thought + _encode(text) + self._after_piece,)

    def _begin(self) -> bytes:
        self._has_begun = True
        return self._chunk({"role": "assistant", "content": ""})

    def _chunk(self, delta: Mapping[str, Any], finish_reason: FinishReason | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return self._common + b',"choices":[' + _encode(choice) + b"]" + self._usage_field
