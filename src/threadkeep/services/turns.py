"""Turns: start, follow, stop and regenerate them."""

import asyncio
from contextlib import AbstractContextManager
from dataclasses import dataclass

from msgspec import UNSET, UnsetType

from threadkeep.clock import Clock
from threadkeep.context.titles import title_of
from threadkeep.domain.agent import Agent
from threadkeep.domain.caps import NO_CAPS, OperatorCaps
from threadkeep.domain.conversation import BegunTurn, Branch, Conversation
from threadkeep.domain.errors import (
    IdempotencyMismatch,
    InvalidRequest,
    MessageNotFound,
    NothingToRegenerate,
    ShuttingDown,
    StorageConflict,
    ThreadkeepError,
    TurnInProgress,
    TurnNotFound,
)
from threadkeep.domain.ids import ConversationId, TurnId, UserId
from threadkeep.domain.message import Message, MessageRole, check_user_content
from threadkeep.domain.parts import FilePart
from threadkeep.domain.queued import QueuedMessage, WhenBusy
from threadkeep.domain.turn import Turn
from threadkeep.domain.user import User
from threadkeep.domain.user_events import UserEvent, UserEventType
from threadkeep.ports.allowances import Allowances
from threadkeep.ports.idempotency import IdempotencyKey
from threadkeep.ports.messages import MessageWindow
from threadkeep.ports.store import Store
from threadkeep.ports.turns import QueueChange, WaitingEnd
from threadkeep.runtime.following import ALL_SEEN, Follower
from threadkeep.runtime.node import Node
from threadkeep.runtime.prepared_turn import PreparedTurn, PrepareNextTurn, Steps
from threadkeep.services.access import (
    agent_to_ask,
    branch_up_to,
    own_conversation,
    own_message,
    own_turn,
    to_message_id,
)
from threadkeep.services.model_replies import ModelReplies
from threadkeep.services.payloads import whole_messages

TRIES = 5


@dataclass(frozen=True, slots=True)
class Position:
    """Where a message goes; by default, at the end of the active path."""

    parent_id: str | UnsetType | None = UNSET
    """The message that it follows; None for none."""
    tip_id: str | UnsetType | None = UNSET
    """The last message that the client shows; the message is rejected if the path ends elsewhere."""


AT_THE_END = Position()

# No message looks like these, even one that quotes them.
_SEND_HELD = "\0send held\n"
_REGENERATE = "\0regenerate\n"

Sent = tuple[Turn, Conversation] | QueuedMessage
"""The outcome of sending a message: a turn that answers it, or its place in the queue."""


@dataclass(frozen=True, slots=True)
class Aborted:
    """The state of a turn when it was stopped."""

    turn_id: TurnId
    message: Message


class Turns:
    """The use cases of turns."""

    def __init__(
        self,
        store: Store,
        node: Node,
        replies: ModelReplies,
        allowances: Allowances,
        clock: Clock,
        caps: OperatorCaps = NO_CAPS,
    ) -> None:
        self._store = store
        self._node = node
        self._replies = replies
        self._allowances = allowances
        self._clock = clock
        self._caps = caps

    async def send(
        self,
        user: User,
        conversation_id: str,
        content: str,
        *,
        files: tuple[FilePart, ...] = (),
        position: Position = AT_THE_END,
        when_busy: WhenBusy = WhenBusy.REJECT,
        idempotency_key: str | None = None,
    ) -> Sent:
        """Starts a turn that answers a user's message, or queues the message; the same key returns the same
        result.

        If messages are held, sends the first of them and queues this one behind them.
        """
        key = IdempotencyKey.of(idempotency_key, _message_request(content, files, position, when_busy))
        for _ in range(TRIES):
            conversation = await own_conversation(self._store, user, conversation_id)
            # Before anything else: what was sent stays sent, whatever the agent accepts by now.
            if key and (found := await self._sent_before(conversation, key)):
                return found
            agent = await self._agent_of(user, conversation)
            check_user_content(content, most=agent.settings.max_message_chars, has_files=bool(files))
            try:
                waiting_end = None
                if conversation.active_turn_id is not None:
                    waiting_end = await self._node.end_of_waiting(conversation.active_turn_id)
                if waiting_end is not None:  # a user who continues no longer answers
                    conversation = waiting_end.ended.conversation
                elif conversation.active_turn_id is not None:
                    if when_busy is not WhenBusy.REJECT and position.parent_id is not UNSET:
                        raise InvalidRequest("A queued message can't set `parentId`.", param="parentId")
                    return await self._send_while_busy(conversation, content, files, when_busy, key)
                branch = await self._branch(conversation, position)
                # A message with its own position is sent there; held messages come after it.
                held = await self._store.queue.waiting(conversation.id) if position.parent_id is UNSET else ()
                if held:
                    added = QueuedMessage.of(conversation.id, content, self._clock(), files=files)
                    return await self._send_behind(
                        user, agent, conversation, held[0], added, key, waiting_end
                    )
                begun = conversation.begin_turn(
                    content,
                    self._clock(),
                    files=files,
                    branch=branch,
                    model=self._replies.model(agent),
                    title=title_of(content, files),
                )
                return await self._begin(user, agent, begun, key, waiting_end=waiting_end)
            except StorageConflict:
                continue  # another writer was first: read and decide again
        raise TurnInProgress("The conversation is changing too quickly. Try again.")

    async def send_held(
        self, user: User, conversation_id: str, message_id: str, *, idempotency_key: str | None = None
    ) -> tuple[Turn, Conversation]:
        """Starts the turn of a held message; the other held messages follow it. The same key returns the
        same turn.
        """
        key = IdempotencyKey.of(idempotency_key, f"{_SEND_HELD}{message_id.lower()}")
        for _ in range(TRIES):
            conversation = await own_conversation(self._store, user, conversation_id)
            id_ = to_message_id(message_id)
            if key and (found := await self._begun_before(conversation, key)):
                return found
            agent = await self._agent_of(user, conversation)
            conversation.check_idle()
            held = await self._store.queue.waiting(conversation.id)
            message = next((it for it in held if it.id == id_), None)
            if message is None:
                # The same request may have taken it just now.
                if key and (found := await self._begun_before(conversation, key)):
                    return found
                raise MessageNotFound("This message isn't in the queue.")
            begun = self._begin_queued(agent, conversation, message)
            try:
                return await self._begin(user, agent, begun, key, queue=QueueChange(message))
            except StorageConflict:
                continue
        raise TurnInProgress("The conversation is changing too quickly. Try again.")

    async def regenerate(
        self,
        user: User,
        conversation_id: str,
        *,
        message_id: str | None = None,
        tip_id: str | UnsetType | None = UNSET,
        idempotency_key: str | None = None,
    ) -> tuple[Turn, Conversation]:
        """Regenerates a reply and keeps the existing ones; by default, the latest. The same key returns the
        same turn.
        """
        key = IdempotencyKey.of(idempotency_key, f"{_REGENERATE}{(message_id or '').lower()}")
        for _ in range(TRIES):
            conversation = await own_conversation(self._store, user, conversation_id)
            if key and (found := await self._begun_before(conversation, key)):
                return found
            agent = await self._agent_of(user, conversation)
            conversation.check_idle()
            if tip_id is not UNSET:
                conversation.check_tip(tip_id)
            reply = await self._reply_to_regenerate(conversation, message_id)
            replaced = await self._store.turns.get(user.id, reply.turn_id) if reply.turn_id else None
            branch = await self._store.branches.up_to(conversation.id, reply.parent_id)
            if replaced is None or branch is None:
                raise NothingToRegenerate("This reply doesn't answer a question.")
            begun = conversation.regenerate(
                replaced.user_message_id, branch, self._clock(), model=self._replies.model(agent)
            )
            try:
                return await self._begin(user, agent, begun, key)
            except StorageConflict:
                continue
        raise TurnInProgress("The conversation is changing too quickly. Try again.")

    async def get(self, user: User, turn_id: str) -> Turn:
        """One of the user's turns."""
        return await own_turn(self._store, user, turn_id)

    @property
    def running_count(self) -> int:
        """The number of turns running on this node."""
        return self._node.running_count

    @property
    def is_draining(self) -> bool:
        """Whether this process is shutting down and starts no more turns."""
        return self._node.is_draining

    async def drain(self, grace_s: float) -> None:
        """Starts no more turns and hands off the running ones, within a grace period."""
        await self._node.drain(grace_s)

    async def follow(self, turn: Turn, after: int, *, from_first: bool = False) -> Follower | None:
        """A turn's log for a reader who has seen its events up to `after`; None if nothing is left."""
        return await self._node.follow(turn, after, from_first=from_first)

    def changes(self, conversation_id: ConversationId) -> AbstractContextManager[asyncio.Event]:
        """An event that is set whenever a turn starts in a conversation, or the conversation changes."""
        return self._node.changes(conversation_id)

    async def announce(self, type_: UserEventType, conversation: Conversation) -> None:
        """Notifies the user's pages and the conversation's followers of a change."""
        await self._node.announce(UserEvent(conversation.user_id, type_, conversation.id))

    async def announce_deleted(self, user_id: UserId, conversation_id: ConversationId) -> None:
        """Notifies the same readers that a conversation was deleted or purged."""
        await self._node.announce(UserEvent(user_id, UserEventType.CONVERSATION_DELETED, conversation_id))

    async def finished(self, turn: Turn) -> Message | None:
        """The reply of a turn once it has ended; None if it waits for its user."""
        if (log := await self._node.follow(turn, ALL_SEEN)) is not None:
            async with log:
                async for _ in log:
                    if log.is_paused:
                        return None
        return await self._whole_reply(turn)

    async def abort(self, user: User, conversation_id: str) -> Aborted | None:
        """Stops the turn running in a conversation, on any node; None if there is none."""
        conversation = await own_conversation(self._store, user, conversation_id)
        if conversation.active_turn_id is None:
            return None
        turn = await self.get(user, conversation.active_turn_id)
        if not await self._node.abort(turn.id):
            raise TurnInProgress(
                "The node running this turn isn't responding. Try again in a moment.",
                details={"turnId": turn.id},
            )
        return Aborted(turn.id, await self._reply(turn))

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

    async def _send_while_busy(
        self,
        conversation: Conversation,
        content: str,
        files: tuple[FilePart, ...],
        when_busy: WhenBusy,
        key: IdempotencyKey | None,
    ) -> QueuedMessage:
        """Queues a message behind the active turn; StorageConflict if that turn has ended."""
        turn_id = conversation.active_turn_id
        assert turn_id is not None
        if when_busy is WhenBusy.REJECT:
            conversation.check_idle()
        if when_busy is WhenBusy.STEER and files:
            raise InvalidRequest(
                "A message with files can't steer a turn. Queue it instead.", param="whenBusy"
            )
        steers = turn_id if when_busy is WhenBusy.STEER else None
        message = QueuedMessage.of(
            conversation.id, content, self._clock(), steers_turn_id=steers, files=files
        )
        await self._store.queue.add(message, turn_id, key)
        await self.announce(UserEventType.CONVERSATION_CHANGED, conversation)
        return message

    async def _send_behind(
        self,
        user: User,
        agent: Agent,
        conversation: Conversation,
        first: QueuedMessage,
        added: QueuedMessage,
        key: IdempotencyKey | None,
        waiting_end: WaitingEnd | None,
    ) -> QueuedMessage:
        """Sends the first held message, and queues a new one behind the others."""
        begun = self._begin_queued(agent, conversation, first)
        await self._begin(
            user, agent, begun, None, queue=QueueChange(first, added, key), waiting_end=waiting_end
        )
        return added

    def _begin_queued(self, agent: Agent, conversation: Conversation, message: QueuedMessage) -> BegunTurn:
        return conversation.begin_turn(
            message.content,
            self._clock(),
            model=self._replies.model(agent),
            title=title_of(message.content, message.files),
            message_id=message.id,
            files=message.files,
        )

    async def _begin(
        self,
        user: User,
        agent: Agent,
        begun: BegunTurn,
        key: IdempotencyKey | None,
        queue: QueueChange | None = None,
        waiting_end: WaitingEnd | None = None,
    ) -> tuple[Turn, Conversation]:
        self._check_open()
        await self._allowances.take_turn(user.id, begun.turn.id, self._node.running_of(user.id))
        steps, prepare_next = self._steps(user, agent), self.prepare_next_of(user)
        try:
            await self._node.begin(
                begun,
                key,
                steps,
                prepare_next=prepare_next,
                queue=queue,
                waiting_end=waiting_end,
                by_admin=user.is_admin,
            )
        except ThreadkeepError:  # a turn that doesn't start doesn't count, however often it is tried
            await self._allowances.give_turn_back(user.id, begun.turn.id)
            raise
        return begun.turn, begun.conversation

    def prepare_next_of(self, user: User) -> PrepareNextTurn:
        """Answers a user's queued messages, one turn after the other."""

        async def prepare_next(
            previous: Turn, conversation: Conversation, message: QueuedMessage
        ) -> PreparedTurn:
            self._check_open()
            agent = await self._agent_of(user, conversation)
            begun = self._begin_queued(agent, conversation, message)
            turn_id, running = begun.turn.id, self._node.running_of(user.id)
            await self._allowances.take_turn(user.id, turn_id, running, after=previous.id)
            return PreparedTurn(
                begun=begun,
                message=message,
                steps=self._steps(user, agent),
                prepare_next=prepare_next,
                by_admin=user.is_admin,
                give_up=lambda: self._allowances.give_turn_back(user.id, turn_id),
            )

        return prepare_next

    def _steps(self, user: User, agent: Agent) -> Steps:
        return lambda held, control: self._replies.steps(user, agent, held, control)

    def _check_open(self) -> None:
        if self.is_draining:
            raise ShuttingDown("This process is shutting down. Try again in a moment.")

    async def _agent_of(self, user: User, conversation: Conversation) -> Agent:
        """The agent that answers in a conversation, within the operator's limits."""
        return self._caps.limited(await agent_to_ask(self._store, user, conversation))

    async def _branch(self, conversation: Conversation, position: Position) -> Branch | None:
        """The branch that a message continues; None for the active path."""
        if position.tip_id is not UNSET:
            conversation.check_tip(position.tip_id)
        if position.parent_id is UNSET or position.parent_id == conversation.tip_id:
            return None
        return await branch_up_to(self._store, conversation, position.parent_id)

    async def _reply_to_regenerate(self, conversation: Conversation, message_id: str | None) -> Message:
        if message_id is None:
            reply = await self._latest_reply(conversation)
        else:
            reply = await own_message(self._store, conversation, message_id)
        if reply is None or reply.role is not MessageRole.ASSISTANT:
            raise NothingToRegenerate("There is no reply to regenerate.")
        return reply

    async def _latest_reply(self, conversation: Conversation) -> Message | None:
        window = MessageWindow(newest_first=True)
        latest = await self._store.messages.page(conversation.id, window, offset=0, limit=50)
        return next((message for message in latest if message.role is MessageRole.ASSISTANT), None)

    async def _whole_reply(self, turn: Turn) -> Message:
        (reply,) = await whole_messages(self._store.payloads, [await self._reply(turn)])
        return reply

    async def _reply(self, turn: Turn) -> Message:
        reply = await self._store.messages.get(turn.conversation_id, turn.assistant_message_id)
        if reply is None:
            raise TurnNotFound
        return reply


def _message_request(
    content: str, files: tuple[FilePart, ...], position: Position, when_busy: WhenBusy
) -> str:
    """What a retry shares with the first attempt, except the tip, which that attempt may have moved."""
    asked = content if position.parent_id is UNSET else f"{position.parent_id}\n{content}"
    if when_busy is not WhenBusy.REJECT:
        asked = f"{when_busy}\n{asked}"
    if files:
        asked = "\n".join([*(it.file_id for it in files), asked])
    return asked
