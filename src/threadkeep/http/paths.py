"""Finds a path's endpoint in as many steps as the path has parts, however many routes there are.

Starlette's router tries one regular expression after the other: 33 µs of CPU where this takes 10 (the 19th of
73 routes, get-or-create), 87 where this takes 11 (the last ones). A whole get-or-create takes 166 µs.
`python -m bench --only paths` measures it.
"""

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from threadkeep.domain.errors import MethodNotAllowed
from threadkeep.domain.ids import is_uuid
from threadkeep.handling.routing import Endpoint
from threadkeep.http.protocols import error_at
from threadkeep.program_log import add_to_subject

_LOGGED = ("conversation_id", "turn_id")


class Paths:
    """The paths of the API; passes other requests on to another application."""

    def __init__(self, endpoints: Mapping[str, Mapping[str, Endpoint]], otherwise: ASGIApp) -> None:
        self._root = _PathNode()
        self._otherwise = otherwise
        for path, by_method in endpoints.items():
            self._root.make(path.split("/")).endpoint = _PathEndpoint(path, by_method)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            path, mounted_at = scope["path"], scope.get("root_path", "")
            node, scope["path_params"] = self._root.find(path.removeprefix(mounted_at).split("/"))
            if node is not None and node.endpoint is not None:
                scope["route"] = node.endpoint
                for name in _LOGGED:
                    if is_uuid(id_ := scope["path_params"].get(name, "")):
                        add_to_subject(**{name: id_.lower()})
                await node.endpoint(scope, receive, send)
                return
        await self._otherwise(scope, receive, send)


class _PathNode:
    """A node of the path tree: its children by fixed part, or by a named parameter."""

    __slots__ = ("by_any", "by_part", "endpoint", "name")

    def __init__(self) -> None:
        self.by_part: dict[str, _PathNode] = {}
        self.by_any: _PathNode | None = None
        self.name = ""
        self.endpoint: _PathEndpoint | None = None

    def make(self, parts: list[str]) -> "_PathNode":
        """The node at the end of a route's path."""
        here = self
        for part in parts:
            if part.startswith("{"):
                here.by_any = here.by_any or _PathNode()
                here, name = here.by_any, part[1:-1]
                if here.name not in ("", name):
                    raise TypeError(f"one part of a path is called both {here.name} and {name}")
                here.name = name
            else:
                here = here.by_part.setdefault(part, _PathNode())
        return here

    def find(self, parts: list[str]) -> tuple["_PathNode | None", dict[str, str]]:
        """The node that a path leads to, and its parameters."""
        here, named = self, dict[str, str]()
        for part in parts:
            if (fixed := here.by_part.get(part)) is not None:
                here = fixed
            elif here.by_any is not None and part:
                here = here.by_any
                named[here.name] = part
            else:
                return None, {}
        return here, named


class _PathEndpoint:
    """Responds to all methods of one path."""

    def __init__(self, path: str, endpoints: Mapping[str, Endpoint]) -> None:
        self.path = path
        self._endpoints = dict(endpoints)
        if "GET" in endpoints:
            self._endpoints["HEAD"] = endpoints["GET"]
        self._allow = ", ".join(sorted({*self._endpoints, "OPTIONS"}))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        respond = self._endpoints.get(scope["method"])
        if respond is not None:
            response = await respond(request)
        elif scope["method"] == "OPTIONS":
            response = Response(status_code=204, headers={"Allow": self._allow})
        else:
            error = MethodNotAllowed(f"This path accepts {self._allow}.")
            response = error_at(scope, error, request.state.request_id)
            response.headers["Allow"] = self._allow
        await response(scope, receive, send)
