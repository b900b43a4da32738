"""Model replies: everything an agent does in a turn, from the model's request to the follow-up work."""

from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import aclosing

from threadkeep.context.attachments import FileRules
from threadkeep.context.request import BuiltRequest
from threadkeep.domain.agent import Agent, OnCrash
from threadkeep.domain.conversation import TitleSource
from threadkeep.domain.errors import ModelNotFound, ThreadkeepError
from threadkeep.domain.events import Done, Failed, Notice, Retrieval, TurnResumed
from threadkeep.domain.payload import Payload
from threadkeep.domain.retrieval import RetrievalHit
from threadkeep.domain.turn import Turn
from threadkeep.domain.user import User
from threadkeep.engine.ending import failed, stopped
from threadkeep.engine.loop import HandOff, Surroundings, TurnStep, run_turn
from threadkeep.engine.outputs import output_check
from threadkeep.engine.replay import NEW_TURN, TurnState
from threadkeep.engine.stop import Stopped
from threadkeep.engine.tools import CallingTurn, Toolbox
from threadkeep.engine.turn_tools import TurnTools
from threadkeep.jobs.queue import Jobs
from threadkeep.jobs.titles import TITLE_JOB, title_job
from threadkeep.log.writer import persist
from threadkeep.ports.gateway import ToolSpec
from threadkeep.ports.models import ConnectedModel
from threadkeep.ports.tools import Caller, ToolSession
from threadkeep.runtime.control import TurnControl
from threadkeep.services.approvals import TurnApprovals
from threadkeep.services.client_tools import offered_client_tools
from threadkeep.services.compactions import COMPACTION_JOB, compaction_job, is_due
from threadkeep.services.equipment import Equipment, limits_of
from threadkeep.services.history import History
from threadkeep.services.replies.model_requests import ModelRequests
from threadkeep.storage.store import Store
from threadkeep.storage.turn_log import HeldTurn


class ModelReplies:
    """Runs models and their tools. Without a model, no turn can start."""

    def __init__(
        self,
        store: Store,
        equipment: Equipment,
        requests: ModelRequests,
        history: History,
        jobs: Jobs,
    ) -> None:
        self._store = store
        self.equipment = equipment
        """What its models need to reply."""
        self._requests = requests
        self._history = history
        self._jobs = jobs

    def model_of(self, turn: Turn, state: TurnState) -> ConnectedModel:
        """The model that a turn asked for or, if that is gone, the one that it has fallen back to.

        Raises GatewayNotConfigured or ModelNotFound if no model is left.
        """
        try:
            return self.equipment.models.get(turn.model)
        except ModelNotFound:
            if state.model is None:
                raise
            return self.equipment.models.get(state.model)

    async def steps(
        self,
        user: User,
        agent: Agent,
        held: HeldTurn,
        control: TurnControl,
        *,
        state: TurnState = NEW_TURN,
        opening: Sequence[Notice | Retrieval | TurnResumed] = (),
    ) -> AsyncGenerator[TurnStep]:
        """Yields a turn's steps from its current state. The caller stores each step before the next."""
        turn, stop = held.turn, control.stop
        try:
            asked = self.model_of(turn, state)
        except ThreadkeepError as exc:  # removed since the turn began
            yield failed(exc, is_prepared=False)
            return
        hands_off = agent.settings.on_crash is OnCrash.CONTINUE
        prepared = None
        if state.is_new:
            try:
                prepared = await stop.guard(
                    lambda: persist(lambda: self._requests.prepare(agent, held, asked, state))
                )
            except Stopped as exc:
                is_handed_off = exc.reason == "hand_off" and hands_off
                yield HandOff() if is_handed_off else stopped(turn, exc.reason)
                return
            except ThreadkeepError as exc:
                yield failed(exc, is_prepared=False)
                return

        async def build(tools: Sequence[ToolSpec]) -> BuiltRequest:
            assert prepared is not None
            return await prepared.build(tools)

        around = Surroundings(
            models=self.equipment.turn_models(agent, asked, state.model),
            tools=self.turn_tools(
                user,
                agent,
                held,
                control,
                asked,
                found=prepared.sources.found if prepared else state.found,
                used=state.used_servers,
            ),
            limits=limits_of(agent, hands_off=hands_off),
            stop=stop,
            spending=await self.equipment.spending.of_turn(user, held, agent, control.calling),
            load=lambda ids: persist(lambda: self._store.payloads.load(turn.conversation_id, ids)),
            steering=control.steering,
            check_output=output_check(self.equipment.schemas, user.id),
            tool_choice=turn.begun_with.tool_choice if turn.begun_with else None,
        )
        opening = (*opening, *(prepared.opening if prepared else ()))
        run = run_turn(turn, build, around, state=state, opening=opening)
        step = None
        async with aclosing(run):
            async for step in run:
                yield step
        if isinstance(step, Done | Failed):  # the caller has stored it by now
            await self.follow_up(agent, held, asked)

    def turn_tools(
        self,
        user: User,
        agent: Agent,
        held: HeldTurn,
        control: TurnControl,
        model: ConnectedModel,
        *,
        found: Sequence[RetrievalHit] = (),
        used: Collection[str] = (),
    ) -> TurnTools:
        """The tools that a turn can use."""
        session = self.equipment.session(Caller(agent, user, held.conversation), model, used)
        return TurnTools(
            self.toolbox(session, user, agent, held, model, found),
            self.user_requests(agent, held, control),
            agent.settings.tools,
            lambda ids: persist(lambda: self._store.messages.ids_in_use(held.conversation.id, ids)),
        )

    def toolbox(
        self,
        session: ToolSession | None,
        user: User,
        agent: Agent,
        held: HeldTurn,
        model: ConnectedModel,
        found: Sequence[RetrievalHit] = (),
        *,
        has_client_tools: bool = True,
    ) -> Toolbox:
        """A session's tools in a turn, with those that its client brings."""
        calling = CallingTurn(
            id=held.turn.id,
            user_id=user.id,
            client_tools=offered_client_tools(agent, held.turn, model.model) if has_client_tools else (),
            found=found,
            keep_image=lambda file: self.equipment.files.keep_returned(held.conversation, file),
            reads=file_rules(model),
        )
        return self.equipment.toolbox(session, held.turn, calling, self.keep)

    def user_requests(self, agent: Agent, held: HeldTurn, control: TurnControl) -> TurnApprovals:
        """How a turn asks its user."""
        timeout_s = agent.settings.approval_timeout_s
        return TurnApprovals(self._store, held, timeout_s, self.equipment.clock, control)

    async def keep(self, payload: Payload, content: bytes) -> None:
        """Stores a large value or a file of a turn."""
        await persist(lambda: self._store.payloads.add(payload, content))

    async def follow_up(self, agent: Agent, held: HeldTurn, model: ConnectedModel) -> None:
        """Queues background work that follows from a reply, and that its key pays for."""
        conversation, key_id = held.conversation, held.turn.key_id
        self._history.note(conversation.id)
        is_first = conversation.title_source is TitleSource.DERIVED and conversation.last_seq <= 4
        if is_first and model.model.supports_tools:
            await self._jobs.add(TITLE_JOB, title_job(conversation, key_id))
        if is_due(agent, conversation):
            await self._jobs.add(COMPACTION_JOB, compaction_job(conversation, key_id))


def file_rules(model: ConnectedModel) -> FileRules:
    """The files that a model receives as is."""
    return FileRules(model.files, model.model.context_tokens, can_recall=True)
