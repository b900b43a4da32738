"""Turns the events of another engine's run into the messages of a turn; pure.

A node of the run becomes an iteration, like a model call in our turns: a thought with the node's name, the
tools that it used, what it found and the files that it produced. The output is the last iteration.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from threadkeep.context.titles import derive_title
from threadkeep.domain.execution import ENDS, ExecutedTool, ExecutionEvent, ExecutionEventType
from threadkeep.domain.ids import ConversationId, MessageId, TurnId, new_uuid
from threadkeep.domain.message import Failure, Message, MessageRole, MessageStatus, Usage
from threadkeep.domain.parts import Part, RetrievalPart, TextPart, ThoughtPart, ToolCallPart, text_parts
from threadkeep.domain.retrieval import Citation, RetrievalHit
from threadkeep.domain.text import is_blank
from threadkeep.domain.tool_call import ToolCall, ToolCallStatus
from threadkeep.domain.turn import ENDS as TURN_ENDS
from threadkeep.domain.turn import Turn, TurnOrigin

FAILED_CODE = "AGENTX_ERROR"


@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """A run as a turn that has ended: the question and the reply, with no place in the conversation yet."""

    turn: Turn
    user_message: Message
    reply: Message
    title: str | None
    """The conversation's, unless it has one."""


def record(conversation_id: ConversationId, events: Sequence[ExecutionEvent]) -> RecordedTurn | None:
    """A run as a turn, once its start and end are known; None before that."""
    ordered = sorted(events, key=lambda event: (event.at, event.id))
    start = next((event for event in ordered if event.type is ExecutionEventType.STARTED), None)
    end = next((event for event in ordered if event.type in ENDS), None)
    if start is None or end is None:
        return None
    return _Recording(conversation_id, start, end, ordered).turn()


class _Recording:
    def __init__(
        self,
        conversation_id: ConversationId,
        start: ExecutionEvent,
        end: ExecutionEvent,
        ordered: Sequence[ExecutionEvent],
    ) -> None:
        self._conversation_id = conversation_id
        self._start = start
        self._end = end
        self._nodes = [event for event in ordered if event.type is ExecutionEventType.NODE_COMPLETED]
        self._turn_id = TurnId(new_uuid())
        self._asked_id, self._reply_id = MessageId(new_uuid()), MessageId(new_uuid())
        self._model = end.model or start.model
        self._usage = _total(ordered)
        self._call_ids: set[str] = set()

    def turn(self) -> RecordedTurn:
        reply = self._reply()
        turn = Turn(
            id=self._turn_id,
            conversation_id=self._conversation_id,
            user_message_id=self._asked_id,
            assistant_message_id=self._reply_id,
            status=TURN_ENDS[reply.status],
            started_at=self._start.at,
            origin=TurnOrigin.RECORDED,
            model=self._model,
            ended_at=self._end.at,
            usage=reply.usage,
            error=reply.error,
        )
        return RecordedTurn(turn, self._asked(), reply, derive_title(self._start.input or ""))

    def _asked(self) -> Message:
        assert self._start.input is not None
        return Message(
            id=self._asked_id,
            conversation_id=self._conversation_id,
            seq=1,
            turn_id=self._turn_id,
            role=MessageRole.USER,
            parts=text_parts(self._start.input),
            status=MessageStatus.COMPLETED,
            created_at=self._start.at,
            completed_at=self._start.at,
        )

    def _reply(self) -> Message:
        status, error = self._outcome()
        return Message(
            id=self._reply_id,
            conversation_id=self._conversation_id,
            seq=2,
            turn_id=self._turn_id,
            role=MessageRole.ASSISTANT,
            parts=tuple(self._parts()),
            status=status,
            created_at=self._start.at,
            completed_at=self._end.at,
            token_count=self._usage.output_tokens if self._usage else None,
            usage=self._usage,
            model=self._model,
            error=error,
            parent_id=self._asked_id,
        )

    def _outcome(self) -> tuple[MessageStatus, Failure | None]:
        if self._end.type is ExecutionEventType.FAILED:
            return MessageStatus.FAILED, Failure(FAILED_CODE, self._end.error or "")
        if self._end.type is ExecutionEventType.CANCELLED:
            return MessageStatus.CANCELLED, None
        if is_blank(self._end.output):
            return MessageStatus.FAILED, Failure(FAILED_CODE, "The run produced no output.")
        return MessageStatus.COMPLETED, None

    def _parts(self) -> Iterator[Part]:
        for iteration, node in enumerate(self._nodes, 1):
            began = _began(node)
            yield ThoughtPart(
                text=node.detail,
                title=node.node,
                started_at=began,
                duration_ms=node.duration_ms,
                iteration=iteration,
            )
            for number, tool in enumerate(node.tools):
                yield ToolCallPart(call=self._call(node, number, tool), iteration=iteration)
            yield from self._found(node, iteration)
        last = len(self._nodes) + 1
        yield from self._found(self._end, last)
        if self._end.output:
            yield TextPart(text=self._end.output, iteration=last)

    def _found(self, event: ExecutionEvent, iteration: int) -> Iterator[Part]:
        """The sources and files of a node, or of the end; the question counts as the query."""
        if event.citations:
            yield RetrievalPart(
                query=self._start.input or "",
                hits=tuple(map(_hit, event.citations)),
                at=event.at,
                iteration=iteration,
            )
        for file in event.files:
            yield replace(file, iteration=iteration)

    def _call(self, node: ExecutionEvent, number: int, tool: ExecutedTool) -> ToolCall:
        own = f"{node.id}:{number}"
        given = (tool.tool_call_id or own, f"{own}:{len(self._call_ids)}")
        # An engine may repeat its ids, and choose one that looks like ours.
        id_ = next((it for it in given if it not in self._call_ids), None) or new_uuid()
        self._call_ids.add(id_)
        return ToolCall(
            turn_id=self._turn_id,
            tool_call_id=id_,
            message_id=self._reply_id,
            tool_name=tool.tool_name,
            server=tool.server,
            arguments=tool.arguments,
            # A call without a reported end was cut off.
            status=ToolCallStatus.INTERRUPTED if tool.status is ToolCallStatus.RUNNING else tool.status,
            created_at=_began(node),
            result=tool.result,
            error=tool.error,
            duration_ms=tool.duration_ms,
            refs=tool.refs,
        )


def _began(node: ExecutionEvent) -> int:
    return max(node.at - node.duration_ms, 0)


def _hit(citation: Citation) -> RetrievalHit:
    return RetrievalHit(
        source=citation.title,
        text=citation.snippet,
        score=citation.score,
        document_id=citation.document_id,
        page=citation.page,
        url=citation.url,
        file_name=citation.file_name,
    )


def _total(ordered: Sequence[ExecutionEvent]) -> Usage | None:
    """The run's usage: from its end if reported, otherwise the sum over its nodes."""
    ends = (event.usage for event in ordered if event.type in ENDS and event.usage)
    if (end := next(ends, None)) is not None:
        return end
    parts = [event.usage for event in ordered if event.usage]
    return sum(parts, Usage(0, 0)) if parts else None
