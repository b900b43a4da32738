"""What a sign-in provider says of a person, and who of them may come in as what."""

from dataclasses import dataclass
from typing import Literal

from threadkeep.domain.errors import InvalidRequest
from threadkeep.domain.ids import UserId
from threadkeep.domain.secret import Secret
from threadkeep.domain.sign_in.session import DAY_MS, INVITED, SignedIn
from threadkeep.domain.user import LOCAL, UserRole, user_id

ATTEMPT_MS = 10 * 60 * 1000
"""How long a person has at the provider."""
MOST_NEXT_CHARACTERS = 2000
PROVIDER = "oidc:"
"""What the way of a session begins with that a provider began."""
REFRESHED_EVERY_MS = DAY_MS // 2
MOST_UNREFRESHED_MS = DAY_MS - 60 * 60 * 1000
"""If its provider hasn't confirmed its user for so long, a session ends; and the user is suspended if it has
refused to meanwhile. A day, with the hour of the job."""
MOST_GROUPS = 200
"""So many of a person's groups are kept. Who may come in is decided by all of them."""
MOST_GROUP_CHARACTERS = 200
MOST_NAME_CHARACTERS = 200

Problem = Literal[
    "expired",
    "other_provider",
    "denied",
    "unreachable",
    "invalid",
    "not_allowed",
    "no_email",
    "suspended",
    "too_many",
]


class SignInProblem(Exception):
    """Why a sign-in with a provider didn't work, by the name that the page explains.

    The detail is for the operator: it quotes nothing that a provider or a browser has sent.
    """

    def __init__(self, problem: Problem, detail: str | None = None) -> None:
        super().__init__(problem)
        self.problem: Problem = problem
        self.detail = detail


class Unconfirmed(SignInProblem):
    """A provider has taken a refresh token, but who its user is now couldn't be learned, or wasn't credible.

    It may have replaced the token: the old one then counts no more.
    """

    def __init__(self, reason: SignInProblem, refresh_token: Secret | None) -> None:
        super().__init__(reason.problem, reason.detail)
        self.refresh_token = refresh_token


class GrantRefused(Exception):
    """The provider no longer gives anything for a refresh token.

    It may no longer know its user. Or the token was replaced, and the answer with the new one was lost on its
    way; or it has ended.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A sign-in that has begun in a browser, and what its answer must fit."""

    provider: str
    browser_hash: str
    """Of the cookie that the browser got before."""
    verifier: str
    nonce: str
    next: str
    expires_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderAnswer:
    """What a browser brings back from a provider."""

    state: str
    code: str | None
    issuer: str | None
    error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A person as a provider describes them, verified."""

    subject: str
    name: str | None
    email: str | None
    """Only a verified address."""
    hosted_domain: str | None
    """The organization whose account it is, where the provider is Google."""
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Identified:
    """What a provider answers: who it is, if it says so, and with what to ask again later."""

    identity: Identity | None
    refresh_token: Secret | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """Which people of a provider may come in, and as what."""

    provider: str
    admin_group: str | None = None
    allowed_groups: frozenset[str] = frozenset()
    allowed_domains: frozenset[str] = frozenset()
    by_hosted_domain: bool = False
    """Whether the domain is that of Google's `hd`: there, a verified address alone proves no membership."""
    legacy_ids: bool = False
    """Whether a user's id is the provider's alone, as it was with bearer tokens."""
    other_providers: tuple[str, ...] = ()

    @property
    def way(self) -> str:
        """What sessions say about how they began."""
        return f"{PROVIDER}{self.provider}"

    def admit(self, identity: Identity) -> SignedIn:
        """The user that a person becomes; SignInProblem if they may not come in."""
        if self.allowed_groups and self.allowed_groups.isdisjoint(identity.groups):
            raise SignInProblem("not_allowed")
        if self.allowed_domains:
            self._check_domain(identity)
        is_admin = self.admin_group is not None and self.admin_group in identity.groups
        return SignedIn(
            id=self._id(identity.subject),
            role=UserRole.ADMIN if is_admin else UserRole.USER,
            name=identity.name,
            groups=self._kept(identity.groups),
        )

    def subject_of(self, user_id: UserId) -> str:
        """What the provider calls one of its users."""
        return user_id if self.legacy_ids else user_id.removeprefix(f"{self.provider}|")

    def _check_domain(self, identity: Identity) -> None:
        if self.by_hosted_domain:
            domain = identity.hosted_domain
        elif identity.email is None:
            raise SignInProblem("no_email")
        else:
            domain = identity.email.rpartition("@")[2]
        if domain is None or domain.lower() not in self.allowed_domains:
            raise SignInProblem("not_allowed")

    def _id(self, subject: str) -> UserId:
        if self.legacy_ids:
            # Ids that mean somebody else here; no provider gives them by accident.
            others = (INVITED, *(f"{name}|" for name in (self.provider, *self.other_providers)))
            if subject == LOCAL or subject.startswith(others):
                raise SignInProblem("invalid")
        try:
            if not subject:
                raise SignInProblem("invalid")
            return user_id(subject if self.legacy_ids else f"{self.provider}|{subject}")
        except InvalidRequest:
            raise SignInProblem("invalid") from None

    def _kept(self, groups: tuple[str, ...]) -> tuple[str, ...]:
        """Those that decide here come first."""
        ours = self.allowed_groups | {self.admin_group}
        fitting = [
            it for it in dict.fromkeys(groups) if it.isprintable() and len(it) <= MOST_GROUP_CHARACTERS
        ]
        return tuple(sorted(fitting, key=lambda it: (it not in ours, it))[:MOST_GROUPS])


def own_path(next_: str | None) -> str:
    """Where a sign-in goes on: a path of our page, whatever a link says."""
    if (
        next_ is None
        or len(next_) > MOST_NEXT_CHARACTERS
        or not next_.startswith("/")
        or next_.startswith(("//", "/\\"))
        or not (next_.isascii() and next_.isprintable())
    ):
        return "/"
    return next_
