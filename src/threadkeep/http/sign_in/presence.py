"""Who is signed in, now and for as long as a stream or a socket is open.

A token expires, and a user can be deleted: requests are refused at once, what is open ends within a minute.
An API key counts before anything else is asked; what it has open ends within 5 seconds after its end.
"""

import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from starlette.requests import HTTPConnection

from threadkeep.clock import Clock, system_clock
from threadkeep.domain.errors import Forbidden, StorageError, Unauthenticated
from threadkeep.domain.user import User
from threadkeep.handling.services import Services
from threadkeep.http.sign_in.bearer import key_value
from threadkeep.http.sign_in.method import SignInMethod
from threadkeep.ports.sign_in import Check, SignIn

log = logging.getLogger("threadkeep.http")


class Presence(SignIn[HTTPConnection]):
    """A sign-in that remembers deletions: a token issued before its user was deleted is refused."""

    def __init__(
        self, method: SignInMethod, services: Callable[[], Awaitable[Services]], clock: Clock = system_clock
    ) -> None:
        self._method = method
        self._services = services
        self._clock = clock

    async def user(self, connection: HTTPConnection, /) -> User:
        """The signed-in user; raises Unauthenticated if there is none, or they were deleted."""
        if (value := key_value(connection)) is not None:
            return await (await self._services()).keys.sign_in(value)
        user = await self._method.user(connection)
        with suppress(StorageError):  # the request itself reports the outage
            services = await self._services()
            await services.users.check_not_deleted(user)
            await services.keys.follow_role(user)
        return user

    def checking(self, connection: Callable[[], HTTPConnection], user_id: str) -> Check:
        """What checks, as often as it is called, that a user who is present now still is."""
        since = self._clock()

        async def check() -> None:
            try:
                services, value = await self._services(), key_value(connection())
                if value is not None:  # a deleted user has none
                    present_id = (await services.keys.find(value)).user_id
                else:
                    user = await self._method.user(connection())
                    await services.users.check_not_deleted(user, present_since=since)
                    present_id = user.id
                if present_id != user_id:
                    raise Unauthenticated("Another user has signed in.")
            except (Unauthenticated, Forbidden):
                raise
            except Exception:
                # Neither an outage nor a host's mistake signs anybody out: it is checked again soon.
                log.warning("couldn't check whether a user is still signed in", exc_info=True)

        return check
