"""Who is asking."""

from dataclasses import dataclass

from threadkeep.domain.choice import Choice
from threadkeep.domain.errors import InvalidRequest
from threadkeep.domain.ids import UserId
from threadkeep.domain.text import check_storable, is_blank

MOST_USER_ID_CHARACTERS = 255

LOCAL = UserId("local")
"""Who everybody is where nobody signs in."""


class UserRole(Choice):
    """`admin` manages agents and users; it does not open other people's conversations."""

    USER = "user"
    ADMIN = "admin"


def user_id(value: str, param: str = "user") -> UserId:
    """A user's id as the sign-in gives it: any short text."""
    if is_blank(value) or len(value) > MOST_USER_ID_CHARACTERS:
        raise InvalidRequest(f"A user id has 1 to {MOST_USER_ID_CHARACTERS} characters.", param=param)
    return UserId(check_storable(value, param))


@dataclass(frozen=True, slots=True)
class User:
    """A signed-in user."""

    id: UserId
    role: UserRole = UserRole.USER
    may_run_programs: bool = True
    """Whether they are let near what runs a program here, if their role is; not everybody on a machine is."""

    @property
    def is_admin(self) -> bool:
        """Whether this user manages agents and users."""
        return self.role is UserRole.ADMIN
