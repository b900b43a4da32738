"""The route `/mcp`, and the shape of its errors.

Sign-in, keys and limits of the body are those of every route; the SDK receives what has passed them.
"""

import asyncio
from collections.abc import Callable

import msgspec

from threadkeep.domain import errors
from threadkeep.domain.errors import InvalidRequest, ThreadkeepError
from threadkeep.domain.key import Scope
from threadkeep.handling.errors import ShapedError
from threadkeep.handling.routing import RequestContext, Route
from threadkeep.handling.stream import LastingResponse

PATH = "/mcp"

INVALID_REQUEST = -32600
INTERNAL_ERROR = -32603

Respond = Callable[[RequestContext, bytes], LastingResponse]


async def respond(request: RequestContext, *, body: msgspec.Raw) -> LastingResponse:
    """Respond to one JSON-RPC message of an MCP client."""
    message = bytes(body)
    if not message.lstrip().startswith(b"{"):
        raise InvalidRequest("Send one JSON-RPC message per request; there are no batches.")
    respond = await asyncio.to_thread(_load_response)
    return respond(request, message)


def _load_response() -> Respond:
    # In a thread: the first request waits for it, the others don't.
    from threadkeep.protocols.mcp.response import McpResponse  # noqa: PLC0415 - many never need the SDK

    return McpResponse


def error_shape(error: ThreadkeepError, status: int, request_id: str) -> ShapedError:
    """An error before the SDK has seen the message: a JSON-RPC error without an id."""
    code = INTERNAL_ERROR if status >= 500 else INVALID_REQUEST
    data = {"code": error.code, "requestId": request_id}
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": error.message, "data": data}}
    return ShapedError(msgspec.json.encode(body))


ROUTES: tuple[Route, ...] = (
    Route(
        "POST",
        PATH,
        respond,
        "MCP",
        errors=(errors.PayloadTooLarge,),
        scope=Scope.READ,  # tools that need more check it themselves
        stores="nothing",
        most_body_bytes=None,
    ),
)
