"""The ASGI application: routes, sign-in and edge combined."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cache

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, WebSocketRoute
from starlette.routing import Route as StarletteRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from threadkeep.domain.errors import (
    Forbidden,
    MethodNotAllowed,
    RouteNotFound,
    ThreadkeepError,
    Unauthenticated,
)
from threadkeep.domain.ids import UserId
from threadkeep.domain.sharing.share import Sharing
from threadkeep.domain.user import User
from threadkeep.handling.bodies import BodyLimits
from threadkeep.handling.routing import Endpoint, endpoint
from threadkeep.handling.services import Services
from threadkeep.http.edge import Edge
from threadkeep.http.metrics import metrics_endpoint
from threadkeep.http.openapi import openapi
from threadkeep.http.page import Installation, SharePreview, page_routes
from threadkeep.http.paths import Paths
from threadkeep.http.protocols import FOREIGN_ROUTES, error_at, shape_at
from threadkeep.http.reference.page import reference_page
from threadkeep.http.routes import ROUTES
from threadkeep.http.siblings import Siblings
from threadkeep.http.sign_in.method import SignInMethod
from threadkeep.http.sign_in.openid.routes import provider_routes
from threadkeep.http.sign_in.presence import Presence
from threadkeep.http.sign_in.runs import RunSignIn
from threadkeep.ports.models import ModelState
from threadkeep.ports.sign_in import Check
from threadkeep.protocols.agentx.routes import web_socket
from threadkeep.protocols.agentx.socket import SocketLimits
from threadkeep.protocols.mcp.routes import PATH as MCP_PATH
from threadkeep.protocols.mcp.sign_in import METADATA_PATH, resource_metadata, with_challenge
from threadkeep.runtime.own_address import OwnAddress
from threadkeep.services.sharing.shares import Preview
from threadkeep.settings import Settings

# The page needs its own style and nothing else.
_DOCS_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'"
_NOBODY = User(UserId("nobody"))
# OpenAI's SDKs send these headers with every request, `X-Stainless-…`.
_STAINLESS = (
    "Arch",
    "Async",
    "Custom-Poll-Interval",
    "Helper-Method",
    "Lang",
    "OS",
    "Package-Version",
    "Poll-Helper",
    "Raw-Response",
    "Read-Timeout",
    "Retry-Count",
    "Runtime",
    "Runtime-Version",
    "Stream-Helper",
    "Timeout",
)


class Threadkeep:
    """Threadkeep as an ASGI application, standalone or mounted in another."""

    def __init__(
        self,
        settings: Settings,
        sign_in: SignInMethod,
        services: Callable[[], Awaitable[Services]],
        running: Callable[[], AbstractAsyncContextManager[None]],
        *,
        embedded: bool,
        model_state: Callable[[], ModelState],
        siblings: Siblings | None,
        address: OwnAddress,
    ) -> None:
        self.services = services
        self._address = address
        self._running = running
        public_url = None if embedded else settings.sign_in_rules.public_url
        presence = Presence(sign_in, services, public_url=public_url)
        pages = Starlette(
            routes=[
                *_routes(settings, presence, services, siblings),
                *page_routes(
                    model_state=model_state,
                    share_preview=_share_preview(services),
                    installation=_installation(services),
                    embedded=embedded,
                    signs_in=embedded or settings.signs_in,
                    sharing=Sharing(settings.sharing),
                    offline=settings.offline,
                ),
            ],
            exception_handlers={HTTPException: _respond_to_http_exception},
            lifespan=self._lifespan,
        )
        pages.router.redirect_slashes = False
        app = Paths(_endpoints(settings, presence, services), otherwise=pages)
        self._app = Edge(_with_cors(app, settings), settings, embedded=embedded)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._address.learn(scope)
        await self._app(scope, receive, send)

    def listens_at(self, host: str, port: int) -> None:
        """Programs in this process reach the server there; said before any of them can run."""
        self._address.listens_at(host, port)

    def lifespan(self) -> AbstractAsyncContextManager[None]:
        """Runs Threadkeep inside the block; for hosts, which don't run a mounted app's lifespan."""
        return self._running()

    async def delete_user(self, user_id: str) -> None:
        """Permanently deletes a user's data; for hosts, when they delete a user."""
        services = await self.services()
        await services.users.delete(User(UserId(user_id)), user_id)

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncGenerator[None]:
        async with self._running():
            yield


def _share_preview(services: Callable[[], Awaitable[Services]]) -> SharePreview:
    async def preview(token: str) -> Preview | None:
        return await (await services()).shares.preview(token)

    return preview


def _installation(services: Callable[[], Awaitable[Services]]) -> Installation:
    async def installation() -> str:
        return (await services()).store.installation

    return installation


def _endpoints(
    settings: Settings, presence: Presence, services: Callable[[], Awaitable[Services]]
) -> dict[str, dict[str, Endpoint]]:
    """The endpoints of the route table, by path and method."""

    async def nobody(request: Request) -> User:
        return _NOBODY

    async def anybody(request: Request) -> User:
        try:
            return await presence.user(request)
        except (Unauthenticated, Forbidden):
            return _NOBODY

    def still_signed_in(request: Request, user: User) -> Check:
        return presence.checking(lambda: request, user.id)

    runs = RunSignIn(services)
    limits = BodyLimits(
        most_bytes=settings.max_body_bytes,
        most_upload_bytes=settings.max_upload_bytes,
        wait_s=settings.body_timeout_s,
    )
    by_path: dict[str, dict[str, Endpoint]] = {}
    for route in (*ROUTES, *FOREIGN_ROUTES):
        is_open = not route.signed_in or (route.opens_share and settings.sharing == Sharing.ANYONE)
        who = (
            runs.user
            if route.of_run
            else anybody
            if route.recognizes_users
            else nobody
            if is_open
            else presence.user
        )
        check = runs.checking if route.of_run else still_signed_in
        respond = endpoint(route, who, services, limits, check, shape_at(route.path))
        if route.path == MCP_PATH and settings.issuer_url is not None:
            respond = with_challenge(respond)
        by_path.setdefault(route.path, {})[route.method] = respond
    return by_path


def _routes(
    settings: Settings,
    presence: Presence,
    services: Callable[[], Awaitable[Services]],
    siblings: Siblings | None,
) -> list[BaseRoute]:
    """The routes outside the route table."""

    async def get_openapi(request: Request) -> Response:
        return Response(_document(), media_type="application/json")

    async def get_docs(request: Request) -> Response:
        return HTMLResponse(_reference(), headers={"Content-Security-Policy": _DOCS_POLICY})

    socket_limits = SocketLimits(
        most_idle=settings.max_idle_sockets, most_message_bytes=settings.max_body_bytes
    )
    routes: list[BaseRoute] = [
        WebSocketRoute("/ws", web_socket(presence, services, socket_limits)),
        StarletteRoute("/openapi.json", get_openapi),
        StarletteRoute("/metrics", metrics_endpoint(presence, services, siblings)),
        StarletteRoute("/docs", get_docs),
    ]
    if (public_url := settings.sign_in_rules.public_url) is not None and settings.sign_in:
        routes += provider_routes(public_url, services)
    if settings.issuer_url is not None:
        routes.append(StarletteRoute(METADATA_PATH, resource_metadata(settings.issuer_url)))
    return routes


# Generated on first request: they take longer than the rest of the start.
@cache
def _document() -> bytes:
    return msgspec.json.encode(openapi(ROUTES))


@cache
def _reference() -> str:
    return reference_page(openapi(ROUTES))


def _with_cors(app: ASGIApp, settings: Settings) -> ASGIApp:
    if not settings.cors_origins:
        return app
    return CORSMiddleware(
        app,
        # As browsers write an origin: in lower case and without a trailing slash.
        allow_origins=[origin.lower().rstrip("/") for origin in settings.cors_origins],
        allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
        allow_headers=[
            "Authorization",
            "Content-Type",
            "Idempotency-Key",
            "If-Match",
            "Last-Event-ID",
            "X-Api-Key",
            # What other people's clients send.
            "Mcp-Method",
            "Mcp-Name",
            "Mcp-Protocol-Version",
            "Mcp-Session-Id",
            "User-Agent",
            "X-Copilotkit-Runtime-Client-Gql-Version",
            *(f"X-Stainless-{name}" for name in _STAINLESS),
        ],
        expose_headers=[
            "Content-Location",
            "ETag",
            "Location",
            "Mcp-Session-Id",
            "Retry-After",
            "Threadkeep-Version",
            "WWW-Authenticate",
            "X-Request-Id",
        ],
    )


async def _respond_to_http_exception(request: Request, exc: Exception) -> Response:
    """Starlette's own errors, in our format."""
    status = exc.status_code if isinstance(exc, HTTPException) else 500
    error: ThreadkeepError = RouteNotFound() if status == 404 else MethodNotAllowed("Use GET for this path.")
    response = error_at(request.scope, error, request.state.request_id)
    response.headers.update(getattr(exc, "headers", None) or {})  # `Allow` of a 405
    return response
