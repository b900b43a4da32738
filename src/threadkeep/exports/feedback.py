"""Feedback as a user may export it: on the replies of their agents, and on their own turns."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace

from threadkeep.context.request import rebuild_request
from threadkeep.domain.agent import Agent
from threadkeep.domain.errors import AgentNotFound, UserNotFound
from threadkeep.domain.feedback import FeedbackFilter, RatedReply
from threadkeep.domain.ids import AgentId
from threadkeep.domain.user import User
from threadkeep.ports.gateway import ModelRequest
from threadkeep.storage.store import Store

AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class ExportedFeedback:
    """Feedback, and what the model received in its turn if the user may read that."""

    rated: RatedReply
    agent_name: str
    is_own: bool
    request: ModelRequest | None
    """None also if it is no longer stored. Only the agent's owner reads prompt and tools."""


class FeedbackExport:
    """One user's view of feedback. The store is a snapshot, so that everything is consistent."""

    def __init__(self, store: Store, user: User) -> None:
        self._store = store
        self._user = user
        self._agents: dict[AgentId, Agent | None] = {}

    async def lines(self, agent_name: str | None) -> AsyncGenerator[ExportedFeedback]:
        """All feedback on the user's agents, then the user's own on other agents; or only on one agent."""
        if await self._store.whole_conversations.owner_of("user", self._user.id) is None:
            raise UserNotFound(f"No data found for the user {self._user.id!r}.")
        chosen = None if agent_name is None else await self._named(agent_name)
        async for agent in self._all_agents():
            if agent.is_owned_by(self._user) and chosen in {None, agent.id}:
                async for line in self._of(FeedbackFilter(agent_id=agent.id)):
                    yield line
        async for line in self._of(FeedbackFilter(user_id=self._user.id, agent_id=chosen)):
            agent = await self._agent(line.rated.agent_id)
            if agent is None or not agent.is_owned_by(self._user):  # else it is among those above
                yield line

    async def _named(self, name: str) -> AgentId:
        async for agent in self._all_agents():
            if agent.name.casefold() == name.casefold():
                return agent.id
        raise AgentNotFound(f"Agent {name!r} not found.")

    async def _all_agents(self) -> AsyncGenerator[Agent]:
        """The agents that the user can see, their own first."""
        others: list[Agent] = []
        after = None
        while page := await self._store.agents.page(self._user.id, after=after, offset=0, limit=AT_ONCE):
            for agent in page:
                if agent.owner_id == self._user.id:
                    yield agent
                else:
                    others.append(agent)
            after = page[-1].id
        for agent in others:
            yield agent

    async def _of(self, which: FeedbackFilter) -> AsyncGenerator[ExportedFeedback]:
        before = None
        while page := await self._store.feedback.page(
            which, reader=self._user.id, reads_shared=True, before=before, offset=0, limit=AT_ONCE
        ):
            for rated in page:
                yield await self._line(rated)
            before = (page[-1].feedback.updated_at, page[-1].feedback.message_id)

    async def _line(self, rated: RatedReply) -> ExportedFeedback:
        agent = await self._agent(rated.agent_id)
        is_owner = agent is not None and agent.is_owned_by(self._user)
        request = await self._request(rated) if rated.reply is not None else None
        if request is not None and not is_owner:
            request = replace(request, system="", tools=())
        is_own = rated.user_id == self._user.id
        return ExportedFeedback(rated, agent.name if agent else "", is_own, request)

    async def _request(self, rated: RatedReply) -> ModelRequest | None:
        if rated.turn_id is None:
            return None
        found = await self._store.receipts.get(rated.feedback.conversation_id, rated.turn_id)
        try:
            return rebuild_request(*found) if found else None
        except KeyError:  # a text of it is gone
            return None

    async def _agent(self, agent_id: AgentId) -> Agent | None:
        if agent_id not in self._agents:
            self._agents[agent_id] = await self._store.agents.get(agent_id)
        return self._agents[agent_id]
