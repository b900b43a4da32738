"""The protocols besides our own API: their routes, and how errors look under their paths."""

from collections.abc import Mapping

from starlette.responses import Response
from starlette.types import Scope

from threadkeep.domain.errors import ThreadkeepError
from threadkeep.handling.errors import ErrorShape, domain_shape, error_response, our_shape
from threadkeep.handling.routing import Route
from threadkeep.protocols.ag_ui import routes as ag_ui
from threadkeep.protocols.ai_sdk import routes as ai_sdk
from threadkeep.protocols.mcp import routes as mcp
from threadkeep.protocols.openai import errors as openai_errors
from threadkeep.protocols.openai import routes as openai
from threadkeep.protocols.openai import run_completions as runs

FOREIGN_ROUTES: tuple[Route, ...] = (
    *ai_sdk.ROUTES,
    *ag_ui.ROUTES,
    *openai.ROUTES,
    *runs.ROUTES,
    *mcp.ROUTES,
)
"""Routes whose requests and responses other people define; they aren't in our OpenAPI document."""

_SHAPES: Mapping[str, ErrorShape] = {
    "/api/domains": domain_shape,
    ai_sdk.PREFIX: ai_sdk.error_shape,
    ag_ui.PREFIX: ag_ui.error_shape,
    runs.PREFIX: openai_errors.error_shape,
    openai.PREFIX: openai_errors.error_shape,
    mcp.PATH: mcp.error_shape,
}
"""How errors look, by the beginning of the path."""


def shape_at(path: str) -> ErrorShape:
    """How errors look at a path."""
    return next(
        (shape for prefix, shape in _SHAPES.items() if f"{path}/".startswith(f"{prefix}/")), our_shape
    )


def error_at(scope: Scope, error: ThreadkeepError, request_id: str) -> Response:
    """An error in the shape of the protocol that the path belongs to."""
    path: str = scope["path"].removeprefix(scope.get("root_path", ""))  # a host may have mounted us
    return error_response(error, request_id=request_id, shape=shape_at(path))
