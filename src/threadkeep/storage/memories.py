"""What agents remember about users, in the database."""

from collections.abc import Sequence

from threadkeep.domain.ids import AgentId, UserId
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
    WHERE user_id = :user_id AND agent_id = :agent_id ORDER BY id DESC LIMIT :limit"""
)


class SqlMemories:
    """The memories of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, user_id: UserId, agent_id: AgentId, memory: Memory, *, most: int) -> None:
        """Stores a memory, replacing one with the same content; beyond `most` the oldest are deleted."""
        await self._database.write(lambda: _add(user_id, agent_id, memory, most))

    async def latest(self, user_id: UserId, agent_id: AgentId, *, limit: int) -> Sequence[Memory]:
        """What an agent remembers about a user, newest first."""
        rows = await self._database.fetch(_LATEST(user_id=user_id, agent_id=agent_id, limit=limit))
        return [
            Memory(id_, content, tuple(to_value(tags) or ()), created_at)
            for id_, content, tags, created_at in rows
        ]


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
