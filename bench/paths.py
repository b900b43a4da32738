"""What finding a path's handler costs: our own `Paths` against starlette's router with the same routes.

Both answer with the same response, without a network; what differs is how they find who answers. Ours also
notes the conversation for the log. The rows name CPU per request, which a busy machine changes little.
"""

from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as StarletteRoute
from starlette.routing import Router
from starlette.types import ASGIApp

from bench.measure import Effort, calls_a_block, race
from bench.table import Times
from threadkeep.domain.ids import new_uuid
from threadkeep.handling.routing import Endpoint
from threadkeep.http.paths import Paths
from threadkeep.http.routes import ROUTES

ASKED = {
    "first of the table": ("GET", "/api/me"),
    "get-or-create, the 19th": ("PUT", f"/api/agents/{new_uuid()}/conversation"),
    "messages, the 26th": ("GET", f"/api/conversations/{new_uuid()}/messages"),
    "an alias, the 72nd": ("GET", f"/api/domains/{new_uuid()}/conversations"),
    "unknown": ("GET", "/nowhere"),
}


async def measure(effort: Effort, databases: Sequence[str]) -> Sequence[Times]:
    """Every kind of path, asked of both in turn."""
    lines: list[Times] = []
    ours, theirs = Paths(_endpoints(), otherwise=_missing), _starlette()
    for name, (method, path) in ASKED.items():
        calls = {"ours": _asking(ours, method, path), "starlette": _asking(theirs, method, path)}
        times = await calls_a_block(calls, effort.read_block_ms)
        blocks = await race(calls, rounds=effort.read_rounds, times=times)
        lines += [Times.of(f"{name}: {who}", [it.cpu for it in blocks[who]], unit="µs CPU") for who in calls]
    return lines


async def _answer(request: Request) -> Response:
    return Response(b"{}", media_type="application/json")


async def _missing(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
    await Response(status_code=404)(scope, receive, send)


def _endpoints() -> Mapping[str, Mapping[str, Endpoint]]:
    by_path: dict[str, dict[str, Endpoint]] = {}
    for route in ROUTES:
        by_path.setdefault(route.path, {})[route.method] = _answer
    return by_path


def _starlette() -> Router:
    routes = [
        StarletteRoute(path, _answer, methods=list(by_method)) for path, by_method in _endpoints().items()
    ]
    return Router(routes=routes, default=_missing, redirect_slashes=False)


def _asking(app: ASGIApp, method: str, path: str) -> Any:
    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: MutableMapping[str, Any]) -> None:
        pass

    async def call() -> None:
        scope: dict[str, Any] = {"type": "http", "method": method, "path": path, "headers": [], "state": {}}
        await app(scope, receive, send)

    return call
