"""API keys: a program signs in with one as its user, within the key's scopes and agents."""

import hashlib
import re
import secrets
from dataclasses import dataclass, replace

from threadkeep.domain.choice import Choice
from threadkeep.domain.errors import Forbidden, InvalidRequest, Unauthenticated
from threadkeep.domain.ids import AgentId, KeyId, UserId
from threadkeep.domain.text import check_line

MARK = "tk_"
"""What every key begins with; nothing else that signs in does."""
RANDOM_BYTES = 32
SHOWN_CHARACTERS = 8
"""How many random characters of a key its owner sees again: enough to tell keys apart."""

MOST_NAME_CHARACTERS = 100
MOST_KEYS = 100
"""Of one user."""
MOST_AGENTS = 100
"""That a key can name."""
DAY_MS = 24 * 60 * 60 * 1000
MOST_ADMIN_DAYS = 90
"""A key with the scope `admin` expires after this time, or earlier."""

_VALUE = re.compile(r"tk_[A-Za-z0-9_-]{43}")


class Scope(Choice):
    """What a key is for; each includes those before it."""

    READ = "read"
    """To read everything that its user can read."""
    CHAT = "chat"
    """To hold conversations as well: to send messages and files, and to decide on requests."""
    ADMIN = "admin"
    """To do everything that its user may do."""

    def includes(self, other: "Scope") -> bool:
        """Whether who has this scope may do what needs the other."""
        order = list(Scope)
        return order.index(self) >= order.index(other)


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key without its value, which is shown once and not stored."""

    id: KeyId
    user_id: UserId
    name: str
    prefix: str
    """How its value begins, to tell keys apart."""
    scopes: tuple[Scope, ...]
    agents: frozenset[AgentId] | None
    """The agents that it is limited to; None for all."""
    is_admin: bool
    """Whether its user was an admin when it was made, and hasn't signed in without that role since."""
    may_run_programs: bool
    """Whether its user could save servers that run programs when it was made."""
    budget_month: int | None
    """What it can spend in a calendar month, in trillionths of the currency's unit."""
    created_at: int
    expires_at: int | None
    last_used_at: int | None = None
    """Not later than the last use, and at most a minute before it."""
    parent_id: KeyId | None = None
    """The key that made it, with which it goes; None if a person did."""
    payer_id: KeyId | None = None
    """The key further up whose budget it spends; None if it has its own, or none."""
    act_as: str | None = None
    """The realm of the application's users that it acts for, empty for any user; None for its own user."""
    may_delete: bool = False
    """Whether it may delete the users that it acts for."""

    @property
    def acts(self) -> bool:
        """Whether it acts for an application's users."""
        return self.act_as is not None

    @property
    def paid_by(self) -> KeyId:
        """The key that its model calls count for."""
        return self.payer_id or self.id

    def limited(self, draft: "KeyDraft") -> "KeyDraft":
        """What another key can be that this one makes: at most its scopes, agents, budget and expiry."""
        for scope in draft.scopes:
            self.check_scope(scope)
        if self.budget_month and draft.budget_month:
            raise InvalidRequest(
                "The API key that makes this one has a budget, which both share. Leave `budgetMonth` out.",
                param="budgetMonth",
            )
        if self.expires_at is not None and (draft.expires_at or 0) > self.expires_at:
            raise InvalidRequest(
                "`expiresAt` can't be later than the `expiresAt` of the API key that makes this one.",
                param="expiresAt",
            )
        return replace(
            draft,
            agents=self.agents if draft.agents is None else draft.agents,
            budget_month=self.budget_month or draft.budget_month,
            expires_at=draft.expires_at or self.expires_at,
        )

    def check_valid(self, now: int) -> None:
        """Refuses a key that has expired, and one that acts for others by the word of a former admin."""
        if self.expires_at is not None and now >= self.expires_at:
            raise Unauthenticated("This API key has expired. Make a new one.")
        if self.acts and not self.is_admin:
            raise Unauthenticated(
                "The user who made this API key is no longer an admin, so it acts for nobody. Ask an admin "
                "for a new one."
            )

    def check_scope(self, needed: Scope) -> None:
        """Refuses what its scopes don't cover."""
        if not any(scope.includes(needed) for scope in self.scopes):
            raise Forbidden(
                f"This needs an API key with the scope `{needed}`.", details={"scope": needed.value}
            )

    def check_not_limited(self) -> None:
        """Refuses what concerns more than some agents."""
        if self.agents is not None:
            raise Forbidden(
                "This API key is limited to some agents, so it can't do this. Use a key for all agents."
            )


@dataclass(frozen=True, slots=True)
class KeyDraft:
    """A user's input for a new key."""

    name: str
    scopes: tuple[Scope, ...]
    agents: frozenset[AgentId] | None = None
    budget_month: int | None = None
    expires_at: int | None = None
    act_as: str | None = None
    may_delete: bool = False

    def __post_init__(self) -> None:
        check_line(self.name, "name", most=MOST_NAME_CHARACTERS)
        self._check_acting()
        if self.agents is not None and not 1 <= len(self.agents) <= MOST_AGENTS:
            raise InvalidRequest(
                f"Name 1 to {MOST_AGENTS} agents, or leave `agents` out for all.", param="agents"
            )

    def _check_acting(self) -> None:
        if self.act_as is not None and Scope.ADMIN in self.scopes:
            raise InvalidRequest(
                "A key that acts for an application's users has the scope `read` or `chat`.", param="scopes"
            )
        if self.may_delete and self.act_as is None:
            raise InvalidRequest(
                "`mayDelete` is for keys that act for an application's users: name their realm in `actAs`.",
                param="mayDelete",
            )
        if self.may_delete and self.agents is not None:
            raise InvalidRequest(
                "Deleting a user concerns more than some agents. Leave `agents` or `mayDelete` out.",
                param="mayDelete",
            )

    def expiry(self, now: int) -> int | None:
        """When the key expires if it is made now; refuses what is past or too late."""
        if self.expires_at is not None and self.expires_at <= now:
            raise InvalidRequest("`expiresAt` must be in the future.", param="expiresAt")
        if Scope.ADMIN not in self.scopes:
            return self.expires_at
        latest = now + MOST_ADMIN_DAYS * DAY_MS
        if self.expires_at is not None and self.expires_at > latest:
            raise InvalidRequest(
                f"A key with the scope `admin` must expire within {MOST_ADMIN_DAYS} days.", param="expiresAt"
            )
        return self.expires_at or latest


def new_key_value() -> str:
    """A new key's value: 256 random bits."""
    return f"{MARK}{secrets.token_urlsafe(RANDOM_BYTES)}"


def is_key_value(credential: str) -> bool:
    """Whether a credential claims to be a key."""
    return credential.startswith(MARK)


def prefix_of(value: str) -> str:
    """What is shown of a key after it was made."""
    return value[: len(MARK) + SHOWN_CHARACTERS]


def hash_of(value: str) -> str:
    """What is stored of a key; Unauthenticated if the value can't be one.

    A plain hash is enough: nobody can guess 256 random bits, however fast it is.
    """
    if not _VALUE.fullmatch(value):
        raise Unauthenticated("This isn't a valid API key.")
    return hashlib.sha256(value.encode()).hexdigest()
