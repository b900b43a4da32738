"""Folds events into a message of parts; pure, and the same for live streams and replays."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, assert_never

from threadkeep.domain.approval import ApprovalKind, ApprovalScope, CallApproval, Decision
from threadkeep.domain.events import (
    ApprovalRequest,
    ApprovalResponse,
    Done,
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
from threadkeep.domain.ids import MessageId, PayloadId, TurnId
from threadkeep.domain.message import MANY_PARTS, MUCH_TEXT, Failure, Message, MessageStatus, Usage
from threadkeep.domain.parts import (
    FilePart,
    NoticePart,
    OutputPart,
    Part,
    QuestionPart,
    RetrievalPart,
    StepPart,
    TextPart,
    ThoughtPart,
    ToolCallPart,
    UserTextPart,
)
from threadkeep.domain.tool_call import ToolCall, ToolCallStatus


def fold(message: Message, events: Iterable[TurnEvent]) -> Message:
    """A reply as its turn's events describe it."""
    folding = Folding()
    for event in events:
        folding.add(event)
    return folding.message(message)


@dataclass(slots=True)
class _Growing:
    """The text or thought that is being written."""

    kind: Literal["text", "thought"]
    pieces: list[str]
    started_at: int
    last_at: int
    iteration: int
    place: int | None = None
    """Where it is in the parts, if something that began meanwhile stands after it."""

    def part(self) -> Part:
        """The part so far."""
        text = "".join(self.pieces)
        if self.kind == "text":
            return TextPart(text=text, iteration=self.iteration)
        return ThoughtPart(
            text=text,
            started_at=self.started_at,
            # Clocks can be set back, and each node has its own.
            duration_ms=max(self.last_at - self.started_at, 0),
            iteration=self.iteration,
        )


class Folding:
    """The fold of the events so far; events are added one by one, in order."""

    def __init__(self) -> None:
        self._parts: list[Part] = []
        self._growing: _Growing | None = None
        self._calls: dict[str, int] = {}
        """Each tool call's index in the parts."""
        self._steps: dict[str, int] = {}
        """Each step's index in the parts."""
        self._requests: dict[str, int] = {}
        """The index of the part for each request to the user: its tool call, or a question."""
        self._iteration = 0
        self._voice: str | None = None
        """The step or model call of a program that speaks; empty if the program itself does."""
        self._is_asking = True
        self._usage: Usage | None = None
        self._end: Done | Failed | None = None
        self._ended_at: int | None = None
        self._model: str | None = None
        self._characters = 0
        self.last_seq = 0
        self.call_seq = 0
        """The number of the event that began the last model call."""

    @property
    def is_large(self) -> bool:
        """Whether making the reply would keep the event loop."""
        return self._characters > MUCH_TEXT or len(self._parts) > MANY_PARTS

    @property
    def parts(self) -> Sequence[Part]:
        """The reply as far as the events go."""
        if (growing := self._growing) is None:
            return self._parts
        if growing.place is None:
            return [*self._parts, growing.part()]
        return [*self._parts[: growing.place], growing.part(), *self._parts[growing.place + 1 :]]

    @property
    def open_calls(self) -> list[ToolCall]:
        """Tool calls that have no result yet."""
        calls = (part.call for part in self._parts if isinstance(part, ToolCallPart))
        return [call for call in calls if call.status is ToolCallStatus.RUNNING]

    @property
    def open_iteration(self) -> int | None:
        """The model call that hasn't reported its usage, if any; 0 before the first."""
        return self._iteration if self._is_asking else None

    @property
    def has_usage(self) -> bool:
        """Whether a model call has reported its usage."""
        return self._usage is not None

    @property
    def usage(self) -> Usage:
        """What has been spent so far."""
        return self._usage or Usage(0, 0)

    def add(self, event: TurnEvent) -> None:
        """Adds the next event."""
        self.last_seq, at = event.seq, event.at
        match event.body:  # the most common first: cases are tried in order
            case Text(text):
                self._grow("text", text, at)
            case Thought(text):
                self._grow("thought", text, at)
            case TurnStart():
                self._model = event.body.model
            case Retrieval() as body:
                self._close(at)
                self._parts.append(
                    RetrievalPart(
                        query=body.query,
                        hits=body.hits,
                        at=at,
                        tool_call_id=body.tool_call_id,
                        iteration=self._iteration,
                    )
                )
            case IterationStart(iteration, step_id):
                self._close(at)
                self._voice = step_id
                self._iteration, self._is_asking, self.call_seq = iteration, True, event.seq
            case IterationRestart(iteration, step_id=step_id):
                self._close(at)
                self._supersede(iteration, keeps_done=step_id is not None)
                self._iteration, self._is_asking, self.call_seq = iteration, True, event.seq
            case ToolProgress():
                pass
            case ToolCalled() as body:
                self._close(at)
                self._called(event.turn_id, body, at)
            case ToolResultStored() as body:
                self._resulted(body)
            case ApprovalRequest() as body:
                self._close(at)
                self._asked(body, at)
            case ApprovalResponse() as body:
                self._decided(body, at)
            case StepChanged() as body:
                self._stepped(body, at)
            case UserMessage(message_id, content):
                self._close(at)
                self._parts.append(
                    UserTextPart(message_id=message_id, text=content, at=at, iteration=self._iteration)
                )
            case TurnResumed():
                if self._voice != "":  # what a program itself says goes on where it was cut off
                    self._close(at)
            case Notice(code, message):
                self._close(at)
                self._parts.append(NoticePart(code=code, message=message, at=at, iteration=self._iteration))
            case UsageReported() as body:
                self._close(at)
                self._usage, self._is_asking = self.usage + body.usage, False
                self._model = body.model or self._model
            case Done() | Failed() as body:
                self._close(at)
                self._end_steps()
                if isinstance(body, Done) and body.output is not None:
                    self._parts.append(OutputPart(value=body.output, iteration=self._iteration))
                self._end, self._ended_at = body, at
            case _ as never:
                assert_never(never)

    def message(self, message: Message) -> Message:
        """The reply as far as the events go."""
        return replace(
            message,
            status=self._status(message.status),
            parts=tuple(_of_message(part, message.id) for part in self.parts),
            token_count=self._usage.output_tokens if self._usage else None,
            usage=self._usage,
            model=self._model or message.model,
            error=Failure(self._end.code, self._end.message, self._end.retryable)
            if isinstance(self._end, Failed)
            else None,
            completed_at=self._ended_at,
        )

    def _status(self, current: MessageStatus) -> MessageStatus:
        match self._end:
            case Done():
                return MessageStatus(self._end.status)
            case Failed():
                return MessageStatus.FAILED
            case None:
                return MessageStatus.STREAMING if self.last_seq > 1 else current

    def _grow(self, kind: Literal["text", "thought"], text: str, at: int) -> None:
        self._characters += len(text)
        growing = self._growing
        if growing is not None and growing.kind == kind:
            growing.pieces.append(text)
            growing.last_at = at
            return
        self._close(at)
        self._growing = _Growing(kind, [text], at, at, self._iteration)

    def _close(self, at: int) -> None:
        """Completes the text or thought in progress."""
        if self._growing is not None:
            self._growing.last_at = at
            self._hold()
            self._growing = None

    def _hold(self) -> None:
        """Puts the text or thought in progress, as far as it goes, in its place among the parts."""
        if (growing := self._growing) is None:
            return
        if growing.place is None:
            growing.place = len(self._parts)
            self._parts.append(growing.part())
        else:
            self._parts[growing.place] = growing.part()

    def _supersede(self, iteration: int, *, keeps_done: bool) -> None:
        """A model call or a step restarts: its parts stay visible and no longer count.

        Of a step only what it said: calls, steps and questions in between are others'.
        """
        for at, part in enumerate(self._parts):
            if part.iteration == iteration and not (keeps_done and _is_done(part)):
                self._parts[at] = replace(part, superseded=True)

    def _stepped(self, body: StepChanged, at: int) -> None:
        if (place := self._steps.get(body.step_id)) is not None:
            begun = self._parts[place]
            assert isinstance(begun, StepPart)
            self._parts[place] = replace(begun, status=body.status, duration_ms=body.duration_ms)
            return
        if self._voice:  # what another step or model call says goes on
            self._hold()
        else:
            self._close(at)
        self._steps[body.step_id] = len(self._parts)
        self._parts.append(
            StepPart(
                step_id=body.step_id,
                name=body.name,
                status=body.status,
                at=at,
                title=body.title,
                duration_ms=body.duration_ms,
                parent_id=body.parent_id,
                agent=body.agent,
                iteration=self._iteration,
            )
        )

    def _end_steps(self) -> None:
        """The turn is over: of a step without an end, nobody knows how it ended."""
        for place in self._steps.values():
            step = self._parts[place]
            if isinstance(step, StepPart) and step.status == "running":
                self._parts[place] = replace(step, status="unknown")

    def _asked(self, body: ApprovalRequest, at: int) -> None:
        is_about_call = body.kind in (ApprovalKind.TOOL, ApprovalKind.CLIENT_TOOL)
        if is_about_call and body.tool_call_id is not None:
            place = self._requests[body.request_id] = self._calls[body.tool_call_id]
            call = self._parts[place]
            assert isinstance(call, ToolCallPart)
            asked = CallApproval(request_id=body.request_id, message=body.message, expires_at=body.expires_at)
            if body.kind is ApprovalKind.TOOL:
                self._parts[place] = replace(call, approval=asked)
            else:
                self._parts[place] = replace(call, client_request=asked)
            return
        self._requests[body.request_id] = len(self._parts)
        self._parts.append(
            QuestionPart(
                request_id=body.request_id,
                message=body.message,
                at=at,
                expires_at=body.expires_at,
                tool_call_id=body.tool_call_id,
                schema=body.schema,
                url=body.url,
                iteration=self._iteration,
            )
        )

    def _decided(self, body: ApprovalResponse, at: int) -> None:
        place = self._requests[body.request_id]
        decision = Decision(
            action=body.action,
            at=at,
            scope=body.scope or ApprovalScope.ONCE,
            arguments=body.arguments,
            content=body.content,
        )
        match self._parts[place]:
            case QuestionPart() as asked:
                self._parts[place] = replace(asked, decision=decision)
            case ToolCallPart(approval=CallApproval(request_id=id_) as asked) as call if (
                id_ == body.request_id
            ):
                self._parts[place] = replace(call, approval=replace(asked, decision=decision))
            case ToolCallPart(client_request=CallApproval() as asked) as call:
                self._parts[place] = replace(call, client_request=replace(asked, decision=decision))
            case _:
                raise AssertionError("a decision belongs to a question or a call")

    def _called(self, turn_id: str, body: ToolCalled, at: int) -> None:
        call = ToolCall(
            turn_id=TurnId(turn_id),
            tool_call_id=body.tool_call_id,
            message_id=MessageId(""),
            tool_name=body.tool_name,
            server=body.server,
            arguments=body.arguments,
            status=ToolCallStatus.RUNNING,
            created_at=at,
            model_name=body.model_name,
            refs=body.refs,
        )
        self._calls[body.tool_call_id] = len(self._parts)
        self._parts.append(ToolCallPart(call=call, parent_id=body.parent_id, iteration=self._iteration))

    def _resulted(self, body: ToolResultStored) -> None:
        at = self._calls[body.tool_call_id]
        part = self._parts[at]
        assert isinstance(part, ToolCallPart)
        ended = part.call.end(
            ToolCallStatus(body.status),
            result=body.result,
            error=body.error,
            chart_data=body.chart_data,
            duration_ms=body.duration_ms,
            artifact_ids=tuple(PayloadId(it) for it in body.artifact_ids),
            refs=body.refs,
        )
        self._parts[at] = replace(part, call=ended)
        self._parts += (self._image(image, body.tool_call_id) for image in body.images)

    def _image(self, image: ReturnedImage, tool_call_id: str) -> FilePart:
        return FilePart(
            file_id=image.file_id,
            file_name=image.file_name,
            media_type=image.media_type,
            size=image.size,
            width=image.width,
            height=image.height,
            refs=image.refs,
            tool_call_id=tool_call_id,
            iteration=self._iteration,
        )


def _is_done(part: Part) -> bool:
    """Whether a part is more than what somebody said: something was done, asked or sent."""
    match part:
        case ToolCallPart() | StepPart() | QuestionPart() | UserTextPart():
            return True
        case RetrievalPart(tool_call_id=str()) | FilePart(tool_call_id=str()):
            return True
        case _:
            return False


def _of_message(part: Part, message_id: MessageId) -> Part:
    if isinstance(part, ToolCallPart):
        return replace(part, call=replace(part.call, message_id=message_id))
    return part
