"""Storage of agents' memories."""

from collections.abc import Sequence
from typing import Protocol

from threadkeep.domain.ids import AgentId, UserId
from threadkeep.domain.memory import Memory


class MemoryStore(Protocol):
    """Agents' memories of users; separate for each agent and user."""

    async def add(self, user_id: UserId, agent_id: AgentId, memory: Memory, *, most: int) -> None:
        """Stores a memory, replacing one with the same content; beyond `most`, deletes the oldest."""
        ...

    async def latest(self, user_id: UserId, agent_id: AgentId, *, limit: int) -> Sequence[Memory]:
        """An agent's memories of a user, newest first."""
        ...
