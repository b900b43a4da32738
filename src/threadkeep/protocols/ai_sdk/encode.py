"""A turn's events → the UI message stream of the AI SDK.

A turn is one message, and each model call with its tools a step of it. A step begins with the first thing
that it adds to the message.

| event | chunks |
|---|---|
| turn_start | start |
| text, thought | text-start or reasoning-start once, text-delta or reasoning-delta |
| tool_call | tool-input-available: `dynamic` and `providerExecuted`, unless the client runs the tool; |
| | if the client does and the user is asked first, tool-input-start and tool-input-delta |
| tool_progress | data-tool-progress, transient |
| tool_result | tool-output-available, -error or -denied (from 6, if the user was asked); a file for |
| | each image; data-chart |
| approval_request | of a call: tool-approval-request (5: a text); a question: data-question (5: a text); |
| | for the client's result: tool-input-available, if it has been held back |
| approval_response | of a call: tool-approval-response (7); a question: data-question with the answer |
| retrieval | source-url or source-document for each new source, data-retrieval |
| notice | data-notice |
| user_message | steering-message (7), data-user-message |
| iteration_restart | reset-step (7); data-superseded, then another step: the text stays, but doesn't |
| | count |
| done, COMPLETED | finish-step, finish |
| done, CANCELLED | abort |
| error | data-error, error |
| the end while the turn waits | finish-step, finish `tool-calls` |
| iteration_start, usage, turn_resumed | none |

Whatever follows a text or a thought ends it. The last frame is `[DONE]`.
"""

from collections.abc import Sequence
from typing import Literal, assert_never

from msgspec import UNSET, UnsetType

from threadkeep.domain.approval import ApprovalKind, Decision
from threadkeep.domain.events import (
    ApprovalRequest,
    ApprovalResponse,
    Done,
    EventBody,
    Failed,
    IterationRestart,
    IterationStart,
    LogChunk,
    Notice,
    Retrieval,
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
from threadkeep.domain.mcp import CLIENT
from threadkeep.handling.stream import StreamEnd
from threadkeep.log.format import decode_chunk
from threadkeep.protocols.ai_sdk import frames, parts
from threadkeep.protocols.ai_sdk.frames import Chunk, Data, FinishReason, encode_json, sse
from threadkeep.protocols.ai_sdk.parts import Reader, Sources
from threadkeep.protocols.dialect import TurnContext

_FINISH_REASONS: dict[str, FinishReason] = {
    "end_turn": "stop",
    "max_tokens": "length",
    "refusal": "content-filter",
}
_START_STEP = sse(frames.StartStep())
_FINISH_STEP = sse(frames.FinishStep())
_RESET_STEP = sse(frames.ResetStep())
_ABORT = sse(frames.Abort())
_WAITING = sse(frames.Finish(finish_reason="tool-calls"))
_EMPTY_DELTA = b'""}\n\n'

_Frames = Sequence[bytes]


class UIMessageStream:
    """A turn for one reader, who may have seen its events up to a number: `start`, then what follows."""

    def __init__(self, turn: TurnContext, reader: Reader, after: int = 0) -> None:
        self._turn = _UIMessageTurn(turn, reader)
        self._after = after

    def encode_chunk(self, chunk: LogChunk) -> bytes:
        """The next chunk of the log, from its first event on."""
        return b"".join(map(self.encode, decode_chunk(chunk.events)))

    def encode(self, event: TurnEvent) -> bytes:
        """The next event."""
        encoded = self._turn.encode(event.body)
        is_shown = event.seq > self._after or isinstance(event.body, TurnStart)
        return b"".join(encoded) if is_shown else b""

    def end(self, how: StreamEnd) -> bytes:
        """What a stream ends with."""
        match how:
            case StreamEnd.OVER:
                return frames.DONE
            case StreamEnd.PAUSED:
                return b"".join((*self._turn.pause(), frames.DONE))
            case _ as never:
                assert_never(never)


class _UIMessageTurn:
    """Encodes one turn; takes its events from the first, in order."""

    def __init__(self, turn: TurnContext, reader: Reader) -> None:
        self._message_id = turn.message_id
        self._turn_id = turn.turn_id
        self._reader = reader
        self._version = reader.version
        self._model: str | None = None
        self._growing: Literal["text", "reasoning"] | None = None
        """The text or thought in progress, which every delta names by its id."""
        self._id = ""
        self._delta = b""
        self._iteration = 0
        self._grown = 0
        """How many texts and thoughts the step has had."""
        self._has_step = False
        self._needs_step = False
        self._sources = Sources()
        self._client_calls: dict[str, ToolCalled] = {}
        """By their ids, the calls of tools that the client runs."""
        self._asked_calls: dict[str, str] = {}
        """By request id, the calls that wait or waited for the user."""
        self._questions: dict[str, ApprovalRequest] = {}

    def encode(self, body: EventBody) -> _Frames:
        """The frames of the next event."""
        match body:  # the most common first: cases are tried in order
            case Text(text):
                return self._grow("text", text)
            case Thought(text):
                return self._grow("reasoning", text)
            case ToolCalled():
                return self._add(*self._called(body))
            case ToolResultStored():
                return self._resulted(body)
            case ToolProgress():
                return (sse(_progress(body)),)
            case IterationStart(iteration):
                return self._begin_iteration(iteration)
            case IterationRestart(iteration):
                return self._restart(iteration)
            case UsageReported():
                self._model = body.model or self._model
                return ()
            case TurnResumed():
                return ()
            case TurnStart():
                self._model = body.model
                begun = parts.started(self._turn_id)
                return (sse(frames.Start(message_id=self._message_id, message_metadata=begun)),)
            case Retrieval():
                return self._add(*self._sources.found(body.query, body.hits))
            case Notice():
                return self._add(parts.notice(body.code, body.message))
            case UserMessage():
                return self._add(self._reader.steering(body.message_id, body.content))
            case ApprovalRequest():
                return self._ask(body)
            case ApprovalResponse():
                return self._answer(body)
            case Done(status="CANCELLED"):
                return *self._close(), _ABORT
            case Done():
                return self._finish(body)
            case Failed():
                told = parts.failure(body.code, body.message, retryable=body.retryable)
                return *self._close(), sse(told), sse(frames.Error(error_text=body.message))
            case _ as never:
                assert_never(never)

    def pause(self) -> _Frames:
        """The turn waits for its user."""
        return *self._close(), *self._close_step(), _WAITING

    # Texts and thoughts

    def _grow(self, kind: Literal["text", "reasoning"], text: str) -> _Frames:
        if self._growing == kind:
            return (b"%b%b}\n\n" % (self._delta, encode_json(text)),)
        return (*self._add(), *self._open(kind), b"%b%b}\n\n" % (self._delta, encode_json(text)))

    def _open(self, kind: Literal["text", "reasoning"]) -> _Frames:
        self._grown += 1
        self._growing, self._id = kind, f"{self._iteration}.{self._grown}"
        if kind == "text":
            start, delta = frames.TextStart(id=self._id), frames.TextDelta(id=self._id, delta="")
        else:
            start, delta = frames.ReasoningStart(id=self._id), frames.ReasoningDelta(id=self._id, delta="")
        # All deltas begin alike, so that is encoded once.
        self._delta = sse(delta).removesuffix(_EMPTY_DELTA)
        return (sse(start),)

    def _close(self) -> _Frames:
        """Ends the text or thought in progress."""
        if self._growing is None:
            return ()
        is_text = self._growing == "text"
        self._growing = None
        return (sse(frames.TextEnd(id=self._id) if is_text else frames.ReasoningEnd(id=self._id)),)

    # Steps

    def _add(self, *chunks: Chunk) -> _Frames:
        """Adds to the message, in the step of the current model call."""
        closed = self._close()
        if not self._needs_step:
            return *closed, *map(sse, chunks)
        before = self._close_step()
        self._has_step, self._needs_step = True, False
        return *closed, *before, _START_STEP, *map(sse, chunks)

    def _close_step(self) -> _Frames:
        return (_FINISH_STEP,) if self._has_step else ()

    def _begin_iteration(self, iteration: int) -> _Frames:
        self._iteration, self._grown, self._needs_step = iteration, 0, True
        self._sources.begin_iteration()
        return self._close()

    def _restart(self, iteration: int) -> _Frames:
        has_shown = self._has_step and not self._needs_step
        self._iteration, self._grown = iteration, 0
        self._sources = self._sources.restarted()
        if has_shown and self._version == 7:
            self._growing = None
            return (_RESET_STEP,)
        closed = self._close()
        self._needs_step = True
        if not has_shown:
            return closed
        return *closed, sse(Data(type="data-superseded", data={"iteration": iteration}))

    # Tools

    def _called(self, body: ToolCalled) -> Sequence[Chunk]:
        if body.server == CLIENT:
            self._client_calls[body.tool_call_id] = body
            if body.asks:
                # A client runs its tool as soon as the input is available.
                id_, name = body.tool_call_id, body.tool_name
                arguments = encode_json(body.arguments).decode()
                return (
                    frames.ToolInputStart(tool_call_id=id_, tool_name=name),
                    frames.ToolInputDelta(tool_call_id=id_, input_text_delta=arguments),
                )
        return (self._available(body),)

    def _available(self, body: ToolCalled) -> frames.ToolInputAvailable:
        is_ours = self._is_ours(body.tool_call_id)
        return frames.ToolInputAvailable(
            tool_call_id=body.tool_call_id,
            tool_name=body.tool_name,
            input=body.arguments,
            provider_metadata=parts.call_metadata(body.server),
            dynamic=is_ours,
            provider_executed=is_ours,
        )

    def _resulted(self, body: ToolResultStored) -> _Frames:
        chunks: list[Chunk] = [self._outcome(body)]
        chunks += (self._reader.file(it.file_id, it.media_type, is_image=True) for it in body.images)
        if body.chart_data is not None:
            chunks.append(parts.chart(body.tool_call_id, body.chart_data))
        return [*map(sse, chunks)]

    def _is_ours(self, tool_call_id: str) -> Literal[True] | UnsetType:
        return UNSET if tool_call_id in self._client_calls else True

    def _outcome(self, body: ToolResultStored) -> Chunk:
        id_ = body.tool_call_id
        is_ours = self._is_ours(id_)
        if body.status == "ok":
            return frames.ToolOutputAvailable(tool_call_id=id_, output=body.result, dynamic=is_ours)
        if body.status == "denied" and self._version > 5 and id_ in self._asked_calls.values():
            return frames.ToolOutputDenied(tool_call_id=id_)
        text = parts.error_text(body.error, body.status)
        return frames.ToolOutputError(tool_call_id=id_, error_text=text, dynamic=is_ours)

    # Requests to the user

    def _ask(self, body: ApprovalRequest) -> _Frames:
        match body.kind:
            case ApprovalKind.TOOL if body.tool_call_id is not None:
                self._asked_calls[body.request_id] = body.tool_call_id
                if self._version == 5:
                    return self._say(body.message)
                return self._add(
                    frames.ToolApprovalRequest(
                        approval_id=body.request_id,
                        tool_call_id=body.tool_call_id,
                        reason=body.message if self._version == 7 else UNSET,
                    )
                )
            case ApprovalKind.CLIENT_TOOL:
                called = self._client_calls.get(body.tool_call_id or "")
                return self._add(*([self._available(called)] if called and called.asks else ()))
            case ApprovalKind.TOOL | ApprovalKind.QUESTION | ApprovalKind.ELICITATION:
                self._questions[body.request_id] = body
                return self._say(body.message) if self._version == 5 else self._add(parts.question(body))
            case _ as never:
                assert_never(never)

    def _say(self, text: str) -> _Frames:
        """A text of its own."""
        return (*self._close(), *self._grow("text", text), *self._close())

    def _answer(self, body: ApprovalResponse) -> _Frames:
        if (asked := self._questions.get(body.request_id)) is not None and self._version > 5:
            decision = Decision(action=body.action, at=0, content=body.content)
            return (sse(parts.question(asked, decision)),)
        if body.request_id in self._asked_calls and self._version == 7:
            approved = parts.is_approval(body.action)
            return (sse(frames.ToolApprovalResponse(approval_id=body.request_id, approved=approved)),)
        return ()

    def _finish(self, body: Done) -> _Frames:
        finish = frames.Finish(
            finish_reason=_FINISH_REASONS.get(body.stop_reason, "other"),
            message_metadata=parts.completed(self._model, body.usage),
        )
        return *self._close(), *self._close_step(), sse(finish)


def _progress(body: ToolProgress) -> Data:
    optional = {"total": body.total, "message": body.message}
    known = {name: value for name, value in optional.items() if value is not None}
    data = {"toolCallId": body.tool_call_id, "progress": body.progress, **known}
    return Data(type="data-tool-progress", data=data, transient=True)
