"""What can go wrong, in the words of the contract.

ThreadkeepError
├── InvalidRequest                 something is malformed; `param` names it
│   └── IdempotencyMismatch
├── Unauthenticated
├── SignInUnavailable              the sign-in provider's keys cannot be fetched
├── Forbidden
├── NotFound                       does not exist, or is not yours
│   ├── AgentNotFound
│   ├── ConversationNotFound
│   ├── MessageNotFound
│   ├── TurnNotFound
│   ├── BriefingNotFound
│   ├── CompactionNotFound
│   ├── ApprovalNotFound
│   ├── DocumentNotFound
│   ├── ArtifactNotFound
│   ├── UserNotFound
│   ├── RoleNotFound               an agent has no role of this name; says which ones it has
│   ├── McpServerNotFound
│   └── RouteNotFound              no such path at all
├── MethodNotAllowed
├── MessageContentRequired
├── MessageTooLong
├── McpConfigInvalid               an MCP server's configuration; `param` names the field
├── McpNameReserved
├── McpCommandNotAllowed
├── PayloadTooLarge
├── HeadersTooLarge
├── RequestTimeout                 a request did not arrive in time
├── TooManyConnections             this node serves as many as it may
├── UnsupportedDocument            a file of a kind that cannot be read, or an empty one
├── UnsupportedFile                a file that a message cannot have: its kind, its size in pixels, or damaged
├── ModelNotAllowed                the operator does not allow this model
├── LimitNotAllowed                more than the operator allows; `details` has the limit
├── Conflict
│   ├── TurnInProgress
│   ├── ApprovalAnswered           the request has another answer already
│   ├── PathChanged                the active path is another than the one the client shows
│   ├── NothingToRegenerate
│   ├── TooFewMessages
│   └── IllegalTransition          a state machine was asked for a step it does not have
├── ApprovalExpired                nobody answered in time, or the turn has ended
├── EventsExpired                  the log of an old turn has been trimmed
├── PreconditionFailed
├── RateLimited                    one user asks for too much at once
├── ShuttingDown                   this process is ending and begins nothing new
├── GatewayNotConfigured
├── SecretKeyRequired              a secret cannot be kept, for there is no key to encrypt it with
├── SecretUnreadable               a kept secret was encrypted with a key that we do not have
├── TurnFailed                     a turn that somebody waited for did not end well
│   ├── GenerationAborted
│   ├── GenerationTimeout
│   ├── GenerationFailed           the model gateway failed
│   └── GenerationInterrupted      the server could not go on with the turn
├── StorageError
│   ├── StorageUnavailable         the database is away, full or read-only; trying later may help
│   ├── StorageConflict            somebody else wrote first; read again and retry
│   └── StorageRefused             the data folder or the schema cannot be used as it is
└── SettingsError                  a setting is wrong; the process does not start

Each class has the `code` that clients see; which HTTP status belongs to it is decided in `http/errors.py`.
"""

from typing import ClassVar


class ThreadkeepError(Exception):
    """The root: everything that Threadkeep raises on purpose."""

    code: ClassVar[str] = "INTERNAL_ERROR"

    def __init__(self, message: str, *, param: str | None = None, details: object = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.details = details


class InvalidRequest(ThreadkeepError):
    """Something is malformed; `param` names it."""

    code = "INVALID_REQUEST"


class IdempotencyMismatch(InvalidRequest):
    """This `Idempotency-Key` was used for another body."""

    code = "IDEMPOTENCY_MISMATCH"


class Unauthenticated(ThreadkeepError):
    """Nobody is signed in, or the token is not valid."""

    code = "UNAUTHENTICATED"


class SignInUnavailable(ThreadkeepError):
    """The sign-in provider's keys cannot be fetched; try again later."""

    code = "SIGN_IN_UNAVAILABLE"


class Forbidden(ThreadkeepError):
    """The user may not do this, or the page or host name that asks is not allowed."""

    code = "FORBIDDEN"


class NotFound(ThreadkeepError):
    """Does not exist, or is not yours: the two are never told apart."""

    noun: ClassVar[str] = "thing"

    def __init__(self, message: str = "", *, param: str | None = None, details: object = None) -> None:
        super().__init__(
            message or f"{self.noun[0].upper()}{self.noun[1:]} not found.", param=param, details=details
        )


class AgentNotFound(NotFound):
    code, noun = "AGENT_NOT_FOUND", "agent"


class ConversationNotFound(NotFound):
    code, noun = "CONVERSATION_NOT_FOUND", "conversation"


class MessageNotFound(NotFound):
    code, noun = "MESSAGE_NOT_FOUND", "message"


class TurnNotFound(NotFound):
    code, noun = "TURN_NOT_FOUND", "turn"


class ApprovalNotFound(NotFound):
    code, noun = "APPROVAL_NOT_FOUND", "approval"


class BriefingNotFound(NotFound):
    code, noun = "BRIEFING_NOT_FOUND", "briefing"


class CompactionNotFound(NotFound):
    code, noun = "COMPACTION_NOT_FOUND", "compaction"


class DocumentNotFound(NotFound):
    code, noun = "DOCUMENT_NOT_FOUND", "document"


class ArtifactNotFound(NotFound):
    code, noun = "ARTIFACT_NOT_FOUND", "artifact"


class FileNotFound(NotFound):
    code, noun = "FILE_NOT_FOUND", "file"


class UserNotFound(NotFound):
    code, noun = "USER_NOT_FOUND", "user"


class RoleNotFound(NotFound):
    """The agent has no role of this name; the message says which ones there are."""

    code, noun = "ROLE_NOT_FOUND", "role"


class McpServerNotFound(NotFound):
    code, noun = "MCP_SERVER_NOT_FOUND", "MCP server"


class RouteNotFound(NotFound):
    """Path not found."""

    code, noun = "NOT_FOUND", "path"


class MethodNotAllowed(ThreadkeepError):
    """The path does not take this method; the header `Allow` says which."""

    code = "METHOD_NOT_ALLOWED"


class MessageContentRequired(ThreadkeepError):
    """A message without content, or a blank one."""

    code = "MESSAGE_CONTENT_REQUIRED"


class MessageTooLong(ThreadkeepError):
    """The message is longer than the agent's `maxMessageChars`."""

    code = "MESSAGE_TOO_LONG"


class McpConfigInvalid(ThreadkeepError):
    """An MCP server's configuration is wrong; `param` names the field."""

    code = "MCP_CONFIG_INVALID"


class McpNameReserved(ThreadkeepError):
    """An MCP server of the system has this name."""

    code = "MCP_NAME_RESERVED"


class McpCommandNotAllowed(ThreadkeepError):
    """The operator does not allow this program as an MCP server."""

    code = "MCP_COMMAND_NOT_ALLOWED"


class PayloadTooLarge(ThreadkeepError):
    """The body or a file is too large."""

    code = "PAYLOAD_TOO_LARGE"


class HeadersTooLarge(ThreadkeepError):
    """The address and the headers of a request are too large together."""

    code = "HEADERS_TOO_LARGE"


class RequestTimeout(ThreadkeepError):
    """The headers or the body did not arrive in time; send the request again."""

    code = "REQUEST_TIMEOUT"


class TooManyConnections(ThreadkeepError):
    """This node serves as many connections as it may; try again, or ask another."""

    code = "TOO_MANY_CONNECTIONS"


class UnsupportedDocument(ThreadkeepError):
    """A file of a kind that cannot be read, or an empty one."""

    code = "UNSUPPORTED_DOCUMENT"


class UnsupportedFile(ThreadkeepError):
    """A message cannot have this file: its kind is not accepted, or it is empty, damaged or too large."""

    code = "UNSUPPORTED_FILE"


class ModelNotAllowed(ThreadkeepError):
    """The operator does not allow this model; `details.models` lists those that may be chosen."""

    code = "MODEL_NOT_ALLOWED"


class LimitNotAllowed(ThreadkeepError):
    """More than the operator allows; `details` names the limit and its largest value."""

    code = "LIMIT_NOT_ALLOWED"


class Conflict(ThreadkeepError):
    """Something has changed meanwhile; read it again."""

    code = "CONFLICT"


class TurnInProgress(Conflict):
    """A turn runs in the conversation; `details.turnId` names it."""

    code = "TURN_IN_PROGRESS"


class ApprovalAnswered(Conflict):
    """The request has another answer already."""

    code = "APPROVAL_ANSWERED"


class PathChanged(Conflict):
    """The active path is another than the one the client shows; `details.tip` names its last message."""

    code = "PATH_CHANGED"


class NothingToRegenerate(Conflict):
    """There is no reply to a question that could be answered again."""

    code = "NOTHING_TO_REGENERATE"


class TooFewMessages(Conflict):
    """There is too little to compact."""

    code = "TOO_FEW_MESSAGES"


class IllegalTransition(Conflict):
    """This step is not possible in the present state."""

    code = "ILLEGAL_TRANSITION"


class ApprovalExpired(ThreadkeepError):
    """Nobody answered in time, or the turn that asked has ended."""

    code = "APPROVAL_EXPIRED"


class EventsExpired(ThreadkeepError):
    """The turn's events are no longer kept; read the message instead."""

    code = "EVENTS_EXPIRED"


class PreconditionFailed(ThreadkeepError):
    """It is not the version that `If-Match` names."""

    code = "PRECONDITION_FAILED"


class RateLimited(ThreadkeepError):
    """The user asks for too much at once; try again after `Retry-After` seconds."""

    code = "RATE_LIMITED"

    def __init__(self, message: str, *, details: object = None, retry_after_s: int = 1) -> None:
        super().__init__(message, details=details)
        self.retry_after_s = retry_after_s


class ShuttingDown(ThreadkeepError):
    """This process is ending and begins nothing new; try again. `details.turnId` names a turn that was waited
    for and goes on elsewhere: with the same `Idempotency-Key` one waits for it again.
    """

    code = "SHUTTING_DOWN"


class GatewayNotConfigured(ThreadkeepError):
    """The operator has not set up a model."""

    code = "GATEWAY_NOT_CONFIGURED"

    def __init__(self) -> None:
        super().__init__(
            "No model is set up. The operator can set ANTHROPIC_API_KEY or OPENAI_API_KEY, or for a server "
            "of their own THREADKEEP_GATEWAY and THREADKEEP_GATEWAY_URL."
        )


class SecretKeyRequired(ThreadkeepError):
    """A secret cannot be kept, for there is no key to encrypt it with."""

    code = "SECRET_KEY_REQUIRED"


class SecretUnreadable(ThreadkeepError):
    """A kept secret was encrypted with a key that we do not have."""

    code = "SECRET_UNREADABLE"


class TurnFailed(ThreadkeepError):
    """A turn that somebody waited for did not end well; `details` has the partial message."""


class GenerationAborted(TurnFailed):
    """The turn that was waited for was stopped; `details.message` has what it said."""

    code = "GENERATION_ABORTED"


class GenerationTimeout(TurnFailed):
    """The turn took longer than the agent's `generationTimeoutS`; `details.message` has what it said."""

    code = "GENERATION_TIMEOUT"


class GenerationFailed(TurnFailed):
    """The model gateway failed; `details.message` has what was said before."""

    code = "AGENTX_ERROR"


class GenerationInterrupted(TurnFailed):
    """The server could not go on with the turn; `details.message` has what was said before."""

    code = "INTERRUPTED"


class StorageError(ThreadkeepError):
    """The database is away, full or read-only; nothing was written, and trying later may help."""

    code = "STORAGE_UNAVAILABLE"


class StorageUnavailable(StorageError):
    """Trying later may help."""


class StorageConflict(StorageError):
    """Somebody else wrote first, or a constraint refused the row."""

    code = "CONFLICT"


class StorageRefused(StorageError):
    """The data folder or the schema cannot be used as it is; says what to do."""


class SettingsError(ThreadkeepError):
    """A setting is wrong; says which one and what is allowed."""

    code = "SETTINGS_ERROR"
