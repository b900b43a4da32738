"""Storage of agents and of the audit log."""

from collections.abc import Callable, Sequence
from typing import Protocol

from threadkeep.domain.agent import Agent, AuditEntry
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.ids import AgentId, UserId


class AgentStore(Protocol):
    """Agents, and the audit log of their changes."""

    async def add(self, agent: Agent, entry: AuditEntry) -> None:
        """Stores a new agent and registers its owner."""
        ...

    async def add_shipped(self, agent: Agent) -> None:
        """Stores an agent that exists from the first start on, unless it already exists."""
        ...

    async def get_default(self) -> Agent:
        """The default agent, created at the first start."""
        ...

    async def get(self, agent_id: AgentId) -> Agent | None:
        """An agent, deleted or not; the caller decides who may see it."""
        ...

    async def get_with_main(
        self, user_id: UserId, agent_id: AgentId
    ) -> tuple[Agent, Conversation | None] | None:
        """The same, with the user's main conversation with it, if there is one."""
        ...

    async def note_prompt_bytes(self, agent_id: AgentId, size: int) -> None:
        """Records what the files of an agent's prompt take."""
        ...

    async def page(self, user_id: UserId, *, after: str | None, offset: int, limit: int) -> Sequence[Agent]:
        """The user's own agents and the public ones, oldest first."""
        ...

    async def update(
        self, agent_id: AgentId, change: Callable[[Agent], Agent], entry: Callable[[Agent], AuditEntry]
    ) -> Agent | None:
        """Reads, changes and writes an agent exclusively; the change must be pure."""
        ...

    async def run_programs(self) -> bool:
        """Whether any agent, deleted or not, has an MCP server that is a program, switched off or not."""
        ...

    async def note(self, entry: AuditEntry) -> None:
        """Adds an entry to the audit log without changing an agent."""
        ...

    async def audit_page(self, *, before: str | None, offset: int, limit: int) -> Sequence[AuditEntry]:
        """The audit log, newest first."""
        ...
