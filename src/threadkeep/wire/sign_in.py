"""Sign-in, sessions, invitations and users as clients see them."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from threadkeep.domain.ids import SessionId
from threadkeep.domain.sign_in.session import Invitation, KnownUser, Session, SignInRules, invited_name
from threadkeep.domain.user import UserRole
from threadkeep.wire.view import CreatedAt, OwnId, Time, View, rfc3339


class SignInWayView(View, frozen=True, kw_only=True):
    """A provider with which people sign in."""

    name: Annotated[str, Meta(description="What the settings call the provider.")]
    title: Annotated[str, Meta(description="What a page shows for it.")]
    url: Annotated[str, Meta(description="Where a browser goes to sign in; `?next=` is where it comes back.")]


class SignInView(View, frozen=True, kw_only=True):
    """How people can sign in here."""

    ways: Annotated[Sequence[SignInWayView], Meta(description="The providers to choose from, if any.")]
    invitations: Annotated[bool, Meta(description="Whether an invitation's link signs people in.")]
    tokens: Annotated[
        bool, Meta(description="Whether the operator's issuer signs people in by bearer tokens.")
    ]


class InvitationOfferView(View, frozen=True, kw_only=True, omit_defaults=True):
    """What an invitation's link offers to whoever opens it."""

    user_id: Annotated[str, Meta(description="The user that the link signs in.")]
    name: Annotated[str, Meta(description="What to call them until more is known.")]
    role: Annotated[UserRole, Meta(description="What they become: user or admin.")]
    expires_at: Annotated[Time, Meta(description="Until when it can be accepted, in UTC.")]
    invited_by: Annotated[
        str | UnsetType,
        Meta(description="The admin who made it; absent if the operator or the user themselves did."),
    ] = UNSET
    ends_sessions: Annotated[
        bool,
        Meta(description="Whether accepting it signs the user out everywhere else; not if they made it."),
    ]
    signed_in_as: Annotated[
        str | UnsetType, Meta(description="Somebody else who is signed in in this browser, if anybody is.")
    ] = UNSET


class AcceptedView(View, frozen=True, kw_only=True):
    """Who is signed in now."""

    id: Annotated[str, Meta(description="What identifies the user in requests.")]
    role: Annotated[UserRole, Meta(description="Whether they are a user or an admin.")]


class InvitationView(View, frozen=True, kw_only=True, omit_defaults=True):
    """An invitation that nobody has accepted yet, without its link."""

    id: OwnId
    user_id: Annotated[str, Meta(description="The user that the link signs in.")]
    role: Annotated[UserRole, Meta(description="What they become: user or admin.")]
    created_at: CreatedAt
    expires_at: Annotated[Time, Meta(description="Until when it can be accepted, in UTC.")]
    invited_by: Annotated[
        str | UnsetType, Meta(description="The admin who made it; absent if the operator did.")
    ] = UNSET


class NewInvitationView(InvitationView, frozen=True, kw_only=True, omit_defaults=True):
    """A new invitation with its link. It is shown this once: Threadkeep stores only its hash."""

    url: Annotated[
        str, Meta(description="The link. Whoever opens it first becomes this user: send it safely.")
    ]


class SignInLinkView(View, frozen=True, kw_only=True):
    """A link for another browser of yours. It is shown this once: Threadkeep stores only its hash."""

    url: Annotated[str, Meta(description="The link, to be opened in the other browser within ten minutes.")]
    expires_at: Annotated[Time, Meta(description="Until when it can be used, in UTC.")]


class SessionView(View, frozen=True, kw_only=True):
    """A browser in which you are signed in."""

    id: OwnId
    device: Annotated[str, Meta(description="What the browser says about itself.")]
    way: Annotated[str, Meta(description="`invitation`, or `oidc:` and the provider's name.")]
    current: Annotated[bool, Meta(description="Whether this request comes from it.")]
    created_at: Annotated[Time, Meta(description="When you signed in there, in UTC.")]
    last_used_at: Annotated[Time, Meta(description="When it was used, accurate to five minutes.")]
    ends_at: Annotated[Time, Meta(description="When it ends if you don't use it until then.")]


class KnownUserView(View, frozen=True, kw_only=True, omit_defaults=True):
    """A user as admins see them, without anything that they do."""

    id: Annotated[str, Meta(description="What identifies the user in requests.")]
    invited: Annotated[bool, Meta(description="Whether an invitation made them.")]
    name: Annotated[str | UnsetType, Meta(description="What their sign-in calls them.")] = UNSET
    role: Annotated[
        UserRole | UnsetType,
        Meta(description="That of their last sign-in with a browser; absent without one."),
    ] = UNSET
    groups: Annotated[
        Sequence[str] | UnsetType, Meta(description="The groups that their sign-in says they are in.")
    ] = UNSET
    suspended_at: Annotated[Time | UnsetType, Meta(description="Since when they are kept out, in UTC.")] = (
        UNSET
    )
    last_seen_at: Annotated[
        Time | UnsetType, Meta(description="The last use of a browser or a key; absent if there was none.")
    ] = UNSET


def sign_in_view(rules: SignInRules) -> SignInView:
    """How people can sign in, for those who haven't."""
    ways = [SignInWayView(name=way.name, title=way.title, url=way.url) for way in rules.ways]
    return SignInView(ways=ways, invitations=rules.invitations, tokens=rules.tokens)


def invitation_offer_view(invitation: Invitation, signed_in_as: str | None) -> InvitationOfferView:
    """An invitation as its receiver sees it."""
    return InvitationOfferView(
        user_id=invitation.user_id,
        name=invited_name(invitation.user_id),
        role=invitation.role,
        expires_at=rfc3339(invitation.expires_at),
        ends_sessions=not invitation.is_own,
        invited_by=UNSET if invitation.is_own else invitation.invited_by or UNSET,
        signed_in_as=signed_in_as or UNSET,
    )


def invitation_view(invitation: Invitation) -> InvitationView:
    """An invitation as admins see it."""
    return InvitationView(
        id=invitation.id,
        user_id=invitation.user_id,
        role=invitation.role,
        created_at=rfc3339(invitation.created_at),
        expires_at=rfc3339(invitation.expires_at),
        invited_by=invitation.invited_by or UNSET,
    )


def session_view(session: Session, current: SessionId | None) -> SessionView:
    """A session as its user sees it."""
    return SessionView(
        id=session.id,
        device=session.device,
        way=session.way,
        current=session.id == current,
        created_at=rfc3339(session.created_at),
        last_used_at=rfc3339(session.last_used_at),
        ends_at=rfc3339(session.valid_until),
    )


def known_user_view(user: KnownUser) -> KnownUserView:
    """A user as admins see them."""
    return KnownUserView(
        id=user.id,
        invited=user.is_invited,
        name=user.name or UNSET,
        role=user.role or UNSET,
        groups=user.groups or UNSET,
        suspended_at=UNSET if user.suspended_at is None else rfc3339(user.suspended_at),
        last_seen_at=UNSET if user.last_seen_at is None else rfc3339(user.last_seen_at),
    )
