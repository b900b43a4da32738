"""Briefings, which agents send on their own."""

from threadkeep.domain.errors import (
    AgentNotFound,
    BriefingNotFound,
    Conflict,
    Forbidden,
    RateLimited,
    UserNotFound,
)
from threadkeep.domain.key import Scope
from threadkeep.handling.bodies import MEDIUM_BODY_BYTES
from threadkeep.handling.routing import Route
from threadkeep.http.api import briefings

BRIEFINGS = (
    Route(
        "POST",
        "/api/briefings",
        briefings.create_briefing,
        "Briefings",
        201,
        (AgentNotFound, UserNotFound, Forbidden, RateLimited),
        within_agents=True,
        most_body_bytes=MEDIUM_BODY_BYTES,
        creates=True,
    ),
    Route("GET", "/api/briefings", briefings.list_briefings, "Briefings"),
    Route(
        "POST",
        "/api/briefings/{briefing_id}/actions/start_conversation",
        briefings.start_conversation,
        "Briefings",
        errors=(BriefingNotFound, AgentNotFound, Conflict),
        scope=Scope.CHAT,
        stores="nothing",
    ),
    Route(
        "POST",
        "/api/briefings/{briefing_id}/read",
        briefings.read_briefing,
        "Briefings",
        errors=(BriefingNotFound,),
        scope=Scope.CHAT,
        stores="nothing",
    ),
    Route(
        "DELETE",
        "/api/briefings/{briefing_id}",
        briefings.delete_briefing,
        "Briefings",
        204,
        (BriefingNotFound,),
        scope=Scope.CHAT,
    ),
)
