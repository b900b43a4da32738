"""The route table. OpenAPI is generated from it, so every route is documented."""

import re
from collections.abc import Iterator
from dataclasses import replace

from threadkeep.handling.routing import Route
from threadkeep.http.tables.agents import AGENTS, DOCUMENTS, MEMORIES, MODELS
from threadkeep.http.tables.briefings import BRIEFINGS
from threadkeep.http.tables.conversations import CONVERSATIONS, IMPORTS, SEARCH
from threadkeep.http.tables.operating import OPERATING
from threadkeep.http.tables.reports import REPORTS, SHARES
from threadkeep.http.tables.turns import CHAT, COMPACTIONS, MESSAGES
from threadkeep.http.tables.users import KEYS, USERS

_TABLE = (
    *USERS,
    *KEYS,
    *AGENTS,
    *MEMORIES,
    *DOCUMENTS,
    *CONVERSATIONS,
    *IMPORTS,
    *MESSAGES,
    *COMPACTIONS,
    *BRIEFINGS,
    *CHAT,
    *REPORTS,
    *SHARES,
    *SEARCH,
    *MODELS,
    *OPERATING,
)
"""In the order of the reference."""


_ABORTED = re.compile(r"/api/(?:conversations|admin/turns)/{\w+}/stop")


def _second_names(route: Route) -> Iterator[Route]:
    """The same route under the names of the requirements: an agent is a domain there, to stop is to abort."""
    if route.path.startswith("/api/agents"):
        yield replace(route, path=route.path.replace("/api/agents", "/api/domains", 1), alias_of=route.path)
    if _ABORTED.fullmatch(route.path):
        yield replace(route, path=f"{route.path.removesuffix('stop')}abort", alias_of=route.path)


ROUTES = (*_TABLE, *(second for route in _TABLE for second in _second_names(route)))
