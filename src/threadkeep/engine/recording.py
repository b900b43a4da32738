"""Events of a run elsewhere to the messages of a turn, pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from threadkeep.domain.conversation import Conversation, EndedTurn, TitleSource
from threadkeep.domain.events import (
    Done,
    EventBody,
    Failed,
    Text,
    Thought,
    ToolCalled,
    ToolResulted,
    TurnEvent,
    TurnStart,
    UsageReported,
)
from threadkeep.domain.execution import ENDS, ExecutionEvent, ExecutionEventType
from threadkeep.domain.ids import MessageId, PayloadId, TurnId, new_uuid
from threadkeep.domain.message import Failure, Message, MessageRole, MessageStatus, ThoughtStep, Usage
from threadkeep.domain.text import is_blank
from threadkeep.domain.tool_call import ToolCall, ToolCallStatus
from threadkeep.domain.turn import ENDS as TURN_ENDS
from threadkeep.domain.turn import Turn, TurnOrigin
from threadkeep.engine.titles import derive_title

FAILED_CODE = "AGENTX_ERROR"


@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """A run as a turn that has ended: the question, the reply, and the log that tells it."""

    ended: EndedTurn
    user_message: Message
    log: Sequence[TurnEvent]


def record(conversation: Conversation, events: Sequence[ExecutionEvent], now: int) -> RecordedTurn | None:
    """A run as a turn, once its start and its end have been told; None before that."""
    told = sorted(events, key=lambda event: (event.at, event.id))
    start = next((event for event in told if event.type is ExecutionEventType.STARTED), None)
    end = next((event for event in told if event.type in ENDS), None)
    if start is None or end is None:
        return None
    return _Recording(conversation, start, end, told).turn(now)


class _Recording:
    def __init__(
        self,
        conversation: Conversation,
        start: ExecutionEvent,
        end: ExecutionEvent,
        told: Sequence[ExecutionEvent],
    ) -> None:
        self._conversation = conversation
        self._start = start
        self._end = end
        self._nodes = [event for event in told if event.type is ExecutionEventType.NODE_COMPLETED]
        self._turn_id = TurnId(new_uuid())
        self._asked_id, self._reply_id = MessageId(new_uuid()), MessageId(new_uuid())
        self._model = end.model or start.model
        self._usage = _total(told)
        self._calls = tuple(self._tool_calls())

    def turn(self, now: int) -> RecordedTurn:
        reply = self._reply()
        turn = Turn(
            self._turn_id, self._conversation.id, self._asked_id, self._reply_id,
            TURN_ENDS[reply.status], self._start.at, TurnOrigin.RECORDED, self._model, self._end.at,
            usage=reply.usage, error=reply.error,
        )  # fmt: skip
        log = [TurnEvent(turn.id, seq, self._end.at, body) for seq, body in enumerate(self._bodies(reply), 1)]
        grown = replace(
            self._conversation,
            last_seq=reply.seq,
            message_count=self._conversation.message_count + 2,
            updated_at=now,
            last_message_at=now,
        )
        if grown.title is None:
            grown = replace(
                grown, title=derive_title(self._start.input or ""), title_source=TitleSource.DERIVED
            )
        ended = EndedTurn(grown, replace(turn, last_event_seq=len(log)), reply)
        return RecordedTurn(ended, self._asked(), log)

    def _asked(self) -> Message:
        assert self._start.input is not None
        return Message(
            self._asked_id, self._conversation.id, self._conversation.last_seq + 1, self._turn_id,
            MessageRole.USER, self._start.input, MessageStatus.COMPLETED, self._start.at, self._start.at,
        )  # fmt: skip

    def _reply(self) -> Message:
        status, error = self._outcome()
        parts = (*self._nodes, self._end)
        return Message(
            self._reply_id, self._conversation.id, self._conversation.last_seq + 2, self._turn_id,
            MessageRole.ASSISTANT, self._end.output, status, self._start.at, self._end.at,
            thought_process=tuple(self._steps()),
            citations=tuple(
                replace(citation, index=index)
                for index, citation in enumerate((it for part in parts for it in part.citations), 1)
            ),
            artifact_ids=tuple(PayloadId(it) for part in parts for it in part.artifact_ids),
            tool_calls=self._calls,
            token_count=self._usage.output_tokens if self._usage else None,
            usage=self._usage,
            model=self._model,
            error=error,
        )  # fmt: skip

    def _outcome(self) -> tuple[MessageStatus, Failure | None]:
        if self._end.type is ExecutionEventType.FAILED:
            return MessageStatus.FAILED, Failure(FAILED_CODE, self._end.error or "")
        if self._end.type is ExecutionEventType.CANCELLED:
            return MessageStatus.CANCELLED, None
        if is_blank(self._end.output):
            return MessageStatus.FAILED, Failure(FAILED_CODE, "The run gave no output.")
        return MessageStatus.COMPLETED, None

    def _steps(self) -> Iterator[ThoughtStep]:
        calls = iter(self._calls)
        for node in self._nodes:
            began = node.at - node.duration_ms
            yield ThoughtStep("node", node.node or "", node.detail, began, node.duration_ms)
            for _ in node.tools:
                call = next(calls)
                took = call.duration_ms or 0
                yield ThoughtStep("tool", call.tool_name, call.error or "", began, took, call.tool_call_id)

    def _tool_calls(self) -> Iterator[ToolCall]:
        seen: set[str] = set()
        for node in self._nodes:
            for number, tool in enumerate(node.tools):
                id_ = tool.tool_call_id or f"{node.id}:{number}"
                id_ = id_ if id_ not in seen else f"{node.id}:{number}:{len(seen)}"
                seen.add(id_)
                # What ended without a word about it has been cut off.
                status = ToolCallStatus.INTERRUPTED if tool.status is ToolCallStatus.RUNNING else tool.status
                yield ToolCall(
                    self._turn_id, id_, self._reply_id, tool.tool_name, tool.server, tool.arguments, status,
                    node.at - node.duration_ms, tool.result, tool.error, duration_ms=tool.duration_ms,
                    refs=tool.refs,
                )  # fmt: skip

    def _bodies(self, reply: Message) -> Iterator[EventBody]:
        yield TurnStart(self._conversation.id, self._asked_id, self._reply_id, self._model)
        for node in self._nodes:
            yield Thought(f"{node.node}: {node.detail}\n" if node.detail else f"{node.node}\n")
        for call in self._calls:
            called = {name: ref for name, ref in call.refs.items() if name == "arguments"}
            resulted = {name: ref for name, ref in call.refs.items() if name == "result"}
            yield ToolCalled(call.tool_call_id, call.tool_name, call.server, call.arguments, called)
            yield ToolResulted(
                call.tool_call_id, call.tool_name, call.status.value, call.result, call.error,  # pyright: ignore[reportArgumentType] - never `running`
                call.duration_ms or 0, refs=resulted,
            )  # fmt: skip
        if self._end.output:
            yield Text(self._end.output)
        usage = reply.usage or Usage(0, 0, estimated=True)
        yield UsageReported.of(usage)
        if reply.error is not None:
            yield Failed(reply.error.code, reply.error.message)
        else:
            status = "CANCELLED" if reply.status is MessageStatus.CANCELLED else "COMPLETED"
            yield Done(status, reply.id, usage, "aborted" if status == "CANCELLED" else "end_turn")


def _total(told: Sequence[ExecutionEvent]) -> Usage | None:
    """What the run has cost: its end knows best, else the sum of what its nodes told."""
    if (end := next((event.usage for event in told if event.type in ENDS and event.usage), None)) is not None:
        return end
    parts = [event.usage for event in told if event.usage]
    return sum(parts, Usage(0, 0)) if parts else None
