"""The errors that client calls raise."""

from collections.abc import Sequence

import httpx2
import msgspec

from threadkeep.domain.errors import ThreadkeepError
from threadkeep.wire.approvals import ApprovalView


class ClientError(ThreadkeepError):
    """The server rejected the request: see `code`, `status` and `message`; `param` and `details` give the
    location.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str,
        status: int,
        param: str | None = None,
        details: object = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(message, param=param, details=details)
        self.code = code  # pyright: ignore[reportAttributeAccessIssue] - here each error has its own
        self.status = status
        self.request_id = request_id


class NotReached(ThreadkeepError):
    """The server didn't respond, the connection broke, or the server isn't Threadkeep."""

    code = "NOT_REACHED"


class MessageQueued(ThreadkeepError):
    """The message is queued behind others, so there is no answer yet; `message_id` is its id."""

    code = "MESSAGE_QUEUED"

    def __init__(self, message_id: str) -> None:
        super().__init__("The message is queued; the agent answers earlier messages first.")
        self.message_id = message_id


class TurnWaiting(ThreadkeepError):
    """The turn is waiting for its user: `answer` each of its `approvals`, then call `reply`."""

    code = "TURN_WAITING"

    def __init__(self, turn_id: str, approvals: Sequence[ApprovalView]) -> None:
        super().__init__("The turn is waiting for the user: " + " ".join(it.message for it in approvals))
        self.turn_id = turn_id
        self.approvals = approvals


class _Error(msgspec.Struct, rename="camel"):
    code: str
    message: str
    param: str | None = None
    details: object = None
    request_id: str | None = None


class _ErrorResponse(msgspec.Struct):
    error: _Error


def to_error(response: httpx2.Response) -> ThreadkeepError:
    """The error in a response."""
    try:
        error = msgspec.json.decode(response.content, type=_ErrorResponse).error
    except msgspec.DecodeError:
        asked = f"{response.request.method} {response.url.copy_with(query=None)}"
        return NotReached(
            f"The server at this address isn't Threadkeep: {asked} returned status {response.status_code}. "
            "If an application mounts Threadkeep under a path, include the path in the address, for "
            "example http://127.0.0.1:8000/chat."
        )
    return ClientError(
        error.message,
        code=error.code,
        status=response.status_code,
        param=error.param,
        details=error.details,
        request_id=error.request_id,
    )
