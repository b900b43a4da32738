"""Users, how they sign in, and their keys."""

from threadkeep.domain.errors import (
    AgentNotFound,
    Forbidden,
    InvitationEnded,
    InvitationNotFound,
    KeyNotFound,
    LimitNotAllowed,
    OtherUserSignedIn,
    RateLimited,
    SessionNotFound,
    ShuttingDown,
    UserNotFound,
)
from threadkeep.handling.routing import Route
from threadkeep.http.api import keys, memories, operations, sign_in, user_events

_INVITATION = (InvitationNotFound, InvitationEnded, RateLimited)

USERS = (
    Route("GET", "/api/me", operations.get_me, "Users"),
    Route(
        "GET",
        "/api/me/events",
        user_events.get_my_events,
        "Users",
        errors=(ShuttingDown,),
        headers={"Last-Event-ID": "The last event received; the response contains the events after it."},
    ),
    Route("GET", "/api/sign-in", sign_in.get_sign_in, "Signing in", signed_in=False),
    Route(
        "POST",
        "/api/sign-in/invitation",
        sign_in.read_invitation,
        "Signing in",
        errors=_INVITATION,
        signed_in=False,
        recognizes_users=True,
        stores="nothing",
    ),
    Route(
        "POST",
        "/api/sign-in/invitation/accept",
        sign_in.accept_invitation,
        "Signing in",
        errors=(*_INVITATION, Forbidden, OtherUserSignedIn),
        signed_in=False,
        recognizes_users=True,
        stores="nothing",
        gives={"Set-Cookie": "The session, for this browser alone."},
    ),
    Route(
        "GET",
        "/api/me/sessions",
        sign_in.list_sessions,
        "Signing in",
        within_agents=False,
        acting="never",
    ),
    Route(
        "POST",
        "/api/me/sessions/links",
        sign_in.create_sign_in_link,
        "Signing in",
        201,
        (Forbidden, RateLimited),
        acting="never",
        stores="nothing",
    ),
    Route(
        "DELETE",
        "/api/me/sessions",
        sign_in.end_sessions,
        "Signing in",
        204,
        gives={"Set-Cookie": "Takes this browser's session away."},
    ),
    Route(
        "DELETE",
        "/api/me/sessions/{session_id}",
        sign_in.end_session,
        "Signing in",
        204,
        (SessionNotFound,),
        gives={"Set-Cookie": "Takes this browser's session away, if it was that one."},
    ),
    Route(
        "DELETE",
        "/api/users/{user_id}",
        operations.delete_user,
        "Users",
        204,
        (UserNotFound,),
        acting="may_delete",
    ),
    Route("GET", "/api/me/instructions", memories.get_instructions, "Users"),
    Route("PUT", "/api/me/instructions", memories.put_instructions, "Users"),
)

KEYS = (
    Route(
        "POST",
        "/api/keys",
        keys.create_key,
        "Keys",
        201,
        (AgentNotFound, LimitNotAllowed),
        creates=True,
        shows_secret=True,
    ),
    Route("GET", "/api/keys", keys.list_keys, "Keys", acting="never"),
    Route("DELETE", "/api/keys/{key_id}", keys.revoke_key, "Keys", 204, (KeyNotFound,)),
)
