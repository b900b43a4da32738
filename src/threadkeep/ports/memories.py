"""Storage of agents' memories."""

from collections.abc import Sequence
from typing import Protocol

from threadkeep.domain.ids import AgentId, MemoryId, UserId
from threadkeep.domain.memory import Memory


class MemoryStore(Protocol):
    """Agents' memories of users; separate for each agent and user."""

    async def add(self, user_id: UserId, agent_id: AgentId, memory: Memory, *, most: int) -> None:
        """Stores a memory, replacing one with the same content; beyond `most`, deletes the oldest."""
        ...

    async def latest(
        self,
        user_id: UserId,
        agent_id: AgentId,
        *,
        before: MemoryId | None = None,
        offset: int = 0,
        limit: int,
    ) -> Sequence[Memory]:
        """An agent's memories of a user, newest first; those older than `before`."""
        ...

    async def get(self, user_id: UserId, agent_id: AgentId, memory_id: MemoryId) -> Memory | None:
        """One of an agent's memories of a user."""
        ...

    async def change(self, user_id: UserId, agent_id: AgentId, memory: Memory) -> bool:
        """Changes a memory's content and tags, and deletes another one with the same content.

        False if the memory doesn't exist.
        """
        ...

    async def forget(self, user_id: UserId, agent_id: AgentId, memory_id: MemoryId) -> bool:
        """Deletes a memory; False if it doesn't exist."""
        ...

    async def forget_all(self, user_id: UserId, agent_id: AgentId) -> None:
        """Deletes everything that an agent remembers about a user."""
        ...
