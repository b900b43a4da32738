"""A conversation that was had in another product, as one of ours; pure.

All ids are made from the other product's, and of the time at which things were said: whoever brings the same
file in again makes the same ids, and what is listed or found by time stands where it belongs.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import msgspec

from threadkeep.domain.conversation import (
    MOST_TITLE_CHARACTERS,
    Conversation,
    ConversationStatus,
    TitleSource,
)
from threadkeep.domain.ids import AgentId, ConversationId, MessageId, PayloadId, TurnId, UserId, derived_uuid
from threadkeep.domain.message import Message, MessageRole, MessageStatus
from threadkeep.domain.parts import Part, TextPart, ThoughtPart, ToolCallPart, text_parts
from threadkeep.domain.payload import Payload, PayloadKind
from threadkeep.domain.text import is_blank, one_line, storable
from threadkeep.domain.tool_call import ToolCall, ToolCallStatus
from threadkeep.domain.turn import ENDS, Turn, TurnOrigin
from threadkeep.engine.large_values import MOST_INLINE_BYTES
from threadkeep.engine.titles import derive_title
from threadkeep.engine.values import clean
from threadkeep.ports.exchange import (
    ForeignCall,
    ForeignConversation,
    ForeignExchange,
    ForeignMessage,
    ForeignText,
    ForeignThought,
    KeptTurn,
    WholeConversation,
)

MOST_NAME_CHARACTERS = 200


def retell(
    foreign: ForeignConversation, user_id: UserId, agent_id: AgentId, now: int
) -> tuple[WholeConversation, Mapping[str, bytes]]:
    """The whole conversation of a user with an agent, and the contents of its payloads by their hashes.

    `now` stands in for times that nobody told.
    """
    telling = _Telling(foreign, now)
    for exchange in foreign.exchanges:
        telling.add(exchange)
    started = Conversation.start(user_id, agent_id, telling.created_at, metadata=_origin(foreign))
    title, source = _title(foreign)
    messages = telling.messages
    conversation = replace(
        started,
        id=telling.id,
        title=title,
        title_source=source,
        status=ConversationStatus.ARCHIVED if foreign.is_archived else ConversationStatus.ACTIVE,
        last_seq=len(messages),
        message_count=sum(it.on_path for it in messages),
        tip_id=telling.tip_id,
        updated_at=foreign.updated_at or telling.at,
        last_message_at=messages[-1].created_at if messages else None,
    )
    return WholeConversation(conversation, telling.turns, messages, (), telling.payloads), telling.contents


class _Telling:
    """What has been told so far."""

    def __init__(self, foreign: ForeignConversation, now: int) -> None:
        self._names = (foreign.product, foreign.id)
        told_at = foreign.created_at or _first_time(foreign)
        self.created_at = self.at = told_at or now
        # Not `now`: the same file gives the same ids tomorrow.
        self._id_at = told_at or 0
        self.id = ConversationId(derived_uuid(self._id_at, *self._names))
        self.turns: list[KeptTurn] = []
        self.messages: list[Message] = []
        self.payloads: list[Payload] = []
        self.contents: dict[str, bytes] = {}
        self.tip_id: MessageId | None = None
        self._call_count = 0

    def add(self, exchange: ForeignExchange) -> None:
        """A question and its answers: a turn for each answer, all but the last one overwritten."""
        asked = exchange.asked if exchange.asked and not is_blank(storable(exchange.asked.text)) else None
        turn_ids = [TurnId(self._id("turn", reply.id, reply.at)) for reply in exchange.replies]
        question = None
        if asked is not None:
            question = self._question(asked, turn_ids[0] if turn_ids else None)
            self._keep(question)
        follows = self.tip_id
        for reply, turn_id in zip(exchange.replies, turn_ids, strict=True):
            answer = self._answer(reply, turn_id if question else None, follows)
            if question is not None:
                self.turns.append(KeptTurn(_turn(turn_id, question, answer)))
            is_last = reply is exchange.replies[-1]
            self._keep(answer if is_last else answer.become(MessageStatus.OVERWRITTEN))

    def _keep(self, message: Message) -> None:
        self.messages.append(message)
        if message.on_path:
            self.tip_id = message.id

    def _question(self, said: ForeignMessage, turn_id: TurnId | None) -> Message:
        id_ = self._message_id(said)
        return Message(
            id=id_,
            conversation_id=self.id,
            seq=len(self.messages) + 1,
            turn_id=turn_id,
            role=MessageRole.USER,
            parts=text_parts(storable(said.text)),
            status=MessageStatus.COMPLETED,
            created_at=self.at,
            completed_at=self.at,
            parent_id=self.tip_id,
        )

    def _answer(self, said: ForeignMessage, turn_id: TurnId | None, parent_id: MessageId | None) -> Message:
        id_ = self._message_id(said)
        # Nothing was said, only thought or done: the answer was stopped.
        is_stopped = is_blank(storable(said.text))
        return Message(
            id=id_,
            conversation_id=self.id,
            seq=len(self.messages) + 1,
            turn_id=turn_id,
            role=MessageRole.ASSISTANT,
            parts=tuple(self._parts(said, id_, turn_id)),
            status=MessageStatus.CANCELLED if is_stopped else MessageStatus.COMPLETED,
            created_at=self.at,
            completed_at=self.at,
            model=storable(said.model)[:MOST_NAME_CHARACTERS] if said.model else None,
            parent_id=parent_id,
        )

    def _message_id(self, said: ForeignMessage) -> MessageId:
        self.at = said.at or self.at
        return MessageId(self._id("message", said.id, said.at))

    def _id(self, kind: str, id_: str, at: int | None) -> str:
        # Ascending, as all our ids are: the index of words has room for few of the same millisecond.
        self._id_at = max(at or 0, self._id_at + 1)
        return derived_uuid(self._id_at, *self._names, kind, id_)

    def _parts(self, said: ForeignMessage, message_id: MessageId, turn_id: TurnId | None) -> Iterator[Part]:
        """The parts of an answer; a tool call belongs to a turn, so a greeting has none."""
        for part in said.parts:
            match part:
                case ForeignText(text, iteration):
                    if not is_blank(text := storable(text)):
                        yield TextPart(text=text, iteration=iteration)
                case ForeignThought(text, iteration):
                    yield ThoughtPart(text=storable(text), started_at=self.at, iteration=iteration)
                case ForeignCall():
                    if turn_id is not None:
                        call = self._call(part, message_id, turn_id)
                        yield ToolCallPart(call=call, iteration=part.iteration)

    def _call(self, call: ForeignCall, message_id: MessageId, turn_id: TurnId) -> ToolCall:
        """A tool call; what is too large for a row lies apart, as with our own."""
        self._call_count += 1
        values = {"arguments": clean(call.arguments), "result": clean(call.result)}
        refs: dict[str, PayloadId] = {}
        for name, value in values.items():
            content = msgspec.json.encode(value)
            if len(content) > MOST_INLINE_BYTES:
                refs[name] = self._set_aside(content, message_id, f"{self._call_count} {name}")
                values[name] = {} if name == "arguments" else None
        return ToolCall(
            turn_id=turn_id,
            # Numbered over the whole conversation: models take no id twice.
            tool_call_id=f"call_{self._call_count}",
            message_id=message_id,
            tool_name=storable(call.name)[:MOST_NAME_CHARACTERS] or "tool",
            server="",
            status=ToolCallStatus.ERROR if call.failed else ToolCallStatus.OK,
            created_at=self.at,
            error="The tool failed." if call.failed else None,
            refs=refs,
            **values,
        )

    def _set_aside(self, content: bytes, message_id: MessageId, name: str) -> PayloadId:
        payload = Payload.of(content, self.id, PayloadKind.VALUE, "application/json", self.at)
        id_ = PayloadId(derived_uuid(self._id_at, *self._names, "payload", message_id, name))
        self.payloads.append(replace(payload, id=id_))
        self.contents[payload.sha256] = content
        return id_


def _turn(turn_id: TurnId, question: Message, reply: Message) -> Turn:
    return Turn(
        id=turn_id,
        conversation_id=reply.conversation_id,
        user_message_id=question.id,
        assistant_message_id=reply.id,
        status=ENDS[reply.status],
        started_at=question.created_at,
        origin=TurnOrigin.RECORDED,
        model=reply.model,
        ended_at=reply.created_at,
    )


def _title(foreign: ForeignConversation) -> tuple[str | None, TitleSource | None]:
    title = one_line(storable(foreign.title or ""))
    if not is_blank(title):
        return title[:MOST_TITLE_CHARACTERS], TitleSource.USER
    texts = (it.asked.text for it in foreign.exchanges if it.asked)
    derived = next((title for text in texts if (title := derive_title(storable(text)))), None)
    return derived, TitleSource.DERIVED if derived else None


def _origin(foreign: ForeignConversation) -> dict[str, object]:
    origin = {"product": foreign.product, "id": storable(foreign.id)}
    if foreign.branch_of is not None:
        origin["branchOf"] = storable(foreign.branch_of)
    return {"importedFrom": origin}


def _first_time(foreign: ForeignConversation) -> int | None:
    said: Sequence[ForeignMessage] = [
        it for exchange in foreign.exchanges for it in (exchange.asked, *exchange.replies) if it is not None
    ]
    return min((it.at for it in said if it.at), default=None)
