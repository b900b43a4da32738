"""Signing in with a provider: a sign-in begins, comes back, and is confirmed again every day."""

import hmac
import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from threadkeep.clock import Clock
from threadkeep.domain.agent import AuditEntry
from threadkeep.domain.errors import Forbidden, SecretUnreadable, Unauthenticated, UserNotFound
from threadkeep.domain.ids import new_uuid
from threadkeep.domain.secret import Secret
from threadkeep.domain.sign_in.identity import (
    ATTEMPT_MS,
    MOST_UNREFRESHED_MS,
    REFRESHED_EVERY_MS,
    Attempt,
    GrantRefused,
    ProviderAnswer,
    SignInProblem,
    Unconfirmed,
    own_path,
)
from threadkeep.domain.sign_in.session import (
    SessionStarted,
    new_token,
    required_hash,
    token_hash,
)
from threadkeep.domain.user import LOCAL, User
from threadkeep.ports.identity_providers import IdentityProvider
from threadkeep.services.keys import Keys
from threadkeep.services.sign_in.known_users import KnownUsers
from threadkeep.services.sign_in.sessions import Sessions, new_session
from threadkeep.storage.sign_in.grants import Grant
from threadkeep.storage.store import Store

log = logging.getLogger("threadkeep.sign_in")

CLAIMED_MS = 15 * 60 * 1000
"""How long a node has a grant for itself; another attempt after a failure comes later than that."""
MOST_FAILURES = 3
"""After so many, a provider is left alone until the next hour."""


@dataclass(frozen=True, slots=True)
class Begun:
    """A sign-in that has begun: where the browser goes, and what it keeps."""

    url: str
    browser: str


@dataclass(frozen=True, slots=True)
class Finished:
    """A sign-in that has come back: the session, and where the browser goes on."""

    started: SessionStarted
    next: str


class ProviderSignIns:
    """The use cases of sign-ins with providers. SignInProblem says why one didn't work."""

    def __init__(
        self,
        store: Store,
        sessions: Sessions,
        known_users: KnownUsers,
        keys: Keys,
        providers: Mapping[str, IdentityProvider],
        clock: Clock,
    ) -> None:
        self._store = store
        self._sessions = sessions
        self._known_users = known_users
        self._keys = keys
        self._providers = providers
        self._clock = clock

    def knows(self, name: str) -> bool:
        """Whether there is a provider of this name."""
        return name in self._providers

    async def begin(self, name: str, next_: str | None, browser: str | None) -> Begun:
        """Begins a sign-in in a browser, which `browser` marks if it has begun another one before."""
        state, verifier, nonce = new_token(), new_token(), new_token()
        url = await self._providers[name].sign_in_url(state=state, verifier=verifier, nonce=nonce)
        if browser is None or token_hash(browser) is None:
            browser = new_token()
        attempt = Attempt(
            provider=name,
            browser_hash=required_hash(browser),
            verifier=verifier,
            nonce=nonce,
            next=own_path(next_),
            expires_at=self._clock() + ATTEMPT_MS,
        )
        await self._store.sign_in_attempts.add(required_hash(state), attempt)
        return Begun(url, browser)

    async def finish(
        self, name: str, answer: ProviderAnswer, *, browser: str | None, device: str, replaced: str | None
    ) -> Finished:
        """Signs in whom a provider names. `replaced` is the browser's earlier session, which ends."""
        attempt = await self._take(answer.state, browser)
        if attempt.provider != name:
            raise SignInProblem("other_provider")
        provider, now = self._providers[name], self._clock()
        identified = await provider.identify(answer, verifier=attempt.verifier, nonce=attempt.nonce)
        if identified.identity is None:
            raise SignInProblem("invalid")
        user = provider.admission.admit(identified.identity)
        session, token = new_session(user.id, provider.admission.way, device, now)
        try:
            session = await self._store.grants.start(
                session,
                required_hash(token),
                user,
                name,
                self._kept(identified.refresh_token),
                due_at=now + REFRESHED_EVERY_MS,
            )
        except (Forbidden, Unauthenticated):
            raise SignInProblem("suspended") from None
        self._sessions.forget_user(user.id)
        self._keys.forget_user(user.id)
        if replaced is not None:
            await self._end(replaced)
        return Finished(SessionStarted(session, token), attempt.next)

    async def refresh_due(self) -> None:
        """Asks the providers about users whom they haven't confirmed for half a day."""
        for name, provider in self._providers.items():
            failures = 0
            while failures < MOST_FAILURES:
                now = self._clock()
                grant = await self._store.grants.take_due(name, now, again_at=now + CLAIMED_MS)
                if grant is None:
                    break
                try:
                    await self._refresh(provider, grant)
                except SignInProblem as exc:
                    log.warning("couldn't ask the sign-in provider %s about a user: %s", name, exc.detail)
                    failures += MOST_FAILURES if exc.problem == "unreachable" else 1
            while refused := await self._store.grants.refused_for_long(name, self._clock()):
                for grant in refused:
                    await self._keep_out(provider, grant)
        await self._store.grants.end_unchecked(self._clock() - MOST_UNREFRESHED_MS)

    async def sweep(self) -> None:
        """Forgets sign-ins that never came back."""
        await self._store.sign_in_attempts.sweep(self._clock())

    async def _take(self, state: str, browser: str | None) -> Attempt:
        """The attempt that an answer belongs to. Whatever comes of it, it is used up."""
        state_hash, browser_hash = token_hash(state), token_hash(browser or "")
        attempt = await self._store.sign_in_attempts.take(state_hash) if state_hash else None
        if (
            attempt is None
            or browser_hash is None
            or not hmac.compare_digest(attempt.browser_hash, browser_hash)
            or attempt.expires_at <= self._clock()
        ):
            raise SignInProblem("expired")
        return attempt

    def _kept(self, token: Secret | None) -> Secret | None:
        """A refresh token, if it can be kept safely. Without one, the session ends after a day."""
        if token is not None and not self._store.grants.can_keep:
            log.warning("without THREADKEEP_SECRET_KEY, people have to sign in with their provider every day")
            return None
        return token

    async def _end(self, token: str) -> None:
        with suppress(Unauthenticated):
            found = await self._sessions.find(token)
            await self._store.sessions.end(found.user.id, found.session.id)
            self._sessions.forget_user(found.user.id)

    async def _refresh(self, provider: IdentityProvider, grant: Grant) -> None:
        """Asks about one user. If the answer is lost, or the node stops before it is stored, the old token is
        tried again: a provider that has replaced it refuses.
        """
        admission, user = provider.admission, None
        try:
            identified = await provider.refresh(grant.refresh_token, admission.subject_of(grant.user_id))
            if identified.identity is not None:
                user = admission.admit(identified.identity)
        except SecretUnreadable:
            await self._store.grants.forget(grant, admission.way)
            return
        except GrantRefused:
            if await self._store.grants.refuse(grant, admission.way, ends_after=MOST_UNREFRESHED_MS):
                log.info("the sign-in provider %s refused to confirm a user", admission.provider)
                self._sessions.forget_user(grant.user_id)
            return
        except Unconfirmed as exc:
            if exc.refresh_token is not None:
                await self._store.grants.replace(grant, exc.refresh_token)
            raise
        except SignInProblem as exc:
            if exc.problem not in {"not_allowed", "no_email"}:
                raise
            await self._keep_out(provider, grant)
            return
        now = self._clock()
        if await self._store.grants.renew(
            grant, user, identified.refresh_token, now, due_at=now + REFRESHED_EVERY_MS
        ):
            self._sessions.forget_user(grant.user_id)
            if user is not None:
                await self._keys.follow_role(User(user.id, user.role))

    async def _keep_out(self, provider: IdentityProvider, grant: Grant) -> None:
        now = self._clock()
        details = {"userId": grant.user_id, "provider": provider.admission.provider}
        entry = AuditEntry(new_uuid(), now, LOCAL, "suspend_user", None, details)
        with suppress(UserNotFound):
            if await self._store.grants.lose(grant, now, entry):
                await self._known_users.end_all_of(grant.user_id)
