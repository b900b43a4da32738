"""Errors as OpenAI's API reports them: the status decides their class in its SDKs."""

import msgspec

from threadkeep.domain import errors
from threadkeep.domain.errors import ThreadkeepError
from threadkeep.domain.events import Failed
from threadkeep.handling.errors import STATUSES, ShapedError, error_of_turn

NO_RETRY = {"x-should-retry": "false"}
"""SDKs repeat what was refused with 409, 429 or 5xx; some of it stays refused."""

_STATUSES = {
    errors.InvalidRequest.code: 400,
    errors.IdempotencyMismatch.code: 400,
    errors.ModelNotAllowed.code: 400,
    errors.LimitNotAllowed.code: 400,
    errors.UnsupportedFile.code: 400,
    errors.BudgetExceeded.code: 429,
    errors.MethodNotAllowed.code: 404,  # `responses/compact` is an endpoint that isn't here, not a response
}
_CODES = {
    errors.Unauthenticated.code: "invalid_api_key",
    errors.AgentNotFound.code: "model_not_found",
    errors.ModelNotFound.code: "model_not_found",
    errors.ModelNotAllowed.code: "model_not_found",
    errors.TurnNotFound.code: "response_not_found",
    errors.RateLimited.code: "rate_limit_exceeded",
    errors.BudgetExceeded.code: "insufficient_quota",
}
_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


class ErrorBody(msgspec.Struct, frozen=True):
    """What went wrong."""

    message: str
    type: str
    param: str | None
    code: str | None


class Error(msgspec.Struct, frozen=True):
    """The shape of every error."""

    error: ErrorBody


def body_of(error: ThreadkeepError, status: int) -> Error:
    """An error in OpenAI's words; one that it doesn't have keeps ours, in lower case."""
    kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    is_unknown = isinstance(error, errors.RouteNotFound | errors.MethodNotAllowed)
    code = None if is_unknown else _CODES.get(error.code, error.code.lower())
    return Error(ErrorBody(error.message, kind, error.param, code))


def error_of(failed: Failed) -> ThreadkeepError:
    """The error of a failed turn, for a request that has no response to report it in."""
    return error_of_turn(failed.code)(failed.message)


def told(error: ThreadkeepError) -> Error:
    """An error within a stream."""
    return body_of(error, status_of(error))


def status_of(error: ThreadkeepError) -> int:
    """The status of an error."""
    return _STATUSES.get(error.code) or STATUSES.get(error.code, 500)


def _is_tried_in_vain(error: ThreadkeepError) -> bool:
    """Whether repeating a request only costs more: models that fail have been called again already."""
    is_failure = isinstance(error, errors.TurnFailed) and not isinstance(error, errors.GenerationInterrupted)
    return is_failure or isinstance(error, errors.BudgetExceeded | errors.OutputInvalid)


def error_shape(error: ThreadkeepError, status: int, request_id: str) -> ShapedError:
    """The shape of errors under `/v1`."""
    status = status_of(error)
    stays = (status == 409 and not isinstance(error, errors.ConversationChanging)) or _is_tried_in_vain(error)
    body = msgspec.json.encode(body_of(error, status)) + b"\n"
    return ShapedError(body, headers=NO_RETRY if stays else {}, status=status)
