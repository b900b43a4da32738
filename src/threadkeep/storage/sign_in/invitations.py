"""Invitations in the database: never their links, only the hashes of the tokens in them."""

from collections.abc import Sequence
from dataclasses import replace

from threadkeep.domain.agent import AuditEntry
from threadkeep.domain.errors import Forbidden, InvitationEnded, InvitationNotFound, RateLimited
from threadkeep.domain.ids import InvitationId, SessionId
from threadkeep.domain.sign_in.session import (
    INVITATION,
    MOST_OWN_LINKS,
    Invitation,
    Session,
    SignedIn,
    invited_name,
)
from threadkeep.domain.user import UserRole
from threadkeep.storage.agents import audit_query
from threadkeep.storage.database.connector import Database, Plan, Row, Statement
from threadkeep.storage.sign_in.sessions import WITHDRAW_OWN_LINKS, end_sessions, start_session
from threadkeep.storage.users import ENSURE_USER

_COLUMNS = "id, user_id, role, invited_by, created_at, expires_at, accepted_at"
_ADD = Statement(
    f"""INSERT INTO tk_invitations ({_COLUMNS}, token_hash)
    VALUES (:id, :user_id, :role, :invited_by, :created_at, :expires_at, :accepted_at, :token_hash)"""
)
_BY_HASH = f"SELECT {_COLUMNS} FROM tk_invitations WHERE token_hash = :token_hash"
_FIND = Statement(_BY_HASH)
# Locked, so that nobody else uses it meanwhile.
_HOLD = Statement(_BY_HASH, locks="FOR UPDATE")
_USE = Statement("UPDATE tk_invitations SET accepted_at = :now WHERE id = :id")
_IS_OTHERWISE_KNOWN = Statement("SELECT 1 FROM tk_users WHERE id = :id AND NOT invited")
_MARK_INVITED = Statement("UPDATE tk_users SET invited = TRUE WHERE id = :id")
# A new link replaces those that nobody has used yet.
_WITHDRAW_UNUSED = Statement("DELETE FROM tk_invitations WHERE user_id = :user_id AND accepted_at IS NULL")
_OPEN = Statement(
    f"""SELECT {_COLUMNS} FROM tk_invitations WHERE accepted_at IS NULL AND expires_at > :now
        AND (invited_by IS NULL OR invited_by <> user_id)
    ORDER BY id DESC LIMIT :limit"""
)
# Locked, so that nobody ends the session, or makes another link, meanwhile.
_HOLD_SESSION = Statement(
    """SELECT 1 FROM tk_sessions WHERE id = :id AND user_id = :user_id AND way = :way""", locks="FOR UPDATE"
)
_HOLD_USER = Statement("SELECT role FROM tk_users WHERE id = :id AND invited", locks="FOR NO KEY UPDATE")
_COUNT_OWN = Statement(
    """SELECT COUNT(*), MIN(created_at) FROM tk_invitations
    WHERE user_id = :user_id AND invited_by = user_id AND created_at > :since"""
)
_REMOVE = Statement("DELETE FROM tk_invitations WHERE id = :id AND accepted_at IS NULL RETURNING user_id")
_SWEEP = Statement("DELETE FROM tk_invitations WHERE expires_at <= :before")
_HAS_ADMIN = Statement(
    """SELECT 1 FROM tk_users WHERE role = 'admin' AND deleted_at IS NULL
    UNION ALL
    SELECT 1 FROM tk_invitations WHERE role = 'admin' AND accepted_at IS NULL AND expires_at > :now LIMIT 1"""
)
# A row that there always is: of nodes that start together, one invites.
_ONE_AT_A_TIME = Statement("SELECT 1 FROM tk_meta WHERE name = 'installation'", locks="FOR UPDATE")
MOST_LISTED = 200
HOUR_MS = 60 * 60 * 1000


class SqlInvitations:
    """Invitations, each found by the hash of its token."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, invitation: Invitation, token_hash: str, entry: AuditEntry) -> None:
        """Stores a new invitation, which replaces the user's unused ones; Forbidden for a user who was not
        invited.
        """
        await self._database.write(lambda: _add(invitation, token_hash, entry))

    async def add_own(
        self, invitation: Invitation, token_hash: str, entry: AuditEntry, session_id: SessionId
    ) -> None:
        """Stores a link for another browser of its user, which replaces the one before.

        Forbidden unless an invitation began the session that makes it, RateLimited if there are too many.
        """
        await self._database.write(lambda: _add_own(invitation, token_hash, entry, session_id))

    async def find(self, token_hash: str, now: int) -> Invitation:
        """The invitation whose token has this hash, if it can still be accepted."""
        return _usable(await self._database.fetch(_FIND(token_hash=token_hash)), now)

    async def accept(
        self, token_hash: str, session: Session, session_hash: str, entry: AuditEntry
    ) -> Invitation:
        """Uses an invitation up: makes its user if need be, ends their other sessions and starts this one.

        One that its user made themselves ends none.
        """
        return await self._database.write(lambda: _accept(token_hash, session, session_hash, entry))

    async def open_ones(self, now: int) -> Sequence[Invitation]:
        """Those that can still be accepted, newest first."""
        return [_invitation(row) for row in await self._database.fetch(_OPEN(now=now, limit=MOST_LISTED))]

    async def remove(self, invitation_id: InvitationId, entry: AuditEntry) -> bool:
        """Withdraws an unused invitation; False if there is none."""
        return await self._database.write(lambda: _remove(invitation_id, entry))

    async def add_first(self, invitation: Invitation, token_hash: str, entry: AuditEntry) -> bool:
        """Stores the first admin's invitation; False if an admin has signed in or can accept another one."""
        return await self._database.write(lambda: _add_first(invitation, token_hash, entry))

    async def sweep(self, before: int) -> None:
        """Forgets those that expired before a time."""
        await self._database.execute(_SWEEP(before=before))


def _add(invitation: Invitation, token_hash: str, entry: AuditEntry) -> Plan[None]:
    yield from _check_invited(invitation)
    yield _WITHDRAW_UNUSED(user_id=invitation.user_id)
    values = {name: getattr(invitation, name) for name in Invitation.__slots__}
    yield _ADD(**values, token_hash=token_hash)
    yield audit_query(entry)


def _add_own(invitation: Invitation, token_hash: str, entry: AuditEntry, session_id: SessionId) -> Plan[None]:
    user_id, now = invitation.user_id, invitation.created_at
    invited = yield _HOLD_USER(id=user_id)
    if not invited or not (yield _HOLD_SESSION(id=session_id, user_id=user_id, way=INVITATION)):
        raise Forbidden(
            "Only a browser that is signed in with an invitation can make a link for another one."
        )
    ((made, first),) = yield _COUNT_OWN(user_id=user_id, since=now - HOUR_MS)
    if made >= MOST_OWN_LINKS:
        raise RateLimited(
            f"You have made {made} links in the last hour, the most allowed. Wait a while.",
            details={"limit": "signInLinks", "most": MOST_OWN_LINKS},
            retry_after_s=max(1, (first + HOUR_MS - now) // 1000),
        )
    yield WITHDRAW_OWN_LINKS(user_id=user_id)
    values = {name: getattr(invitation, name) for name in Invitation.__slots__}
    yield _ADD(**values, token_hash=token_hash)
    yield audit_query(entry)


def _add_first(invitation: Invitation, token_hash: str, entry: AuditEntry) -> Plan[bool]:
    yield _ONE_AT_A_TIME()
    if (yield _HAS_ADMIN(now=invitation.created_at)):
        return False
    yield from _add(invitation, token_hash, entry)
    return True


def _accept(token_hash: str, session: Session, session_hash: str, entry: AuditEntry) -> Plan[Invitation]:
    now = session.created_at
    invitation = _usable((yield _HOLD(token_hash=token_hash)), now)
    yield from _check_invited(invitation)
    yield ENSURE_USER(id=invitation.user_id, now=now)
    yield _MARK_INVITED(id=invitation.user_id)
    if invitation.is_own:
        # Admins may have changed it since the link was made.
        ((role,),) = yield _HOLD_USER(id=invitation.user_id)
        invitation = replace(invitation, role=UserRole(role))
    else:
        yield from end_sessions(invitation.user_id)
    user = SignedIn(id=invitation.user_id, role=invitation.role, name=invited_name(invitation.user_id))
    yield from start_session(session, session_hash, user)
    yield _USE(id=invitation.id, now=now)
    yield audit_query(entry)
    return invitation


def _check_invited(invitation: Invitation) -> Plan[None]:
    if (yield _IS_OTHERWISE_KNOWN(id=invitation.user_id)):
        raise Forbidden(
            f"{invitation.user_id!r} is a user whom no invitation made, so none can sign in as them.",
            param="user",
        )


def _remove(invitation_id: InvitationId, entry: AuditEntry) -> Plan[bool]:
    if not (yield _REMOVE(id=invitation_id)):
        return False
    yield audit_query(entry)
    return True


def _usable(rows: Sequence[Row], now: int) -> Invitation:
    if not rows:
        raise InvitationNotFound("This invitation doesn't exist, or it was withdrawn. Ask for a new one.")
    invitation = _invitation(rows[0])
    if invitation.accepted_at is not None:
        raise InvitationEnded(
            "This invitation was used already. If that wasn't you, tell an admin. Ask for a new one."
        )
    if invitation.expires_at <= now:
        raise InvitationEnded("This invitation has expired. Ask for a new one.")
    return invitation


def _invitation(row: Row) -> Invitation:
    id_, user_id, role, invited_by, created_at, expires_at, accepted_at = row
    return Invitation(
        id=id_,
        user_id=user_id,
        role=UserRole(role),
        invited_by=invited_by,
        created_at=created_at,
        expires_at=expires_at,
        accepted_at=accepted_at,
    )
