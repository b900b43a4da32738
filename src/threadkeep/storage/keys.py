"""API keys in the database: never their values, only the hashes."""

from collections.abc import Mapping, Sequence
from typing import Literal

from threadkeep.domain.agent import AuditEntry
from threadkeep.domain.errors import Unauthenticated
from threadkeep.domain.ids import AgentId, KeyId, UserId
from threadkeep.domain.key import Key, Scope
from threadkeep.storage.agents import audit_query
from threadkeep.storage.database.columns import to_json, to_value
from threadkeep.storage.database.connector import Database, Plan, Row, Statement
from threadkeep.storage.users import ENSURE_USER, lock_known

OfAgents = Literal[
    "conversation_id", "turn_id", "message_id", "briefing_id", "artifact_id", "file_id", "share"
]
"""Ids of things that belong to agents, as routes call them."""


_COLUMNS = """id, user_id, name, prefix, scopes, agents, is_admin, may_run_programs, budget_month, created_at,
    expires_at, last_used_at, parent_id, payer_id, act_as, may_delete"""
_ADD = Statement(
    f"""INSERT INTO tk_keys ({_COLUMNS}, hash)
    VALUES (:id, :user_id, :name, :prefix, :scopes, :agents, :is_admin, :may_run_programs, :budget_month,
        :created_at, :expires_at, :last_used_at, :parent_id, :payer_id, :act_as, :may_delete, :hash)"""
)
# Locked, so that it isn't revoked before its child is there to go with it.
_HOLD_PARENT = Statement("SELECT 1 FROM tk_keys WHERE id = :id", locks="FOR KEY SHARE")
# The user is locked, so that nobody adds another meanwhile.
_COUNT = Statement("SELECT COUNT(*) FROM tk_keys WHERE user_id = :user_id")
# A suspended user's keys are there, but sign nobody in.
_FIND = Statement(
    f"""SELECT {_COLUMNS} FROM tk_keys WHERE hash = :hash AND NOT EXISTS (
        SELECT 1 FROM tk_users WHERE tk_users.id = tk_keys.user_id AND suspended_at IS NOT NULL)"""
)
_GET = Statement(f"SELECT {_COLUMNS} FROM tk_keys WHERE id = :id")
_OF_USER = Statement(
    f"SELECT {_COLUMNS} FROM tk_keys WHERE user_id = :user_id ORDER BY created_at DESC, id DESC"
)
# Those that it has made go by cascade.
_REMOVE = Statement("DELETE FROM tk_keys WHERE id = :id AND user_id = :user_id")
# Nodes' clocks differ: the latest use counts.
_NOTE_USE = Statement(
    """UPDATE tk_keys SET last_used_at = :now
    WHERE id = :id AND (last_used_at IS NULL OR last_used_at < :now)"""
)
# Read at nearly every sign-in, so that the write is rare.
_HAS_ADMIN = Statement("SELECT 1 FROM tk_keys WHERE user_id = :user_id AND is_admin LIMIT 1")
_TAKE_ADMIN = Statement("UPDATE tk_keys SET is_admin = FALSE WHERE user_id = :user_id AND is_admin")

# A file belongs to the agents of all conversations that use it, and so does what a tool returned as one.
_AGENT = "SELECT agent_id FROM tk_conversations WHERE id"
_AGENTS_OF: Mapping[OfAgents, Statement] = {
    "conversation_id": Statement(f"{_AGENT} = :id"),
    "turn_id": Statement(f"{_AGENT} = (SELECT conversation_id FROM tk_turns WHERE id = :id)"),
    "message_id": Statement(f"{_AGENT} = (SELECT conversation_id FROM tk_messages WHERE id = :id)"),
    "briefing_id": Statement("SELECT agent_id FROM tk_briefings WHERE user_id = :user_id AND id = :id"),
    "artifact_id": Statement(
        f"""{_AGENT} IN (
            SELECT conversation_id FROM tk_payloads WHERE id = :id
            UNION ALL
            SELECT used.conversation_id FROM tk_file_forms AS form
            JOIN tk_file_uses AS used ON used.file_id = form.file_id WHERE form.id = :id)"""
    ),
    "file_id": Statement(f"{_AGENT} IN (SELECT conversation_id FROM tk_file_uses WHERE file_id = :id)"),
    "share": Statement(f"{_AGENT} = (SELECT conversation_id FROM tk_shares WHERE id = :id)"),
}


class SqlKeys:
    """Users' API keys, each found by the hash of its value."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, key: Key, key_hash: str, entry: AuditEntry, *, most: int) -> bool:
        """Stores a new key; False if its user has `most` already. The user becomes known.

        Unauthenticated if the key that makes it was revoked meanwhile.
        """
        return await self._database.write(lambda: _add(key, key_hash, entry, most))

    async def find(self, key_hash: str) -> Key | None:
        """The key whose value has this hash, expired or not, unless its user is suspended."""
        rows = await self._database.fetch(_FIND(hash=key_hash))
        return _key(rows[0]) if rows else None

    async def get(self, key_id: KeyId) -> Key | None:
        """One key, of any user and however it may be used now; None once it is revoked."""
        rows = await self._database.fetch(_GET(id=key_id))
        return _key(rows[0]) if rows else None

    async def of_user(self, user_id: UserId) -> Sequence[Key]:
        """A user's keys, newest first."""
        return [_key(row) for row in await self._database.fetch(_OF_USER(user_id=user_id))]

    async def remove(self, user_id: UserId, key_id: KeyId, entry: AuditEntry) -> bool:
        """Deletes a user's key, and those that it has made; False if there is none."""
        return await self._database.write(lambda: _remove(user_id, key_id, entry))

    async def agents_of(self, user_id: UserId, name: OfAgents, id_: str) -> Sequence[AgentId]:
        """The agents that a thing belongs to, deleted or not; a briefing must be the user's.

        A file belongs to every agent that it was sent to, and to none before that, like an unknown id.
        """
        rows = await self._database.fetch(_AGENTS_OF[name](user_id=user_id, id=id_))
        return [agent_id for (agent_id,) in rows]

    async def note_use(self, key_id: KeyId, now: int) -> None:
        """Records that a key was used."""
        await self._database.execute(_NOTE_USE(id=key_id, now=now))

    async def has_admin_keys(self, user_id: UserId) -> bool:
        """Whether a key of the user acts with the admin role."""
        return bool(await self._database.fetch(_HAS_ADMIN(user_id=user_id)))

    async def take_admin_role(self, user_id: UserId) -> None:
        """Takes the admin role from the user's keys."""
        await self._database.execute(_TAKE_ADMIN(user_id=user_id))


def _add(key: Key, key_hash: str, entry: AuditEntry, most: int) -> Plan[bool]:
    yield ENSURE_USER(id=key.user_id, now=key.created_at)
    yield from lock_known(key.user_id, key.created_at)
    ((count,),) = yield _COUNT(user_id=key.user_id)
    if count >= most:
        return False
    if key.parent_id is not None and not (yield _HOLD_PARENT(id=key.parent_id)):
        raise Unauthenticated("This API key was revoked.")
    values = {name: getattr(key, name) for name in Key.__slots__}
    scopes, agents = to_json(key.scopes), None if key.agents is None else to_json(sorted(key.agents))
    yield _ADD(**values | {"scopes": scopes, "agents": agents, "hash": key_hash})
    yield audit_query(entry)
    return True


def _remove(user_id: UserId, key_id: KeyId, entry: AuditEntry) -> Plan[bool]:
    if not (yield _REMOVE(id=key_id, user_id=user_id)):
        return False
    yield audit_query(entry)
    return True


def _key(row: Row) -> Key:
    (
        id_, user_id, name, prefix, scopes, agents, is_admin, may_run_programs, budget_month, created_at,
        expires_at, last_used_at, parent_id, payer_id, act_as, may_delete,
    ) = row  # fmt: skip
    return Key(
        id=id_,
        user_id=user_id,
        name=name,
        prefix=prefix,
        scopes=tuple(Scope(scope) for scope in to_value(scopes)),
        agents=None if agents is None else frozenset(AgentId(it) for it in to_value(agents)),
        is_admin=bool(is_admin),
        may_run_programs=bool(may_run_programs),
        budget_month=budget_month,
        created_at=created_at,
        expires_at=expires_at,
        last_used_at=last_used_at,
        parent_id=parent_id,
        payer_id=payer_id,
        act_as=act_as,
        may_delete=bool(may_delete),
    )
