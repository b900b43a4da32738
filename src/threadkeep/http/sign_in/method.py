"""What every way to sign in has in common."""

from typing import Protocol

from starlette.requests import HTTPConnection

from threadkeep.domain.errors import InvalidRequest, Unauthenticated
from threadkeep.domain.user import User, UserRole, user_id


class SignInMethod(Protocol):
    """A way to identify the sender of a request."""

    async def user(self, request: HTTPConnection) -> User:
        """The signed-in user; raises Unauthenticated if there is none."""
        ...

    async def close(self) -> None:
        """Releases resources; most have none."""


def checked_user(name: str, role: UserRole) -> User:
    """A user with a valid id."""
    try:
        return User(user_id(name), role)
    except InvalidRequest as exc:
        raise Unauthenticated(f"The signed-in user's id is invalid: {exc.message}") from None
