"""Users as admins see them, and who of them is suspended."""

from collections.abc import Sequence

from threadkeep.domain.agent import AuditEntry
from threadkeep.domain.ids import UserId
from threadkeep.domain.sign_in.session import KnownUser, SuspendedBy
from threadkeep.domain.user import UserRole
from threadkeep.storage.agents import audit_query
from threadkeep.storage.database.columns import to_value
from threadkeep.storage.database.connector import Database, Plan, Row, Statement
from threadkeep.storage.sign_in.sessions import end_sessions

_KNOWN = """SELECT id, name, role, groups, invited, suspended_at,
        (SELECT MAX(last_used_at) FROM tk_sessions WHERE user_id = tk_users.id),
        (SELECT MAX(last_used_at) FROM tk_keys WHERE user_id = tk_users.id)
    FROM tk_users WHERE deleted_at IS NULL AND"""
_PAGE = Statement(f"{_KNOWN} id > :after ORDER BY id LIMIT :limit OFFSET :offset")
_KNOWN_USER = Statement(f"{_KNOWN} id = :id")
# An admin's suspension stays one: a sign-in with the provider doesn't lift it.
_SUSPEND = Statement(
    """UPDATE tk_users SET suspended_at = COALESCE(suspended_at, :now),
        suspended_by = CASE WHEN suspended_by = 'admin' THEN suspended_by ELSE :by END
    WHERE id = :id AND deleted_at IS NULL RETURNING id"""
)
_UNSUSPEND = Statement(
    """UPDATE tk_users SET suspended_at = NULL, suspended_by = NULL
    WHERE id = :id AND deleted_at IS NULL RETURNING id"""
)


class SqlKnownUsers:
    """The users of a database, for admins."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(self, *, after: str, offset: int, limit: int) -> Sequence[KnownUser]:
        """The known users, by their ids."""
        rows = await self._database.fetch(_PAGE(after=after, offset=offset, limit=limit))
        return [_known(row) for row in rows]

    async def find(self, user_id: UserId) -> KnownUser | None:
        """One user; None if unknown."""
        rows = await self._database.fetch(_KNOWN_USER(id=user_id))
        return _known(rows[0]) if rows else None

    async def suspend(self, user_id: UserId, by: SuspendedBy, now: int, entry: AuditEntry) -> bool:
        """Keeps a user out; False if there is no such user."""
        return await self._database.write(lambda: suspend_user(user_id, by, now, entry))

    async def unsuspend(self, user_id: UserId, entry: AuditEntry) -> bool:
        """Lets a user in again; False if there is no such user."""
        return await self._database.write(lambda: _unsuspend(user_id, entry))


def suspend_user(user_id: UserId, by: SuspendedBy, now: int, entry: AuditEntry) -> Plan[bool]:
    """Keeps a user out; False if there is no such user.

    Their sessions stay until the suspension ends, only to say in what is open why it has stopped.
    """
    if not (yield _SUSPEND(id=user_id, by=by, now=now)):
        return False
    yield audit_query(entry)
    return True


def _unsuspend(user_id: UserId, entry: AuditEntry) -> Plan[bool]:
    if not (yield _UNSUSPEND(id=user_id)):
        return False
    # Nobody is back in a browser by themselves, least of all one that was lost.
    yield from end_sessions(user_id)
    yield audit_query(entry)
    return True


def _known(row: Row) -> KnownUser:
    id_, name, role, groups, invited, suspended_at, session_used_at, key_used_at = row
    return KnownUser(
        id=id_,
        name=name,
        role=role and UserRole(role),
        groups=tuple(to_value(groups)),
        is_invited=bool(invited),
        suspended_at=suspended_at,
        last_seen_at=max((it for it in (session_used_at, key_used_at) if it is not None), default=None),
    )
