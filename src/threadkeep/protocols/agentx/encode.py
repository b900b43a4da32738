"""The `agentx` dialect: the envelopes of AgentX 1.9.0, over SSE and, wrapped, over its web socket.

A turn is one AgentX message, however many times the model was called and whatever tools it used.

| event | envelopes, in this order |
|---|---|
| turn_start | conversation_start, message_start |
| text | text_delta; begins with a blank line after a tool call, another model call or a repeated one; |
| | conversation_responding with the first of a model call |
| tool_call | tool_use_start, input_json_delta (the arguments in one piece), tool_use_stop, |
| | tool_planned, tool_executing, tool_call_message; tool_executing comes with the answer if the call |
| | waits for the user |
| approval_response | tool_executing, if the call may run |
| tool_result | tool_result; `isError` unless the status is `ok`, the result is then the error's text; |
| | tool_result_message |
| usage | message_delta, with the usage of this one call: AgentX clients add them up |
| done, COMPLETED | message_stop, message_complete, assistant_message, conversation_end `completed` |
| done, CANCELLED | the same with the text so far, conversation_end `interrupted` |
| error, timeouts too | message_stop `error`, the same with the text so far, error, conversation_end |
| | `error`, error_occurred, error_message |
| iteration_start, thought, retrieval, tool_progress, notice, turn_resumed, user_message | none: the wire |
| | has no envelope for them |

message_complete and assistant_message have the final text, without the text of repeated model calls.
assistant_message is omitted if there is nothing to read. A cursor counts an event's envelopes, so new
envelopes must come after those that an event already has.
"""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Literal, assert_never

import msgspec

from threadkeep.domain import events
from threadkeep.domain.approval import ApprovalAction, ApprovalKind
from threadkeep.domain.text import is_blank
from threadkeep.protocols import narrator
from threadkeep.protocols.agentx import frames
from threadkeep.protocols.agentx.cursor import Cursor, parse_cursor
from threadkeep.protocols.agentx.frames import Envelope, EventData, event_envelope
from threadkeep.protocols.agentx.history import (
    assistant_message,
    call_message,
    error_message,
    result_message,
)
from threadkeep.protocols.checked import CheckedReplies
from threadkeep.protocols.dialect import START, Dialect, Frames, Position, TurnContext, position_of_seq
from threadkeep.sse import frame

# Our stop reasons in AgentX 1.9.0's terms; others are `other`. Never `tool_use`: clients would wait for
# more.
STOP_REASONS = {"end_turn": "end_turn", "max_tokens": "max_tokens", "refusal": "content_filter"}


class AgentXTurn:
    """Encodes one turn for AgentX; takes its events from the first, in order."""

    def __init__(self, turn: TurnContext) -> None:
        self._message_id = turn.message_id
        self._narrator = narrator.JoiningNarrator(self._narrated, text=self._delta)
        self._checked = CheckedReplies()
        self._at = 0
        """When the latest event happened."""
        self._is_responding = False
        context = frames.EventContext(
            container_id=turn.agent_id,
            image_id=turn.conversation_id,
            agent_id=turn.conversation_id,
            session_id=turn.session_id,
            turn_id=turn.turn_id,
        )
        # Every envelope of the turn has it, so it is encoded once.
        self._context = msgspec.Raw(frames.encode_json(context))

    def sse_frames(self, event: events.TurnEvent) -> Sequence[bytes]:
        """The event's envelopes, one per SSE frame."""
        self._at, context = event.at, self._context
        return [
            frame(
                event_envelope(data, event.at, context).json(),
                event=data.type,
                id=str(Cursor(event.turn_id, event.seq, index)),
            )
            for index, data in enumerate(self._data(event.body))
        ]

    def envelopes(self, event: events.TurnEvent) -> list[Envelope]:
        """The envelopes of an event."""
        self._at, context = event.at, self._context
        return [event_envelope(data, event.at, context) for data in self._data(event.body)]

    def _data(self, body: events.EventBody) -> Iterable[EventData]:
        return chain.from_iterable(map(self._narrator.narrate, self._checked.passing(body)))

    def _narrated(self, narrated: narrator.Narration) -> Sequence[EventData]:
        match narrated:  # the most common first: cases are tried in order
            case events.TurnStart(message_id=message_id, model=model):
                return frames.ConversationStart(message_id), frames.MessageStart(message_id, model or "")
            case narrator.Called(called):
                return self._call(called)
            case narrator.Returned(result):
                return self._result(result)
            case events.UsageReported(input_tokens, output_tokens):
                return (frames.MessageDelta(frames.Tokens(input_tokens, output_tokens)),)
            case events.Done(status, stop_reason=stop_reason):
                reason = "completed" if status == "COMPLETED" else "interrupted"
                stop_reason = STOP_REASONS.get(stop_reason, "other")
                return *self._message(status, stop_reason), frames.ConversationEnd(reason)
            case events.Failed():
                return self._failure(narrated)
            case events.IterationStart() | events.IterationRestart():
                self._is_responding = False
                return ()
            case narrator.Decided():
                return _answered(narrated)
            case narrator.PartStart() | narrator.PartEnd() | events.Retrieval() | events.ToolProgress():
                return ()
            case narrator.Asked() | events.UserMessage() | events.Notice():
                return ()
            case narrator.StepBegan() | narrator.StepEnded():
                return ()
            case _ as never:
                assert_never(never)

    def _delta(self, text: str) -> Sequence[EventData]:
        """A piece of the reply; the first of a model call also says that the agent responds."""
        delta = frames.TextDelta(text)
        if self._is_responding:
            return (delta,)
        self._is_responding = True
        return delta, frames.ConversationResponding()

    def _call(self, body: events.ToolCalled) -> Sequence[EventData]:
        """A call: the model's block, then that it runs, then the call as a message."""
        id_, name, arguments = body.tool_call_id, body.tool_name, body.arguments
        return (
            frames.ToolUseStart(id_, name),
            frames.InputJsonDelta(frames.encode_json(arguments).decode()),
            frames.ToolUseStop(id_, name, arguments),
            frames.ToolPlanned(id_, name),
            *(() if body.asks else (frames.ToolExecuting(id_, name, arguments),)),
            call_message(id_, name, arguments, self._at, self._message_id),
        )

    def _result(self, body: events.ToolResultStored) -> Sequence[EventData]:
        """A result: of the model's block, then as a message."""
        result = body.result if body.error is None else body.error
        return (
            frames.ToolResult(body.tool_call_id, result, body.status != "ok"),
            result_message(body.tool_call_id, body.tool_name, body.result, body.error, self._at),
        )

    def _failure(self, body: events.Failed) -> Sequence[EventData]:
        """The end of a failed turn: clients show the error from the last two."""
        return (
            *self._message("FAILED", "error"),
            frames.Error(body.message, body.code),
            frames.ConversationEnd("error"),
            frames.ErrorOccurred(body.code, body.message, body.retryable),
            error_message(self._message_id, body.code, body.message, self._at),
        )

    def _message(
        self, status: Literal["COMPLETED", "CANCELLED", "FAILED"], stop_reason: str
    ) -> list[EventData]:
        """A message's last envelopes, with its whole text."""
        text = self._narrator.said("text")
        last: list[EventData] = [
            frames.MessageStop(stop_reason),
            frames.MessageComplete(self._message_id, text, status),
        ]
        if not is_blank(text):
            last.append(assistant_message(self._message_id, text, self._at))
        return last


def _answered(decided: narrator.Decided) -> Sequence[EventData]:
    """A call that waited for its user runs, unless they refused it."""
    request, call = decided.request, decided.call
    if call is None or not call.event.asks or request is None or request.kind is not ApprovalKind.TOOL:
        return ()
    if decided.response.action not in (ApprovalAction.ALLOW, ApprovalAction.EDIT):
        return ()
    return (frames.ToolExecuting(call.event.tool_call_id, call.event.tool_name, call.arguments),)


def wrap(cursor: Cursor, envelope: Envelope) -> str:
    """An envelope as sent over the web socket, to be acknowledged by its cursor."""
    return frames.encode_json(frames.Wrapped(str(cursor), envelope.json().decode())).decode()


def _start(turn: TurnContext) -> Frames:
    return AgentXTurn(turn).sse_frames


def _position(turn: TurnContext, last_id: str) -> Position:
    if ":" not in last_id:
        return position_of_seq(turn, last_id)
    cursor = parse_cursor(last_id)
    # A cursor of another turn says nothing about this one, so its reader starts from the beginning.
    return cursor.position if cursor.turn_id == turn.turn_id else START


AGENTX = Dialect("agentx", _start, remembers=True, position=_position)
