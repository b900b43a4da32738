"""Sign-ins with a provider in the database, and the encrypted tokens with which it is asked again."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from threadkeep.domain.agent import AuditEntry
from threadkeep.domain.ids import UserId
from threadkeep.domain.secret import Secret
from threadkeep.domain.sign_in.identity import PROVIDER
from threadkeep.domain.sign_in.session import DAY_MS, Session, SignedIn
from threadkeep.storage.database.connector import Database, Plan, Statement
from threadkeep.storage.secrets import REMEMBER_KEY, SecretBox
from threadkeep.storage.sign_in.known_users import suspend_user
from threadkeep.storage.sign_in.sessions import describe, start_session

# What stands instead of a token that the provider has refused. Such a grant is due when its user is to be
# suspended, unless they sign in again before.
REFUSED = ""

_HAS = Statement("SELECT 1 FROM tk_sign_in_grants WHERE user_id = :user_id AND provider = :provider")
_KEEP = Statement(
    """INSERT INTO tk_sign_in_grants (user_id, provider, refresh_token, checked_at, due_at)
    VALUES (:user_id, :provider, :refresh_token, :now, :due_at)
    ON CONFLICT (user_id) DO UPDATE SET provider = excluded.provider, refresh_token = excluded.refresh_token,
        checked_at = excluded.checked_at, due_at = excluded.due_at"""
)
_FORGET_REFUSED = Statement(
    """DELETE FROM tk_sign_in_grants
    WHERE user_id = :user_id AND provider = :provider AND refresh_token = :refused"""
)
_CLAIM = """UPDATE tk_sign_in_grants SET due_at = :again_at WHERE user_id IN (
        SELECT user_id FROM tk_sign_in_grants
        WHERE provider = :provider AND due_at <= :now AND refresh_token <> :refused
        ORDER BY due_at LIMIT 1"""
# Claims one that is due: no two nodes use a token at the same time, which a provider would take for theft.
# One whose refresh fails or is cut off is due again when this claim ends.
_TAKE_DUE = Statement(
    f"{_CLAIM}) RETURNING user_id, refresh_token",
    postgres=f"{_CLAIM} FOR UPDATE SKIP LOCKED) RETURNING user_id, refresh_token",
)
# The user before the grant, as at a sign-in.
_LOCK_USER = Statement("SELECT id FROM tk_users WHERE id = :id", locks="FOR NO KEY UPDATE")
# Only the grant that was used: who has signed in meanwhile has another one.
_REPLACE = Statement(
    """UPDATE tk_sign_in_grants SET refresh_token = :refresh_token, checked_at = :now, due_at = :due_at
    WHERE user_id = :user_id AND refresh_token = :used RETURNING user_id"""
)
_REFUSE = Statement(
    """UPDATE tk_sign_in_grants SET refresh_token = :refused, due_at = checked_at + :ends_after
    WHERE user_id = :user_id AND refresh_token = :used RETURNING user_id"""
)
_REFUSED_FOR_LONG = Statement(
    """SELECT user_id FROM tk_sign_in_grants
    WHERE provider = :provider AND due_at <= :now AND refresh_token = :refused ORDER BY due_at LIMIT :limit"""
)
_FORGET = Statement(
    "DELETE FROM tk_sign_in_grants WHERE user_id = :user_id AND refresh_token = :used RETURNING user_id"
)
_END_SESSIONS = Statement("DELETE FROM tk_sessions WHERE user_id = :user_id AND way = :way")
_END_UNCHECKED = Statement(
    """DELETE FROM tk_sessions WHERE id IN (
        SELECT session.id FROM tk_sign_in_grants AS kept JOIN tk_sessions AS session
            ON session.user_id = kept.user_id AND session.way = :way_prefix || kept.provider
        WHERE kept.checked_at <= :before LIMIT :limit)
    RETURNING id"""
)
_ALL = Statement(
    "SELECT user_id, refresh_token FROM tk_sign_in_grants WHERE user_id > :after ORDER BY user_id LIMIT 200"
)
_RESEAL = Statement(
    """UPDATE tk_sign_in_grants SET refresh_token = :refresh_token
    WHERE user_id = :user_id AND refresh_token = :used"""
)
ENDED_AT_ONCE = 200
SUSPENDED_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Grant:
    """With what a provider is asked about a user."""

    user_id: UserId
    refresh_token: Secret


class SqlGrants:
    """What providers gave for their users, one grant each: of the last sign-in that gave one."""

    def __init__(self, database: Database, box: SecretBox) -> None:
        self._database = database
        self._box = box

    @property
    def can_keep(self) -> bool:
        """Whether there is a key to encrypt them with."""
        return self._box.can_seal

    async def start(
        self,
        session: Session,
        token_hash: str,
        user: SignedIn,
        provider: str,
        refresh_token: Secret | None,
        due_at: int,
    ) -> Session:
        """Stores a new session and what its sign-in says of the user, and keeps the refresh token.

        Without one, now or from an earlier sign-in, the session ends after a day.
        """
        return await self._database.write(
            lambda: self._start(session, token_hash, user, provider, refresh_token, due_at)
        )

    async def take_due(self, provider: str, now: int, *, again_at: int) -> Grant | None:
        """A grant whose user the provider is to be asked about now; nobody else gets it until `again_at`."""
        rows = await self._database.execute(
            _TAKE_DUE(provider=provider, now=now, again_at=again_at, refused=REFUSED)
        )
        if not rows:
            return None
        user_id, refresh_token = rows[0]
        return Grant(UserId(user_id), self._box.kept(refresh_token))

    async def renew(
        self, grant: Grant, user: SignedIn | None, refresh_token: Secret | None, now: int, *, due_at: int
    ) -> bool:
        """Keeps what the provider has answered: who the user is now, and perhaps a new token.

        False if the user has signed in anew, or is gone, since the provider was asked.
        """
        return await self._database.write(lambda: self._renew(grant, user, refresh_token, now, due_at))

    async def replace(self, grant: Grant, refresh_token: Secret) -> None:
        """Keeps the token that a provider has given instead of the grant's, without a word on its user."""
        sealed = self._box.seal(refresh_token)
        await self._database.execute(
            _RESEAL(user_id=grant.user_id, used=grant.refresh_token.stored_form, refresh_token=sealed)
        )

    async def refuse(self, grant: Grant, way: str, *, ends_after: int) -> bool:
        """Ends the sessions of a user whose token the provider refuses.

        `ends_after` is how long after the provider's last good answer the user is to be suspended. False if
        they have signed in anew since the provider was asked.
        """
        return await self._database.write(lambda: _refuse(grant, way, ends_after))

    async def refused_for_long(self, provider: str, now: int) -> Sequence[Grant]:
        """Grants that the provider has refused, whose users haven't signed in again in time."""
        rows = await self._database.fetch(
            _REFUSED_FOR_LONG(provider=provider, now=now, refused=REFUSED, limit=SUSPENDED_AT_ONCE)
        )
        return [Grant(UserId(user_id), self._box.kept(REFUSED)) for (user_id,) in rows]

    async def lose(self, grant: Grant, now: int, entry: AuditEntry) -> bool:
        """Suspends a user whom the provider no longer knows; False if they have signed in anew since."""
        return await self._database.write(lambda: _lose(grant, now, entry))

    async def forget(self, grant: Grant, way: str) -> None:
        """Ends the sessions of a grant that can't be read."""
        await self._database.write(lambda: _forget(grant, way))

    async def end_unchecked(self, before: int) -> None:
        """Ends the sessions of users about whom no provider has answered since."""
        end = _END_UNCHECKED(before=before, way_prefix=PROVIDER, limit=ENDED_AT_ONCE)
        while await self._database.execute(end):
            pass

    def _start(
        self,
        session: Session,
        token_hash: str,
        user: SignedIn,
        provider: str,
        refresh_token: Secret | None,
        due_at: int,
    ) -> Plan[Session]:
        now = session.created_at
        yield _LOCK_USER(id=user.id)
        if refresh_token is None:
            yield _FORGET_REFUSED(user_id=user.id, provider=provider, refused=REFUSED)
            if not (yield _HAS(user_id=user.id, provider=provider)):
                session = replace(session, ends_at=min(session.ends_at, now + DAY_MS))
        yield from start_session(session, token_hash, user)
        if refresh_token is not None:
            yield _KEEP(
                user_id=user.id,
                provider=provider,
                refresh_token=self._box.seal(refresh_token),
                now=now,
                due_at=due_at,
            )
            yield REMEMBER_KEY(value=self._box.sealing_key)
        return session

    def _renew(
        self, grant: Grant, user: SignedIn | None, refresh_token: Secret | None, now: int, due_at: int
    ) -> Plan[bool]:
        yield _LOCK_USER(id=grant.user_id)
        renewed = yield _REPLACE(
            user_id=grant.user_id,
            used=grant.refresh_token.stored_form,
            refresh_token=self._box.seal(refresh_token or grant.refresh_token),
            now=now,
            due_at=due_at,
        )
        if not renewed:
            return False
        yield REMEMBER_KEY(value=self._box.sealing_key)
        if user is not None:
            yield from describe(user)
        return True


def _refuse(grant: Grant, way: str, ends_after: int) -> Plan[bool]:
    yield _LOCK_USER(id=grant.user_id)
    used = grant.refresh_token.stored_form
    if not (yield _REFUSE(user_id=grant.user_id, used=used, refused=REFUSED, ends_after=ends_after)):
        return False
    yield _END_SESSIONS(user_id=grant.user_id, way=way)
    return True


def _lose(grant: Grant, now: int, entry: AuditEntry) -> Plan[bool]:
    yield _LOCK_USER(id=grant.user_id)
    if not (yield _FORGET(user_id=grant.user_id, used=grant.refresh_token.stored_form)):
        return False
    return (yield from suspend_user(grant.user_id, "provider", now, entry))


def _forget(grant: Grant, way: str) -> Plan[None]:
    yield _LOCK_USER(id=grant.user_id)
    if (yield _FORGET(user_id=grant.user_id, used=grant.refresh_token.stored_form)):
        yield _END_SESSIONS(user_id=grant.user_id, way=way)


async def reseal_grants(database: Database, box: SecretBox) -> None:
    """Re-encrypts refresh tokens with the first key. Users of unreadable ones sign in again within a day."""
    after = ""
    while rows := await database.fetch(_ALL(after=after)):
        kept = [(user_id, box.kept(sealed)) for user_id, sealed in rows]
        await database.write(lambda kept=kept: _reseal(kept, box))
        after = rows[-1][0]


def _reseal(kept: list[tuple[str, Secret]], box: SecretBox) -> Plan[None]:
    for user_id, token in kept:
        yield _RESEAL(user_id=user_id, used=token.stored_form, refresh_token=box.seal(token))
