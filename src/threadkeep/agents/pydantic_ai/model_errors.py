"""Errors of models as they are recorded: what handles them gets the same class whenever the turn runs."""

from typing import Any, cast

from pydantic_ai import exceptions
from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelConnectionError,
    ModelHTTPError,
    ModelServerError,
    ModelUnavailableError,
)
from pydantic_core import to_jsonable_python

TRANSIENT = (ModelConnectionError, ModelUnavailableError, ModelServerError)
"""What another attempt may not meet."""


def recorded(error: ModelAPIError) -> dict[str, Any]:
    """What is kept of an error."""
    return {
        "type": type(error).__name__,
        "model": error.model_name,
        "message": error.message,
        "status": error.status_code if isinstance(error, ModelHTTPError) else None,
        "body": to_jsonable_python(error.body, fallback=str),
        "retry_after": error.retry_after,
    }


def rebuilt(kept: dict[str, Any]) -> ModelAPIError:
    """An error from what is kept of it."""
    known: Any = getattr(exceptions, kept["type"], None)
    is_known = isinstance(known, type) and issubclass(known, ModelAPIError)
    category = cast("type[ModelAPIError] | None", known if is_known else None)
    if kept["status"] is not None:
        is_category = category not in (None, ModelAPIError, ModelHTTPError)
        return ModelHTTPError.for_category(
            cast("Any", category) if is_category else None,
            status_code=kept["status"],
            model_name=kept["model"],
            body=kept["body"],
            retry_after=kept["retry_after"],
        )
    made = ModelAPIError if category is None or issubclass(category, ModelHTTPError) else category
    return made(kept["model"], kept["message"], body=kept["body"], retry_after=kept["retry_after"])
