"""What agents remember about a user, and the user's own instructions."""

from collections.abc import Callable, Sequence

from threadkeep.clock import Clock
from threadkeep.domain.errors import MemoryNotFound
from threadkeep.domain.ids import AgentId, MemoryId, is_uuid
from threadkeep.domain.memory import Memory
from threadkeep.domain.user import User, check_instructions
from threadkeep.services.agents import Agents
from threadkeep.storage.store import Store


class Memories:
    """The use cases of memories and instructions. Only the user sees them."""

    def __init__(self, store: Store, agents: Agents, clock: Clock) -> None:
        self._store = store
        self._agents = agents
        self._clock = clock

    async def page(
        self, user: User, agent_id: str, *, before: MemoryId | None, offset: int, limit: int
    ) -> Sequence[Memory]:
        """What an agent remembers about the user, newest first."""
        agent = await self._agents.get(user, agent_id)
        return await self._store.memories.latest(user.id, agent.id, before=before, offset=offset, limit=limit)

    async def change(
        self, user: User, agent_id: str, memory_id: str, change: Callable[[Memory], Memory]
    ) -> Memory:
        """Changes a memory."""
        agent = await self._agents.get(user, agent_id)
        changed = change(await self._own(user, agent.id, memory_id))
        if not await self._store.memories.change(user.id, agent.id, changed):
            raise MemoryNotFound
        return changed

    async def forget(self, user: User, agent_id: str, memory_id: str) -> None:
        """Makes an agent forget a memory."""
        agent = await self._agents.get(user, agent_id)
        if not await self._store.memories.forget(user.id, agent.id, _memory_id(memory_id)):
            raise MemoryNotFound

    async def forget_all(self, user: User, agent_id: str) -> None:
        """Makes an agent forget everything about the user."""
        agent = await self._agents.get(user, agent_id)
        await self._store.memories.forget_all(user.id, agent.id)

    async def instructions(self, user: User) -> str:
        """What the user tells every agent."""
        return await self._store.users.instructions(user.id)

    async def instruct(self, user: User, text: str) -> str:
        """Replaces the instructions; running turns keep their prompt."""
        text = text.strip()
        check_instructions(text)
        await self._store.users.instruct(user.id, text, self._clock())
        return text

    async def _own(self, user: User, agent_id: AgentId, memory_id: str) -> Memory:
        found = await self._store.memories.get(user.id, agent_id, _memory_id(memory_id))
        if found is None:
            raise MemoryNotFound
        return found


def _memory_id(given: str) -> MemoryId:
    """Treats an invalid id like an id that doesn't exist."""
    if not is_uuid(given):
        raise MemoryNotFound
    return MemoryId(given.lower())
