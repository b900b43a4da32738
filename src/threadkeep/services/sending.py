"""Sending: a user's message starts a turn or joins the queue; a reply is generated again."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import NamedTuple, NoReturn
from weakref import WeakValueDictionary

import msgspec
from msgspec import UNSET, UnsetType

from threadkeep.clock import Clock
from threadkeep.context.titles import title_of
from threadkeep.domain.agent import Agent
from threadkeep.domain.conversation import BegunTurn, Branch, Conversation
from threadkeep.domain.errors import (
    ConversationChanging,
    IdempotencyMismatch,
    InvalidRequest,
    MessageNotFound,
    NothingToRegenerate,
    StorageConflict,
    TurnInProgress,
)
from threadkeep.domain.ids import AgentId, IdempotencyKey, MessageId, TurnId
from threadkeep.domain.message import Message, MessageRole, MessageWindow, check_user_content
from threadkeep.domain.parts import FilePart
from threadkeep.domain.queued import QueueChange, QueuedMessage, WhenBusy
from threadkeep.domain.turn import BegunWith, Turn
from threadkeep.domain.user import User
from threadkeep.domain.user_events import UserEvent, UserEventType
from threadkeep.runtime.node import Node
from threadkeep.services.access import (
    branch_up_to,
    created_with,
    own_conversation,
    own_message,
    to_message_id,
)
from threadkeep.services.client_tools import ClientTools
from threadkeep.services.replies.turn_claim import TurnClaim
from threadkeep.services.replies.turn_starts import TurnStarts
from threadkeep.services.retries import RETRIED_MS, retried_turns
from threadkeep.storage.store import Store

TRIES = 5
TRIES_TO_STOP = 100
"""On several nodes, only one of those who stop a turn at once begins the next: each other one stops that."""
MOST_LOOKED_AT = 100

_encode_sorted = msgspec.json.Encoder(order="deterministic").encode

# No message looks like these, even one that quotes them.
_SEND_HELD = "\0send held\n"
_REGENERATE = "\0regenerate\n"
_MODEL = "\0model\n"
_TOOLS = "\0tools\n"
_OUTPUT = "\0output\n"
_STOPS_UNFOLLOWED = "\0stops unfollowed\n"


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message that a user sends, and how."""

    content: str
    files: tuple[FilePart, ...] = ()
    parent_id: str | UnsetType | None = UNSET
    """The message that it follows, None for none; by default, the last one of the active path."""
    tip_id: str | UnsetType | None = UNSET
    """The last message that the client shows; the message is rejected if the path ends elsewhere."""
    when_busy: WhenBusy = WhenBusy.REJECT
    model: str | None = None
    """The model that is to reply, among those that the agent offers; by default the agent's own."""
    idempotency_key: str | IdempotencyKey | None = None
    """The client's key, or that with the hash of its whole request."""
    begun_with: BegunWith | None = None
    """What the request brings with it, for its turn."""
    outside_id: str | None = None
    """The id that the client gave to the message."""
    may_be_repeated: bool = False
    """Whether the client may repeat the request without a key: then the same message returns its turn."""
    is_retry: bool = False
    """Whether the client says that it repeats the request: then the turn may also have ended by now."""
    agent_id: AgentId | None = None
    """The agent that the client means, if it says so."""

    @property
    def for_turn(self) -> BegunWith | None:
        """What its turn is begun with."""
        if self.when_busy is not WhenBusy.STOP:
            return self.begun_with
        return replace(self.begun_with or BegunWith(), leaves_queue=True)

    @property
    def key(self) -> IdempotencyKey | None:
        """What a retry shares with the first attempt, except the tip, which that attempt may have moved."""
        if not self.idempotency_key:
            return None
        asked = self.content if self.parent_id is UNSET else f"{self.parent_id}\n{self.content}"
        if self.when_busy is not WhenBusy.REJECT:
            asked = f"{self.when_busy}\n{asked}"
        if self.model is not None:
            asked = f"{_MODEL}{self.model}\n{asked}"
        if self.files:
            asked = "\n".join([*(it.file_id for it in self.files), asked])
        asked = f"{_brought(self.begun_with)}{asked}"
        return IdempotencyKey.of(self.idempotency_key, asked)


def _brought(begun_with: BegunWith | None) -> str:
    """What a request brings with it for its turn, as part of what a retry repeats."""
    if begun_with is None:
        return ""
    tools = f"{_TOOLS}{_encode_sorted(begun_with.tools).decode()}\n" if begun_with.tools else ""
    output = f"{_OUTPUT}{_encode_sorted(begun_with.output).decode()}\n" if begun_with.output else ""
    return f"{_STOPS_UNFOLLOWED if begun_with.stops_unfollowed else ''}{tools}{output}"


@dataclass(frozen=True, slots=True)
class NewConversation:
    """A conversation that its first message opens: for a message that is refused, nothing is stored."""

    agent_id: AgentId
    outside_id: str | None = None
    """The id that the client gives to it; a conversation that has the id by now takes the message."""
    is_main: bool = False
    """Whether it is the main one with its agent; then likewise."""

    @property
    def can_exist(self) -> bool:
        """Whether another request may have opened the same one."""
        return self.outside_id is not None or self.is_main


class _Place(NamedTuple):
    """The conversation that a message goes to."""

    conversation: Conversation
    is_new: bool = False
    """Whether it is stored with the turn."""
    outside_id: str | None = None
    """An id of the client's that is stored with the turn, too."""
    key: IdempotencyKey | None = None
    """Likewise, what a repeated request finds it by, if by nothing else."""

    def begins(self, begun: BegunTurn) -> BegunTurn:
        """The turn with what it opens."""
        return replace(
            begun,
            new_conversation=self.conversation if self.is_new else None,
            conversation_outside_id=self.outside_id,
            conversation_key=self.key,
        )


Sent = tuple[Turn, Conversation] | QueuedMessage
"""The outcome of sending a message: a turn that replies to it, or its place in the queue."""


def _freed(conversation: Conversation) -> Conversation:
    """A conversation as it is once its turn has been stopped."""
    return replace(conversation, active_turn_id=None)


def _files_of(files: Sequence[FilePart]) -> list[tuple[str, int]]:
    """Files by what stays the same when a client sends them again."""
    return [(it.file_name, it.size) for it in files]


class Sending:
    """The use cases that start turns."""

    def __init__(
        self, store: Store, node: Node, starts: TurnStarts, client_tools: ClientTools, clock: Clock
    ) -> None:
        self._store = store
        self._node = node
        self._starts = starts
        self._client_tools = client_tools
        self._clock = clock
        self._stopping = WeakValueDictionary[str, asyncio.Lock]()

    async def send(self, user: User, where: str | NewConversation, message: NewMessage) -> Sent:
        """Starts a turn that replies to a user's message, or queues the message; the same key returns the
        same result. The message goes to a conversation by its id, or opens one.

        If messages are held, sends the first of them and queues this one behind them.
        """
        key, stops = message.key, message.when_busy is WhenBusy.STOP
        async with self._starts.claim(user) as claim, self._one_by_one(user, where if stops else None):
            for _ in range(TRIES_TO_STOP if stops else TRIES):
                place = await self._place(user, where, message)
                conversation = place.conversation
                # Before anything else: what was sent stays sent, whatever the agent accepts by now.
                if key and (found := await self._sent_before(conversation, key)):
                    return found
                # A key says better what is the same request.
                is_guessed = message.may_be_repeated and not key
                if is_guessed and (begun := await self._begun_by_same(user, conversation, message)):
                    return begun, conversation
                conversation.check_agent(message.agent_id)
                agent = await self._starts.agent_of(user, conversation)
                most = agent.settings.max_message_chars
                check_user_content(message.content, most=most, has_files=bool(message.files))
                if message.model is not None:  # one that waits, too, is refused now, and keeps its gateway
                    message = replace(message, model=self._starts.chosen_model(agent, message.model))
                await self._client_tools.check(user, agent, conversation, message.begun_with)
                try:
                    return await self._send_once(user, agent, place, message, key, claim)
                except StorageConflict:
                    continue  # another writer was first: read and decide again
        raise ConversationChanging

    @asynccontextmanager
    async def _one_by_one(self, user: User, where: str | NewConversation | None) -> AsyncGenerator[None]:
        """A user's requests that stop the turn of a conversation do so one after the other, so that each
        begins its own and the last one's goes on; None for a request that stops nothing.
        """
        if where is None or (isinstance(where, NewConversation) and not where.can_exist):
            yield
            return
        place = where.lower() if isinstance(where, str) else f"{where.agent_id}\n{where.outside_id}"
        name = f"{user.id}\n{place}"
        async with self._stopping.setdefault(name, asyncio.Lock()):
            yield

    async def _place(self, user: User, where: str | NewConversation, message: NewMessage) -> _Place:
        """The conversation that a message goes to, or a new one that isn't stored yet."""
        if isinstance(where, str):
            return _Place(await own_conversation(self._store, user, where))
        outside_id = where.outside_id
        found = outside_id and await self._store.outside_ids.conversation(user.id, outside_id)
        if found:
            found.check_agent(where.agent_id)
            return _Place(found)
        if where.is_main and (main := await self._store.conversations.get_main(user.id, where.agent_id)):
            return _Place(main, outside_id=outside_id)
        key = None if where.can_exist else message.key
        if key and (opened := await created_with(self._store, user, key)):
            return _Place(opened)
        if message.is_retry and not key and (opened := await self._opened_by_same(user, where, message)):
            return _Place(opened)
        await self._store.users.meet(user.id, self._clock())  # the allowance needs the user
        fresh = Conversation.start(user.id, where.agent_id, self._clock(), is_main=where.is_main)
        return _Place(fresh, is_new=True, outside_id=outside_id, key=key)

    async def send_held(
        self, user: User, conversation_id: str, message_id: str, *, idempotency_key: str | None = None
    ) -> tuple[Turn, Conversation]:
        """Starts the turn of a held message; the other held messages follow it. The same key returns the
        same turn.
        """
        key = IdempotencyKey.of(idempotency_key, f"{_SEND_HELD}{message_id.lower()}")
        async with self._starts.claim(user) as claim:
            for _ in range(TRIES):
                conversation = await own_conversation(self._store, user, conversation_id)
                id_ = to_message_id(message_id)
                if key and (found := await self._begun_before(conversation, key)):
                    return found
                agent = await self._starts.agent_of(user, conversation)
                conversation.check_idle()
                held = await self._store.queue.waiting(conversation.id)
                message = next((it for it in held if it.id == id_), None)
                if message is None:
                    # The same request may have taken it just now.
                    if key and (found := await self._begun_before(conversation, key)):
                        return found
                    raise MessageNotFound("This message isn't in the queue.")
                begun = self._starts.of_queued(
                    agent, conversation, message, key_id=user.key_id, turn_id=claim.turn_id
                )
                try:
                    begun = replace(begun, key=key, queue=QueueChange(message))
                    return await self._starts.begin(user, agent, begun, claim)
                except StorageConflict:
                    continue
        raise ConversationChanging

    async def regenerate(
        self,
        user: User,
        conversation_id: str,
        *,
        message_id: str | None = None,
        tip_id: str | UnsetType | None = UNSET,
        model: str | None = None,
        when_busy: WhenBusy = WhenBusy.REJECT,
        begun_with: BegunWith | None = None,
        idempotency_key: str | IdempotencyKey | None = None,
        may_be_repeated: bool = False,
        agent_id: AgentId | None = None,
    ) -> tuple[Turn, Conversation]:
        """Regenerates a reply and keeps the existing ones; by default, the latest. The message may also be a
        question that was added without a reply. The same key returns the same turn; so does any request that
        `may_be_repeated`, while the turn runs.
        """
        which = "" if model is None else f"{_MODEL}{model}"
        brought = _brought(begun_with) if idempotency_key else ""
        asked = f"{brought}{_REGENERATE}{(message_id or '').lower()}{which}"
        key = IdempotencyKey.of(idempotency_key, asked)
        stops = when_busy is WhenBusy.STOP
        async with (
            self._starts.claim(user) as claim,
            self._one_by_one(user, conversation_id if stops else None),
        ):
            for _ in range(TRIES_TO_STOP if stops else TRIES):
                conversation = await own_conversation(self._store, user, conversation_id)
                if key and (found := await self._begun_before(conversation, key)):
                    return found
                conversation.check_agent(agent_id)
                agent = await self._starts.agent_of(user, conversation)
                if not stops:
                    conversation.check_idle()
                await self._client_tools.check(user, agent, conversation, begun_with)
                if tip_id is not UNSET:
                    conversation.check_tip(tip_id)
                question_id, branch, replaced_id = await self._to_answer(user, conversation, message_id)
                if may_be_repeated and not key and conversation.active_turn_id not in (None, replaced_id):
                    running = await self._store.turns.get(user.id, conversation.active_turn_id)
                    if running is not None and running.user_message_id == question_id:
                        return running, conversation
                begun = _freed(conversation).regenerate(
                    question_id,
                    branch,
                    self._clock(),
                    model=self._starts.chosen_model(agent, model),
                    key_id=user.key_id,
                    begun_with=begun_with,
                    turn_id=claim.turn_id,
                )
                try:
                    if conversation.active_turn_id is not None:
                        await self._stop_for(claim, user, agent, begun, conversation.active_turn_id)
                    return await self._starts.begin(user, agent, replace(begun, key=key), claim)
                except StorageConflict:
                    continue
        raise ConversationChanging

    async def begun_before(
        self, user: User, where: Conversation | None, key: IdempotencyKey
    ) -> tuple[Turn, Conversation] | None:
        """The turn that an earlier request with the same key began in a conversation, or by opening one."""
        conversation = where or await created_with(self._store, user, key)
        return await self._begun_before(conversation, key) if conversation else None

    async def _send_once(
        self,
        user: User,
        agent: Agent,
        place: _Place,
        message: NewMessage,
        key: IdempotencyKey | None,
        claim: TurnClaim,
    ) -> Sent:
        """Sends a message in a conversation as it was read; StorageConflict if that has changed."""
        conversation, waiting_end = place.conversation, None
        if (active_id := conversation.active_turn_id) is not None:
            waiting_end = await self._node.end_of_waiting(active_id)
            if waiting_end is None and message.when_busy is WhenBusy.STOP:
                freed = _freed(conversation)
                branch = await self._branch(freed, message)
                begun = self._begun(user, agent, freed, branch, message, claim)
                await self._stop_for(claim, user, agent, begun, active_id)
            if waiting_end is None:
                return await self._send_while_busy(user, conversation, message, key)
            conversation = waiting_end.ended.conversation  # a user who continues no longer decides
        branch = await self._branch(conversation, message)
        # Held messages come after one with its own position, and after one that stops the turn before it.
        goes_first = message.parent_id is not UNSET or message.when_busy is WhenBusy.STOP or place.is_new
        held = () if goes_first else await self._store.queue.waiting(conversation.id)
        if held and message.begun_with and message.begun_with.stops_unfollowed:
            raise InvalidRequest(
                "Messages on hold go first, so nobody follows this one yet. Send or remove them first, or "
                "leave out `onDisconnect`.",
                param="onDisconnect",
            )
        if held:
            added = self._queued(user, conversation, message)
            begun = self._starts.of_queued(
                agent, conversation, held[0], key_id=user.key_id, turn_id=claim.turn_id
            )
            change = QueueChange(held[0], added, key)
            begun = replace(begun, queue=change, waiting_end=waiting_end)
            await self._starts.begin(user, agent, place.begins(begun), claim)
            return added
        begun = self._begun(user, agent, conversation, branch, message, claim)
        begun = replace(begun, key=key, waiting_end=waiting_end, outside_id=message.outside_id)
        return await self._starts.begin(user, agent, place.begins(begun), claim)

    def _begun(
        self,
        user: User,
        agent: Agent,
        conversation: Conversation,
        branch: Branch | None,
        message: NewMessage,
        claim: TurnClaim,
    ) -> BegunTurn:
        """The turn that replies to a message; not stored yet."""
        return conversation.begin_turn(
            message.content,
            self._clock(),
            files=message.files,
            branch=branch,
            model=self._starts.chosen_model(agent, message.model),
            title=title_of(message.content, message.files),
            key_id=user.key_id,
            begun_with=message.for_turn,
            turn_id=claim.turn_id,
        )

    async def _stop_for(
        self, claim: TurnClaim, user: User, agent: Agent, begun: BegunTurn, turn_id: TurnId
    ) -> NoReturn:
        """Ends the active turn for another, unless that one is refused, and keeps its text; what is queued
        behind it is held. Always StorageConflict: the conversation has changed.
        """
        await self._starts.reserve(claim, user, agent, begun, after=turn_id)  # what is refused stops nothing
        if not await self._node.abort(turn_id):
            raise TurnInProgress(
                "The node running this turn isn't responding. Try again in a moment.", turn_id
            )
        raise StorageConflict("The turn that ran has been stopped.")

    async def _opened_by_same(
        self, user: User, where: NewConversation, message: NewMessage
    ) -> Conversation | None:
        """The conversation that the same request opened a while ago, without an id to know it by."""
        since = self._clock() - RETRIED_MS
        for found in await self._store.conversations.begun_with(
            user.id, message.content, since, but_by="", limit=MOST_LOOKED_AT
        ):
            turn = (
                await self._begun_by_same(user, found, message) if found.agent_id == where.agent_id else None
            )
            if turn is not None and _encode_sorted(turn.begun_with) == _encode_sorted(message.for_turn):
                return found
        return None

    async def _begun_by_same(
        self, user: User, conversation: Conversation, message: NewMessage
    ) -> Turn | None:
        """The active turn, or for a retry any that ended just now, if the same message began it: SDKs repeat
        requests by themselves, and meanwhile somebody may have said something newer.
        """
        if message.is_retry:
            turns = await retried_turns(self._store, conversation, self._clock())
        elif (active_id := conversation.active_turn_id) is not None:
            active = await self._store.turns.get(user.id, active_id)
            turns = [active] if active is not None else []
        else:
            return None
        for turn in turns:
            if await self._has_begun(conversation, turn, message):
                return turn
        return None

    async def _has_begun(self, conversation: Conversation, turn: Turn, message: NewMessage) -> bool:
        """Whether a message began a turn.

        An edit may keep the message's id, so the text must be the same, too. Without an id, the position must
        be; at the end of the path, that is before the turn's own messages.
        """
        asked = await self._store.messages.get(conversation.id, turn.user_message_id)
        # A question of another turn is answered again; one without a turn was added before this one began.
        if asked is None or asked.turn_id not in (None, turn.id):
            return False
        if (asked.content, _files_of(asked.files)) != (message.content, _files_of(message.files)):
            return False
        if message.outside_id is not None:
            known = await self._store.outside_ids.of_messages(conversation.id, [asked.id])
            return known.get(asked.id) == message.outside_id
        return message.parent_id is UNSET or message.parent_id == asked.parent_id

    async def _send_while_busy(
        self, user: User, conversation: Conversation, message: NewMessage, key: IdempotencyKey | None
    ) -> QueuedMessage:
        """Queues a message behind the active turn; StorageConflict if that turn has ended."""
        turn_id = conversation.active_turn_id
        assert turn_id is not None
        if message.when_busy is WhenBusy.REJECT:
            conversation.check_idle()
        if message.parent_id is not UNSET:
            raise InvalidRequest("A queued message can't set `parentId`.", param="parentId")
        if message.when_busy is WhenBusy.STEER and message.files:
            raise InvalidRequest(
                "A message with files can't steer a turn. Queue it instead.", param="whenBusy"
            )
        if message.when_busy is WhenBusy.STEER and message.model is not None:
            raise InvalidRequest("A message that steers a turn can't choose its model.", param="model")
        if message.when_busy is WhenBusy.STEER and message.begun_with and message.begun_with.tools:
            raise InvalidRequest("A message that steers a turn can't bring tools.", param="tools")
        steers = message.when_busy is WhenBusy.STEER and await self._pays_for(user, turn_id)
        queued = self._queued(user, conversation, message, steers=turn_id if steers else None)
        await self._starts.check_queued(user, message.content)
        await self._store.queue.add(queued, turn_id, key)
        await self._node.announce(
            UserEvent(conversation.user_id, UserEventType.CONVERSATION_CHANGED, conversation.id)
        )
        return queued

    async def _pays_for(self, user: User, turn_id: TurnId) -> bool:
        """Whether what a user adds to a turn stays within the budget of their key, if it has one.

        It wouldn't if somebody else pays for the turn; then the message gets a turn of its own.
        """
        if user.key is None or not user.key.budget_month:
            return True
        turn = await self._store.turns.get(user.id, turn_id)
        return turn is not None and turn.key_id == user.key_id

    def _queued(
        self, user: User, conversation: Conversation, message: NewMessage, *, steers: TurnId | None = None
    ) -> QueuedMessage:
        return QueuedMessage.of(
            conversation.id,
            message.content,
            self._clock(),
            steers_turn_id=steers,
            files=message.files,
            model=message.model,
            key_id=user.key_id,
            begun_with=message.begun_with,
        )

    async def _sent_before(self, conversation: Conversation, key: IdempotencyKey) -> Sent | None:
        """The outcome of an earlier request with the same key."""
        if (begun := await self._store.turns.find_by_key(conversation.id, key.name)) is not None:
            turn, request_hash = begun
            found: Sent = turn, conversation
        elif (waiting := await self._store.queue.find_by_key(conversation.id, key.name)) is not None:
            found, request_hash = waiting
        else:
            return None
        if request_hash != key.request_hash:
            raise IdempotencyMismatch("This Idempotency-Key was already used with a different body.")
        return found

    async def _begun_before(
        self, conversation: Conversation, key: IdempotencyKey
    ) -> tuple[Turn, Conversation] | None:
        """The turn of an earlier request that could only start one."""
        found = await self._sent_before(conversation, key)
        return None if isinstance(found, QueuedMessage) else found

    async def _branch(self, conversation: Conversation, message: NewMessage) -> Branch | None:
        """The branch that a message continues; None for the active path."""
        if message.tip_id is not UNSET:
            conversation.check_tip(message.tip_id)
        if message.parent_id is UNSET or message.parent_id == conversation.tip_id:
            return None
        return await branch_up_to(self._store, conversation, message.parent_id)

    async def _to_answer(
        self, user: User, conversation: Conversation, message_id: str | None
    ) -> tuple[MessageId, Branch, TurnId | None]:
        """The question of a reply, or one that was added without a turn; the branch up to it; and the turn of
        the reply.
        """
        if message_id is None:
            message = await self._latest_reply(conversation)
        else:
            message = await own_message(self._store, conversation, message_id)
        if message is not None and message.role is MessageRole.USER and message.turn_id is None:
            return message.id, await branch_up_to(self._store, conversation, message.id), None
        if message is None or message.role is not MessageRole.ASSISTANT:
            raise NothingToRegenerate("There is no reply to regenerate.")
        replaced = await self._store.turns.get(user.id, message.turn_id) if message.turn_id else None
        branch = await self._store.branches.up_to(conversation.id, message.parent_id)
        if replaced is None or branch is None:
            raise NothingToRegenerate("This reply doesn't answer a question.")
        return replaced.user_message_id, branch, replaced.id

    async def _latest_reply(self, conversation: Conversation) -> Message | None:
        window = MessageWindow(newest_first=True)
        while True:
            latest = await self._store.messages.page(conversation.id, window, offset=0, limit=50)
            found = next((message for message in latest if message.role is MessageRole.ASSISTANT), None)
            if found is not None or not latest.is_cut:
                return found
            window = replace(window, before_seq=latest[-1].seq)
