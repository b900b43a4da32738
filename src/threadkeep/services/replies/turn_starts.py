"""Begins turns: reserves the user's allowance and hands the prepared turn to the node."""

from threadkeep.clock import Clock
from threadkeep.context.titles import title_of
from threadkeep.domain.agent import Agent
from threadkeep.domain.caps import NO_CAPS, OperatorCaps
from threadkeep.domain.conversation import BegunTurn, Conversation
from threadkeep.domain.errors import ShuttingDown
from threadkeep.domain.ids import KeyId, TurnId
from threadkeep.domain.queued import QueuedMessage
from threadkeep.domain.turn import Turn
from threadkeep.domain.user import User
from threadkeep.ports.allowances import Allowances
from threadkeep.ports.store import Store
from threadkeep.ports.turns import NewTurn, QueueChange
from threadkeep.runtime.node import Node
from threadkeep.runtime.prepared_turn import PreparedTurn, PrepareNextTurn
from threadkeep.runtime.spending import Spending
from threadkeep.services.access import agent_to_ask
from threadkeep.services.replies.model_replies import ModelReplies
from threadkeep.tasks import taken_whole


class TurnStarts:
    """Begins turns on this node, and those of the messages queued behind them."""

    def __init__(
        self,
        store: Store,
        node: Node,
        replies: ModelReplies,
        allowances: Allowances,
        clock: Clock,
        spending: Spending,
        caps: OperatorCaps = NO_CAPS,
    ) -> None:
        self._spending = spending
        self._store = store
        self._node = node
        self._replies = replies
        self._allowances = allowances
        self._clock = clock
        self._caps = caps

    async def agent_of(self, user: User, conversation: Conversation) -> Agent:
        """The agent that replies in a conversation, within the operator's limits."""
        return self._caps.limited(await agent_to_ask(self._store, user, conversation))

    def chosen_model(self, agent: Agent, wanted: str | None) -> str:
        """The id of the model that replies to a message; raises if the agent doesn't offer the one wanted."""
        return self._replies.chosen_model(agent, wanted)

    def of_queued(
        self, agent: Agent, conversation: Conversation, message: QueuedMessage, *, key_id: KeyId | None
    ) -> BegunTurn:
        """The turn of a queued message, begun with a key; not stored yet."""
        return conversation.begin_turn(
            message.content,
            self._clock(),
            model=self.chosen_model(agent, message.model),
            title=title_of(message.content, message.files),
            message_id=message.id,
            files=message.files,
            key_id=key_id,
            begun_with=message.begun_with,
        )

    async def begin(self, user: User, agent: Agent, new: NewTurn) -> tuple[Turn, Conversation]:
        """Begins a turn. StorageConflict if its conversation has changed since it was read."""
        self.check_open()
        await self._node.begin(await self._prepare(user, agent, new))
        return new.begun.turn, new.begun.conversation

    def prepare_next_of(self, user: User) -> PrepareNextTurn:
        """Prepares the turns of a user's queued messages, one after the other."""

        async def prepare_next(
            previous: Turn, conversation: Conversation, message: QueuedMessage
        ) -> PreparedTurn:
            self.check_open()
            agent = await self.agent_of(user, conversation)
            begun = self.of_queued(agent, conversation, message, key_id=message.key_id)
            new = NewTurn(begun, queue=QueueChange(message))
            return await self._prepare(user, agent, new, after=previous.id)

        return prepare_next

    async def _prepare(
        self, user: User, agent: Agent, new: NewTurn, *, after: TurnId | None = None
    ) -> PreparedTurn:
        """Reserves a turn from the user's allowance, if the budgets have something left."""
        turn_id = new.begun.turn.id

        async def give_back() -> None:
            await self._allowances.give_turn_back(user.id, turn_id)

        await self._spending.check(user, new.begun, agent)
        running = self._node.running_of(user.id)
        await taken_whole(self._allowances.take_turn(user.id, turn_id, running, after=after), give_back)
        return PreparedTurn(
            new,
            steps=lambda held, control: self._replies.steps(user, agent, held, control),
            prepare_next=self.prepare_next_of(user),
            by_admin=user.is_admin,
            give_back=give_back,
        )

    def check_open(self) -> None:
        """Refuses to begin a turn while this process is ending."""
        if self._node.is_draining:
            raise ShuttingDown("This process is shutting down. Try again in a moment.")
