"""OpenAPI 3.1, generated from the route table."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from threadkeep.domain.errors import (
    Conflict,
    Forbidden,
    HeadersTooLarge,
    IdempotencyMismatch,
    InvalidRequest,
    LimitNotAllowed,
    PayloadTooLarge,
    RateLimited,
    RequestTimeout,
    StorageUnavailable,
    ThreadkeepError,
    Unauthenticated,
    UserRequired,
)
from threadkeep.handling.errors import STATUSES, ErrorResponse
from threadkeep.handling.routing import Route, Shape, shape_of
from threadkeep.handling.uploads import MOST_FILES
from threadkeep.version import __version__

ACCEPTED = 202
"""The status of what goes on after its response."""

_DESCRIPTION = """Conversations that are never lost, for AI agents. Every error has one shape,
`{"error": {"code", "message", "param", "details", "requestId"}}`; other users' data
returns 404, exactly like data that doesn't exist."""


def openapi(routes: Iterable[Route]) -> dict[str, Any]:
    """The OpenAPI document for these routes."""
    shapes = [(route, shape_of(route)) for route in routes]
    types = [kind for _, shape in shapes for kind in (shape.query, shape.body, *shape.responses) if kind]
    types = list(dict.fromkeys([*types, ErrorResponse]))
    found = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    schemas, components = msgspec.json.decode(msgspec.json.encode(found))  # defaults as JSON has them
    schema_of = dict(zip(types, schemas, strict=True))
    for component in components.values():
        _describe_tag(component)
    queries = {shape.query.__name__: shape.query for _, shape in shapes if shape.query}
    paths: dict[str, dict[str, Any]] = {}
    for route, shape in shapes:
        operation = _operation(route, shape, schema_of, components)
        paths.setdefault(route.path, {})[route.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Threadkeep",
            "version": __version__,
            "description": _DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            # A query appears as its parameters.
            "schemas": {name: schema for name, schema in components.items() if name not in queries},
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "An access token (JWT) or an API key (`tk_…`). Operations list the scope "
                    "that a key needs. A key that acts for an application's users also needs the header "
                    "`Threadkeep-User`: the user's name, percent-encoded UTF-8.",
                },
                "apiKey": {"type": "apiKey", "in": "header", "name": "x-api-key", "description": "The same."},
            },
        },
    }


def _describe_tag(component: dict[str, Any]) -> None:
    """The field that tells the kinds of a union apart is msgspec's: no class declares it."""
    match component:
        case {"properties": {"type": {"enum": [_]} as tag}} if "description" not in tag:  # pyright: ignore[reportUnknownVariableType]
            tag["description"] = "Tells what kind of entry this is."
        case _:
            pass


def _operation(
    route: Route, shape: Shape, schema_of: dict[Any, dict[str, Any]], components: dict[str, Any]
) -> dict[str, Any]:
    name = getattr(route.handler, "__name__", route.path)
    operation: dict[str, Any] = {
        "operationId": f"{name}_as_{'domain' if _is_of_domain(route) else 'abort'}"
        if route.alias_of
        else name,
        "summary": route.summary,
        "tags": [route.tag],
        "parameters": _parameters(route, shape, components),
        "responses": _responses(route, shape, schema_of),
        "security": _security(route),
    }
    if route.alias_of:
        operation["description"] = f"Alias of `{route.method} {route.alias_of}`."
    elif more := route.documentation.removeprefix(route.summary).strip():
        operation["description"] = more
    if shape.body:
        operation["requestBody"] = {
            "required": bool(components[shape.body.__name__].get("required")),
            "content": {"application/json": {"schema": schema_of[shape.body]}},
        }
    if shape.files:
        operation["requestBody"] = {"required": True, "content": {"multipart/form-data": {"schema": _FILES}}}
    return operation


def _is_of_domain(route: Route) -> bool:
    return route.path.startswith("/api/domains")


def _security(route: Route) -> list[dict[str, list[str]]]:
    if not route.signed_in:
        return []
    return [{scheme: [route.needed_scope.value]} for scheme in ("bearer", "apiKey")]


_REPEATABLE = {
    "Idempotency-Key": "A key for this request. For a day, a retry with the same key returns the same "
    "response and creates nothing twice."
}
_PATH = {
    "agent_id": "The agent's id, from `GET /api/agents`.",
    "artifact_id": "The artifact's id, from a message's `artifactIds`.",
    "briefing_id": "The briefing's id, from `GET /api/briefings`.",
    "compaction_id": "The compaction's id, from `GET …/compactions`; only the newest can be undone.",
    "component": "The component's name, from `editable` in `GET …/prompt`.",
    "conversation_id": "The conversation's id, from `GET /api/conversations`.",
    "document_id": "The document's id, from `GET …/documents`.",
    "file_id": "The file's id, from the upload or a message's parts.",
    "gateway": "The gateway's name, from `GET /api/admin/gateways`.",
    "import_id": "The import's id, from `POST` or `GET /api/imports`.",
    "invitation_id": "The invitation's id, from `GET /api/admin/invitations`.",
    "key_id": "The key's id, from `GET /api/keys`, not the key itself.",
    "memory_id": "The memory's id, from `GET …/memories`.",
    "message_id": "The message's id, from a conversation's messages.",
    "name": "The MCP server's name in the agent's `settings.mcpServers`.",
    "number": "The number of a message in the share, counted from 1.",
    "request_id": "The `requestId` of an open approval, from `GET /api/approvals`.",
    "session_id": "The session's id, from `GET /api/me/sessions`; `current` is this browser's.",
    "share": "To read a share, the token of its link; to delete it, its id.",
    "turn_id": "The turn's id, from the response that began it.",
    "user_id": "The user's id, as `GET /api/me` shows it.",
}
"""What stands for each parameter of a path. Every new one needs a line."""
_FILES = {
    "type": "object",
    "properties": {
        "files": {
            "type": "array",
            "items": {"type": "string", "contentMediaType": "application/octet-stream"},
            "minItems": 1,
            "maxItems": MOST_FILES,
            "description": "One part for each file, with its name; an import takes one. "
            "`THREADKEEP_MAX_UPLOAD_BYTES` (100 MB) limits them together; "
            "`THREADKEEP_MAX_IMPORT_BYTES` (1 GB), an import.",
        }
    },
    "required": ["files"],
}


def _headers(documentation: Mapping[str, str]) -> dict[str, Any]:
    """Headers that a response always has."""
    return {
        name: {"description": description, "required": True, "schema": {"type": "string"}}
        for name, description in documentation.items()
    }


_HEADERS = _headers(
    {
        "X-Request-Id": "The request's id, sent by the client or generated; it is also in the server's log.",
        "Threadkeep-Version": "The version of Threadkeep that runs there.",
    }
)
_ERROR_HEADERS = {
    401: {"WWW-Authenticate": "How to sign in: with a bearer token."},
    429: {"Retry-After": "Seconds to wait before retrying the request."},
    503: {"Retry-After": "Seconds to wait before retrying the request."},
}


def _parameters(route: Route, shape: Shape, components: dict[str, Any]) -> list[dict[str, Any]]:
    in_path = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": _PATH.get(name, ""),
            "schema": {"type": "string"},
        }
        for name in shape.path_names
    ]
    properties: dict[str, Any] = components[shape.query.__name__]["properties"] if shape.query else {}
    required = components[shape.query.__name__].get("required", ()) if shape.query else ()
    in_query = [
        {
            "name": name,
            "in": "query",
            "required": name in required,
            "description": described(schema),
            "schema": {key: value for key, value in schema.items() if key != "description"},
        }
        for name, schema in properties.items()
    ]
    in_header = [
        {"name": name, "in": "header", "description": description, "schema": {"type": "string"}}
        for name, description in {**route.headers, **(_REPEATABLE if route.creates else {})}.items()
    ]
    return in_path + in_query + in_header


def described(schema: Mapping[str, Any]) -> str:
    """What a schema says about itself; of something optional, what the schema of its value says."""
    kinds: list[Mapping[str, Any]] = [schema, *schema.get("anyOf", ())]
    return next((" ".join(it["description"].split()) for it in kinds if it.get("description")), "")


def _responses(route: Route, shape: Shape, schema_of: dict[Any, dict[str, Any]]) -> dict[str, Any]:
    responses: dict[str, Any] = {}
    for status in (route.status, *route.also):
        responses[str(status)] = {"description": route.summary, "headers": _HEADERS}
        if status != 204:
            responses[str(status)]["content"] = _content(route, shape, status, schema_of)
            responses[str(status)]["headers"] = {**_HEADERS, **_headers(route.gives)}
    by_status: dict[int, list[str]] = {}
    for error in _errors(route, shape):
        code = error.code
        if _is_of_domain(route) and code == "AGENT_NOT_FOUND":
            code = "DOMAIN_NOT_FOUND"
        by_status.setdefault(STATUSES[code], []).append(code)
    for status, codes in sorted(by_status.items()):
        responses[str(status)] = {
            "description": ", ".join(f"`{code}`" for code in dict.fromkeys(codes)),
            "headers": {**_HEADERS, **_headers(_ERROR_HEADERS.get(status, {}))},
            "content": {"application/json": {"schema": schema_of[ErrorResponse]}},
        }
    return responses


def _content(route: Route, shape: Shape, status: int, schema_of: dict[Any, dict[str, Any]]) -> dict[str, Any]:
    """The bodies of a success with this status."""
    accepts = bool(route.accepted) and status == ACCEPTED
    kinds = [it for it in shape.responses if not route.accepted or (it in route.accepted) is accepts]
    content: dict[str, Any] = {}
    if kinds:
        schemas = [schema_of[kind] for kind in kinds]
        content["application/json"] = {"schema": schemas[0] if len(schemas) == 1 else {"anyOf": schemas}}
    if shape.streams and not accepts:
        content["text/event-stream"] = {"schema": {"type": "string"}}
    for media_type in shape.media_types:
        content[media_type] = {"schema": {"type": "string"}}
    return content


def _errors(route: Route, shape: Shape) -> list[type[ThreadkeepError]]:
    """The errors of the route, and those of every route of its kind."""
    errors = [*route.errors, Forbidden, HeadersTooLarge]
    if route.signed_in:
        errors += [Unauthenticated, UserRequired]
    if shape.query or shape.body or shape.files or "If-Match" in route.headers:
        errors.append(InvalidRequest)
    if route.creates:
        errors += [IdempotencyMismatch, Conflict]
    if route.method != "GET":
        errors += [PayloadTooLarge, RequestTimeout]
    if route.counts_per_minute:
        errors.append(RateLimited)
    if route.added not in {"trial", "nothing"}:
        errors.append(LimitNotAllowed)
    return [*errors, StorageUnavailable]
