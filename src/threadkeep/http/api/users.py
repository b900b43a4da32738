"""Users and their invitations over HTTP, for admins."""

from typing import Annotated

from msgspec import Meta, Struct

from threadkeep.domain.sign_in.session import INVITATION_S, MOST_INVITATION_S
from threadkeep.domain.user import UserRole
from threadkeep.handling.paging import PageQuery, Pager
from threadkeep.handling.routing import RequestContext
from threadkeep.wire.sign_in import (
    InvitationView,
    KnownUserView,
    NewInvitationView,
    invitation_view,
    known_user_view,
)
from threadkeep.wire.view import PageView
from threadkeep.wire.views import MovableView, movable_view


class NewInvitationBody(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The person to invite."""

    user: Annotated[
        str,
        Meta(description="Their name, such as `ann`, who becomes the user `invited:ann`; or that whole id."),
    ]
    admin: Annotated[bool, Meta(description="Whether they become an admin, not a user.")] = False
    ttl_s: Annotated[
        int, Meta(ge=60, le=MOST_INVITATION_S, description="For how many seconds the link can be used.")
    ] = INVITATION_S


async def create_invitation(request: RequestContext, *, body: NewInvitationBody) -> NewInvitationView:
    """Invite somebody: whoever opens the link first becomes the user `invited:NAME`. For admins.

    For a user that an invitation made before, it is a new way in, which ends their other sessions. It
    replaces links for the same user that nobody has used.
    """
    role = UserRole.ADMIN if body.admin else UserRole.USER
    made = await request.services.invitations.create(request.user, body.user, role, body.ttl_s)
    view = invitation_view(made.invitation)
    return NewInvitationView(
        id=view.id,
        user_id=view.user_id,
        role=view.role,
        created_at=view.created_at,
        expires_at=view.expires_at,
        invited_by=view.invited_by,
        url=made.url,
    )


async def list_invitations(request: RequestContext) -> PageView[InvitationView]:
    """List the invitations that nobody has accepted yet, newest first, without their links. For admins."""
    found = await request.services.invitations.list(request.user)
    return PageView(items=[invitation_view(it) for it in found], next_cursor=None)


async def withdraw_invitation(request: RequestContext, *, invitation_id: str) -> None:
    """Withdraw an invitation that nobody has accepted: its link is useless from now on. For admins."""
    await request.services.invitations.withdraw(request.user, invitation_id)


async def reassign_local(request: RequestContext) -> MovableView:
    """Take over what everybody had as `local` before people signed in: it becomes yours. For admins.

    Conversations, agents, briefings, memories, files and spending move, as with `threadkeep reassign`; API
    keys of `local` are deleted. Where you have the same yourself, yours stays. The response says how much was
    moved: nothing if there is nothing left.
    """
    return movable_view(await request.services.local_data.take(request.user))


async def list_users(request: RequestContext, *, query: PageQuery) -> PageView[KnownUserView]:
    """List the users that this server knows, by their ids, without anything that they do. For admins."""
    pager = Pager(request.cursors, request.user, "users", query)
    found = await request.services.known_users.page(
        request.user, after=pager.after(str) or "", offset=pager.offset, limit=pager.fetch_limit
    )
    return pager.page(found, lambda user: user.id, lambda users: [known_user_view(it) for it in users])


async def suspend_user(request: RequestContext, *, user_id: str) -> KnownUserView:
    """Keep a user out: their sessions end, keys and tokens don't count, running turns stop. For admins.

    Everything that they have stays. Signing in again doesn't lift it; only an admin does.
    """
    return known_user_view(await request.services.known_users.suspend(request.user, user_id))


async def unsuspend_user(request: RequestContext, *, user_id: str) -> KnownUserView:
    """Let a suspended user in again: they can sign in, and their keys and tokens count. For admins."""
    return known_user_view(await request.services.known_users.unsuspend(request.user, user_id))
