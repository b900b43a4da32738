"""Conversations, imports of others, and the search in them."""

from threadkeep.domain.errors import (
    AgentNotFound,
    ConversationNotFound,
    IdempotencyMismatch,
    ImportInProgress,
    ImportNotFound,
    PreconditionFailed,
    RateLimited,
    ShuttingDown,
    UnsupportedImport,
)
from threadkeep.domain.key import Scope
from threadkeep.handling.routing import Route
from threadkeep.http.api import conversations, imports, search
from threadkeep.http.tables.common import AGENT, CONVERSATION, CONVERSATION_LOCATION

_CREATED_ONCE = {
    "Idempotency-Key": "A key for this request. A retry with the same key never creates a second "
    "conversation: 200 with the first one."
}

CONVERSATIONS = (
    Route(
        "POST",
        "/api/agents/{agent_id}/conversations",
        conversations.create_conversation,
        "Conversations",
        201,
        (*AGENT, ConversationNotFound, IdempotencyMismatch),
        headers=_CREATED_ONCE,
        also=(200,),
        gives=CONVERSATION_LOCATION,
        scope=Scope.CHAT,
    ),
    Route(
        "GET",
        "/api/agents/{agent_id}/conversations",
        conversations.list_agent_conversations,
        "Conversations",
        errors=AGENT,
    ),
    Route(
        "PUT",
        "/api/agents/{agent_id}/conversation",
        conversations.put_main_conversation,
        "Conversations",
        errors=AGENT,
        also=(201,),
        gives=CONVERSATION_LOCATION,
        scope=Scope.CHAT,
    ),
    Route(
        "POST",
        "/api/conversations",
        conversations.create_conversation_with,
        "Conversations",
        201,
        (*AGENT, ConversationNotFound, IdempotencyMismatch),
        headers=_CREATED_ONCE,
        also=(200,),
        gives=CONVERSATION_LOCATION,
        scope=Scope.CHAT,
    ),
    Route("GET", "/api/conversations", conversations.list_conversations, "Conversations", errors=AGENT),
    Route(
        "GET",
        "/api/conversations/{conversation_id}",
        conversations.get_conversation,
        "Conversations",
        errors=CONVERSATION,
        is_large=True,
    ),
    Route(
        "PATCH",
        "/api/conversations/{conversation_id}",
        conversations.patch_conversation,
        "Conversations",
        errors=CONVERSATION,
        scope=Scope.CHAT,
    ),
    Route(
        "DELETE",
        "/api/conversations/{conversation_id}",
        conversations.delete_conversation,
        "Conversations",
        204,
        (*CONVERSATION, PreconditionFailed),
        scope=Scope.CHAT,
    ),
    Route(
        "POST",
        "/api/conversations/{conversation_id}/restore",
        conversations.restore_conversation,
        "Conversations",
        errors=CONVERSATION,
        scope=Scope.CHAT,
        stores="nothing",
    ),
    Route(
        "POST",
        "/api/conversations/{conversation_id}/session",
        conversations.rotate_session,
        "Conversations",
        errors=CONVERSATION,
        scope=Scope.CHAT,
        stores="nothing",
    ),
)

IMPORTS = (
    Route(
        "POST",
        "/api/imports",
        imports.begin_import,
        "Imports",
        202,
        (AgentNotFound, ImportInProgress, UnsupportedImport, RateLimited, ShuttingDown),
        scope=Scope.CHAT,
        within_agents=False,
        creates=True,
    ),
    Route("GET", "/api/imports", imports.list_imports, "Imports", within_agents=False),
    Route(
        "GET",
        "/api/imports/{import_id}",
        imports.get_import,
        "Imports",
        errors=(ImportNotFound,),
        within_agents=False,
    ),
    Route(
        "POST",
        "/api/imports/{import_id}/stop",
        imports.stop_import,
        "Imports",
        errors=(ImportNotFound,),
        scope=Scope.CHAT,
        within_agents=False,
        stores="nothing",
    ),
)

SEARCH = (Route("GET", "/api/search", search.search, "Messages"),)
