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

message_complete and assistant_message have the final text, without that of model calls that were repeated.
assistant_message is omitted if there is nothing to read. A cursor counts an event's envelopes, so new
envelopes must come after those that an event already has.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, assert_never

import msgspec

from threadkeep.domain.approval import ApprovalAction
from threadkeep.domain.errors import InvalidRequest
from threadkeep.domain.events import (
    ApprovalRequest,
    ApprovalResponse,
    Done,
    Failed,
    IterationRestart,
    IterationStart,
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
from threadkeep.domain.parts import SaidText, TextJoin
from threadkeep.domain.text import is_blank
from threadkeep.protocols.agentx.messages import (
    assistant_message,
    call_message,
    error_message,
    result_message,
)
from threadkeep.protocols.dialect import START, Dialect, Frames, Position, TurnContext, position_of_seq
from threadkeep.sse import frame

Category = Literal["stream", "state", "message", "response"]

# Our stop reasons in AgentX 1.9.0's terms; others are `other`. Never `tool_use`: clients would wait for
# more.
STOP_REASONS = {"end_turn": "end_turn", "max_tokens": "max_tokens", "refusal": "content_filter"}

_CURSOR = re.compile(r"([0-9a-f-]{36}):([1-9][0-9]{0,14}):([0-9]{1,3})")
_encode = msgspec.json.Encoder().encode


class Envelope(msgspec.Struct, frozen=True):
    """What AgentX sends: a named event with its data, and where it happened."""

    type: str
    timestamp: int
    data: Mapping[str, Any]
    source: Literal["agent", "command"] = "agent"
    category: Category = "stream"
    intent: Literal["notification", "result"] = "notification"
    context: Mapping[str, str] | msgspec.Raw = msgspec.Raw(b"{}")

    def json(self) -> bytes:
        """The envelope as sent."""
        return _encode(self)


class Cursor(NamedTuple):
    """Identifies an envelope: its turn, its event, and its index among the event's envelopes, from 0."""

    turn_id: str
    seq: int
    envelope: int

    def __str__(self) -> str:
        return f"{self.turn_id}:{self.seq}:{self.envelope}"

    @property
    def position(self) -> Position:
        """The position of a reader that has seen this envelope."""
        return Position(self.seq - 1, self.envelope + 1)


def parse_cursor(text: str) -> Cursor:
    """Parses a cursor that a client sends back."""
    parts = _CURSOR.fullmatch(text)
    if parts is None:
        raise InvalidRequest("This isn't a cursor of an AgentX stream.", param="afterCursor")
    return Cursor(parts[1], int(parts[2]), int(parts[3]))


def wrap(cursor: Cursor | str, envelope_json: bytes | str) -> str:
    """An envelope as sent over the web socket, to be acknowledged by its cursor."""
    payload = envelope_json.decode() if isinstance(envelope_json, bytes) else envelope_json
    return _encode({"__msgId": str(cursor), "__payload": payload}).decode()


class AgentXTurn:
    """Encodes one turn for AgentX; takes its events from the first, in order."""

    def __init__(self, turn: TurnContext) -> None:
        self._message_id = turn.message_id
        self._said = SaidText()
        self._join = TextJoin()
        self._is_responding = False
        self._waiting: dict[str, Envelope] = {}
        """By call id, `tool_executing` of calls that wait for their user."""
        self._asked: dict[str, str | None] = {}
        context = {
            "containerId": turn.agent_id,
            "imageId": turn.conversation_id,
            "agentId": turn.conversation_id,
            "sessionId": turn.session_id,
            "turnId": turn.turn_id,
        }
        self._context = msgspec.Raw(_encode(context))

    def frames(self, event: TurnEvent) -> Sequence[bytes]:
        """The event's envelopes, one per SSE frame."""
        return [
            frame(envelope.json(), event=envelope.type, id=str(Cursor(event.turn_id, event.seq, index)))
            for index, envelope in enumerate(self.envelopes(event))
        ]

    def envelopes(self, event: TurnEvent) -> list[Envelope]:
        """The envelopes of an event."""
        at = event.at
        match event.body:
            case Text(text):
                self._said.add(text)
                return self._delta(at, self._join.add(text))
            case TurnStart(message_id=message_id, model=model):
                return [
                    self._envelope("conversation_start", at, {"messageId": message_id}, "state"),
                    self._envelope("message_start", at, {"messageId": message_id, "model": model or ""}),
                ]
            case ToolCalled() as body:
                self._join.interrupt()
                self._said.interrupt()
                return self._call(at, body)
            case ToolResultStored() as body:
                return self._result(at, body)
            case UsageReported() as body:
                usage = {"inputTokens": body.input_tokens, "outputTokens": body.output_tokens}
                return [self._envelope("message_delta", at, {"usage": usage})]
            case Done(status, stop_reason=stop_reason):
                reason = "completed" if status == "COMPLETED" else "interrupted"
                stop_reason = STOP_REASONS.get(stop_reason, "other")
                return [*self._message(at, status, stop_reason), self._conversation_end(at, reason)]
            case Failed() as body:
                return self._failure(at, body)
            case IterationStart():
                self._join.interrupt()
                self._said.begin_iteration()
                self._is_responding = False
                return []
            case IterationRestart():
                self._join.interrupt()
                self._said.restart()
                self._is_responding = False
                return []
            case UserMessage():
                self._join.interrupt()
                self._said.interrupt()
                return []
            case Thought() | Retrieval() | ToolProgress() | Notice() | TurnResumed():
                return []
            case ApprovalRequest() as body:
                self._asked[body.request_id] = body.tool_call_id
                return []
            case ApprovalResponse() as body:
                return self._answered(at, body)
            case _ as never:
                assert_never(never)

    def _delta(self, at: int, text: str) -> list[Envelope]:
        """A piece of the reply; the first of a model call also says that the agent responds."""
        delta = self._envelope("text_delta", at, {"text": text})
        if self._is_responding:
            return [delta]
        self._is_responding = True
        return [delta, self._envelope("conversation_responding", at, {}, "state")]

    def _call(self, at: int, body: ToolCalled) -> list[Envelope]:
        """A call: the model's block, then that it runs, then the call as a message."""
        tool = {"toolCallId": body.tool_call_id, "toolName": body.tool_name}
        planned = {"toolId": body.tool_call_id, "toolName": body.tool_name}
        partial_json = _encode(body.arguments).decode()
        message = call_message(body.tool_call_id, body.tool_name, body.arguments, at, self._message_id)
        executing = self._envelope("tool_executing", at, {**planned, "input": body.arguments}, "state")
        if body.asks:
            self._waiting[body.tool_call_id] = executing
        return [
            self._envelope("tool_use_start", at, tool),
            self._envelope("input_json_delta", at, {"partialJson": partial_json}),
            self._envelope("tool_use_stop", at, {**tool, "input": body.arguments}),
            self._envelope("tool_planned", at, planned, "state"),
            *(() if body.asks else (executing,)),
            self._envelope("tool_call_message", at, message, "message"),
        ]

    def _answered(self, at: int, body: ApprovalResponse) -> list[Envelope]:
        """A call that waited for its user runs, unless they refused it."""
        executing = self._waiting.pop(self._asked.get(body.request_id) or "", None)
        if executing is None or body.action not in (ApprovalAction.ALLOW, ApprovalAction.EDIT):
            return []
        data = executing.data if body.arguments is None else {**executing.data, "input": body.arguments}
        return [msgspec.structs.replace(executing, timestamp=at, data=data)]

    def _result(self, at: int, body: ToolResultStored) -> list[Envelope]:
        """A result: of the model's block, then as a message."""
        result = body.result if body.error is None else body.error
        data = {"toolCallId": body.tool_call_id, "result": result, "isError": body.status != "ok"}
        message = result_message(body.tool_call_id, body.tool_name, body.result, body.error, at)
        return [
            self._envelope("tool_result", at, data),
            self._envelope("tool_result_message", at, message, "message"),
        ]

    def _failure(self, at: int, body: Failed) -> list[Envelope]:
        """The end of a failed turn: clients show the error from the last two."""
        occurred = {"code": body.code, "message": body.message, "recoverable": body.retryable}
        message = error_message(self._message_id, body.code, body.message, at)
        return [
            *self._message(at, "FAILED", "error"),
            self._envelope("error", at, {"message": body.message, "errorCode": body.code}),
            self._conversation_end(at, "error"),
            self._envelope("error_occurred", at, occurred, "state"),
            self._envelope("error_message", at, message, "message"),
        ]

    def _message(self, at: int, status: str, stop_reason: str) -> list[Envelope]:
        """A message's last envelopes, with its whole text."""
        text = self._said.text
        complete = {"messageId": self._message_id, "content": text, "status": status}
        envelopes = [
            self._envelope("message_stop", at, {"stopReason": stop_reason}),
            self._envelope("message_complete", at, complete),
        ]
        if not is_blank(text):
            message = assistant_message(self._message_id, text, at)
            envelopes.append(self._envelope("assistant_message", at, message, "message"))
        return envelopes

    def _conversation_end(self, at: int, reason: str) -> Envelope:
        return self._envelope("conversation_end", at, {"reason": reason}, "state")

    def _envelope(
        self, name: str, at: int, data: Mapping[str, Any], category: Category = "stream"
    ) -> Envelope:
        return Envelope(name, at, data, category=category, context=self._context)


def _start(turn: TurnContext) -> Frames:
    return AgentXTurn(turn).frames


def _position(turn: TurnContext, last_id: str) -> Position:
    if ":" not in last_id:
        return position_of_seq(turn, last_id)
    cursor = parse_cursor(last_id)
    # A cursor of another turn says nothing about this one, so its reader starts from the beginning.
    return cursor.position if cursor.turn_id == turn.turn_id else START


AGENTX = Dialect("agentx", _start, remembers=True, position=_position)
