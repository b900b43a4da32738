"""Agents: who can create, see, change and delete them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from threadkeep.clock import Clock
from threadkeep.domain.agent import (
    Agent,
    AgentCode,
    AgentDraft,
    AgentSettings,
    AuditEntry,
    Served,
    Visibility,
)
from threadkeep.domain.caps import NO_CAPS, OperatorCaps
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.errors import (
    AgentNotFound,
    Conflict,
    Forbidden,
    InvalidRequest,
    PreconditionFailed,
)
from threadkeep.domain.guide import GUIDE_ID, GUIDE_MODEL
from threadkeep.domain.ids import AgentId, is_uuid, new_uuid
from threadkeep.domain.mcp import GUIDE
from threadkeep.domain.tool_rules import ToolAccess, ToolRule
from threadkeep.domain.user import User
from threadkeep.mcp.catalog import Catalog
from threadkeep.services.model_choice import ModelChoice
from threadkeep.storage.store import Store

DEFAULT_AGENT_NAME = "Assistant"


class Agents:
    """The use cases of agents."""

    def __init__(
        self,
        store: Store,
        catalog: Catalog,
        clock: Clock,
        choice: ModelChoice,
        caps: OperatorCaps = NO_CAPS,
        *,
        on_program: Callable[[], None] = lambda: None,
        is_token_due: Callable[[], bool] = lambda: False,
    ) -> None:
        """`on_program` is called before a program is stored as an agent's MCP server.

        `is_token_due` says whether the first one would make the server require its token.
        """
        self._store = store
        self._catalog = catalog
        self._clock = clock
        self._choice = choice
        self._caps = caps
        self._on_program = on_program
        self._is_token_due = is_token_due

    @property
    def default_settings(self) -> AgentSettings:
        """The settings of an agent whose owner chooses none: its default, or a smaller cap."""
        return self._caps.capped(AgentSettings())

    def as_it_runs(self, agent: Agent) -> Agent:
        """An agent with the limits that apply: its owner's, or the operator's caps if they are smaller."""
        return self._caps.limited(agent)

    async def ensure_default(self) -> None:
        """Creates the default agent at the first start: public, undeletable, without a length limit."""
        draft = AgentDraft(
            DEFAULT_AGENT_NAME,
            description="The default agent.",
            system_prompt="You are a helpful assistant. Answer briefly and honestly.",
            visibility=Visibility.PUBLIC,
            settings=AgentSettings(max_message_chars=0),
        )
        await self._store.agents.add_shipped(self._make(draft, owner=None, is_default=True))

    async def ensure_guide(self) -> None:
        """Creates the Guide, unless it already exists or was deleted."""
        draft = AgentDraft(
            "Guide",
            description="Shows what Threadkeep can do, without a model.",
            visibility=Visibility.PUBLIC,
            model=GUIDE_MODEL,
            settings=AgentSettings(tools={f"{GUIDE}.send_report": ToolRule(access=ToolAccess.ASK)}),
        )
        await self._store.agents.add_shipped(replace(self._make(draft, owner=None), id=GUIDE_ID))

    async def declare(self, draft: AgentDraft, code: AgentCode) -> Agent | None:
        """Stores an agent that is a program, with what its code declares; None if an admin has deleted it."""
        agent = replace(self._make(draft, owner=None), code=code)
        agent.check_name_is_free(await self.default())
        return await self._store.agents.declare(agent)

    async def served(self, agents: Iterable[Agent]) -> Mapping[str, Served]:
        """How the programs that some agents are stand, by key."""
        return await self._store.programs.served({it.code.key for it in agents if it.code})

    async def default(self) -> Agent:
        """The default agent."""
        return await self._store.agents.get_default()

    async def create(self, user: User, draft: AgentDraft, *, applied: bool = False) -> Agent:
        """Creates an agent owned by the user; `applied` if a file describes it.

        A file's name is that of one agent: Conflict if the user has one, perhaps since a moment ago.
        """
        agent = await self.checked(user, draft)
        if applied:
            agent = replace(agent, applied_version=agent.version)
        await self.add(user, agent, "create", {"name": agent.name}, name_once=applied)
        return agent

    async def checked(self, user: User, draft: AgentDraft) -> Agent:
        """A valid new agent for the user, not stored yet."""
        draft = self._choice.checked(draft)
        await self._check_others(user, draft, None)
        self._caps.check(user, draft)
        self._catalog.check(user, draft.settings.mcp_servers, {})
        self._catalog.check_remote_agent(draft.remote, None)
        agent = self._make(draft, owner=user)
        agent.check_name_is_free(await self.default())
        return agent

    async def add(
        self,
        user: User,
        agent: Agent,
        action: str,
        details: dict[str, object],
        *,
        name_once: bool = False,
    ) -> None:
        """Stores a new agent, with its origin in the audit log."""
        self._announce_programs(agent.settings)
        entry = self._entry(user, action, agent, details)
        if not await self._store.agents.add(agent, entry, name_once=name_once):
            raise Conflict(f"You already have an agent with the name {agent.name!r}: change that one.")

    async def default_of(self, user: User) -> Agent:
        """The default agent, unless the user's key is limited to others."""
        agent = await self.default()
        agent.check_visible_to(user)
        return agent

    async def get(self, user: User, agent_id: str) -> Agent:
        """An agent that the user can talk to."""
        agent = await self._store.agents.get(_checked(agent_id))
        if agent is None:
            raise AgentNotFound
        agent.check_visible_to(user)
        return agent

    async def get_with_main(self, user: User, agent_id: str) -> tuple[Agent, Conversation | None]:
        """An agent that the user can talk to, and the main conversation with it, if there is one."""
        found = await self._store.agents.get_with_main(user.id, _checked(agent_id))
        if found is None:
            raise AgentNotFound
        found[0].check_visible_to(user)
        return found

    async def get_open(self, user: User, agent_id: str) -> Agent:
        """An agent that the user can change."""
        agent = await self.get(user, agent_id)
        agent.check_open_to(user)
        return agent

    async def page(self, user: User, *, after: str | None, offset: int, limit: int) -> Sequence[Agent]:
        """The user's own agents and the public ones; those of their key, if it is limited."""
        if user.agents is None:
            return await self._store.agents.page(
                user.id, after=after, offset=offset, limit=limit, is_admin=user.is_admin
            )
        wanted = sorted(agent_id for agent_id in user.agents if agent_id > (after or ""))
        found = [await self._store.agents.get(agent_id) for agent_id in wanted]
        return [it for it in found if it and it.is_visible_to(user)][offset : offset + limit]

    async def update(
        self,
        user: User,
        agent_id: str,
        revise: Callable[[Agent], AgentDraft],
        *,
        expected_version: int | None,
        applied: bool = False,
    ) -> Agent:
        """Changes an agent; with `expected_version`, only if nobody else has changed it since.

        `applied` if a file describes the agent as it then is.
        """
        default = await self.default()
        current = await self.get_open(user, agent_id)
        _check_version(current, expected_version)
        await self._check_others(user, revise(current), current)

        def change(agent: Agent) -> Agent:
            agent.check_open_to(user)
            _check_version(agent, expected_version)
            revised = self._revised(user, agent, revise(agent), default)
            self._announce_programs(revised.settings)
            version = agent.version + 1
            return replace(
                revised,
                version=version,
                updated_at=self._clock(),
                applied_version=version if applied else agent.applied_version,
            )

        return await self._change(user, agent_id, "update", change)

    async def preview(
        self, user: User, agent_id: str, revise: Callable[[Agent], AgentDraft]
    ) -> tuple[Agent, Agent]:
        """An agent as it is, and as a valid change would make it. Stores nothing."""
        agent = await self.get_open(user, agent_id)
        await self._check_others(user, revise(agent), agent)
        return agent, self._revised(user, agent, revise(agent), await self.default())

    def makes_token_due(self, agent: Agent) -> bool:
        """Whether saving this agent would make the server require its token."""
        return agent.settings.runs_programs and self._is_token_due()

    async def _check_others(self, user: User, draft: AgentDraft, agent: Agent | None) -> None:
        """Refuses agents to call that the user may not use. One that was named before may be gone since."""
        before = agent.settings.agents if agent is not None else ()
        if draft.settings.agents and agent is not None and agent.code is not None:
            raise InvalidRequest(
                "An agent in code calls other agents itself: `turn.agent(…)`.", param="settings.agents"
            )
        for named in draft.settings.agents:
            other = await self.named(named)
            if named in before:
                continue
            if other is None or not other.is_visible_to(user):
                raise InvalidRequest(f"There is no agent {named!r}.", param="settings.agents")
            if agent is not None and other.id == agent.id:
                raise InvalidRequest("An agent can't call itself.", param="settings.agents")

    async def named(self, name: str) -> Agent | None:
        """An agent by its id, or by its key if it is in code; the caller decides who may see it."""
        if is_uuid(name):
            return await self._store.agents.get(AgentId(name.lower()))
        return await self._store.agents.of_code(name)

    def _revised(self, user: User, agent: Agent, draft: AgentDraft, default: Agent) -> Agent:
        """An agent with a valid draft's fields."""
        draft = self._choice.checked(draft, agent)
        self._caps.check(user, draft, agent)
        self._catalog.check(user, draft.settings.mcp_servers, agent.settings.mcp_servers)
        self._catalog.check_remote_agent(draft.remote, agent.remote)
        if agent.is_default and draft.visibility is not Visibility.PUBLIC:
            raise Forbidden("The default agent must stay public.")
        revised = replace(agent, **_fields_of(draft))
        if (revised.name, revised.visibility) != (agent.name, agent.visibility):
            revised.check_name_is_free(default)
        agent.check_leaves_code(revised)
        return revised

    async def delete(self, user: User, agent_id: str) -> None:
        """Deletes an agent; conversations with it stay readable."""

        def change(agent: Agent) -> Agent:
            agent.check_open_to(user)
            return agent.delete(self._clock())

        await self._change(user, agent_id, "delete", change)

    async def note(self, user: User, agent_id: AgentId, action: str, details: dict[str, object]) -> None:
        """Records a change to an agent's data outside its row in the audit log."""
        await self._store.agents.update(
            agent_id, lambda agent: agent, lambda agent: self._entry(user, action, agent, details)
        )

    async def note_prompt_bytes(self, agent_id: AgentId, size: int) -> None:
        """Records what the files of an agent's prompt take: they count for its owner."""
        await self._store.agents.note_prompt_bytes(agent_id, size)

    async def audit(self, user: User, *, before: str | None, offset: int, limit: int) -> Sequence[AuditEntry]:
        """Who changed which agent; for admins."""
        if not user.is_admin:
            raise Forbidden("Only an admin can read the audit log.")
        return await self._store.agents.audit_page(before=before, offset=offset, limit=limit)

    async def _change(
        self, user: User, agent_id: str, action: str, change: Callable[[Agent], Agent]
    ) -> Agent:
        before: list[Agent] = []

        def remember_and_change(agent: Agent) -> Agent:
            before[:] = [agent]
            return change(agent)

        def entry(agent: Agent) -> AuditEntry:
            return self._entry(user, action, agent, {"changed": _changed_fields(before[0], agent)})

        changed = await self._store.agents.update(_checked(agent_id), remember_and_change, entry)
        if changed is None:
            raise AgentNotFound
        return changed

    def _announce_programs(self, settings: AgentSettings) -> None:
        if settings.runs_programs:
            self._on_program()

    def _make(self, draft: AgentDraft, *, owner: User | None, is_default: bool = False) -> Agent:
        now = self._clock()
        return Agent(
            id=AgentId(new_uuid()),
            owner_id=owner.id if owner else None,
            is_default=is_default,
            version=1,
            created_at=now,
            updated_at=now,
            **_fields_of(draft),
        )

    def _entry(self, user: User, action: str, agent: Agent, details: dict[str, object]) -> AuditEntry:
        return AuditEntry(new_uuid(), self._clock(), user.id, action, agent.id, details)


def _checked(agent_id: str) -> AgentId:
    """Treats an invalid id like an id that doesn't exist."""
    if not is_uuid(agent_id):
        raise AgentNotFound
    return AgentId(agent_id.lower())


def _fields_of(draft: AgentDraft) -> dict[str, Any]:
    return {field.name: getattr(draft, field.name) for field in fields(draft)}


def _changed_fields(before: Agent, after: Agent) -> list[str]:
    """Names only: the audit log records who changed what, never a prompt or a secret."""
    names = [field.name for field in fields(AgentDraft)] + ["deleted_at"]
    return [name for name in names if getattr(before, name) != getattr(after, name)]


def _check_version(agent: Agent, expected: int | None) -> None:
    if expected not in {None, agent.version}:
        raise PreconditionFailed(
            "The agent has changed since you read it. Reload it and try again.",
            details={"version": agent.version},
        )
