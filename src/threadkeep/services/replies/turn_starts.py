"""Begins turns: reserves the user's allowance and hands a turn with its course to this node's runner."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace

from threadkeep.context.titles import title_of
from threadkeep.domain.agent import ASKING_OTHERS, Agent
from threadkeep.domain.caps import NO_CAPS, OperatorCaps
from threadkeep.domain.conversation import BegunTurn, Conversation
from threadkeep.domain.errors import AgentAbsent, GatewayNotConfigured, InvalidRequest, ShuttingDown
from threadkeep.domain.ids import KeyId, TurnId
from threadkeep.domain.queued import QueueChange, QueuedMessage
from threadkeep.domain.turn import Turn
from threadkeep.domain.user import User
from threadkeep.engine.code.replay import CodeState
from threadkeep.engine.loop import TurnStep
from threadkeep.ports.allowances import Allowances
from threadkeep.runtime.control import TurnControl
from threadkeep.runtime.programs import NodePrograms
from threadkeep.runtime.runner import Runner
from threadkeep.runtime.turn_course import PrepareNextTurn, TurnCourse
from threadkeep.services.access import agent_to_ask
from threadkeep.services.creations import Creations
from threadkeep.services.equipment import output_of
from threadkeep.services.replies.code_replies import CodeReplies
from threadkeep.services.replies.model_replies import ModelReplies
from threadkeep.services.replies.turn_claim import TurnClaim
from threadkeep.storage.store import Store
from threadkeep.storage.text_bytes import ROW_BYTES, byte_length
from threadkeep.storage.turn_log import HeldTurn


class TurnStarts:
    """Begins turns on this node, and those of the messages queued behind them."""

    def __init__(
        self,
        store: Store,
        runner: Runner,
        replies: ModelReplies,
        code_replies: CodeReplies,
        allowances: Allowances,
        creations: Creations,
        caps: OperatorCaps = NO_CAPS,
    ) -> None:
        self._store = store
        self._runner = runner
        self._replies = replies
        self._code_replies = code_replies
        self._equipment = replies.equipment
        self._allowances = allowances
        self._creations = creations
        self._caps = caps
        self._claims: set[TurnClaim] = set()

    @property
    def programs(self) -> NodePrograms:
        """What this node can run of the agents that are programs."""
        return self._runner.programs

    async def agent_of(self, user: User, conversation: Conversation) -> Agent:
        """The agent that replies in a conversation, within the operator's limits."""
        return self._caps.limited(await agent_to_ask(self._store, user, conversation))

    def chosen_model(self, agent: Agent, wanted: str | None) -> str | None:
        """The id of the model that replies to a message; raises if the agent doesn't offer the one wanted.

        None for a program, which needs none, where no model is connected.
        """
        try:
            return self._equipment.choice.chosen(agent, wanted).id
        except GatewayNotConfigured:
            if agent.code is None or wanted is not None:
                raise
            return None

    def of_queued(
        self,
        agent: Agent,
        conversation: Conversation,
        message: QueuedMessage,
        *,
        key_id: KeyId | None,
        turn_id: TurnId,
    ) -> BegunTurn:
        """The turn of a queued message, begun with a key; not stored yet."""
        return conversation.begin_turn(
            message.content,
            self._equipment.clock(),
            model=self.chosen_model(agent, message.model),
            title=title_of(message.content, message.files),
            message_id=message.id,
            files=message.files,
            key_id=key_id,
            begun_with=message.begun_with,
            turn_id=turn_id,
        )

    @asynccontextmanager
    async def claim(self, user: User) -> AsyncGenerator[TurnClaim]:
        """A turn that a request may begin; gives back what the request has taken and doesn't use."""
        claim = TurnClaim(self._allowances, user.id)
        self._claims.add(claim)
        try:
            yield claim
        finally:
            self._claims.discard(claim)
            await claim.close()

    async def reserve(
        self, claim: TurnClaim, user: User, agent: Agent, begun: BegunTurn, *, after: TurnId | None = None
    ) -> None:
        """Refuses a turn for all that could keep it from beginning, or takes it from the user's allowance.

        `after` is the turn that ends for it.
        """
        if claim.is_taken:
            return
        self.check_open()
        _check_output(agent, begun.turn)
        await self._check_present(agent)
        await self._creations.check_turn(user.id, _size_of(begun))
        await self._equipment.spending.check(user, begun, agent)
        await claim.take(self._running_of(user, after), after)

    async def begin(
        self, user: User, agent: Agent, begun: BegunTurn, claim: TurnClaim
    ) -> tuple[Turn, Conversation]:
        """Begins a turn. StorageConflict if its conversation has changed since it was read."""
        await self.reserve(claim, user, agent, begun)
        async with self._ready(self._with_code(agent, begun)) as ready:
            claim.is_beginning = True
            await self._runner.begin(ready, self._course(user, agent, claim))
        return begun.turn, begun.conversation

    async def check_queued(self, user: User, text: str) -> None:
        """Refuses a message that is to wait for its turn if its user has no room for it."""
        await self._creations.check_turn(user.id, ROW_BYTES + byte_length(text))

    @asynccontextmanager
    async def _ready(self, begun: BegunTurn) -> AsyncGenerator[BegunTurn]:
        """A turn whose start is a small transaction, also if it moves the path to a long branch."""
        if begun.branch is None:
            yield begun
            return
        last_seq = (begun.user_message or begun.assistant_message).seq - 1
        async with self._store.branches.prepared(
            begun.conversation.id, begun.branch, last_seq=last_seq, tip_id=begun.previous_tip_id
        ) as branch:
            yield replace(begun, branch=branch)

    def prepare_next_of(self, user: User) -> PrepareNextTurn:
        """Prepares the turns of a user's queued messages, one after the other."""

        async def prepare_next(
            previous: Turn, conversation: Conversation, message: QueuedMessage
        ) -> tuple[BegunTurn, TurnCourse]:
            self.check_open()
            agent = await self.agent_of(user, conversation)
            async with self.claim(user) as claim:
                begun = self.of_queued(
                    agent, conversation, message, key_id=message.key_id, turn_id=claim.turn_id
                )
                await self.reserve(claim, user, agent, begun, after=previous.id)
                claim.is_beginning = True
            begun = replace(self._with_code(agent, begun), queue=QueueChange(message))
            return begun, self._course(user, agent, claim)

        return prepare_next

    def _running_of(self, user: User, after: TurnId | None) -> int:
        """The user's turns on this node, with those that were taken and don't run yet, without those that end
        for them.
        """
        taken = [it for it in self._claims if it.user_id == user.id and it.is_taken and not it.is_beginning]
        ending = [after, *(it.after for it in taken)]
        return self._runner.count_of(user.id, besides=ending) + len(taken)

    def _course(self, user: User, agent: Agent, claim: TurnClaim) -> TurnCourse:
        return TurnCourse(
            steps=lambda held, control: self._steps(user, agent, held, control),
            prepare_next=self.prepare_next_of(user),
            by_admin=user.is_admin,
            give_back=claim.not_begun,
        )

    def _steps(
        self, user: User, agent: Agent, held: HeldTurn, control: TurnControl
    ) -> AsyncGenerator[TurnStep]:
        if held.turn.code is not None:
            return self._code_replies.steps(user, agent, held, control, state=CodeState())
        return self._replies.steps(user, agent, held, control)

    def _with_code(self, agent: Agent, begun: BegunTurn) -> BegunTurn:
        """A turn with what its log needs to be read: its agent's program, if that is one (which models that
        asks, its calls say), or whether its reply is checked.
        """
        if agent.program is None:
            return replace(begun, checks_output=output_of(agent, begun.turn.begun_with) is not None)
        turn = replace(begun.turn, code=self.programs.code_for(agent.program))
        return replace(begun, turn=turn, assistant_message=replace(begun.assistant_message, model=None))

    async def _check_present(self, agent: Agent) -> None:
        """Refuses a turn of a program that nobody has run lately: it would wait in vain."""
        if agent.program is not None and not await self.programs.is_awaited(agent.program):
            raise AgentAbsent(
                f"The agent's program ({agent.program}) isn't running. Try again when it is connected."
            )

    def check_open(self) -> None:
        """Refuses to begin a turn while this process is ending."""
        if self._runner.is_draining:
            raise ShuttingDown("This process is shutting down. Try again in a moment.")


def _check_output(agent: Agent, turn: Turn) -> None:
    """Refuses to ask a program for JSON: it decides itself what it replies."""
    decides_itself = agent.program not in (None, ASKING_OTHERS)
    if decides_itself and turn.begun_with is not None and turn.begun_with.output is not None:
        raise InvalidRequest(
            "This agent is a program, which decides itself what it replies: it can't be asked for a format.",
            param="output",
        )


def _size_of(begun: BegunTurn) -> int:
    """What a turn's start adds to what its user has: a message that waited is there already."""
    if begun.queue is None:
        added = begun.user_message.text if begun.user_message else None
    else:
        added = begun.queue.added.content if begun.queue.added else None
    return ROW_BYTES + (0 if added is None else ROW_BYTES + byte_length(added))
