"""A turn's events → AG-UI events.

| event | frames |
|---|---|
| the stream begins | RUN_STARTED; STATE_SNAPSHOT with the state that the client sent; |
| | MESSAGES_SNAPSHOT if it asked for the conversation |
| text, thought | TEXT_MESSAGE_*, REASONING_* |
| tool_call, tool_result | TOOL_CALL_START, ARGS, END; TOOL_CALL_RESULT unless the client brought it |
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
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal, assert_never

from msgspec import UNSET

from threadkeep.domain.approval import ApprovalKind
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
from threadkeep.domain.ids import MessageId, TurnId
from threadkeep.domain.mcp import CLIENT
from threadkeep.domain.message import Usage
from threadkeep.domain.retrieval import PassageNumbers
from threadkeep.handling.stream import StreamEnd
from threadkeep.log.format import decode_chunk
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


@dataclass(slots=True)
class _Growing:
    """The text or thought that the model is writing."""

    kind: Literal["text", "thought"]
    id: str
    pieces: list[str] = field(default_factory=list[str])
    is_told: bool = False
    """Whether this reader knows that it has begun."""


class RunEncoder:
    """The frames of a turn for one reader who has seen its events up to `after`; takes all, in order."""

    def __init__(self, run: Run, turn_id: TurnId, reply_id: MessageId, after: int = 0) -> None:
        self._run = run
        self._after = after
        self._opening = run.opening(turn_id)
        self._ids = MessageIds(reply_id)
        self._numbers = PassageNumbers()
        self._growing: _Growing | None = None
        self._written: list[_Growing] = []
        """The texts and thoughts of the current model call."""
        self._open_requests: dict[str, ApprovalRequest] = {}
        self._unallowed: dict[str, ToolCalled] = {}
        """Calls for the client that the user hasn't allowed yet: it would run them at once."""
        self._usage: dict[str | None, Usage] = {}

    def encode_chunk(self, chunk: LogChunk) -> bytes:
        """The next chunk of the log."""
        return b"".join(map(self.encode, decode_chunk(chunk.events)))

    def encode(self, event: TurnEvent) -> bytes:
        """The next event."""
        if event.seq <= self._after:
            self._frames(event.body)
            if self._growing is not None:
                self._growing.is_told = False
            return b""
        opening, self._opening = self._opening, b""
        return opening + b"".join(map(_sse, self._frames(event.body)))

    def end(self, how: StreamEnd) -> bytes:
        """What follows the last event: if the turn waits for its user, that the run ends here."""
        if how is StreamEnd.OVER:
            return b""
        interrupts = [_interrupt(it) for it in self._open_requests.values() if it.kind in _REASONS]
        outcome = frames.Interrupted(interrupts) if interrupts else UNSET
        last = [*self._close(), frames.RunFinished(self._run.thread_id, self._run.run_id, outcome)]
        opening, self._opening = self._opening, b""
        return opening + b"".join(map(_sse, last))

    def _frames(self, body: EventBody) -> Sequence[Frame]:
        match body:  # the most common first: cases are tried in order
            case Text(text):
                return self._say("text", text)
            case Thought(text):
                return self._say("thought", text)
            case ToolResultStored():
                denied = self._unallowed.pop(body.tool_call_id, None)
                call = _call(denied) if denied else ()
                return [*call, *(() if body.tool_call_id in self._run.results else (_result(body),))]
            case ToolProgress():
                return (frames.Custom(TOOL_PROGRESS, _progress(body)),)
            case ApprovalResponse():
                self._decided(body)
                return ()
            case TurnStart():
                return ()
            case _:
                return [*self._close(), *self._closing_frames(body)]

    def _closing_frames(
        self,
        body: IterationStart
        | IterationRestart
        | TurnResumed
        | ToolCalled
        | ApprovalRequest
        | Retrieval
        | UserMessage
        | Notice
        | UsageReported
        | Done
        | Failed,
    ) -> Sequence[Frame]:
        """The frames of an event that ends a text."""
        match body:
            case IterationStart():
                self._written.clear()
                return ()
            case IterationRestart():
                return self._superseded()
            case ToolCalled() if body.asks and body.server == CLIENT:
                self._unallowed[body.tool_call_id] = body
                return ()
            case ToolCalled():
                return _call(body)
            case Retrieval():
                content = sources_content(body, self._numbers)
                return (frames.ActivitySnapshot(self._ids.sources(), SOURCES, content),)
            case UserMessage(id_, content):
                return (
                    frames.TextMessageStart(id_, "user"),
                    frames.TextMessageContent(id_, content),
                    frames.TextMessageEnd(id_),
                )
            case ApprovalRequest():
                self._open_requests[body.request_id] = body
                is_for_client = body.kind is ApprovalKind.CLIENT_TOOL
                call = self._unallowed.pop(body.tool_call_id or "", None) if is_for_client else None
                return _call(call) if call else ()
            case Notice(code, message):
                return (frames.Custom(NOTICE, {"code": code, "message": message}),)
            case UsageReported():
                self._usage[body.model] = self._usage.get(body.model, Usage(0, 0)) + body.usage
                return ()
            case TurnResumed():
                return ()
            case Done():
                is_cancelled = body.status == "CANCELLED" and self._run.is_1_0
                outcome = frames.Cancelled() if is_cancelled else UNSET
                return (
                    frames.RunFinished(self._run.thread_id, self._run.run_id, outcome, self._token_usage()),
                )
            case Failed(code, message):
                return (frames.RunError(message, code),)
            case _ as never:
                assert_never(never)

    def _decided(self, body: ApprovalResponse) -> None:
        """The user may have changed the arguments of a call that the client runs."""
        request = self._open_requests.pop(body.request_id, None)
        call = self._unallowed.get(request.tool_call_id or "") if request else None
        if call is not None and body.arguments is not None:
            self._unallowed[call.tool_call_id] = replace(call, arguments=body.arguments)

    def _say(self, kind: Literal["text", "thought"], text: str) -> Sequence[Frame]:
        growing = self._growing
        if growing is not None and growing.kind == kind and growing.is_told:
            growing.pieces.append(text)
            return (_piece(growing, text),)
        before: Sequence[Frame] = ()
        if growing is None or growing.kind != kind:
            before = self._close()
            growing = _Growing(kind, self._ids.text() if kind == "text" else self._ids.thought())
            self._growing = growing
        growing.pieces.append(text)
        growing.is_told = True
        return [*before, *_beginning(growing), _piece(growing, text)]

    def _close(self) -> Sequence[Frame]:
        """Ends the text or thought in progress."""
        growing, self._growing = self._growing, None
        if growing is None:
            return ()
        self._written.append(growing)
        return _end(growing) if growing.is_told else ()

    def _superseded(self) -> Sequence[Frame]:
        """The texts and thoughts of a model call that is repeated no longer count."""
        written, self._written = self._written, []
        return [
            frames.ActivitySnapshot(it.id, SUPERSEDED, superseded_content("".join(it.pieces)))
            for it in written
        ]

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


def _beginning(growing: _Growing) -> Sequence[Frame]:
    if growing.kind == "text":
        return (frames.TextMessageStart(growing.id),)
    return frames.ReasoningStart(growing.id), frames.ReasoningMessageStart(growing.id)


def _piece(growing: _Growing, text: str) -> Frame:
    if growing.kind == "text":
        return frames.TextMessageContent(growing.id, text)
    return frames.ReasoningMessageContent(growing.id, text)


def _end(growing: _Growing) -> Sequence[Frame]:
    if growing.kind == "text":
        return (frames.TextMessageEnd(growing.id),)
    return frames.ReasoningMessageEnd(growing.id), frames.ReasoningEnd(growing.id)


def _call(body: ToolCalled) -> Sequence[Frame]:
    id_ = body.tool_call_id
    return (
        frames.ToolCallStart(id_, body.tool_name),
        frames.ToolCallArgs(id_, encode_json(body.arguments).decode()),
        frames.ToolCallEnd(id_),
    )


def _result(body: ToolResultStored) -> Frame:
    return frames.ToolCallResult(
        message_id=result_id(body.tool_call_id),
        tool_call_id=body.tool_call_id,
        content=result_content(body.result, body.error),
        metadata=result_metadata(body.status, body.chart_data, body.images, body.artifact_ids),
    )


def _progress(body: ToolProgress) -> dict[str, Any]:
    progress = {"toolCallId": body.tool_call_id, "progress": body.progress}
    optional = {"total": body.total, "message": body.message}
    return progress | {name: value for name, value in optional.items() if value is not None}


def _interrupt(asked: ApprovalRequest) -> frames.Interrupt:
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
