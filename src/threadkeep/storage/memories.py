"""What agents remember about users, in the database."""

from collections.abc import Sequence

from threadkeep.domain.ids import AgentId, MemoryId, UserId
from threadkeep.domain.memory import Memory
from threadkeep.storage.database.columns import to_json_or_null, to_value
from threadkeep.storage.database.connector import Database, Plan, Statement
from threadkeep.storage.users import ENSURE_USER

# Otherwise two that forget for the same user at once could deadlock.
_LOCK = Statement("SELECT 1 FROM tk_users WHERE id = :user_id", locks="FOR NO KEY UPDATE")
# What is remembered again becomes the newest.
_FORGET_SAME = Statement(
    "DELETE FROM tk_memories WHERE user_id = :user_id AND agent_id = :agent_id AND content = :content"
)
_ADD = Statement(
    """INSERT INTO tk_memories (id, user_id, agent_id, content, tags, created_at)
    VALUES (:id, :user_id, :agent_id, :content, :tags, :created_at)"""
)
# SQLite allows OFFSET only after LIMIT.
_FORGET_OLDEST = Statement(
    """DELETE FROM tk_memories WHERE id IN (
        SELECT id FROM tk_memories WHERE user_id = :user_id AND agent_id = :agent_id
        ORDER BY id DESC LIMIT 1000 OFFSET :most)"""
)
# Newest first, since ids begin with the time.
_LATEST = Statement(
    """SELECT id, content, tags, created_at FROM tk_memories
    WHERE user_id = :user_id AND agent_id = :agent_id ORDER BY id DESC LIMIT :limit OFFSET :offset"""
)
_BEFORE = Statement(
    """SELECT id, content, tags, created_at FROM tk_memories
    WHERE user_id = :user_id AND agent_id = :agent_id AND id < :before
    ORDER BY id DESC LIMIT :limit OFFSET :offset"""
)
_GET = Statement(
    """SELECT id, content, tags, created_at FROM tk_memories
    WHERE id = :id AND user_id = :user_id AND agent_id = :agent_id"""
)
_CHANGE = Statement(
    """UPDATE tk_memories SET content = :content, tags = :tags
    WHERE id = :id AND user_id = :user_id AND agent_id = :agent_id RETURNING id"""
)
_FORGET_OTHERS = Statement(
    """DELETE FROM tk_memories
    WHERE user_id = :user_id AND agent_id = :agent_id AND content = :content AND id <> :id"""
)
_FORGET = Statement(
    "DELETE FROM tk_memories WHERE id = :id AND user_id = :user_id AND agent_id = :agent_id RETURNING id"
)
_FORGET_ALL = Statement("DELETE FROM tk_memories WHERE user_id = :user_id AND agent_id = :agent_id")


class SqlMemories:
    """Agents' memories of users; separate for each agent and user."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, user_id: UserId, agent_id: AgentId, memory: Memory, *, most: int) -> None:
        """Stores a memory, replacing one with the same content; beyond `most` the oldest are deleted."""
        await self._database.write(lambda: _add(user_id, agent_id, memory, most))

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
        which = {"user_id": user_id, "agent_id": agent_id, "offset": offset, "limit": limit}
        rows = await self._database.fetch(
            _LATEST(**which) if before is None else _BEFORE(**which, before=before)
        )
        return [_memory(*row) for row in rows]

    async def get(self, user_id: UserId, agent_id: AgentId, memory_id: MemoryId) -> Memory | None:
        """One of an agent's memories of a user."""
        rows = await self._database.fetch(_GET(id=memory_id, user_id=user_id, agent_id=agent_id))
        return _memory(*rows[0]) if rows else None

    async def change(self, user_id: UserId, agent_id: AgentId, memory: Memory) -> bool:
        """Changes a memory's content and tags, and deletes another one with the same content.

        False if the memory doesn't exist.
        """
        return await self._database.write(lambda: _change(user_id, agent_id, memory))

    async def forget(self, user_id: UserId, agent_id: AgentId, memory_id: MemoryId) -> bool:
        """Deletes a memory; False if it doesn't exist."""
        forgotten = _FORGET(id=memory_id, user_id=user_id, agent_id=agent_id)
        return bool(await self._database.execute(forgotten))

    async def forget_all(self, user_id: UserId, agent_id: AgentId) -> None:
        """Deletes everything that an agent remembers about a user."""
        await self._database.execute(_FORGET_ALL(user_id=user_id, agent_id=agent_id))


def _memory(id_: MemoryId, content: str, tags: str | None, created_at: int) -> Memory:
    return Memory(id_, content, tuple(to_value(tags) or ()), created_at)


def _change(user_id: UserId, agent_id: AgentId, memory: Memory) -> Plan[bool]:
    which = {"id": memory.id, "user_id": user_id, "agent_id": agent_id, "content": memory.content}
    yield _LOCK(user_id=user_id)
    if not (yield _CHANGE(**which, tags=to_json_or_null(memory.tags))):
        return False
    yield _FORGET_OTHERS(**which)
    return True


def _add(user_id: UserId, agent_id: AgentId, memory: Memory, most: int) -> Plan[None]:
    whose = {"user_id": user_id, "agent_id": agent_id}
    yield ENSURE_USER(id=user_id, now=memory.created_at)
    yield _LOCK(user_id=user_id)
    yield _FORGET_SAME(**whose, content=memory.content)
    yield _ADD(
        **whose,
        id=memory.id,
        content=memory.content,
        tags=to_json_or_null(memory.tags),
        created_at=memory.created_at,
    )
    yield _FORGET_OLDEST(**whose, most=most)
