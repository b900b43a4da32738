"""What a client's calls raise."""

from collections.abc import Sequence

import httpx2
import msgspec

from threadkeep.domain.errors import ThreadkeepError
from threadkeep.wire.approvals import ApprovalView


class ClientError(ThreadkeepError):
    """The server refused: `code`, `status` and `message` say what; `param` and `details` where."""

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
    """The server does not answer, the connection broke, or what answers is no Threadkeep."""

    code = "NOT_REACHED"


class MessageQueued(ThreadkeepError):
    """The message waits behind others, so there is no answer to it yet; `message_id` names it."""

    code = "MESSAGE_QUEUED"

    def __init__(self, message_id: str) -> None:
        super().__init__("The message is queued; the agent answers earlier messages first.")
        self.message_id = message_id


class TurnWaiting(ThreadkeepError):
    """The turn waits for its user: `approvals` are what it asks. `answer` each one, then take its `reply`."""

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


class _Answer(msgspec.Struct):
    error: _Error


def to_error(answer: httpx2.Response) -> ThreadkeepError:
    """The error that an answer tells."""
    try:
        told = msgspec.json.decode(answer.content, type=_Answer).error
    except msgspec.DecodeError:
        asked = f"{answer.request.method} {answer.url.copy_with(query=None)}"
        return NotReached(
            f"The server at this address isn't Threadkeep: {asked} returned status {answer.status_code}. "
            "If an application mounts Threadkeep under a path, include the path in the address, for "
            "example http://127.0.0.1:8000/chat."
        )
    return ClientError(
        told.message,
        code=told.code,
        status=answer.status_code,
        param=told.param,
        details=told.details,
        request_id=told.request_id,
    )
