"""Sessions: people sign in with a browser, see where they are signed in, and sign out."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from threadkeep.clock import Clock, monotonic
from threadkeep.domain.errors import SessionNotFound, StorageError
from threadkeep.domain.ids import SessionId, UserId, is_uuid, new_uuid
from threadkeep.domain.sign_in.session import (
    LONGEST_MS,
    FoundSession,
    Session,
    SessionStarted,
    SignedIn,
    device_of,
    new_token,
    required_hash,
    session_ended,
    user_suspended,
)
from threadkeep.domain.user import User
from threadkeep.services.keys import KNOWN_FOR_S, remember
from threadkeep.storage.store import Store

USE_NOTED_EVERY_MS = 5 * 60 * 1000
CURRENT = "current"
"""Instead of an id: the session of the request."""


class Sessions:
    """The use cases of sessions."""

    def __init__(self, store: Store, clock: Clock, monotonic: Callable[[], float] = monotonic) -> None:
        self._store = store
        self._clock = clock
        self._monotonic = monotonic
        self._known: OrderedDict[str, tuple[FoundSession, float]] = OrderedDict()
        """Sessions by their hashes, and until when they count. That is short, so that a session which another
        node ends also ends its streams within 5 seconds."""

    async def start(
        self, user: SignedIn, way: str, device: str, now: int, *, ends_at: int | None = None
    ) -> SessionStarted:
        """Signs a user in: they become known by the name, the role and the groups that their sign-in gives.

        A sign-in with a provider lifts a suspension, except an admin's; Forbidden if they stay suspended.
        """
        session, token = new_session(user.id, way, device, now, ends_at=ends_at)
        await self._store.sessions.start(session, required_hash(token), user)
        self.forget_user(user.id)
        return SessionStarted(session, token)

    async def sign_in(self, token: str) -> User:
        """The user whom a session signs in; Unauthenticated if it is unknown or has ended."""
        found = await self.find(token)
        now = self._clock()
        if now - found.session.last_used_at >= USE_NOTED_EVERY_MS:
            with suppress(StorageError):  # the request itself reports the outage
                await self._store.sessions.note_use(found.session.id, now)
            used = FoundSession(replace(found.session, last_used_at=now), found.user)
            token_hash = required_hash(token)
            if (known := self._known.get(token_hash)) is not None:
                self._known[token_hash] = used, known[1]
        return found.user

    async def find(self, token: str) -> FoundSession:
        """The session with a token; Unauthenticated if there is none, or its user is suspended.

        That isn't a use of it.
        """
        token_hash = required_hash(token)
        found, until = self._known.get(token_hash, (None, 0.0))
        if found is None or self._monotonic() >= until:
            self._known.pop(token_hash, None)
            asked_at = self._monotonic()
            if (found := await self._store.sessions.find(token_hash)) is None:
                raise session_ended()
            remember(self._known, token_hash, (found, asked_at + KNOWN_FOR_S))
        if self._clock() >= found.session.valid_until:
            raise session_ended()
        if found.suspended_by is not None:
            raise user_suspended(found.suspended_by)
        return found

    async def list(self, user: User) -> Sequence[Session]:
        """The user's sessions, the last used first."""
        return await self._store.sessions.of_user(user.id, self._clock())

    async def end(self, user: User, session_id: str) -> None:
        """Ends one of the user's sessions. What it has open ends within seconds, on every node."""
        wanted = user.session_id if session_id == CURRENT else session_id.lower()
        if (
            wanted is None
            or not is_uuid(wanted)
            or not await self._store.sessions.end(user.id, SessionId(wanted))
        ):
            raise SessionNotFound
        self.forget_user(user.id)

    async def end_all(self, user: User) -> None:
        """Signs the user out everywhere."""
        await self._store.sessions.end_all(user.id)
        self.forget_user(user.id)

    def forget_user(self, user_id: UserId) -> None:
        """Reads the user's sessions again before they sign in."""
        for it in [it for it, (found, _) in self._known.items() if found.session.user_id == user_id]:
            del self._known[it]

    async def sweep(self) -> None:
        """Deletes sessions that have ended."""
        await self._store.sessions.sweep(self._clock())


def new_session(
    user_id: UserId, way: str, device: str, now: int, *, ends_at: int | None = None
) -> tuple[Session, str]:
    """A session that isn't stored yet, and its token."""
    latest = now + LONGEST_MS
    session = Session(
        id=SessionId(new_uuid()),
        user_id=user_id,
        way=way,
        device=device_of(device),
        created_at=now,
        last_used_at=now,
        ends_at=latest if ends_at is None else min(ends_at, latest),
    )
    return session, new_token()
