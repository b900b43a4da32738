"""Errors as clients see them: one shape, and one status per code."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from starlette.responses import Response

from threadkeep.domain import errors
from threadkeep.domain.errors import ThreadkeepError

STATUSES: dict[str, int] = {
    errors.MessageContentRequired.code: 400,
    errors.MessageTooLong.code: 400,
    errors.McpConfigInvalid.code: 400,
    errors.McpNameReserved.code: 400,
    errors.McpCommandNotAllowed.code: 400,
    errors.Unauthenticated.code: 401,
    errors.UserRequired.code: 401,
    errors.BudgetExceeded.code: 402,
    errors.OutputInvalid.code: 502,
    errors.Forbidden.code: 403,
    errors.AgentNotFound.code: 404,
    "DOMAIN_NOT_FOUND": 404,
    errors.ConversationNotFound.code: 404,
    errors.MessageNotFound.code: 404,
    errors.TurnNotFound.code: 404,
    errors.ApprovalNotFound.code: 404,
    errors.BriefingNotFound.code: 404,
    errors.MemoryNotFound.code: 404,
    errors.CompactionNotFound.code: 404,
    errors.DocumentNotFound.code: 404,
    errors.ArtifactNotFound.code: 404,
    errors.FileNotFound.code: 404,
    errors.UserNotFound.code: 404,
    errors.ModelNotFound.code: 404,
    errors.GatewayNotFound.code: 404,
    errors.KeyNotFound.code: 404,
    errors.ShareNotFound.code: 404,
    errors.ImportNotFound.code: 404,
    errors.SessionNotFound.code: 404,
    errors.InvitationNotFound.code: 404,
    errors.RoleNotFound.code: 404,
    errors.McpServerNotFound.code: 404,
    errors.RouteNotFound.code: 404,
    errors.MethodNotAllowed.code: 405,
    errors.RequestTimeout.code: 408,
    errors.TurnInProgress.code: 409,
    errors.ImportInProgress.code: 409,
    errors.ApprovalAnswered.code: 409,
    errors.PathChanged.code: 409,
    errors.NothingToRegenerate.code: 409,
    errors.TooFewMessages.code: 409,
    errors.ConversationFull.code: 409,
    errors.AgentInCode.code: 409,
    errors.NotRerunnable.code: 409,
    errors.IllegalTransition.code: 409,
    errors.GatewayNotConfigured.code: 409,
    errors.SecretKeyRequired.code: 409,
    errors.OtherUserSignedIn.code: 409,
    errors.Conflict.code: 409,
    errors.EventsExpired.code: 410,
    errors.ApprovalExpired.code: 410,
    errors.InvitationEnded.code: 410,
    errors.PreconditionFailed.code: 412,
    errors.PayloadTooLarge.code: 413,
    errors.RangeNotSatisfiable.code: 416,
    errors.InvalidRequest.code: 422,
    errors.IdempotencyMismatch.code: 422,
    errors.ModelNotAllowed.code: 422,
    errors.LimitNotAllowed.code: 422,
    errors.UnsupportedDocument.code: 422,
    errors.UnsupportedFile.code: 422,
    errors.UnsupportedImport.code: 422,
    errors.RateLimited.code: 429,
    errors.HeadersTooLarge.code: 431,
    errors.GenerationAborted.code: 499,
    errors.GenerationFailed.code: 502,
    errors.AgentFailed.code: 502,
    errors.AgentDiverged.code: 502,
    errors.EffectUnknown.code: 502,
    errors.TooManySteps.code: 502,
    errors.GenerationInterrupted.code: 503,
    errors.AgentAbsent.code: 503,
    errors.ShuttingDown.code: 503,
    errors.SignInUnavailable.code: 503,
    errors.StorageUnavailable.code: 503,
    errors.TooManyConnections.code: 503,
    errors.GenerationTimeout.code: 504,
    ThreadkeepError.code: 500,
}


class ErrorBody(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What went wrong."""

    code: Annotated[str, Meta(description="What happened, as a code that programs can compare.")]
    message: Annotated[str, Meta(description="What happened and what to do, in English, for people.")]
    request_id: Annotated[str, Meta(description="The request's id, which is also in the server's log.")]
    param: Annotated[str | None, Meta(description="The field or parameter that is wrong, if one is.")] = None
    details: Annotated[
        Any, Meta(description="More about some errors, such as `turnId`; the error's row says what.")
    ] = None


class ErrorResponse(msgspec.Struct, frozen=True):
    """The shape of every error."""

    error: Annotated[ErrorBody, Meta(description="What went wrong, and what to do about it.")]


_RETRY_IN_A_SECOND = 503
"""The status of temporary errors: a retry of the same request may succeed."""

_OF_TURNS: dict[str, type[ThreadkeepError]] = {
    error.code: error
    for error in (
        errors.GenerationFailed,
        errors.GenerationTimeout,
        errors.GenerationInterrupted,
        errors.OutputInvalid,
        errors.AgentFailed,
        errors.AgentDiverged,
        errors.EffectUnknown,
        errors.TooManySteps,
        errors.AgentAbsent,
        errors.BudgetExceeded,
    )
}

_encode = msgspec.json.Encoder().encode


def error_of_turn(code: str) -> type[ThreadkeepError]:
    """The error of a request that waited for a turn, by the code with which that failed."""
    return _OF_TURNS.get(code, errors.GenerationFailed)


@dataclass(frozen=True, slots=True)
class ShapedError:
    """An error in the words of a protocol."""

    body: bytes
    media_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    status: int | None = None
    """The protocol's own status for it, if it has another one."""


ErrorShape = Callable[[ThreadkeepError, int, str], ShapedError]
"""How a protocol reports an error, given its status and the request's id."""


def our_shape(error: ThreadkeepError, status: int, request_id: str) -> ShapedError:
    """The shape of errors in our own API."""
    body = ErrorBody(
        code=error.code,
        message=error.message,
        request_id=request_id,
        param=error.param,
        details=error.details,
    )
    return ShapedError(_encode(ErrorResponse(body)) + b"\n")


def domain_shape(error: ThreadkeepError, status: int, request_id: str) -> ShapedError:
    """The same under `/api/domains`, where an agent is called a domain."""
    if isinstance(error, errors.AgentNotFound):
        body = ErrorBody(code="DOMAIN_NOT_FOUND", message=error.message, request_id=request_id)
        return ShapedError(_encode(ErrorResponse(body)) + b"\n")
    return our_shape(error, status, request_id)


def error_response(error: ThreadkeepError, *, request_id: str, shape: ErrorShape = our_shape) -> Response:
    """An error as a response in a protocol's shape."""
    status = STATUSES.get(error.code, 500)
    shaped = shape(error, status, request_id)
    response = Response(shaped.body, shaped.status or status, shaped.headers, media_type=shaped.media_type)
    if isinstance(error, errors.Unauthenticated | errors.UserRequired):
        response.headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, errors.RateLimited):
        response.headers["Retry-After"] = str(error.retry_after_s)
    if isinstance(error, errors.RangeNotSatisfiable):
        response.headers["Content-Range"] = f"bytes */{error.size}"
    if status == _RETRY_IN_A_SECOND or isinstance(error, errors.ConversationChanging):
        response.headers["Retry-After"] = "1"
    return response
