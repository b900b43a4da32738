"""The agents in a file, and their counterparts here."""

from collections.abc import Sequence
from dataclasses import replace

from threadkeep.clock import Clock
from threadkeep.domain.agent import Agent, AgentSettings, AuditEntry, Visibility
from threadkeep.domain.errors import InvalidRequest
from threadkeep.domain.ids import AgentId, is_uuid, new_uuid
from threadkeep.domain.mcp import check_server_names
from threadkeep.domain.tool_rules import check_rules
from threadkeep.domain.user import User
from threadkeep.domain.workspace import PromptComponent
from threadkeep.exports.records import KnownAgent, OwnAgent
from threadkeep.imports.checks import check_id
from threadkeep.imports.ids import ImportIds
from threadkeep.imports.report import ImportReport
from threadkeep.storage.prompt_files import FolderPromptFiles
from threadkeep.storage.store import Store

AT_ONCE = 200


class ImportedAgents:
    """Imports agents and maps their ids."""

    def __init__(
        self,
        store: Store,
        prompt_files: FolderPromptFiles,
        clock: Clock,
        user: User,
        import_ids: ImportIds,
        report: ImportReport,
    ) -> None:
        self._store = store
        self._prompt_files = prompt_files
        self._clock = clock
        self._user = user
        self._import_ids = import_ids
        self._report = report
        self._ids: dict[AgentId, AgentId] = {}

    def id_of(self, agent_id: AgentId, otherwise: AgentId | None = None) -> AgentId:
        """The id that an agent of the file has here."""
        found = self._ids.get(agent_id, otherwise)
        if found is None:
            raise InvalidRequest(f"it refers to the agent {agent_id!r}, which was not imported")
        return found

    async def take(self, own: OwnAgent) -> None:
        """Imports an agent of the user's own."""
        check_id(own.agent.id)
        check_server_names(own.agent.settings.mcp_servers)
        check_rules(own.agent.settings.tools)
        components = {PromptComponent(name): text for name, text in own.prompt_files.items()}
        id_, is_there = await self._import_ids.find("agent", own.agent.id, self._user.id)
        agent_id = AgentId(id_)
        if is_there:
            self._report.there += 1
        else:
            # Files first: an existing agent isn't imported again, so its files must exist too.
            for component, text in components.items():
                await self._prompt_files.write(agent_id, component, text)
            settings = replace(own.agent.settings, agents=await self._others(own.agent.settings.agents))
            await self._add(replace(own.agent, id=agent_id, owner_id=self._user.id, settings=settings))
            if servers := own.agent.settings.mcp_servers:
                self._report.notes.append(
                    f"Agent {own.agent.name!r}: the MCP servers {', '.join(servers)} are disabled, because "
                    "exports don't include their secrets."
                )
        self._ids[own.agent.id] = agent_id

    async def _others(self, named: Sequence[str]) -> tuple[str, ...]:
        """The agents that a model may call, by the ids that they have here, or will have."""
        found: list[str] = []
        for name in named:
            there = await self._store.agents.get(AgentId(name)) if is_uuid(name) else None
            if not is_uuid(name) or (there is not None and there.is_visible_to(self._user)):
                found.append(name)
            else:
                found.append((await self._import_ids.find("agent", name, self._user.id))[0])
        return tuple(dict.fromkeys(found))

    async def meet(self, known: KnownAgent) -> None:
        """Another user's agent: the default agent, the same agent, or a replacement."""
        check_id(known.id)
        if known.is_default:
            self._ids[known.id] = (await self._store.agents.get_default()).id
            return
        there = await self._store.agents.get(known.id)
        if there is not None and (there.owner_id == self._user.id or there.is_visible_to(self._user)):
            self._ids[known.id] = there.id
            return
        id_ = AgentId(self._import_ids.own_id(known.id))
        if await self._store.whole_conversations.owner_of("agent", id_) is None:
            await self._add(self._new(id_, known.name, known.description))
        self._ids[known.id] = id_

    async def meet_same(self, agent_id: AgentId, *, is_default: bool) -> None:
        """An agent that the user can talk to here, too: the default agent, or the same one; none is made."""
        if is_default:
            self._ids[agent_id] = (await self._store.agents.get_default()).id
            return
        there = await self._store.agents.get(AgentId(check_id(agent_id)))
        if there is not None and there.is_visible_to(self._user):
            self._ids[agent_id] = there.id

    async def named(self, name: str | None) -> Agent:
        """The agent for imported conversations: the default agent, or one with this name."""
        if name is None:
            return await self._store.agents.get_default()
        after: str | None = None
        while page := await self._store.agents.page(self._user.id, after=after, offset=0, limit=AT_ONCE):
            if found := next((agent for agent in page if agent.name == name), None):
                return found
            after = page[-1].id
        agent = self._new(AgentId(new_uuid()), name, "")
        await self._add(agent)
        return agent

    def _new(self, id_: AgentId, name: str, description: str) -> Agent:
        now = self._clock()
        return Agent(
            id=id_,
            owner_id=self._user.id,
            name=name,
            description=description,
            primary_role_id="assistant",
            system_prompt="",
            model=None,
            visibility=Visibility.PRIVATE,
            settings=AgentSettings(),
            is_default=False,
            version=1,
            created_at=now,
            updated_at=now,
        )

    async def _add(self, agent: Agent) -> None:
        entry = AuditEntry(new_uuid(), self._clock(), self._user.id, "import", agent.id, {"name": agent.name})
        await self._store.agents.add(agent, entry)
        self._report.count("agent")
