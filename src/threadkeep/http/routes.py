"""The table of routes. OpenAPI is made from it, so a route cannot exist undocumented."""

from dataclasses import replace

from threadkeep.domain.errors import (
    AgentNotFound,
    ConversationNotFound,
    Forbidden,
    GatewayNotConfigured,
    MessageContentRequired,
    MessageTooLong,
    PreconditionFailed,
    UserNotFound,
)
from threadkeep.http import agents, conversations, operations
from threadkeep.http.routing import Route

_AGENT = (AgentNotFound,)
_CONVERSATION = (ConversationNotFound,)
_SENDING = (MessageContentRequired, MessageTooLong, AgentNotFound, GatewayNotConfigured)

_TABLE = (
    Route("GET", "/api/me", operations.get_me, "Users"),
    Route("DELETE", "/api/users/{user_id}", operations.delete_user, "Users", 204, (UserNotFound,)),
    # Agents
    Route("POST", "/api/agents", agents.create_agent, "Agents", 201),
    Route("GET", "/api/agents", agents.list_agents, "Agents"),
    Route("GET", "/api/agents/{agent_id}", agents.get_agent, "Agents", errors=_AGENT),
    Route(
        "PATCH",
        "/api/agents/{agent_id}",
        agents.patch_agent,
        "Agents",
        errors=(*_AGENT, Forbidden, PreconditionFailed),
    ),
    Route("DELETE", "/api/agents/{agent_id}", agents.delete_agent, "Agents", 204, (*_AGENT, Forbidden)),
    # Conversations
    Route(
        "POST",
        "/api/agents/{agent_id}/conversations",
        conversations.create_conversation,
        "Conversations",
        201,
        _AGENT,
    ),
    Route(
        "GET",
        "/api/agents/{agent_id}/conversations",
        conversations.list_agent_conversations,
        "Conversations",
        errors=_AGENT,
    ),
    Route(
        "PUT",
        "/api/agents/{agent_id}/conversation",
        conversations.put_main_conversation,
        "Conversations",
        errors=_AGENT,
    ),
    Route("GET", "/api/conversations", conversations.list_conversations, "Conversations"),
    Route(
        "GET",
        "/api/conversations/{conversation_id}",
        conversations.get_conversation,
        "Conversations",
        errors=_CONVERSATION,
    ),
    Route(
        "PATCH",
        "/api/conversations/{conversation_id}",
        conversations.patch_conversation,
        "Conversations",
        errors=_CONVERSATION,
    ),
    Route(
        "DELETE",
        "/api/conversations/{conversation_id}",
        conversations.delete_conversation,
        "Conversations",
        204,
        _CONVERSATION,
    ),
    Route(
        "POST",
        "/api/conversations/{conversation_id}/restore",
        conversations.restore_conversation,
        "Conversations",
        errors=_CONVERSATION,
    ),
    Route(
        "POST",
        "/api/conversations/{conversation_id}/session",
        conversations.rotate_session,
        "Conversations",
        errors=_CONVERSATION,
    ),
    # Messages
    Route(
        "GET",
        "/api/conversations/{conversation_id}/messages",
        conversations.list_messages,
        "Messages",
        errors=_CONVERSATION,
    ),
    Route(
        "POST",
        "/api/conversations/{conversation_id}/messages",
        conversations.send_message,
        "Messages",
        errors=(*_CONVERSATION, *_SENDING),
    ),
    Route(
        "GET",
        "/api/conversations/{conversation_id}/context",
        conversations.get_context,
        "Messages",
        errors=_CONVERSATION,
    ),
    Route("POST", "/api/chat", conversations.send_chat, "Messages", errors=_SENDING),
    Route("GET", "/api/chat/messages", conversations.list_chat_messages, "Messages"),
    # Operating it
    Route("GET", "/api/admin/audit", agents.list_audit, "Operating", errors=(Forbidden,)),
    Route("GET", "/healthz", operations.get_health, "Operating", signed_in=False),
    Route("GET", "/readyz", operations.get_readiness, "Operating", signed_in=False),
)


def _as_domain(route: Route) -> Route:
    """The seeds call an agent a domain: the same route under that name."""
    return replace(route, path=route.path.replace("/api/agents", "/api/domains", 1), alias_of=route.path)


ROUTES = (*_TABLE, *(_as_domain(route) for route in _TABLE if route.path.startswith("/api/agents")))
