"""What every way to sign in has in common."""

from typing import Protocol

from starlette.requests import HTTPConnection

from threadkeep.domain.user import User


class SignInMethod(Protocol):
    """A way to identify the sender of a request."""

    async def user(self, request: HTTPConnection) -> User:
        """The signed-in user; raises Unauthenticated if there is none."""
        ...

    async def close(self) -> None:
        """Releases resources; most have none."""
