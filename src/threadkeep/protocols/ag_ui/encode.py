"""A turn's events → AG-UI events.

| event | frames |
|---|---|
| the stream begins | RUN_STARTED; STATE_SNAPSHOT with the state that the client sent; |
| | MESSAGES_SNAPSHOT if it asked for the conversation |
| text, thought | TEXT_MESSAGE_*, REASONING_* |
| tool_call, tool_result | TOOL_CALL_START, ARGS, END; TOOL_CALL_RESULT unless the client brought it |
| step | STEP_STARTED, STEP_FINISHED |
| retrieval | ACTIVITY_SNAPSHOT |
| user_message | TEXT_MESSAGE_* with the role `user` |
| iteration_restart | ACTIVITY_SNAPSHOT in the place of each text and thought of the repeated model call |
| notice, tool_progress | CUSTOM |
| done | RUN_FINISHED; stopped, it has the outcome `cancelled`, which clients before 1.0 don't know |
| error | RUN_ERROR |
| the stream ends at a pause | RUN_FINISHED, with the requests that are open as interrupts; a call that the |
| | client is to run is no interrupt, only a call without a result |

A text or a thought ends with the next event that isn't a piece of it, exactly where the reply has a part of
its own. A client that connects in the middle of one receives its start event again, and appends what follows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, assert_never

from msgspec import UNSET

from threadkeep.domain import events
from threadkeep.domain.approval import ApprovalKind
from threadkeep.domain.events import LogChunk
from threadkeep.domain.ids import MessageId, TurnId
from threadkeep.domain.message import Usage
from threadkeep.domain.retrieval import PassageNumbers
from threadkeep.handling.stream import StreamEnd
from threadkeep.log.format import decode_chunk
from threadkeep.protocols import narrator
from threadkeep.protocols.ag_ui import frames
from threadkeep.protocols.ag_ui.frames import Frame, encode_json
from threadkeep.protocols.ag_ui.messages import (
    SOURCES,
    SUPERSEDED,
    MessageIds,
    result_content,
    result_id,
    result_metadata,
    sources_content,
    superseded_content,
)

NOTICE = "threadkeep.notice"
TOOL_PROGRESS = "threadkeep.tool_progress"

# CopilotKit takes an interrupt with the reason `tool_call` for a call that it answers itself.
_REASONS = {
    ApprovalKind.TOOL: "approval",
    ApprovalKind.QUESTION: "question",
    ApprovalKind.ELICITATION: "elicitation",
}
_APPROVAL_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "approved": {"type": "boolean"},
        "scope": {"enum": ["once", "conversation"]},
        "arguments": {"type": "object"},
    },
    "required": ["approved"],
}

_CONTENT: Mapping[narrator.Kind, str] = {
    "text": "TEXT_MESSAGE_CONTENT",
    "thought": "REASONING_MESSAGE_CONTENT",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run, as its client knows it."""

    thread_id: str
    run_id: str
    is_1_0: bool
    """Whether the client speaks 1.0; otherwise an earlier version."""
    state: Any = None
    history: Sequence[frames.Message] | None = None
    """The conversation before the turn, for a client that asks for it."""
    results: frozenset[str] = frozenset()
    """The calls whose results the client brings: it has them."""

    def opening(self, turn_id: TurnId | None = None) -> bytes:
        """The first frames of the run."""
        metadata = UNSET if turn_id is None else {"turnId": turn_id}
        opening: list[Frame] = [frames.RunStarted(self.thread_id, self.run_id, metadata)]
        if self.state:
            opening.append(frames.StateSnapshot(self.state))
        if self.history is not None:
            opening.append(frames.MessagesSnapshot(self.history))
        return b"".join(map(_sse, opening))

    def finished(self) -> bytes:
        """The last frame of a run in which nothing happens."""
        return _sse(frames.RunFinished(self.thread_id, self.run_id))


class RunEncoder:
    """The frames of a turn for one reader who has seen its events up to `after`; takes all, in order."""

    def __init__(self, run: Run, turn_id: TurnId, reply_id: MessageId, after: int = 0) -> None:
        self._run = run
        self._after = after
        self._opening = run.opening(turn_id)
        self._ids = MessageIds(reply_id)
        self._numbers = PassageNumbers()
        self._narrator = narrator.Narrator(self._frames, text=self._piece, thought=self._piece)
        self._id = ""
        self._kind: narrator.Kind = "text"
        """Those of the text or thought in progress."""
        self._is_begun = False
        """Whether this reader knows that it has begun."""
        self._written: dict[int, list[tuple[str, str]]] = {}
        """The texts and thoughts that a restart may concern, by model call or step, with their ids."""
        self._iteration = 0
        self._usage: dict[str | None, Usage] = {}
        self._open_steps: dict[str, None] = {}
        """The names of the steps that this run has begun and not finished."""

    def encode_chunk(self, chunk: LogChunk) -> bytes:
        """The next chunk of the log."""
        return b"".join(map(self.encode, decode_chunk(chunk.events)))

    def encode(self, event: events.TurnEvent) -> bytes:
        """The next event."""
        if event.seq <= self._after:
            self._narrator.narrate(event.body)
            self._is_begun = False
            self._open_steps.clear()
            return b""
        opening = self._begin_run() if self._opening else b""
        return opening + b"".join(map(_sse, self._narrator.narrate(event.body)))

    def end(self, how: StreamEnd) -> bytes:
        """What follows the last event: if the turn waits for its user, that the run ends here."""
        if how is StreamEnd.OVER:
            return b""
        asked = [it.request for it in self._narrator.open_requests]
        interrupts = [_interrupt(it) for it in asked if it.kind in _REASONS]
        outcome = frames.Interrupted(interrupts) if interrupts else UNSET
        finished = frames.RunFinished(self._run.thread_id, self._run.run_id, outcome)
        opening, self._opening = self._opening, b""
        steps = [frames.StepBoundary("STEP_FINISHED", it) for it in self._open_steps]
        return opening + b"".join(map(_sse, (*self._narrator.pause(), *steps, finished)))

    def _begin_run(self) -> bytes:
        """The opening. The run begins the steps that began before it, too, so that it can finish them."""
        opening, self._opening = self._opening, b""
        self._open_steps = {it.label: None for it in self._narrator.open_steps}
        steps = [frames.StepBoundary("STEP_STARTED", it) for it in self._open_steps]
        return opening + b"".join(map(_sse, steps))

    def _piece(self, text: str) -> Sequence[Frame]:
        piece = frames.MessageContent(_CONTENT[self._kind], self._id, text)
        return (piece,) if self._is_begun else (*self._begin(), piece)  # a reader may join within it

    def _frames(self, narrated: narrator.Narration) -> Sequence[Frame]:
        match narrated:
            case narrator.PartStart(kind):
                self._kind = kind
                self._id = self._ids.text() if kind == "text" else self._ids.thought()
                return self._begin()
            case narrator.PartEnd(text=text):
                self._written.setdefault(self._iteration, []).append((self._id, text))
                return self._end() if self._is_begun else ()
            case narrator.Called():
                return () if narrated.is_held else _call(narrated)
            case narrator.Returned(result, call):
                denied = _call(call) if call and call.is_held else ()
                is_known = result.tool_call_id in self._run.results
                return [*denied, *(() if is_known else (_result(result),))]
            case events.ToolProgress():
                return (frames.Custom(TOOL_PROGRESS, _progress(narrated)),)
            case narrator.Asked(request, call):
                is_for_client = request.kind is ApprovalKind.CLIENT_TOOL
                return _call(call) if is_for_client and call and call.is_held else ()
            case narrator.StepBegan(label=label):
                self._open_steps[label] = None
                return (frames.StepBoundary("STEP_STARTED", label),)
            case narrator.StepEnded(label=label):
                self._open_steps.pop(label, None)
                return (frames.StepBoundary("STEP_FINISHED", label),)
            case events.IterationStart(iteration, step_id):
                if step_id is None:  # the model call before it has ended
                    self._written.clear()
                self._iteration = iteration
                return ()
            case events.IterationRestart(iteration):
                self._iteration = iteration
                return self._superseded(iteration)
            case events.Retrieval():
                content = sources_content(narrated, self._numbers)
                return (frames.ActivitySnapshot(self._ids.sources(), SOURCES, content),)
            case events.UserMessage(id_, content):
                return (
                    frames.MessageStart("TEXT_MESSAGE_START", id_, "user"),
                    frames.MessageContent("TEXT_MESSAGE_CONTENT", id_, content),
                    frames.MessageBoundary("TEXT_MESSAGE_END", id_),
                )
            case events.Notice(code, message):
                return (frames.Custom(NOTICE, {"code": code, "message": message}),)
            case events.UsageReported(model=model):
                self._usage[model] = self._usage.get(model, Usage(0, 0)) + narrated.usage
                return ()
            case events.Done(status):
                is_cancelled = status == "CANCELLED" and self._run.is_1_0
                outcome = frames.Cancelled() if is_cancelled else UNSET
                output = UNSET if narrated.output is None else narrated.output
                thread_id, run_id = self._run.thread_id, self._run.run_id
                return (frames.RunFinished(thread_id, run_id, outcome, self._token_usage(), output),)
            case events.Failed(code, message):
                return (frames.RunError(message, code),)
            case narrator.Decided() | events.TurnStart():
                return ()
            case _ as never:
                assert_never(never)

    def _begin(self) -> Sequence[Frame]:
        self._is_begun = True
        if self._kind == "text":
            return (frames.MessageStart("TEXT_MESSAGE_START", self._id, "assistant"),)
        start = frames.MessageStart("REASONING_MESSAGE_START", self._id, "reasoning")
        return frames.MessageBoundary("REASONING_START", self._id), start

    def _end(self) -> Sequence[Frame]:
        if self._kind == "text":
            return (frames.MessageBoundary("TEXT_MESSAGE_END", self._id),)
        end = frames.MessageBoundary("REASONING_MESSAGE_END", self._id)
        return end, frames.MessageBoundary("REASONING_END", self._id)

    def _superseded(self, iteration: int) -> Sequence[Frame]:
        """The texts and thoughts of a model call or step that is repeated no longer count."""
        written = self._written.pop(iteration, ())
        return [frames.ActivitySnapshot(id_, SUPERSEDED, superseded_content(text)) for id_, text in written]

    def _token_usage(self) -> list[frames.TokenUsage]:
        return [
            frames.TokenUsage(
                model=UNSET if model is None else model,
                input_tokens=usage.input_tokens,
                output_tokens=usage.output_tokens,
                total_tokens=usage.input_tokens + usage.output_tokens,
                cached_input_tokens=usage.cache_read_tokens,
            )
            for model, usage in self._usage.items()
        ]


def _sse(frame: Frame) -> bytes:
    return b"data: %b\n\n" % encode_json(frame)


def _call(call: narrator.Called) -> Sequence[Frame]:
    id_ = call.event.tool_call_id
    return (
        frames.ToolCallStart(id_, call.event.tool_name),
        frames.ToolCallArgs(id_, encode_json(call.arguments).decode()),
        frames.ToolCallEnd(id_),
    )


def _result(body: events.ToolResultStored) -> Frame:
    return frames.ToolCallResult(
        message_id=result_id(body.tool_call_id),
        tool_call_id=body.tool_call_id,
        content=result_content(body.result, body.error),
        metadata=result_metadata(body.status, body.chart_data, body.images, body.artifact_ids),
    )


def _progress(body: events.ToolProgress) -> dict[str, Any]:
    progress = {"toolCallId": body.tool_call_id, "progress": body.progress}
    optional = {"total": body.total, "message": body.message}
    return progress | {name: value for name, value in optional.items() if value is not None}


def _interrupt(asked: events.ApprovalRequest) -> frames.Interrupt:
    schema = _APPROVAL_SCHEMA if asked.kind is ApprovalKind.TOOL else asked.schema
    return frames.Interrupt(
        id=asked.request_id,
        reason=_REASONS[asked.kind],
        message=asked.message,
        tool_call_id=UNSET if asked.tool_call_id is None else asked.tool_call_id,
        response_schema=UNSET if schema is None else schema,
        expires_at=datetime.fromtimestamp(asked.expires_at / 1000, UTC).isoformat().replace("+00:00", "Z"),
        metadata=UNSET if asked.url is None else {"url": asked.url},
    )
