"""The agents that a turn runs besides its own: those that its user may use, each with its own models, tools,
rules and budget.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from threadkeep.domain.agent import ASKING_OTHERS, Agent
from threadkeep.domain.caps import OperatorCaps
from threadkeep.domain.errors import AgentAbsent, AgentNotFound, InvalidRequest, ThreadkeepError
from threadkeep.domain.ids import AgentId, is_uuid
from threadkeep.domain.user import User
from threadkeep.engine.code.means import AgentMeans, AskedFirst, FoundAgent, OfferedAgent, nothing_first
from threadkeep.engine.turn_models import TurnModels
from threadkeep.engine.turn_tools import TurnTools
from threadkeep.ports.tools import Caller, GivenInput, Step, Tool, ToolSession, Unavailable
from threadkeep.runtime.control import TurnControl
from threadkeep.services.replies.model_replies import ModelReplies
from threadkeep.services.replies.model_requests import ModelRequests
from threadkeep.services.replies.program_starts import ProgramStarts
from threadkeep.storage.store import Store
from threadkeep.storage.turn_log import HeldTurn


class AgentsOfTurn:
    """Finds them, and equips them."""

    def __init__(
        self,
        store: Store,
        replies: ModelReplies,
        requests: ModelRequests,
        starts: ProgramStarts,
        caps: OperatorCaps,
        user: User | None,
        own: Agent,
        held: HeldTurn,
        control: TurnControl,
    ) -> None:
        self._store = store
        self._replies = replies
        self._requests = requests
        self._starts = starts
        self._caps = caps
        self._user = user
        self._own = own
        self._held = held
        self._control = control

    async def find(self, wanted: str) -> FoundAgent:
        """An agent by its key or id; one that the turn's user may not use doesn't exist."""
        agent = await self._usable(wanted)
        if agent.code is None:
            if agent.program not in (None, ASKING_OTHERS):
                raise InvalidRequest(f"{agent.name} runs on another server, so it can't run inside a turn.")
            return FoundAgent(id=agent.id, name=agent.name, most_rounds=agent.settings.max_iterations)
        version = self._starts.version_of(agent.code.key)
        if version is None:
            raise AgentAbsent(f"The agent's program ({agent.code.key}) doesn't run in this process.")
        return FoundAgent(id=agent.id, name=agent.name, key=agent.code.key, version=version)

    async def offered(self, agent: Agent) -> Sequence[OfferedAgent]:
        """Those that an agent's model may call, as far as they can run for the turn's user."""
        found: list[OfferedAgent] = []
        for wanted in agent.settings.agents:
            with suppress(ThreadkeepError):
                await self.find(wanted)
                it = await self._usable(wanted)
                found.append(OfferedAgent(wanted, it.name, it.description))
        return found

    async def means(self, ids: Sequence[str]) -> AgentMeans:
        """Those of the first of these agents, which the next one runs, and so on."""
        agents = [self._caps.limited(await self._usable(it)) for it in ids]
        agent, replies, equipment, held = agents[0], self._replies, self._replies.equipment, self._held
        user = self._user
        assert user is not None
        model = equipment.choice.own(agent)
        account = await equipment.spending.of_nested(user, held, self._own, agents)

        def models(name: str | None) -> TurnModels:
            chosen = model if name is None else equipment.models.get(equipment.choice.chosen(agent, name).id)
            return equipment.turn_models(agent, chosen)

        session = equipment.session(Caller(agent, user, held.conversation), model)
        named = None if session is None else _NamedSession(session, agent.name)
        return AgentMeans(
            models=models,
            spending=account.of_call,
            own_call=account.own_call,
            tools=TurnTools(
                replies.toolbox(named, user, agent, held, model, has_client_tools=False),
                replies.user_requests(agent, held, self._control),
                agent.settings.tools,
                lambda taken: self._store.messages.ids_in_use(held.conversation.id, taken),
            ),
            toolbox=lambda it: replies.toolbox(it, user, agent, held, model, has_client_tools=False),
            rules=agent.settings.tools,
            result_tokens=model.model.context_tokens // 4,
            first=nothing_first
            if agent.code is not None
            else once(lambda: self._requests.asked_first(agent, held.conversation, model)),
            offered=lambda: self.offered(agent),
        )

    async def _usable(self, wanted: str) -> Agent:
        agent = await (
            self._store.agents.get(AgentId(wanted.lower()))
            if is_uuid(wanted)
            else self._store.agents.of_code(wanted)
        )
        if self._user is None or agent is None or not agent.is_visible_to(self._user):
            raise AgentNotFound(f"There is no agent `{wanted}`.")
        return agent


def once(load: Callable[[], Awaitable[AskedFirst]]) -> Callable[[], Awaitable[AskedFirst]]:
    """The same for all calls of a run, so that providers find in their caches what they begin with."""
    loaded: list[AskedFirst] = []

    async def load_once() -> AskedFirst:
        if not loaded:
            loaded.append(await load())
        return loaded[0]

    return load_once


class _NamedSession:
    """An agent's tools; what its user is asked about a call says which agent makes it."""

    def __init__(self, session: ToolSession, name: str) -> None:
        self._session = session
        self._name = name

    async def list(self) -> tuple[Sequence[Tool], Sequence[Unavailable]]:
        """The available tools, and the unavailable servers."""
        tools, unavailable = await self._session.list()
        return [replace(it, title=self._titled(it)) for it in tools], unavailable

    def _titled(self, tool: Tool) -> str:
        return f"{self._name}: {tool.title or f'Call {tool.name} on {tool.server}'}"

    def call(
        self, tool: Tool, arguments: Mapping[str, Any], *, key: str, given: GivenInput | None = None
    ) -> AsyncGenerator[Step]:
        """Runs a tool."""
        return self._session.call(tool, arguments, key=key, given=given)
