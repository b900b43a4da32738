"""Where it is kept what agents remember."""

from collections.abc import Sequence
from typing import Protocol

from threadkeep.domain.ids import AgentId, UserId
from threadkeep.domain.memory import Memory


class MemoryStore(Protocol):
    """What agents remember of users; each agent has memories of its own of each user."""

    async def add(self, user_id: UserId, agent_id: AgentId, memory: Memory, *, most: int) -> None:
        """Keeps a memory in place of one with the same content; beyond `most` the oldest are forgotten."""
        ...

    async def latest(self, user_id: UserId, agent_id: AgentId, *, limit: int) -> Sequence[Memory]:
        """What an agent remembers of a user, newest first."""
        ...
