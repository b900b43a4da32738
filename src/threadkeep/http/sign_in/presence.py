"""Who is signed in, now and for as long as a stream or a socket is open.

A token expires, a session ends, and a user can be deleted or suspended: requests are refused at once, what is
open ends within a minute. An API key counts before anything else is asked, a session only where nothing else
signs in; what either has open ends within 5 seconds after its end.
"""

import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from starlette.requests import HTTPConnection

from threadkeep.clock import Clock, system_clock
from threadkeep.domain.errors import Forbidden, StorageError, Unauthenticated
from threadkeep.domain.sign_in.acting import USER_HEADER, check_unnamed
from threadkeep.domain.sign_in.public_url import PublicUrl
from threadkeep.domain.user import User
from threadkeep.handling.services import Services
from threadkeep.http.sign_in.bearer import has_run_token, key_value
from threadkeep.http.sign_in.method import SignInMethod
from threadkeep.http.sign_in.session_cookie import SessionCookie
from threadkeep.ports.sign_in import Check, SignIn

log = logging.getLogger("threadkeep.http")


class Presence(SignIn[HTTPConnection]):
    """A sign-in that remembers deletions: a token issued before its user was deleted is refused.

    With a `public_url`, browsers can sign in with sessions there, too.
    """

    def __init__(
        self,
        method: SignInMethod,
        services: Callable[[], Awaitable[Services]],
        clock: Clock = system_clock,
        *,
        public_url: PublicUrl | None = None,
    ) -> None:
        self._method = method
        self._services = services
        self._clock = clock
        self._public_url = public_url

    async def user(self, connection: HTTPConnection, /) -> User:
        """The signed-in user; raises Unauthenticated if there is none, or they were deleted or suspended."""
        if has_run_token(connection):
            raise Unauthenticated("The token of a run opens only /api/runs/v1/chat/completions.")
        if (value := key_value(connection)) is not None:
            services = await self._services()
            user = await services.keys.sign_in(value, connection.headers.getlist(USER_HEADER))
            if user.is_acted_for:
                await services.users.admit(user)
            return user
        check_unnamed(connection.headers.getlist(USER_HEADER))
        if (token := await self._session_token(connection)) is not None:
            services = await self._services()
            user = await services.sessions.sign_in(token)
            with suppress(StorageError):
                await services.keys.follow_role(user)
            return user
        user = await self._method.user(connection)
        with suppress(StorageError):  # the request itself reports the outage
            services = await self._services()
            await services.users.check_present(user)
            await services.keys.follow_role(user)
        return user

    def checking(self, connection: Callable[[], HTTPConnection], user_id: str) -> Check:
        """What checks, as often as it is called, that a user who is present now still is."""
        since = self._clock()

        async def check() -> None:
            try:
                if await self._present_id(connection(), since) != user_id:
                    raise Unauthenticated("Another user has signed in.")
            except (Unauthenticated, Forbidden):
                raise
            except Exception:
                # Neither an outage nor a host's mistake signs anybody out: it is checked again soon.
                log.warning("couldn't check whether a user is still signed in", exc_info=True)

        return check

    async def _present_id(self, connection: HTTPConnection, since: int) -> str:
        services = await self._services()
        if (value := key_value(connection)) is not None:  # a deleted user has none
            user = await services.keys.find_user(value, connection.headers.getlist(USER_HEADER))
            if user.is_acted_for:
                await services.users.check_present(user, present_since=since)
            return user.id
        if (token := await self._session_token(connection)) is not None:  # neither has one
            return (await services.sessions.find(token)).user.id
        user = await self._method.user(connection)
        await services.users.check_present(user, present_since=since)
        return user.id

    async def _session_token(self, connection: HTTPConnection) -> str | None:
        if self._public_url is None or "cookie" not in connection.headers:
            return None
        services = await self._services()
        return SessionCookie(self._public_url, services.store.installation).token_in(connection)
