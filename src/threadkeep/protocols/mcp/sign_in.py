"""Tells MCP clients where to sign in: the protected resource's metadata (RFC 9728), and the way to it."""

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from threadkeep.handling.addresses import own_url
from threadkeep.handling.routing import Endpoint
from threadkeep.protocols.mcp.routes import PATH

METADATA_PATH = f"/.well-known/oauth-protected-resource{PATH}"


def resource_metadata(issuer: str) -> Endpoint:
    """What responds to a client that asks who signs its user in."""

    async def respond(request: Request) -> Response:
        return JSONResponse(
            {
                "resource": own_url(request, PATH),
                "resource_name": "Threadkeep",
                "authorization_servers": [issuer],
                "bearer_methods_supported": ["header"],
            }
        )

    return respond


def with_challenge(respond: Endpoint) -> Endpoint:
    """The same endpoint; a refusal for lack of sign-in says where to find the metadata."""

    async def respond_with_challenge(request: Request) -> Response:
        response = await respond(request)
        if response.status_code == 401:
            metadata = own_url(request, METADATA_PATH)
            response.headers["WWW-Authenticate"] = f'Bearer resource_metadata="{metadata}"'
        return response

    return respond_with_challenge
