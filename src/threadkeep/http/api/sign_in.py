"""Signing in with a browser, and the sessions that this begins."""

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, Struct

from threadkeep.domain.errors import Forbidden, InvitationEnded, InvitationNotFound
from threadkeep.domain.sign_in.session import SessionStarted
from threadkeep.domain.user import User
from threadkeep.handling.addresses import client_address
from threadkeep.handling.routing import RequestContext, ViewResponse
from threadkeep.http.sign_in.session_cookie import SessionCookie
from threadkeep.services.sign_in.sessions import CURRENT
from threadkeep.wire.sign_in import (
    AcceptedView,
    InvitationOfferView,
    SessionView,
    SignInLinkView,
    SignInView,
    invitation_offer_view,
    session_view,
    sign_in_view,
)
from threadkeep.wire.view import PageView, rfc3339

Token = Annotated[str, Meta(max_length=200, description="What the link has after `#/invitation/`, as it is.")]


class InvitationBody(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """An invitation's link."""

    token: Token


class AcceptBody(InvitationBody, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """An invitation's link, and whether to leave another account."""

    switch: Annotated[
        bool,
        Meta(
            description="Whether to sign out somebody else who is signed in in this browser; otherwise a 409."
        ),
    ] = False


async def get_sign_in(request: RequestContext) -> SignInView:
    """List the ways in which people can sign in here. Nobody has to be signed in for this."""
    return sign_in_view(request.services.sign_in_rules)


async def read_invitation(request: RequestContext, *, body: InvitationBody) -> InvitationOfferView:
    """Read what an invitation's link offers, and who it is for. Changes nothing: a person must accept it."""
    attempts, address = request.services.attempts, _address(request)
    attempts.check(address)
    try:
        invitation = await request.services.invitations.find(body.token)
    except (InvitationNotFound, InvitationEnded):
        attempts.note(address)
        raise
    here = _signed_in_here(request)
    is_other = here is not None and here.id != invitation.user_id
    return invitation_offer_view(invitation, here.id if here and is_other else None)


async def accept_invitation(request: RequestContext, *, body: AcceptBody) -> ViewResponse[AcceptedView]:
    """Accept an invitation: the response's cookie signs this browser in, and the user's other sessions end.

    A link that the user made themselves, for another browser, ends none.
    Only the page at the server's own address can do this, as `Origin` says. If somebody else is signed in in
    this browser, the response is a 409 unless `switch` is true.
    """
    cookie = session_cookie(request)
    cookie.check_origin(request.http)
    attempts, address = request.services.attempts, _address(request)
    attempts.check(address)
    device = request.http.headers.get("user-agent", "")
    try:
        invitation, started = await request.services.invitations.accept(
            body.token, device, _signed_in_here(request), switches=body.switch
        )
    except (InvitationNotFound, InvitationEnded):
        attempts.note(address)
        raise
    return ViewResponse(
        AcceptedView(id=invitation.user_id, role=invitation.role), headers=given_session(cookie, started)
    )


async def create_sign_in_link(request: RequestContext) -> SignInLinkView:
    """Make a link that signs you in with another browser or device, once, within ten minutes.

    For people who came by invitation, from a browser that an invitation signed in: keys and tokens can't make
    one. It replaces the one before and ends no session. The other browser asks for a click, as for any
    invitation. At most 10 an hour.
    """
    made = await request.services.invitations.create_own(request.user)
    return SignInLinkView(url=made.url, expires_at=rfc3339(made.invitation.expires_at))


async def list_sessions(request: RequestContext) -> PageView[SessionView]:
    """List the browsers in which you are signed in, the last used first."""
    sessions = await request.services.sessions.list(request.user)
    items = [session_view(session, request.user.session_id) for session in sessions]
    return PageView(items=items, next_cursor=None)


async def end_session(request: RequestContext, *, session_id: str) -> ViewResponse[None]:
    """Sign out in one browser; `current` is the one that sends this.

    What it has open ends within 5 seconds.
    """
    await request.services.sessions.end(request.user, session_id)
    ends_itself = request.user.session_id is not None and session_id.lower() in {
        CURRENT,
        request.user.session_id,
    }
    return ViewResponse(None, headers=_without_cookie(request) if ends_itself else {})


async def end_sessions(request: RequestContext) -> ViewResponse[None]:
    """Sign out everywhere: every browser's session ends, this one's, too. Keys and tokens stay valid."""
    await request.services.sessions.end_all(request.user)
    return ViewResponse(None, headers=_without_cookie(request))


def session_cookie(request: RequestContext) -> SessionCookie:
    """The cookie of this server's sessions; Forbidden if nobody signs in with a browser here."""
    public_url = request.services.sign_in_rules.public_url
    if public_url is None:
        raise Forbidden("The operator hasn't turned on sign-in with a browser.")
    return SessionCookie(public_url, request.services.store.installation)


def given_session(cookie: SessionCookie, started: SessionStarted) -> Mapping[str, str]:
    """The headers of a response that signs a browser in."""
    return {"Set-Cookie": cookie.given(started.token), "Cache-Control": "no-store"}


def _without_cookie(request: RequestContext) -> Mapping[str, str]:
    if request.services.sign_in_rules.public_url is None:
        return {}
    return {"Set-Cookie": session_cookie(request).taken}


def _signed_in_here(request: RequestContext) -> User | None:
    """Who is signed in with this browser's cookie."""
    return request.user if request.user.session_id is not None else None


def _address(request: RequestContext) -> str:
    return client_address(request.http, request.services.sign_in_rules.trusted_proxies)
