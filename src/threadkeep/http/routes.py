"""The table of routes. OpenAPI is made from it, so a route cannot exist undocumented."""

from dataclasses import replace

from threadkeep.domain.errors import (
    AgentNotFound,
    ArtifactNotFound,
    CompactionNotFound,
    Conflict,
    ConversationNotFound,
    DocumentNotFound,
    EventsExpired,
    Forbidden,
    GatewayNotConfigured,
    GenerationAborted,
    GenerationFailed,
    GenerationInterrupted,
    GenerationTimeout,
    IdempotencyMismatch,
    IllegalTransition,
    McpCommandNotAllowed,
    McpConfigInvalid,
    McpNameReserved,
    McpServerNotFound,
    MessageContentRequired,
    MessageTooLong,
    NothingToRegenerate,
    PreconditionFailed,
    RateLimited,
    SecretKeyRequired,
    ShuttingDown,
    TooFewMessages,
    TurnInProgress,
    TurnNotFound,
    UnsupportedDocument,
    UserNotFound,
)
from threadkeep.http import (
    agents,
    compactions,
    conversations,
    documents,
    executions,
    mcp_servers,
    operations,
    prompts,
    reports,
    search,
    turns,
    usage,
)
from threadkeep.http.routing import Route

_AGENT = (AgentNotFound,)
_SAVING = (McpConfigInvalid, McpNameReserved, McpCommandNotAllowed, SecretKeyRequired)
_DOCUMENT = (AgentNotFound, DocumentNotFound, Forbidden)
_CONVERSATION = (ConversationNotFound,)
_TURN = (
    TurnInProgress,
    RateLimited,
    ShuttingDown,
    GenerationAborted,
    GenerationFailed,
    GenerationInterrupted,
    GatewayNotConfigured,
    GenerationTimeout,
)
_SENDING = (MessageContentRequired, MessageTooLong, AgentNotFound, *_TURN)
_IDEMPOTENCY = {"Idempotency-Key": "A name for this request: sent again, it never starts a second turn."}

_TABLE = (
    Route("GET", "/api/me", operations.get_me, "Users"),
    Route("DELETE", "/api/users/{user_id}", operations.delete_user, "Users", 204, (UserNotFound,)),
    # Agents
    Route("POST", "/api/agents", agents.create_agent, "Agents", 201, (*_SAVING, Forbidden)),
    Route("GET", "/api/agents", agents.list_agents, "Agents"),
    Route("GET", "/api/agents/{agent_id}", agents.get_agent, "Agents", errors=_AGENT),
    Route(
        "PATCH",
        "/api/agents/{agent_id}",
        agents.patch_agent,
        "Agents",
        errors=(*_AGENT, *_SAVING, Forbidden, PreconditionFailed),
        headers={"If-Match": "The `ETag` of the agent: change it only if nobody else has since."},
    ),
    Route("DELETE", "/api/agents/{agent_id}", agents.delete_agent, "Agents", 204, (*_AGENT, Forbidden)),
    Route(
        "POST",
        "/api/agents/{agent_id}/mcp-servers/{name}/test",
        mcp_servers.test_mcp_server,
        "Agents",
        errors=(*_AGENT, McpServerNotFound, Forbidden),
    ),
    Route("GET", "/api/agents/{agent_id}/prompt", prompts.get_prompt, "Agents", errors=(*_AGENT, Forbidden)),
    Route(
        "PUT",
        "/api/agents/{agent_id}/prompt/{component}",
        prompts.put_component,
        "Agents",
        errors=(*_AGENT, Forbidden),
    ),
    # Documents
    Route(
        "POST",
        "/api/agents/{agent_id}/documents",
        documents.add_documents,
        "Documents",
        202,
        (*_AGENT, Forbidden, UnsupportedDocument),
    ),
    Route(
        "GET",
        "/api/agents/{agent_id}/documents",
        documents.list_documents,
        "Documents",
        errors=(*_AGENT, Forbidden),
    ),
    Route(
        "GET",
        "/api/agents/{agent_id}/documents/{document_id}",
        documents.get_document,
        "Documents",
        errors=_DOCUMENT,
    ),
    Route(
        "DELETE",
        "/api/agents/{agent_id}/documents/{document_id}",
        documents.delete_document,
        "Documents",
        204,
        _DOCUMENT,
    ),
    Route(
        "POST",
        "/api/agents/{agent_id}/documents/{document_id}/retry",
        documents.retry_document,
        "Documents",
        202,
        (*_DOCUMENT, IllegalTransition),
    ),
    Route(
        "GET",
        "/api/agents/{agent_id}/search",
        documents.search_documents,
        "Documents",
        errors=(*_AGENT, Forbidden),
    ),
    # Conversations
    Route(
        "POST",
        "/api/agents/{agent_id}/conversations",
        conversations.create_conversation,
        "Conversations",
        201,
        _AGENT,
        also=(200,),
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
        also=(201,),
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
        turns.send_message,
        "Turns",
        errors=(*_CONVERSATION, *_SENDING, IdempotencyMismatch),
        headers=_IDEMPOTENCY,
        also=(202,),
    ),
    Route(
        "POST",
        "/api/conversations/{conversation_id}/regenerate",
        turns.regenerate,
        "Turns",
        errors=(*_CONVERSATION, AgentNotFound, NothingToRegenerate, *_TURN),
        also=(202,),
    ),
    Route(
        "POST",
        "/api/conversations/{conversation_id}/abort",
        turns.abort,
        "Turns",
        errors=_CONVERSATION,
    ),
    Route(
        "POST",
        "/api/conversations/{conversation_id}/executions",
        executions.record_executions,
        "Turns",
        errors=(*_CONVERSATION, MessageContentRequired),
    ),
    Route("GET", "/api/turns/{turn_id}", turns.get_turn, "Turns", errors=(TurnNotFound,)),
    Route(
        "GET",
        "/api/turns/{turn_id}/events",
        turns.get_turn_events,
        "Turns",
        errors=(TurnNotFound, EventsExpired),
        headers={"Last-Event-ID": "The last event that was seen: those after it are given."},
        also=(204,),
    ),
    Route("GET", "/api/turns/{turn_id}/context", turns.get_turn_context, "Turns", errors=(TurnNotFound,)),
    Route(
        "GET",
        "/api/conversations/{conversation_id}/context",
        conversations.get_context,
        "Messages",
        errors=_CONVERSATION,
    ),
    # Compactions
    Route(
        "POST",
        "/api/conversations/{conversation_id}/compact",
        compactions.compact,
        "Messages",
        errors=(
            *_CONVERSATION,
            AgentNotFound,
            TurnInProgress,
            TooFewMessages,
            Conflict,
            GenerationFailed,
            GenerationTimeout,
            GatewayNotConfigured,
        ),
    ),
    Route(
        "GET",
        "/api/conversations/{conversation_id}/compactions",
        compactions.list_compactions,
        "Messages",
        errors=_CONVERSATION,
    ),
    Route(
        "DELETE",
        "/api/conversations/{conversation_id}/compactions/{compaction_id}",
        compactions.undo_compaction,
        "Messages",
        204,
        (*_CONVERSATION, CompactionNotFound, Conflict),
    ),
    Route("POST", "/api/chat", turns.send_chat, "Turns", errors=_SENDING, also=(202,)),
    Route("GET", "/api/chat/messages", conversations.list_chat_messages, "Messages"),
    # Tool results and reports
    Route("GET", "/api/tool-results", reports.list_tool_results, "Reports"),
    Route(
        "GET",
        "/api/conversations/{conversation_id}/tool-results",
        reports.list_conversation_tool_results,
        "Reports",
        errors=_CONVERSATION,
    ),
    Route(
        "GET",
        "/api/conversations/{conversation_id}/report",
        reports.get_report,
        "Reports",
        errors=_CONVERSATION,
    ),
    Route(
        "GET",
        "/api/conversations/{conversation_id}/export",
        reports.export_conversation,
        "Reports",
        errors=_CONVERSATION,
    ),
    Route("GET", "/api/artifacts/{artifact_id}", reports.get_artifact, "Reports", errors=(ArtifactNotFound,)),
    Route("GET", "/api/search", search.search, "Messages"),
    # Operating it
    Route("GET", "/api/usage", usage.get_usage, "Operating"),
    Route("GET", "/api/admin/audit", agents.list_audit, "Operating", errors=(Forbidden,)),
    Route("GET", "/healthz", operations.get_health, "Operating", signed_in=False),
    Route("GET", "/readyz", operations.get_readiness, "Operating", signed_in=False),
)


def _as_domain(route: Route) -> Route:
    """The seeds call an agent a domain: the same route under that name."""
    return replace(route, path=route.path.replace("/api/agents", "/api/domains", 1), alias_of=route.path)


ROUTES = (*_TABLE, *(_as_domain(route) for route in _TABLE if route.path.startswith("/api/agents")))
