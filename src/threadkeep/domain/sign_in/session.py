"""Sessions: a person's sign-in in one browser, and the invitations that begin some of them."""

import hashlib
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from typing import Literal

from threadkeep.domain.errors import InvalidRequest, Unauthenticated
from threadkeep.domain.ids import InvitationId, SessionId, UserId
from threadkeep.domain.sign_in.public_url import PublicUrl
from threadkeep.domain.text import check_line
from threadkeep.domain.user import User, UserRole, user_id

RANDOM_BYTES = 32
DAY_MS = 24 * 60 * 60 * 1000
UNUSED_MS = 30 * DAY_MS
"""A session ends this long after its last use."""
LONGEST_MS = 180 * DAY_MS
"""And this long after its sign-in, however much it is used."""
MOST_DEVICE_CHARACTERS = 200

INVITATION = "invitation"
"""The way of a session that an invitation began."""
INVITED = "invited:"
"""What the id of an invited user begins with."""
INVITATION_S = 24 * 60 * 60
"""How long an invitation is valid by default."""
MOST_INVITATION_S = 30 * 24 * 60 * 60
OWN_LINK_S = 10 * 60
"""How long somebody who came by invitation can use a link for another browser of theirs."""
MOST_OWN_LINKS = 10
"""In an hour."""

SuspendedBy = Literal["admin", "provider"]
"""Who keeps a user out: an admin, until one lifts it, or the provider, until they sign in with it again."""

_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A person's sign-in in one browser, without its token, which only that browser has."""

    id: SessionId
    user_id: UserId
    way: str
    """How they signed in: `invitation`, or `oidc:` and the provider's name."""
    device: str
    """What the browser calls itself."""
    created_at: int
    last_used_at: int
    """Accurate to some minutes."""
    ends_at: int
    """The latest moment at which it ends."""

    @property
    def valid_until(self) -> int:
        """When it ends if it isn't used until then."""
        return min(self.ends_at, self.last_used_at + UNUSED_MS)


@dataclass(frozen=True, slots=True)
class SessionStarted:
    """A new session, and its token, which nobody can read again."""

    session: Session
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedIn:
    """Whom a way to sign in has recognized, and what it says of them."""

    id: UserId
    role: UserRole
    name: str | None = None
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FoundSession:
    """A session, and its user as the last sign-in described them."""

    session: Session
    user: User
    suspended_by: SuspendedBy | None = None
    """If the user is suspended, the session counts for nothing but to say so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation:
    """A link that signs its receiver in, once. Its token is in the link alone."""

    id: InvitationId
    user_id: UserId
    role: UserRole
    invited_by: UserId | None
    """The admin who made it, or the user, for another browser; None for the operator."""
    created_at: int
    expires_at: int
    accepted_at: int | None = None

    @property
    def is_own(self) -> bool:
        """Whether its user made it in another browser: then it ends no session, and changes no role."""
        return self.invited_by == self.user_id


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownUser:
    """A user as admins see them: no content, and nothing that they do."""

    id: UserId
    name: str | None
    role: UserRole | None
    """That of the last sign-in with a session; None if there was none."""
    groups: Sequence[str]
    is_invited: bool
    suspended_at: int | None
    last_seen_at: int | None
    """The last use of a session or a key."""


@dataclass(frozen=True, slots=True)
class SignInWay:
    """A provider with which people sign in."""

    name: str
    title: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInRules:
    """How people sign in here."""

    public_url: PublicUrl | None = None
    """Where the page is; None if there are no sessions."""
    invitations: bool = False
    tokens: bool = False
    """Whether bearer tokens of the operator's issuer count."""
    ways: tuple[SignInWay, ...] = ()
    trusted_proxies: tuple[IPv4Network | IPv6Network, ...] = ()

    @property
    def signs_in(self) -> bool:
        """Whether people sign in at all: then nobody is `local`."""
        return self.tokens or self.public_url is not None


def new_token() -> str:
    """A new session's or invitation's token: 256 random bits."""
    return secrets.token_urlsafe(RANDOM_BYTES)


def token_hash(token: str) -> str | None:
    """What is stored of a token; None if the text can't be one.

    A plain hash is enough: nobody can guess 256 random bits, however fast it is.
    """
    return hashlib.sha256(token.encode()).hexdigest() if _TOKEN.fullmatch(token) else None


def required_hash(token: str) -> str:
    """The same; Unauthenticated if the text can't be a token."""
    if (hashed := token_hash(token)) is None:
        raise session_ended()
    return hashed


def session_ended() -> Unauthenticated:
    """Why a session doesn't count."""
    return Unauthenticated("This sign-in has ended. Sign in again.")


def user_suspended(by: SuspendedBy) -> Unauthenticated:
    """Why nothing signs a suspended user in."""
    message = (
        "This user is suspended. Ask an admin."
        if by == "admin"
        else "This user is suspended, because the sign-in provider no longer lets them in here. Sign in with "
        "the provider again; if that doesn't work, ask an admin."
    )
    return Unauthenticated(message, details={"suspendedBy": by})


def invited_id(name: str) -> UserId:
    """The id of a user who is invited by this name, or by that id."""
    bare = name.removeprefix(INVITED)
    check_line(bare, "user", most=100)
    if bare != bare.strip() or not bare.isprintable():
        raise InvalidRequest("A name can't begin or end with a space, or contain line breaks.", param="user")
    return user_id(f"{INVITED}{bare}")


def invited_name(invited: UserId) -> str:
    """What an invited user is called until something better is known."""
    return invited.removeprefix(INVITED)


def device_of(user_agent: str) -> str:
    """What is kept of what a browser calls itself."""
    shown = "".join(it for it in user_agent if it.isprintable())
    return shown[:MOST_DEVICE_CHARACTERS].strip() or "unknown"
