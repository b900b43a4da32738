"""Who is asking."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from threadkeep.domain.choice import Choice
from threadkeep.domain.errors import InvalidRequest, Unauthenticated
from threadkeep.domain.ids import AgentId, KeyId, SessionId, UserId
from threadkeep.domain.key import Key, Scope
from threadkeep.domain.text import check_storable, is_blank

MOST_USER_ID_CHARACTERS = 255
MOST_INSTRUCTION_CHARACTERS = 10_000

LOCAL = UserId("local")
"""Everybody's id if there is no sign-in."""


class UserRole(Choice):
    """`admin` manages agents and users; it does not open other people's conversations."""

    USER = "user"
    ADMIN = "admin"


def user_id(value: str, param: str = "user") -> UserId:
    """A user's id from the sign-in: any short text."""
    if is_blank(value) or len(value) > MOST_USER_ID_CHARACTERS:
        raise InvalidRequest(f"A user id must have 1 to {MOST_USER_ID_CHARACTERS} characters.", param=param)
    return UserId(check_storable(value, param))


def check_instructions(text: str) -> None:
    """Refuses what a user can't tell every agent."""
    if len(text) > MOST_INSTRUCTION_CHARACTERS:
        raise InvalidRequest(
            f"Your instructions can have at most {MOST_INSTRUCTION_CHARACTERS} characters.", param="text"
        )
    check_storable(text, "text")


@dataclass(frozen=True, slots=True)
class User:
    """A signed-in user."""

    id: UserId
    role: UserRole = UserRole.USER
    may_run_programs: bool = True
    """Whether they may save servers that run programs, if their role may; not everybody on a machine may."""
    token_issued_at: int | None = field(default=None, compare=False)
    """When the token that signs them in was issued; 0 if it doesn't say, None if there is none."""
    key: Key | None = None
    """The API key that signs them in; None for a person."""
    session_id: SessionId | None = field(default=None, compare=False)
    """The session that signs them in, in a browser."""
    name: str | None = field(default=None, compare=False)
    """What their sign-in calls them."""
    groups: tuple[str, ...] = field(default=(), compare=False)
    """The groups that their sign-in says they are in."""

    @property
    def is_admin(self) -> bool:
        """Whether this user manages agents and users."""
        return self.role is UserRole.ADMIN

    @property
    def is_acted_for(self) -> bool:
        """Whether an application's server asks for them, with a key of its own."""
        return self.key is not None and self.key.acts

    @property
    def key_id(self) -> KeyId | None:
        """The key that pays for what they do, if they have signed in with one: it, or one that shares its
        budget.
        """
        return self.key.paid_by if self.key else None

    @property
    def agents(self) -> frozenset[AgentId] | None:
        """The agents that their key is limited to; None for all."""
        return self.key.agents if self.key else None

    def may_use(self, agent_id: AgentId) -> bool:
        """Whether their key, if they have one, covers an agent and the conversations with it."""
        return self.agents is None or agent_id in self.agents


def user_of_key(key: Key) -> User:
    """The user that a key acts for: an admin only with the scope `admin`, and for all agents."""
    is_admin = key.is_admin and key.agents is None and Scope.ADMIN in key.scopes
    role = UserRole.ADMIN if is_admin else UserRole.USER
    return User(key.user_id, role, may_run_programs=key.may_run_programs, key=key)


def signed_in_user(name: str, role: UserRole) -> User:
    """The user with the name that a sign-in gave."""
    try:
        return User(user_id(name), role)
    except InvalidRequest as exc:
        raise Unauthenticated(f"The signed-in user's id is invalid: {exc.message}") from None


@dataclass(frozen=True, slots=True)
class Movable:
    """How much a user has that can be moved to another, or what was moved."""

    conversations: int
    agents: int
    briefings: int
    memories: int


@dataclass(frozen=True, slots=True)
class AdminClaim:
    """The token claim that makes its user an admin, and the value that it must have or contain."""

    name: str
    value: str

    @staticmethod
    def read(text: str) -> "AdminClaim | None":
        """A claim as operators write it, such as `role=admin`."""
        name, sign, value = text.rpartition("=")
        return AdminClaim(name.strip(), value.strip()) if sign and name.strip() and value.strip() else None

    def is_in(self, claims: Mapping[str, Any]) -> bool:
        """Whether a token's claims have it: as it is, as `true`, or as one of a list."""
        given = claim_in(claims, self.name)
        several = cast("list[Any]", given) if isinstance(given, list) else [given]
        return self.value in several or (self.value == "true" and any(it is True for it in several))


def claim_in(claims: Mapping[str, Any], name: str) -> Any:
    """A claim by its name, or within others; providers name roles like `realm_access.roles`."""
    if name in claims:
        return claims[name]
    value: Any = claims
    for part in name.split("."):
        value = cast("dict[str, Any]", value).get(part) if isinstance(value, dict) else None
    return value
