"""The sign-in of programs' runs: a token that opens one route, as long as the run lasts."""

from collections.abc import Awaitable, Callable

from starlette.requests import Request

from threadkeep.domain.user import User
from threadkeep.handling.services import Services
from threadkeep.http.sign_in.bearer import required_token
from threadkeep.ports.sign_in import Check


class RunSignIn:
    """Signs a run in as the user of its turn."""

    def __init__(self, services: Callable[[], Awaitable[Services]]) -> None:
        self._services = services

    async def user(self, request: Request) -> User:
        """The user of the turn whose run sends the request; the handler finds the run in its state."""
        run = request.state.run = await (await self._services()).run_replies.run(required_token(request))
        return User(run.user_id)

    def checking(self, request: Request, user: User) -> Check:
        """What checks, as often as it is called, that the run still lasts."""

        async def check() -> None:
            await self.user(request)

        return check
