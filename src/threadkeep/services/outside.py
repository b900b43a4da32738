"""Other people's clients: their ids, where their messages belong, and the answers that they send.

A client of another protocol has its own ids, and most send their whole history with every message. Our store
is the truth: of that history, only the ids count, and they only say where the new message belongs.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from itertools import takewhile

from msgspec import UNSET, UnsetType

from threadkeep.aside import LogWork
from threadkeep.clock import Clock
from threadkeep.domain.agent import Agent, ConversationMode
from threadkeep.domain.approval import Approval, ApprovalAction, Decision
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.errors import (
    ApprovalNotFound,
    Conflict,
    ConversationNotFound,
    InvalidRequest,
    NothingToRegenerate,
)
from threadkeep.domain.events import ApprovalResponse, TurnEvent
from threadkeep.domain.ids import ConversationId, IdempotencyKey, MessageId, TurnId, is_uuid
from threadkeep.domain.message import Message, MessageRole, MessageWindow
from threadkeep.domain.queued import QueuedMessage, WhenBusy
from threadkeep.domain.text import check_storable
from threadkeep.domain.turn import BegunWith, Turn
from threadkeep.domain.user import User
from threadkeep.log.portions import passing
from threadkeep.services.agents import Agents
from threadkeep.services.approvals import Approvals
from threadkeep.services.conversations import Conversations
from threadkeep.services.retries import is_retried, retried_turns
from threadkeep.services.sending import NewConversation, NewMessage, Sending
from threadkeep.storage.store import Store

MOST_ID_CHARACTERS = 200
MESSAGES_AT_ONCE = 100
MOST_HISTORY_BYTES = 8 * 1024 * 1024
"""As much of a conversation as its clients get at once; what doesn't fit is the oldest."""
MESSAGES_OF_ITEMS = 20
_UUID_CHARACTERS = 36


class Outside:
    """The use cases of clients that speak other protocols."""

    def __init__(
        self,
        store: Store,
        agents: Agents,
        conversations: Conversations,
        sending: Sending,
        approvals: Approvals,
        clock: Clock,
    ) -> None:
        self._store = store
        self._agents = agents
        self._conversations = conversations
        self._sending = sending
        self._approvals = approvals
        self._clock = clock

    async def find(self, user: User, outside_id: str) -> Conversation | None:
        """The conversation that a client knows by this id: one of the user's own, or by its alias."""
        _check_id(outside_id)
        found = None
        if is_uuid(outside_id):
            found = await self._store.conversations.get(user.id, ConversationId(outside_id.lower()))
        found = found or await self._store.outside_ids.conversation(user.id, outside_id)
        if found is not None and not user.may_use(found.agent_id):
            raise ConversationNotFound
        return found

    async def find_or_new(
        self, user: User, outside_id: str, agent_id: str | None = None
    ) -> Conversation | NewConversation:
        """The same, or one that its first message opens; by default with the user's default agent."""
        if (found := await self.find(user, outside_id)) is not None:
            if agent_id is not None and agent_id.lower() != found.agent_id:
                raise Conflict(
                    "This id belongs to a conversation with another agent. Use another id, or that agent."
                )
            return found
        agent = await (
            self._agents.default_of(user) if agent_id is None else self._agents.get(user, agent_id)
        )
        return new_conversation(agent, outside_id)

    async def begun_before(
        self, user: User, outside_id: str, key: IdempotencyKey | None
    ) -> tuple[Turn, Conversation] | None:
        """The turn that an earlier request with the same key began in the conversation with this id."""
        found = await self.find(user, outside_id) if key else None
        return await self._sending.begun_before(user, found, key) if found and key else None

    async def send(
        self,
        user: User,
        where: Conversation | NewConversation,
        message: NewMessage,
        *,
        before: Sequence[str] = (),
        starts_over: bool = False,
    ) -> tuple[Turn, Conversation]:
        """Starts the turn that replies to a message, where the client's list places it: after the messages
        with the ids `before`. If there are none, `starts_over` means that it begins the conversation again;
        otherwise, the app sends only its newest message.

        A running turn ends: these clients send only when they believe that nothing runs. The message that
        began the running turn returns that turn instead, since SDKs repeat requests by themselves.
        """
        if message.outside_id is not None:
            _check_id(message.outside_id)
        if isinstance(where, Conversation):
            message = await self._placed(where, message, before, starts_over=starts_over)
        sent = await self._sending.send(
            user,
            where.id if isinstance(where, Conversation) else where,
            replace(message, when_busy=WhenBusy.STOP, may_be_repeated=True),
        )
        assert not isinstance(sent, QueuedMessage)  # one that stops the turn before it never waits
        return sent

    async def regenerate(
        self,
        user: User,
        conversation: Conversation,
        begun_with: BegunWith,
        *,
        question_id: str | None = None,
        answer_id: str | None = None,
        model: str | None = None,
        is_retry: bool = False,
        key: IdempotencyKey | None = None,
    ) -> Turn:
        """Answers a question again: the one with this id, the one of an answer, or the latest. A client's own
        retry returns the turn that did so.
        """
        answer = await self.message(conversation, answer_id) if answer_id else None
        question = await self.message(conversation, question_id) if question_id else None
        if (
            is_retry
            and not key
            and (again := await self._answered_again(user, conversation, question, answer))
        ):
            return again
        if answer is None and question is not None:
            if not key and (running := await self._answering_again(user, conversation, question)):
                return running
            answer = await self._newest_reply(question)
        if answer is None and (question_id or answer_id):
            raise NothingToRegenerate("This conversation has no such message.")
        turn, _ = await self._sending.regenerate(
            user,
            conversation.id,
            message_id=answer.id if answer else None,
            model=model,
            when_busy=WhenBusy.STOP,
            begun_with=begun_with,
            may_be_repeated=True,
            idempotency_key=key,
        )
        return turn

    async def answer(
        self, user: User, conversation: Conversation, decisions: Mapping[str, Decision]
    ) -> tuple[Turn, int]:
        """Decides requests of the newest turn, each by its id or its tool call's.

        Also returns the number of the last event that the client has: what follows it is the response.
        """
        turn = await self.newest_turn(user, conversation)
        if turn is None:
            raise ApprovalNotFound
        asked: list[tuple[Approval, Decision]] = []
        for id_, decision in decisions.items():
            request = await self._approvals.about(turn, id_, decision.action)
            if request is None:
                raise ApprovalNotFound
            accepted, _ = await self._approvals.accepted(user, request, decision)
            asked.append((request, accepted))
        for request, decision in asked:
            turn = await self._approvals.decide(user, turn.id, request.request_id, decision)
        return turn, await self._seen_before(turn.id, {it.request_id for it, _ in asked})

    async def answered(self, conversation: Conversation, content: str) -> tuple[Turn, int] | None:
        """The turn that a client's own retry may mean and that has taken a text as an answer; also the number
        of the last event before that.
        """
        for turn in await self.retried(conversation):
            decided = await self._store.approvals.decisions(turn.id)
            answers = {id_: it.at for id_, it in decided.items() if it.action is ApprovalAction.ANSWER}
            same = {id_: at for id_, at in answers.items() if decided[id_].content == content}
            if same:
                return turn, await self._seen_before(turn.id, {max(same, key=same.__getitem__)})
        return None

    async def message(self, conversation: Conversation, outside_id: str) -> Message | None:
        """The message that a client knows by an id: ours, one derived from ours (`<id>-2`), or an alias."""
        own, rest = outside_id[:_UUID_CHARACTERS].lower(), outside_id[_UUID_CHARACTERS:]
        if is_uuid(own) and (not rest or rest.startswith("-")):
            found = await self._store.messages.get(conversation.id, MessageId(own))
            if found is not None:
                return found
        if len(outside_id) > MOST_ID_CHARACTERS:
            return None
        id_ = await self._store.outside_ids.message(conversation.id, outside_id)
        return await self._store.messages.get(conversation.id, id_) if id_ else None

    async def place_of(self, user: User, id_: str) -> tuple[Conversation, Turn | None] | None:
        """The conversation that has a turn or message with this id, and the turn that belongs to it: a
        question's is the one that replied to it last.
        """
        turn = await self._store.turns.get(user.id, TurnId(id_))
        found = turn.conversation_id if turn else None
        found = found or await self._store.feedback.conversation_of(user.id, MessageId(id_))
        conversation = await self._store.conversations.get(user.id, found) if found else None
        if conversation is None or not user.may_use(conversation.agent_id):
            return None
        if turn is None and (message := await self._store.messages.get(conversation.id, MessageId(id_))):
            is_question = message.role is MessageRole.USER
            reply = await self._newest_reply(message) if is_question else message
            turn = await self._turn_of(user, reply) if reply else None
        return conversation, turn

    async def ids_of(
        self, conversation: Conversation, messages: Sequence[Message]
    ) -> Mapping[MessageId, str]:
        """The ids by which a client knows messages: its own where it gave one, otherwise ours."""
        own = {it.id: str(it.id) for it in messages}
        asked = [it.id for it in messages if it.role is MessageRole.USER]
        return {**own, **await self._store.outside_ids.of_messages(conversation.id, asked)}

    async def newest_first(
        self, user: User, conversation: Conversation, *, bare: bool = False
    ) -> AsyncGenerator[Sequence[Message]]:
        """The messages on the active path, a page at a time; a reply in progress as far as it goes.

        `bare` ones lack the values that are stored separately because of their size.
        """
        read = self._conversations.bare_messages if bare else self._conversations.messages
        window = MessageWindow(newest_first=True)
        while True:
            page = await read(user, conversation.id, window, offset=0, limit=MESSAGES_AT_ONCE)
            yield page.messages
            if len(page.messages) < MESSAGES_AT_ONCE and not page.is_cut:
                return
            window = replace(window, before_seq=page.messages[-1].seq)

    async def path(
        self, conversation: Conversation, start: int | None = None, *, newest_first: bool = False
    ) -> AsyncGenerator[Message]:
        """The messages on the active path from a number on, in either direction, a few at a time."""
        window = MessageWindow(newest_first=newest_first)
        if start is not None:
            window = _beyond(window, start + 1 if newest_first else start - 1)
        while page := await self._store.messages.page(
            conversation.id, window, offset=0, limit=MESSAGES_OF_ITEMS
        ):
            for message in page:
                yield message
            window = _beyond(window, page[-1].seq)

    async def message_of(self, user: User, conversation: Conversation, id_: str) -> Message | None:
        """The message with this id, or the reply of the turn with this id."""
        found = await self._store.messages.get(conversation.id, MessageId(id_))
        turn = None if found else await self._store.turns.get(user.id, TurnId(id_))
        if turn is None or turn.conversation_id != conversation.id:
            return found
        return await self._store.messages.get(conversation.id, turn.assistant_message_id)

    async def open_requests(self, user: User, conversation: Conversation) -> Sequence[Approval]:
        """What the active turn waits for."""
        if conversation.active_turn_id is None:
            return ()
        return await self._store.approvals.open_of(user.id, conversation.active_turn_id)

    async def _placed(
        self, conversation: Conversation, message: NewMessage, before: Sequence[str], *, starts_over: bool
    ) -> NewMessage:
        """A message with its place: after the one before it; at the end if that is unknown.

        An edited message that keeps its id stays where it was. The id of a reply can't become a message's.
        """
        known = await self.message(conversation, message.outside_id) if message.outside_id else None
        if before:
            parent_id = await self._end_of(conversation, before[-1])
        elif known is not None:
            parent_id = known.parent_id
        else:
            parent_id = None if starts_over else UNSET
        is_taken = known is not None and known.role is not MessageRole.USER
        return replace(message, parent_id=parent_id, outside_id=None if is_taken else message.outside_id)

    async def _end_of(self, conversation: Conversation, outside_id: str) -> MessageId | UnsetType:
        """The message that a client knows by an id; of a question, its newest reply."""
        found = await self.message(conversation, outside_id)
        if found is not None and found.role is MessageRole.USER:
            found = await self._newest_reply(found) or found
        return found.id if found else UNSET

    async def _newest_reply(self, question: Message) -> Message | None:
        id_ = await self._store.branches.newest_reply(question.conversation_id, question.id)
        return await self._store.messages.get(question.conversation_id, id_) if id_ else None

    async def newest_turn(self, user: User, conversation: Conversation) -> Turn | None:
        """The turn at the end of the active path."""
        if conversation.active_turn_id is not None:
            return await self._store.turns.get(user.id, conversation.active_turn_id)
        if conversation.tip_id is None:
            return None
        last = await self._store.messages.get(conversation.id, conversation.tip_id)
        return await self._turn_of(user, last) if last else None

    async def retried(self, conversation: Conversation) -> Sequence[Turn]:
        """The turns that a client's own retry may mean, newest first."""
        return await retried_turns(self._store, conversation, self._clock())

    async def _turn_of(self, user: User, message: Message) -> Turn | None:
        return await self._store.turns.get(user.id, message.turn_id) if message.turn_id else None

    async def _answering_again(
        self, user: User, conversation: Conversation, question: Message
    ) -> Turn | None:
        """The running turn, if it answers this question again already."""
        running = await self.newest_turn(user, conversation)
        if running is None or not running.is_active or running.user_message_id != question.id:
            return None
        return running if question.turn_id != running.id else None

    async def _answered_again(
        self, user: User, conversation: Conversation, question: Message | None, answer: Message | None
    ) -> Turn | None:
        """The turn that has answered a question again just now: this one, or that of an answer, which it came
        next to; without either, only the last turn.
        """
        if question is None and answer is None:
            last = await self.newest_turn(user, conversation)
            turns = [last] if last is not None and is_retried(last, self._clock()) else []
        else:
            turns = await self.retried(conversation)
        asked_id = question.id if question else answer.parent_id if answer else None
        asked_id = asked_id or (turns[0].user_message_id if turns else None)
        asked = await self._store.messages.get(conversation.id, asked_id) if asked_id else None
        newer = takewhile(lambda it: answer is None or it.assistant_message_id != answer.id, turns)
        again = [it for it in newer if asked and it.user_message_id == asked.id and it.id != asked.turn_id]
        return next(iter(again[::-1] if answer else again), None)

    async def _seen_before(self, turn_id: TurnId, request_ids: set[str]) -> int:
        """The number of the last event before the decisions on these requests."""
        work, last, decided = LogWork(), 0, False

        def take(event: TurnEvent) -> None:
            nonlocal last, decided
            body = event.body
            decided = decided or (isinstance(body, ApprovalResponse) and body.request_id in request_ids)
            last = last if decided else event.seq

        async with aclosing(self._store.log.pages(turn_id, 0)) as pages:
            async for chunks in pages:
                await work.take(passing(take), chunks, at_end=False)
                if decided:
                    break
        return last


def new_conversation(agent: Agent, outside_id: str | None = None) -> NewConversation:
    """A conversation with an agent that its first message opens: the main one, if the agent has only one."""
    is_main = agent.settings.conversation_mode is ConversationMode.SINGLE
    return NewConversation(agent.id, outside_id, is_main=is_main)


def _beyond(window: MessageWindow, seq: int) -> MessageWindow:
    """What follows a message in the window's direction."""
    return replace(window, before_seq=seq) if window.newest_first else replace(window, after_seq=seq)


def _check_id(outside_id: str) -> None:
    if not 0 < len(outside_id) <= MOST_ID_CHARACTERS:
        raise InvalidRequest(f"An id can have 1 to {MOST_ID_CHARACTERS} characters.", param="id")
    check_storable(outside_id, "id")
