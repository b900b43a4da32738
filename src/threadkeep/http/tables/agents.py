"""Agents, what they remember, their documents, and the models that they offer."""

from threadkeep.domain.errors import (
    AgentInCode,
    AgentNotFound,
    DocumentNotFound,
    Forbidden,
    IllegalTransition,
    LimitNotAllowed,
    McpCommandNotAllowed,
    McpConfigInvalid,
    McpNameReserved,
    McpServerNotFound,
    MemoryNotFound,
    ModelNotAllowed,
    ModelNotFound,
    PreconditionFailed,
    SecretKeyRequired,
    UnsupportedDocument,
)
from threadkeep.handling.bodies import MEDIUM_BODY_BYTES
from threadkeep.handling.routing import Route
from threadkeep.http.api import agents, documents, feedback, mcp_servers, memories, models, prompts
from threadkeep.http.tables.common import AGENT

_SAVING = (
    McpConfigInvalid,
    McpNameReserved,
    McpCommandNotAllowed,
    ModelNotAllowed,
    ModelNotFound,
    LimitNotAllowed,
    SecretKeyRequired,
)
_DOCUMENT = (AgentNotFound, DocumentNotFound, Forbidden)
_ETAG = {"ETag": "The agent's version, for `If-Match`."}

AGENTS = (
    Route(
        "POST",
        "/api/agents",
        agents.create_agent,
        "Agents",
        201,
        (*_SAVING, Forbidden),
        gives=_ETAG,
        most_body_bytes=MEDIUM_BODY_BYTES,
        creates=True,
    ),
    Route("GET", "/api/agents", agents.list_agents, "Agents"),
    Route(
        "POST",
        "/api/agents/preview",
        agents.preview_new_agent,
        "Agents",
        errors=(*_SAVING, Forbidden),
        most_body_bytes=MEDIUM_BODY_BYTES,
        stores="trial",
        within_agents=False,
    ),
    Route("GET", "/api/agents/{agent_id}", agents.get_agent, "Agents", errors=AGENT, gives=_ETAG),
    Route(
        "PATCH",
        "/api/agents/{agent_id}",
        agents.patch_agent,
        "Agents",
        errors=(*AGENT, *_SAVING, AgentInCode, Forbidden, PreconditionFailed),
        headers={"If-Match": "The agent's `ETag`: change the agent only if it is unchanged since."},
        gives=_ETAG,
        most_body_bytes=MEDIUM_BODY_BYTES,
        stores="creation",
    ),
    Route(
        "POST",
        "/api/agents/{agent_id}/preview",
        agents.preview_agent,
        "Agents",
        errors=(*AGENT, *_SAVING, AgentInCode, Forbidden),
        most_body_bytes=MEDIUM_BODY_BYTES,
        stores="trial",
    ),
    Route("DELETE", "/api/agents/{agent_id}", agents.delete_agent, "Agents", 204, (*AGENT, Forbidden)),
    Route(
        "POST",
        "/api/agents/{agent_id}/duplicate",
        agents.duplicate_agent,
        "Agents",
        201,
        (*AGENT, *_SAVING, AgentInCode, Forbidden),
        within_agents=False,
        gives=_ETAG,
        creates=True,
    ),
    Route(
        "GET",
        "/api/agents/{agent_id}/tools",
        mcp_servers.list_agent_tools,
        "Agents",
        errors=(*AGENT, Forbidden),
    ),
    Route(
        "POST",
        "/api/agents/{agent_id}/mcp-servers/{name}/test",
        mcp_servers.test_mcp_server,
        "Agents",
        errors=(*AGENT, McpServerNotFound, Forbidden),
        stores="nothing",
    ),
    Route("GET", "/api/agents/{agent_id}/prompt", prompts.get_prompt, "Agents", errors=(*AGENT, Forbidden)),
    Route(
        "PUT",
        "/api/agents/{agent_id}/prompt/{component}",
        prompts.put_component,
        "Agents",
        errors=(*AGENT, Forbidden),
        most_body_bytes=MEDIUM_BODY_BYTES,
    ),
)

MEMORIES = (
    Route("GET", "/api/agents/{agent_id}/memories", memories.list_memories, "Memories", errors=AGENT),
    Route("DELETE", "/api/agents/{agent_id}/memories", memories.delete_memories, "Memories", 204, AGENT),
    Route(
        "PATCH",
        "/api/agents/{agent_id}/memories/{memory_id}",
        memories.patch_memory,
        "Memories",
        errors=(*AGENT, MemoryNotFound),
    ),
    Route(
        "DELETE",
        "/api/agents/{agent_id}/memories/{memory_id}",
        memories.delete_memory,
        "Memories",
        204,
        (*AGENT, MemoryNotFound),
    ),
)

DOCUMENTS = (
    Route(
        "POST",
        "/api/agents/{agent_id}/documents",
        documents.add_documents,
        "Documents",
        202,
        (*AGENT, Forbidden, UnsupportedDocument, LimitNotAllowed),
        creates=True,
    ),
    Route(
        "GET",
        "/api/agents/{agent_id}/documents",
        documents.list_documents,
        "Documents",
        errors=(*AGENT, Forbidden),
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
        "GET",
        "/api/agents/{agent_id}/documents/{document_id}/passages",
        documents.list_passages,
        "Documents",
        errors=_DOCUMENT,
    ),
    Route(
        "POST",
        "/api/agents/{agent_id}/documents/{document_id}/retry",
        documents.retry_document,
        "Documents",
        202,
        (*_DOCUMENT, IllegalTransition),
        stores="nothing",
    ),
    Route(
        "GET",
        "/api/agents/{agent_id}/search",
        documents.search_documents,
        "Documents",
        errors=(*AGENT, Forbidden),
    ),
    Route(
        "GET",
        "/api/agents/{agent_id}/feedback",
        feedback.list_feedback,
        "Agents",
        errors=(*AGENT, Forbidden),
    ),
)

MODELS = (Route("GET", "/api/models", models.list_models, "Agents", errors=(AgentNotFound,)),)
