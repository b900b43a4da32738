"""People's sessions in the database: never their tokens, only the hashes."""

from collections.abc import Sequence

from threadkeep.domain.errors import Forbidden, Unauthenticated
from threadkeep.domain.ids import SessionId, UserId
from threadkeep.domain.sign_in.session import INVITATION, UNUSED_MS, FoundSession, Session, SignedIn
from threadkeep.domain.user import User, UserRole
from threadkeep.storage.database.columns import to_json, to_value
from threadkeep.storage.database.connector import Database, Plan, Row, Statement
from threadkeep.storage.users import ENSURE_USER

MOST_SESSIONS = 50
"""Of one user: another sign-in ends the session that was used longest ago."""

_COLUMNS = "id, user_id, way, device, created_at, last_used_at, ends_at"
_ADD = Statement(
    f"""INSERT INTO tk_sessions ({_COLUMNS}, token_hash)
    VALUES (:id, :user_id, :way, :device, :created_at, :last_used_at, :ends_at, :token_hash)"""
)
# Locked, so that nobody suspends or deletes the user meanwhile.
_STATE = Statement(
    "SELECT suspended_by, deleted_at FROM tk_users WHERE id = :id",
    locks="FOR NO KEY UPDATE",
)
_DESCRIBE = Statement("UPDATE tk_users SET name = :name, role = :role, groups = :groups WHERE id = :id")
_LIFT = Statement("UPDATE tk_users SET suspended_at = NULL, suspended_by = NULL WHERE id = :id")
_MAKE_ROOM = Statement(
    """DELETE FROM tk_sessions WHERE id IN (
        SELECT id FROM tk_sessions WHERE user_id = :user_id ORDER BY last_used_at DESC, id DESC
        LIMIT 1000 OFFSET :most)"""
)
_FIND = Statement(
    f"""SELECT {", ".join(f"session.{name}" for name in _COLUMNS.split(", "))},
        owner.name, owner.role, owner.groups, owner.suspended_by
    FROM tk_sessions AS session JOIN tk_users AS owner ON owner.id = session.user_id
    WHERE session.token_hash = :token_hash AND owner.deleted_at IS NULL"""
)
_OF_USER = Statement(
    f"""SELECT {_COLUMNS} FROM tk_sessions
    WHERE user_id = :user_id AND ends_at > :now AND last_used_at > :used_since
    ORDER BY last_used_at DESC, id DESC"""
)
_END = Statement("DELETE FROM tk_sessions WHERE id = :id AND user_id = :user_id RETURNING id")
_END_ALL = Statement("DELETE FROM tk_sessions WHERE user_id = :user_id RETURNING id")
# What the user made in one browser to sign in with another. They still count for the limit of an hour.
WITHDRAW_OWN_LINKS = Statement(
    """UPDATE tk_invitations SET expires_at = created_at
    WHERE user_id = :user_id AND invited_by = user_id AND accepted_at IS NULL"""
)
# Nodes' clocks differ: the latest use counts.
_NOTE_USE = Statement("UPDATE tk_sessions SET last_used_at = :now WHERE id = :id AND last_used_at < :now")
_SWEEP = Statement(
    """DELETE FROM tk_sessions WHERE id IN (
        SELECT id FROM tk_sessions WHERE ends_at <= :now OR last_used_at <= :used_since LIMIT :limit)
    RETURNING id"""
)
SWEPT_AT_ONCE = 200


class SqlSessions:
    """Users' sessions, each found by the hash of its token."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def start(self, session: Session, token_hash: str, user: SignedIn) -> None:
        """Stores a new session and what its sign-in says of the user, who becomes known.

        A sign-in with a provider lifts a suspension, except an admin's: then it is Forbidden.
        """
        await self._database.write(lambda: start_session(session, token_hash, user))

    async def find(self, token_hash: str) -> FoundSession | None:
        """The session whose token has this hash, ended by time or not, and who keeps its user out."""
        rows = await self._database.fetch(_FIND(token_hash=token_hash))
        return _found(rows[0]) if rows else None

    async def of_user(self, user_id: UserId, now: int) -> Sequence[Session]:
        """A user's sessions that have not ended, the last used first."""
        rows = await self._database.fetch(_OF_USER(user_id=user_id, now=now, used_since=now - UNUSED_MS))
        return [_session(row) for row in rows]

    async def note_use(self, session_id: SessionId, now: int) -> None:
        """Records that a session was used."""
        await self._database.execute(_NOTE_USE(id=session_id, now=now))

    async def end(self, user_id: UserId, session_id: SessionId) -> bool:
        """Ends a user's session; False if there is none."""
        return await self._database.write(lambda: _end(user_id, session_id))

    async def end_all(self, user_id: UserId) -> None:
        """Ends all sessions of a user."""
        await self._database.write(lambda: end_sessions(user_id))

    async def sweep(self, now: int) -> None:
        """Deletes what has ended."""
        sweep = _SWEEP(now=now, used_since=now - UNUSED_MS, limit=SWEPT_AT_ONCE)
        while await self._database.execute(sweep):
            pass


def end_sessions(user_id: UserId) -> Plan[None]:
    """Ends all sessions of a user, and the links that they made for other browsers."""
    yield _END_ALL(user_id=user_id)
    yield WITHDRAW_OWN_LINKS(user_id=user_id)


def start_session(session: Session, token_hash: str, user: SignedIn) -> Plan[None]:
    """Adds a session, and keeps what its sign-in says of the user."""
    yield ENSURE_USER(id=user.id, now=session.created_at)
    ((suspended_by, deleted_at),) = yield _STATE(id=user.id)
    if deleted_at is not None:
        raise Unauthenticated("This user is being deleted. Sign in again in a while.")
    if suspended_by is not None and (suspended_by == "admin" or session.way == INVITATION):
        raise Forbidden("This user is suspended. Ask an admin.")
    if suspended_by is not None:
        yield _LIFT(id=user.id)
        yield from end_sessions(user.id)
    yield from describe(user)
    yield _MAKE_ROOM(user_id=user.id, most=MOST_SESSIONS - 1)
    values = {name: getattr(session, name) for name in Session.__slots__}
    yield _ADD(**values, token_hash=token_hash)


def describe(user: SignedIn) -> Plan[None]:
    """Keeps what a sign-in, or its provider since, says of a user."""
    yield _DESCRIBE(id=user.id, name=user.name, role=user.role, groups=to_json(user.groups))


def _end(user_id: UserId, session_id: SessionId) -> Plan[bool]:
    if not (yield _END(id=session_id, user_id=user_id)):
        return False
    # Whoever ends a stolen session also ends the way in that it may have made.
    yield WITHDRAW_OWN_LINKS(user_id=user_id)
    return True


def _session(row: Row) -> Session:
    id_, user_id, way, device, created_at, last_used_at, ends_at = row
    return Session(
        id=id_,
        user_id=user_id,
        way=way,
        device=device,
        created_at=created_at,
        last_used_at=last_used_at,
        ends_at=ends_at,
    )


def _found(row: Row) -> FoundSession:
    *columns, name, role, groups, suspended_by = row
    session = _session(tuple(columns))
    user = User(
        session.user_id,
        UserRole(role or UserRole.USER),
        session_id=session.id,
        name=name,
        groups=tuple(to_value(groups)),
    )
    return FoundSession(session, user, suspended_by)
