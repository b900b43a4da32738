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
| step | data-step when it begins, and in its place when it ends |
| notice | data-notice |
| user_message | steering-message (7), data-user-message |
| iteration_restart | reset-step (7, unless what is repeated is a step of a program); data-superseded, then |
| | another step: the text stays, but doesn't count |
| done, COMPLETED | data-output, if the reply is structured; finish-step, finish |
| done, CANCELLED | abort |
| error | data-error, error |
| the end while the turn waits | finish-step, finish `tool-calls` |
| iteration_start, usage, turn_resumed | none |

Whatever follows a text or a thought ends it. The last frame is `[DONE]`.
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Literal, assert_never

from msgspec import UNSET, UnsetType

from threadkeep.domain import events
from threadkeep.domain.approval import ApprovalKind, Decision
from threadkeep.domain.events import LogChunk
from threadkeep.domain.mcp import CLIENT
from threadkeep.handling.stream import StreamEnd
from threadkeep.log.format import decode_chunk
from threadkeep.protocols import narrator
from threadkeep.protocols.ai_sdk import frames, parts
from threadkeep.protocols.ai_sdk.frames import Chunk, Data, FinishReason, encode_json, sse
from threadkeep.protocols.ai_sdk.parts import Reader, Sources
from threadkeep.protocols.checked import CheckedReplies
from threadkeep.protocols.dialect import TurnContext

_FINISH_REASONS: dict[str, FinishReason] = {
    "end_turn": "stop",
    "max_tokens": "length",
    "refusal": "content-filter",
}
_NAMES: Mapping[narrator.Kind, str] = {"text": "text", "thought": "reasoning"}
_START_STEP = sse(frames.Mark("start-step"))
_FINISH_STEP = sse(frames.Mark("finish-step"))
_RESET_STEP = sse(frames.Mark("reset-step"))
_ABORT = sse(frames.Mark("abort"))
_WAITING = sse(frames.Finish(finish_reason="tool-calls"))
_EMPTY_DELTA = b'""}\n\n'

_Frames = Sequence[bytes]


class UIMessageStream:
    """A turn for one reader, who may have seen its events up to a number: `start`, then what follows.

    Takes the turn's events from the first, in order.
    """

    def __init__(self, turn: TurnContext, reader: Reader, after: int = 0) -> None:
        self._message_id = turn.message_id
        self._turn_id = turn.turn_id
        self._reader = reader
        self._version = reader.version
        self._after = after
        self._narrator = narrator.Narrator(self._frames, text=self._piece, thought=self._piece)
        self._checked = CheckedReplies() if reader.version < 7 else None
        """Before 7, a client can't take a text back."""
        self._model: str | None = None
        self._id = ""
        """That of the text or thought in progress, which every delta names."""
        self._delta = b""
        self._iteration = 0
        self._is_of_program = False
        """Whether a program speaks: its steps begin and end on their own, whoever speaks meanwhile."""
        self._grown = 0
        """How many texts and thoughts the step has had."""
        self._has_step = False
        self._needs_step = False
        self._sources = Sources()

    def encode_chunk(self, chunk: LogChunk) -> bytes:
        """The next chunk of the log, from its first event on."""
        return b"".join(map(self.encode, decode_chunk(chunk.events)))

    def encode(self, event: events.TurnEvent) -> bytes:
        """The next event."""
        passing = self._checked.passing(event.body) if self._checked else (event.body,)
        encoded = b"".join(chain.from_iterable(map(self._narrator.narrate, passing)))
        is_shown = event.seq > self._after or isinstance(event.body, events.TurnStart)
        return encoded if is_shown else b""

    def end(self, how: StreamEnd) -> bytes:
        """What a stream ends with."""
        match how:
            case StreamEnd.OVER:
                return frames.DONE
            case StreamEnd.PAUSED:
                return b"".join((*self._narrator.pause(), *self._close_step(), _WAITING, frames.DONE))
            case _ as never:
                assert_never(never)

    def _piece(self, text: str) -> _Frames:
        return (b"%b%b}\n\n" % (self._delta, encode_json(text)),)

    def _frames(self, narrated: narrator.Narration) -> _Frames:
        match narrated:
            case narrator.PartStart(kind):
                return *self._add(), self._start(kind)
            case narrator.PartEnd():
                if narrated.is_cut and self._resets_step:
                    return ()  # the step goes with all that it has
                return (sse(frames.Boundary(f"{_NAMES[narrated.kind]}-end", self._id)),)
            case narrator.Called(called):
                return self._add(*_called(called))
            case narrator.Returned(result, call):
                return [*map(sse, self._returned(result, call))]
            case events.ToolProgress():
                return (sse(_progress(narrated)),)
            case narrator.StepBegan(event):
                return self._add(parts.step(event))
            case narrator.StepEnded(event):
                return (sse(parts.step(event)),)
            case events.IterationStart(iteration, step_id):
                self._iteration, self._grown, self._needs_step = iteration, 0, True
                self._is_of_program = step_id is not None
                self._sources.begin_iteration()
                return ()
            case events.IterationRestart(iteration, step_id=step_id):
                return self._restart(iteration, is_step=step_id is not None)
            case events.UsageReported():
                self._model = narrated.model or self._model
                return ()
            case events.TurnStart():
                self._model = narrated.model
                begun = parts.started(self._turn_id)
                return (sse(frames.Start(message_id=self._message_id, message_metadata=begun)),)
            case events.Retrieval():
                return self._add(*self._sources.found(narrated.query, narrated.hits))
            case events.Notice():
                return self._add(parts.notice(narrated.code, narrated.message))
            case events.UserMessage():
                return self._add(self._reader.steering(narrated.message_id, narrated.content))
            case narrator.Asked():
                return self._ask(narrated)
            case narrator.Decided():
                return [*map(sse, self._answer(narrated))]
            case events.Done(status="CANCELLED"):
                return (_ABORT,)
            case events.Done():
                return self._finish(narrated)
            case events.Failed(code, message, retryable):
                failure = parts.failure(code, message, retryable=retryable)
                return sse(failure), sse(frames.Error(error_text=message))
            case _ as never:
                assert_never(never)

    def _start(self, kind: narrator.Kind) -> bytes:
        """Begins a text or thought."""
        self._grown += 1
        self._id = f"{self._iteration}.{self._grown}"
        # All deltas begin alike, so that is encoded once.
        self._delta = sse(frames.Delta(f"{_NAMES[kind]}-delta", self._id, "")).removesuffix(_EMPTY_DELTA)
        return sse(frames.Boundary(f"{_NAMES[kind]}-start", self._id))

    # Steps

    def _add(self, *chunks: Chunk) -> _Frames:
        """Adds to the message, in the step of the current model call."""
        if not self._needs_step:
            return [*map(sse, chunks)]
        before = self._close_step()
        self._has_step, self._needs_step = True, False
        return *before, _START_STEP, *map(sse, chunks)

    def _close_step(self) -> _Frames:
        return (_FINISH_STEP,) if self._has_step else ()

    @property
    def _has_shown(self) -> bool:
        """Whether the current model call has added anything."""
        return self._has_step and not self._needs_step

    @property
    def _resets_step(self) -> bool:
        return self._has_shown and self._version == 7 and not self._is_of_program

    def _restart(self, iteration: int, *, is_step: bool) -> _Frames:
        is_current, self._iteration, self._grown = iteration == self._iteration, iteration, 0
        if is_current:
            self._sources = self._sources.restarted()
        if self._resets_step and not is_step:
            return (_RESET_STEP,)
        has_shown, self._needs_step = self._has_shown or is_step, True
        return (sse(Data(type="data-superseded", data={"iteration": iteration})),) if has_shown else ()

    # Tools

    def _returned(self, result: events.ToolResultStored, call: narrator.Called | None) -> Sequence[Chunk]:
        chunks: list[Chunk] = [self._outcome(result, call)]
        chunks += (self._reader.file(it.file_id, it.media_type, is_image=True) for it in result.images)
        if result.chart_data is not None:
            chunks.append(parts.chart(result.tool_call_id, result.chart_data))
        return chunks

    def _outcome(self, result: events.ToolResultStored, call: narrator.Called | None) -> Chunk:
        id_ = result.tool_call_id
        is_ours = _is_ours(call.event) if call else True
        if result.status == "ok":
            return frames.ToolOutputAvailable(tool_call_id=id_, output=result.result, dynamic=is_ours)
        if result.status == "denied" and self._version > 5 and call and call.approval:
            return frames.ToolOutputDenied(tool_call_id=id_)
        text = parts.error_text(result.error, result.status)
        return frames.ToolOutputError(tool_call_id=id_, error_text=text, dynamic=is_ours)

    # Requests to the user

    def _ask(self, asked: narrator.Asked) -> _Frames:
        request, call = asked.request, asked.call
        if request.kind is ApprovalKind.CLIENT_TOOL:
            return self._add(*([_available(call.event)] if call and call.event.asks else ()))
        if self._version == 5:
            return self._narrator.say(request.message)
        if request.kind is ApprovalKind.TOOL and request.tool_call_id is not None:
            return self._add(
                frames.ToolApprovalRequest(
                    approval_id=request.request_id,
                    tool_call_id=request.tool_call_id,
                    reason=request.message if self._version == 7 else UNSET,
                )
            )
        return self._add(parts.question(request))

    def _answer(self, decided: narrator.Decided) -> Sequence[Chunk]:
        request, response = decided.request, decided.response
        if request is None or request.kind is ApprovalKind.CLIENT_TOOL or self._version == 5:
            return ()
        if request.kind is not ApprovalKind.TOOL or request.tool_call_id is None:
            decision = Decision(action=response.action, at=0, content=response.content)
            return (parts.question(request, decision),)
        if self._version < 7:
            return ()
        approved = parts.is_approval(response.action)
        return (frames.ToolApprovalResponse(approval_id=request.request_id, approved=approved),)

    def _finish(self, done: events.Done) -> _Frames:
        finish = frames.Finish(
            finish_reason=_FINISH_REASONS.get(done.stop_reason, "other"),
            message_metadata=parts.completed(self._model, done.usage),
        )
        output = self._add(parts.output(done.output)) if done.output is not None else ()
        return *output, *self._close_step(), sse(finish)


def _called(body: events.ToolCalled) -> Sequence[Chunk]:
    if body.server == CLIENT and body.asks:
        # A client runs its tool as soon as the input is available.
        id_, name = body.tool_call_id, body.tool_name
        arguments = encode_json(body.arguments).decode()
        return (
            frames.ToolInputStart(tool_call_id=id_, tool_name=name),
            frames.ToolInputDelta(tool_call_id=id_, input_text_delta=arguments),
        )
    return (_available(body),)


def _available(body: events.ToolCalled) -> frames.ToolInputAvailable:
    is_ours = _is_ours(body)
    return frames.ToolInputAvailable(
        tool_call_id=body.tool_call_id,
        tool_name=body.tool_name,
        input=body.arguments,
        provider_metadata=parts.call_metadata(body.server),
        dynamic=is_ours,
        provider_executed=is_ours,
    )


def _is_ours(called: events.ToolCalled) -> Literal[True] | UnsetType:
    return UNSET if called.server == CLIENT else True


def _progress(body: events.ToolProgress) -> Data:
    optional = {"total": body.total, "message": body.message}
    known = {name: value for name, value in optional.items() if value is not None}
    data = {"toolCallId": body.tool_call_id, "progress": body.progress, **known}
    return Data(type="data-tool-progress", data=data, transient=True)
