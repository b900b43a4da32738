"""Sign-in: who is at the other end of a connection, and whether they still may be."""

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from threadkeep.domain.user import User

CHECK_EVERY_S = 15.0
"""How often an open stream or socket checks its user. With the leeway that expired tokens have, it ends
within a minute."""
CHECK_KEY_EVERY_S = 2.0
"""The same for one whose user has signed in with an API key or a session, which can end at any moment."""

Check = Callable[[], Awaitable[None]]
"""Raises Unauthenticated or Forbidden once its user may no longer be served."""


def check_every_s(user: User) -> float:
    """The seconds between two checks of a user's open stream or socket."""
    return CHECK_EVERY_S if user.key is None and user.session_id is None else CHECK_KEY_EVERY_S


ConnectionT_contra = TypeVar("ConnectionT_contra", contravariant=True)


class SignIn(Protocol[ConnectionT_contra]):
    """Identifies users by their connections, which are the web framework's: a request or a web socket."""

    async def user(self, connection: ConnectionT_contra, /) -> User:
        """The signed-in user; raises Unauthenticated if there is none, or they were deleted."""
        ...

    def checking(self, connection: Callable[[], ConnectionT_contra], user_id: str) -> Check:
        """What checks, as often as it is called, that a user who is signed in now still is."""
        ...
