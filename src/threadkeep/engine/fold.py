"""Events to message, pure: the same for a stream that is watched and one that nobody sees."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import assert_never

from threadkeep.domain.events import (
    Done,
    Failed,
    IterationStart,
    Notice,
    Retrieval,
    RetrievalHit,
    Text,
    Thought,
    ToolCalled,
    ToolProgress,
    ToolResulted,
    TurnEvent,
    TurnStart,
    UsageReported,
)
from threadkeep.domain.ids import MessageId, PayloadId, TurnId
from threadkeep.domain.message import Citation, Failure, Message, MessageStatus, ThoughtStep, Usage
from threadkeep.domain.tool_call import ToolCall, ToolCallStatus

MOST_SNIPPET_CHARACTERS = 300


def fold(message: Message, events: Iterable[TurnEvent]) -> Message:
    """A reply as its turn's events tell it."""
    folding = Folding()
    for event in events:
        folding.add(event)
    return folding.message(message)


@dataclass(slots=True)
class _Step:
    kind: str
    title: str
    started_at: int
    detail: list[str] = field(default_factory=list[str])
    ended_at: int | None = None
    tool_call_id: str | None = None


class Folding:
    """The fold of the events so far; events are added one by one, in order."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._steps: list[_Step] = []
        self._calls: dict[str, ToolCall] = {}
        self._hits: list[RetrievalHit] = []
        self._artifact_ids: list[str] = []
        self._usage: Usage | None = None
        self._end: Done | Failed | None = None
        self._ended_at: int | None = None
        self._model: str | None = None
        self.last_seq = 0

    @property
    def open_calls(self) -> list[ToolCall]:
        """Tool calls that have no result yet."""
        return [call for call in self._calls.values() if call.status is ToolCallStatus.RUNNING]

    @property
    def usage(self) -> Usage:
        """What has been spent so far."""
        return self._usage or Usage(0, 0)

    def add(self, event: TurnEvent) -> None:
        """Takes the next event."""
        self.last_seq, at = event.seq, event.at
        match event.body:  # the commonest first: each case is looked at in turn
            case Text(text):
                self._close_thought(at)
                self._text.append(text)
            case Thought(text):
                self._thought(text, at)
            case TurnStart():
                self._model = event.body.model
            case Retrieval() as body:
                self._hits += body.hits
                sources = ", ".join(dict.fromkeys(hit.source for hit in body.hits))
                self._step("retrieval", body.query, at, sources, body.tool_call_id).ended_at = at
            case IterationStart() | ToolProgress():
                pass
            case ToolCalled() as body:
                self._close_thought(at)
                self._called(event.turn_id, body, at)
            case ToolResulted() as body:
                self._resulted(body, at)
            case Notice() as body:
                self._step("notice", body.code, at, body.message).ended_at = at
            case UsageReported() as body:
                self._close_thought(at)
                self._usage = self.usage + body.usage
            case Done() | Failed() as body:
                self._close_thought(at)
                self._end, self._ended_at = body, at
            case _ as never:
                assert_never(never)

    def message(self, message: Message) -> Message:
        """The reply as far as the events go."""
        return replace(
            message,
            status=self._status(message.status),
            content="".join(self._text),
            thought_process=tuple(self._thought_step(step) for step in self._steps),
            citations=self._citations(),
            artifact_ids=tuple(PayloadId(it) for it in self._artifact_ids),
            tool_calls=tuple(replace(call, message_id=message.id) for call in self._calls.values()),
            token_count=self._usage.output_tokens if self._usage else None,
            usage=self._usage,
            model=self._model or message.model,
            error=Failure(self._end.code, self._end.message, self._end.retryable)
            if isinstance(self._end, Failed)
            else None,
            completed_at=self._ended_at,
        )

    def _status(self, before: MessageStatus) -> MessageStatus:
        match self._end:
            case Done():
                return MessageStatus(self._end.status)
            case Failed():
                return MessageStatus.FAILED
            case None:
                return MessageStatus.STREAMING if self.last_seq > 1 else before

    def _step(
        self, kind: str, title: str, at: int, detail: str = "", tool_call_id: str | None = None
    ) -> _Step:
        step = _Step(kind, title, at, [detail] if detail else [], tool_call_id=tool_call_id)
        self._steps.append(step)
        return step

    def _thought(self, text: str, at: int) -> None:
        last = self._steps[-1] if self._steps else None
        if last is None or last.kind != "thought" or last.ended_at is not None:
            last = self._step("thought", "Thought", at)
        last.detail.append(text)

    def _close_thought(self, at: int) -> None:
        if self._steps and self._steps[-1].kind == "thought" and self._steps[-1].ended_at is None:
            self._steps[-1].ended_at = at

    def _called(self, turn_id: str, body: ToolCalled, at: int) -> None:
        self._calls[body.tool_call_id] = ToolCall(
            TurnId(turn_id), body.tool_call_id, MessageId(""), body.tool_name, body.server, body.arguments,
            ToolCallStatus.RUNNING, at, refs=body.refs,
        )  # fmt: skip
        self._step("tool", body.tool_name, at, tool_call_id=body.tool_call_id)

    def _resulted(self, body: ToolResulted, at: int) -> None:
        call = self._calls[body.tool_call_id]
        self._calls[body.tool_call_id] = call.end(
            ToolCallStatus(body.status),
            result=body.result,
            error=body.error,
            chart_data=body.chart_data,
            duration_ms=body.duration_ms,
            refs=body.refs,
        )
        self._artifact_ids += body.artifact_ids
        for step in self._steps:
            if step.kind == "tool" and step.tool_call_id == body.tool_call_id:
                step.ended_at = at
                step.detail = [body.error] if body.error else []

    def _thought_step(self, step: _Step) -> ThoughtStep:
        ended_at = step.ended_at or step.started_at
        return ThoughtStep(
            step.kind,
            step.title,
            "".join(step.detail),
            step.started_at,
            max(ended_at - step.started_at, 0),  # clocks are set back, and nodes have their own
            step.tool_call_id,
        )

    def _citations(self) -> tuple[Citation, ...]:
        return tuple(
            Citation(
                index,
                hit.source,
                hit.text[:MOST_SNIPPET_CHARACTERS],
                hit.score,
                file_name=hit.source if hit.document_id else None,
                document_id=hit.document_id,
                page=hit.page,
            )
            for index, hit in enumerate(self._hits, 1)
        )
