"""The errors Threadkeep raises, by the names clients see.

ThreadkeepError
├── InvalidRequest                 something is malformed; `param` names it
│   ├── IdempotencyMismatch
│   └── UnsupportedImport          not an export, or one that can't be read; `details.reason` says why
├── Unauthenticated
├── UserRequired                   an API key that acts for users, and none is named
├── SignInUnavailable              couldn't fetch the sign-in provider's keys
├── Forbidden
├── NotFound                       does not exist, or is not yours
│   ├── AgentNotFound
│   ├── ConversationNotFound
│   ├── MessageNotFound
│   ├── TurnNotFound
│   ├── ApprovalNotFound
│   ├── BriefingNotFound
│   ├── MemoryNotFound
│   ├── CompactionNotFound
│   ├── DocumentNotFound
│   ├── ArtifactNotFound
│   ├── FileNotFound
│   ├── UserNotFound
│   ├── ModelNotFound              no gateway has it
│   ├── GatewayNotFound
│   ├── KeyNotFound
│   ├── SessionNotFound
│   ├── InvitationNotFound
│   ├── ImportNotFound
│   ├── ShareNotFound
│   ├── RoleNotFound               the agent has no such role; the message lists those it has
│   ├── McpServerNotFound
│   └── RouteNotFound              no route has this path
├── MethodNotAllowed
├── MessageContentRequired
├── MessageTooLong
├── McpConfigInvalid               an MCP server's configuration; `param` names the field
├── McpNameReserved
├── McpCommandNotAllowed
├── PayloadTooLarge
├── HeadersTooLarge
├── RequestTimeout                 the request did not arrive in time
├── TooManyConnections             this node has reached its connection limit
├── RangeNotSatisfiable            a `Range` beyond the file's end
├── UnsupportedDocument            an unsupported file type, or an empty file
├── UnsupportedFile                a file that messages don't accept: wrong type, too many pixels, or damaged
├── ModelNotAllowed                the operator does not allow this model
├── BudgetExceeded                 a budget has no room; `details` has the budget
├── LimitNotAllowed                more than the operator allows; `details` has the limit
├── Conflict
│   ├── ConversationChanging       other requests kept changing it; retrying helps
│   ├── TurnInProgress
│   ├── ImportInProgress           the user's previous import has not ended
│   ├── ApprovalAnswered           the request already has a different answer
│   ├── PathChanged                the client shows an outdated path
│   ├── NothingToRegenerate
│   ├── TooFewMessages
│   ├── ConversationFull           more messages than the operator allows
│   ├── AgentInCode                the agent's code declares this field; `param` names it
│   ├── NotRerunnable              what the turn's model received is not stored
│   └── IllegalTransition          the current state doesn't allow this step
├── ApprovalExpired                nobody answered in time, or the turn has ended
├── EventsExpired                  the events of an old turn have been deleted
├── InvitationEnded                it was used already, or has expired
├── OtherUserSignedIn              this browser is signed in as somebody else
├── PreconditionFailed
├── RateLimited                    the user has reached a rate limit
├── AgentAbsent                    the agent is a program that nobody runs
├── ShuttingDown                   this process is shutting down and accepts no new work
├── GatewayNotConfigured
├── SecretKeyRequired              no key is configured to encrypt secrets
├── SecretUnreadable               a stored secret was encrypted with a missing key
├── TurnFailed                     the turn the client waited for did not complete
│   ├── GenerationAborted
│   ├── GenerationTimeout
│   ├── GenerationFailed           the model gateway failed
│   ├── GenerationInterrupted      the server couldn't continue the turn
│   ├── AgentFailed                the agent's code failed
│   ├── AgentDiverged              the agent's code has changed since the turn began
│   ├── EffectUnknown              a step of the agent's code was cut off and may have taken effect
│   └── TooManySteps               the agent's code took more steps than a turn may have
├── StorageError
│   ├── StorageUnavailable         the database is unreachable, full or read-only; retrying may help
│   ├── StorageConflict            another writer was first; read again and retry
│   └── StorageRefused             the data folder or the schema is unusable; the message says what to do
└── SettingsError                  a setting is invalid; the process does not start

Each class has the `code` that clients see; `handling/errors.py` maps it to an HTTP status.
"""

from typing import ClassVar

UNEXPECTED = "The server failed unexpectedly. Its operator finds the reason in the log."
"""What users are told when our own code fails."""


class ThreadkeepError(Exception):
    """The base class of every error Threadkeep raises."""

    code: ClassVar[str] = "INTERNAL_ERROR"

    def __init__(self, message: str, *, param: str | None = None, details: object = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.details = details


class InvalidRequest(ThreadkeepError):
    """The request is malformed; `param` names the field."""

    code = "INVALID_REQUEST"


class IdempotencyMismatch(InvalidRequest):
    """This `Idempotency-Key` was already used with a different body."""

    code = "IDEMPOTENCY_MISMATCH"


class UnsupportedImport(InvalidRequest):
    """The file isn't an export, or can't be read.

    `details.reason` is `not_an_export`, `empty`, `damaged`, `encrypted` or `too_large`.
    """

    code = "UNSUPPORTED_IMPORT"

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message, param="files", details={"reason": reason})
        self.reason = reason


class Unauthenticated(ThreadkeepError):
    """No user is signed in, or the token is invalid."""

    code = "UNAUTHENTICATED"


class UserRequired(ThreadkeepError):
    """The API key acts for an application's users, and the request doesn't name one as it should."""

    code = "USER_REQUIRED"


class SignInUnavailable(ThreadkeepError):
    """Threadkeep couldn't fetch the sign-in provider's keys; try again later."""

    code = "SIGN_IN_UNAVAILABLE"


class Forbidden(ThreadkeepError):
    """The user lacks permission, or the server doesn't accept the page's origin or the host name."""

    code = "FORBIDDEN"


class NotFound(ThreadkeepError):
    """Does not exist, or belongs to someone else; the response is the same for both."""

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


class MemoryNotFound(NotFound):
    code, noun = "MEMORY_NOT_FOUND", "memory"


class CompactionNotFound(NotFound):
    code, noun = "COMPACTION_NOT_FOUND", "compaction"


class DocumentNotFound(NotFound):
    code, noun = "DOCUMENT_NOT_FOUND", "document"


class ArtifactNotFound(NotFound):
    code, noun = "ARTIFACT_NOT_FOUND", "artifact"


class FileNotFound(NotFound):
    code, noun = "FILE_NOT_FOUND", "file"


class UserNotFound(NotFound):
    """There is no such user; only admins name others."""

    code, noun = "USER_NOT_FOUND", "user"


class ModelNotFound(NotFound):
    """No gateway has this model."""

    code, noun = "MODEL_NOT_FOUND", "model"


class GatewayNotFound(NotFound):
    """There is no gateway of this name."""

    code, noun = "GATEWAY_NOT_FOUND", "gateway"


class KeyNotFound(NotFound):
    code, noun = "KEY_NOT_FOUND", "key"


class SessionNotFound(NotFound):
    code, noun = "SESSION_NOT_FOUND", "session"


class InvitationNotFound(NotFound):
    code, noun = "INVITATION_NOT_FOUND", "invitation"


class ImportNotFound(NotFound):
    code, noun = "IMPORT_NOT_FOUND", "import"


class ShareNotFound(NotFound):
    code, noun = "SHARE_NOT_FOUND", "share"


class RoleNotFound(NotFound):
    """The agent has no such role; the message lists those it has."""

    code, noun = "ROLE_NOT_FOUND", "role"


class McpServerNotFound(NotFound):
    """The agent has no MCP server of this name."""

    code, noun = "MCP_SERVER_NOT_FOUND", "MCP server"


class RouteNotFound(NotFound):
    """Path not found."""

    code, noun = "NOT_FOUND", "path"


class MethodNotAllowed(ThreadkeepError):
    """The path doesn't accept this method; the header `Allow` lists those it does."""

    code = "METHOD_NOT_ALLOWED"


class MessageContentRequired(ThreadkeepError):
    """The message has no content, or only white space."""

    code = "MESSAGE_CONTENT_REQUIRED"


class MessageTooLong(ThreadkeepError):
    """The message is longer than the agent's `maxMessageChars`."""

    code = "MESSAGE_TOO_LONG"


class McpConfigInvalid(ThreadkeepError):
    """The MCP server's configuration is invalid; `param` names the field."""

    code = "MCP_CONFIG_INVALID"


class McpNameReserved(ThreadkeepError):
    """The name is reserved for a built-in MCP server."""

    code = "MCP_NAME_RESERVED"


class McpCommandNotAllowed(ThreadkeepError):
    """The operator does not allow this program as an MCP server."""

    code = "MCP_COMMAND_NOT_ALLOWED"


class PayloadTooLarge(ThreadkeepError):
    """The request body or a file is too large."""

    code = "PAYLOAD_TOO_LARGE"


class HeadersTooLarge(ThreadkeepError):
    """The request's URL and headers are too large together."""

    code = "HEADERS_TOO_LARGE"


class RequestTimeout(ThreadkeepError):
    """The headers or the body did not arrive in time; send the request again."""

    code = "REQUEST_TIMEOUT"


class TooManyConnections(ThreadkeepError):
    """This node has reached its connection limit; try again, or try another node."""

    code = "TOO_MANY_CONNECTIONS"


class RangeNotSatisfiable(ThreadkeepError):
    """The requested range begins after the end of the file; `Content-Range` has its size."""

    code = "RANGE_NOT_SATISFIABLE"

    def __init__(self, size: int) -> None:
        super().__init__(f"The file has {size} bytes; the requested range begins after its end.")
        self.size = size


class UnsupportedDocument(ThreadkeepError):
    """The document's file type is not supported, or the file is empty."""

    code = "UNSUPPORTED_DOCUMENT"


class UnsupportedFile(ThreadkeepError):
    """Messages don't accept this file: its type is not supported, or it is empty, damaged or too large."""

    code = "UNSUPPORTED_FILE"


class ModelNotAllowed(ThreadkeepError):
    """The operator doesn't allow this model; `details.models` lists the allowed ones."""

    code = "MODEL_NOT_ALLOWED"


class BudgetExceeded(ThreadkeepError):
    """A budget has no room for this; the details name it, what it has spent and when it resets."""

    code = "BUDGET_EXCEEDED"


class OutputInvalid(ThreadkeepError):
    """A model's reply doesn't match the JSON schema that was asked for; the message says what doesn't."""

    code = "OUTPUT_INVALID"


class LimitNotAllowed(ThreadkeepError):
    """The value exceeds the operator's limit; `details` has the limit's name and maximum."""

    code = "LIMIT_NOT_ALLOWED"


class Conflict(ThreadkeepError):
    """The resource has changed in the meantime; read it again."""

    code = "CONFLICT"


class ConversationChanging(Conflict):
    """Other requests kept changing the conversation; this one stored nothing, and retrying helps."""

    def __init__(self) -> None:
        super().__init__("Other requests changed the conversation at the same time. Try again.")


class OtherUserSignedIn(Conflict):
    """This browser is signed in as somebody else, `details.userId`; a person must agree to switch."""

    code = "OTHER_USER_SIGNED_IN"


class InvitationEnded(ThreadkeepError):
    """The invitation was used already, or has expired; ask for a new one."""

    code = "INVITATION_ENDED"


class TurnInProgress(Conflict):
    """The agent is still answering; `details.turnId` is the turn's id."""

    code = "TURN_IN_PROGRESS"

    def __init__(self, message: str, turn_id: str | None) -> None:
        super().__init__(message, details={"turnId": turn_id})


class ImportInProgress(Conflict):
    """The user's previous import has not ended; `details.importId` is its id."""

    code = "IMPORT_IN_PROGRESS"


class ApprovalAnswered(Conflict):
    """The request already has a different answer."""

    code = "APPROVAL_ANSWERED"


class PathChanged(Conflict):
    """The active path has changed since the client loaded it; `details.tip` is the id of its last message."""

    code = "PATH_CHANGED"


class NothingToRegenerate(Conflict):
    """There is no reply to regenerate."""

    code = "NOTHING_TO_REGENERATE"


class TooFewMessages(Conflict):
    """There are too few messages to compact."""

    code = "TOO_FEW_MESSAGES"


class ConversationFull(Conflict):
    """The conversation would have more messages than the operator allows; `details.most` is the limit."""

    code = "CONVERSATION_FULL"


class AgentInCode(Conflict):
    """The agent's code declares this field, so it can only be changed there; `details.readOnly` lists all
    that it declares.
    """

    code = "AGENT_IN_CODE"


class NotRerunnable(Conflict):
    """The turn can't be run again because what its model received is not stored."""

    code = "NOT_RERUNNABLE"


class IllegalTransition(Conflict):
    """The current state doesn't allow this step."""

    code = "ILLEGAL_TRANSITION"


class ApprovalExpired(ThreadkeepError):
    """Nobody answered in time, or the turn that asked has ended."""

    code = "APPROVAL_EXPIRED"


class EventsExpired(ThreadkeepError):
    """The turn's events are no longer stored; read its message instead."""

    code = "EVENTS_EXPIRED"


class PreconditionFailed(ThreadkeepError):
    """It has changed meanwhile: another version than in `If-Match`, or restored with `ifDeleted`."""

    code = "PRECONDITION_FAILED"


class RateLimited(ThreadkeepError):
    """The user has reached a rate limit; try again after `Retry-After` seconds."""

    code = "RATE_LIMITED"

    def __init__(self, message: str, *, details: object = None, retry_after_s: int = 1) -> None:
        super().__init__(message, details=details)
        self.retry_after_s = retry_after_s


class AgentAbsent(ThreadkeepError):
    """The agent is a program, and no process that runs it is connected. Nothing was stored, unless the turn
    had begun and waited for one: then `details.message` is its reply.
    """

    code = "AGENT_ABSENT"


class ShuttingDown(ThreadkeepError):
    """This process is shutting down; try again. If you were waiting for a turn, it continues on another node:
    `details.turnId` is its id, and a request with the same `Idempotency-Key` waits for it again.
    """

    code = "SHUTTING_DOWN"


class GatewayNotConfigured(ThreadkeepError):
    """Nobody has connected a model."""

    code = "GATEWAY_NOT_CONFIGURED"

    def __init__(self) -> None:
        super().__init__(
            "No model is connected. An admin can connect one on the page; the operator can also set "
            "ANTHROPIC_API_KEY, OPENAI_API_KEY, or THREADKEEP_GATEWAY_URL for a self-hosted server."
        )


class SecretKeyRequired(ThreadkeepError):
    """Threadkeep can't store secrets because no encryption key is configured."""

    code = "SECRET_KEY_REQUIRED"


class SecretUnreadable(ThreadkeepError):
    """A stored secret was encrypted with a missing key."""

    code = "SECRET_UNREADABLE"


class TurnFailed(ThreadkeepError):
    """The turn the client waited for did not complete; `details` has the partial message."""


class GenerationAborted(TurnFailed):
    """The turn was stopped; `details.message` is the partial reply."""

    code = "GENERATION_ABORTED"


class GenerationTimeout(TurnFailed):
    """The turn took longer than the agent's `generationTimeoutS`; `details.message` is the partial reply."""

    code = "GENERATION_TIMEOUT"


class GenerationFailed(TurnFailed):
    """The model gateway failed; `details.message` is the partial reply."""

    code = "AGENTX_ERROR"


class GenerationInterrupted(TurnFailed):
    """The server couldn't continue the turn; `details.message` is the partial reply."""

    code = "INTERRUPTED"


class AgentFailed(TurnFailed):
    """The agent's code failed; `details.message` is the partial reply."""

    code = "AGENT_FAILED"


class AgentDiverged(TurnFailed):
    """The agent's code has changed since the turn began, so the turn couldn't continue;
    `details.message` is the partial reply.
    """

    code = "REPLAY_DIVERGED"


class EffectUnknown(TurnFailed):
    """A step of the agent's code was cut off, may have taken effect and was not repeated;
    `details.message` is the partial reply.
    """

    code = "OUTCOME_UNKNOWN"


class TooManySteps(TurnFailed):
    """The agent's code took more steps than a turn may have; `details.message` is the partial reply."""

    code = "STEP_LIMIT"


class StorageError(ThreadkeepError):
    """The database is unreachable, full or read-only; nothing was written, and retrying may help."""

    code = "STORAGE_UNAVAILABLE"


class StorageUnavailable(StorageError):
    """Retrying may help."""


class DatabaseAway(StorageUnavailable):
    """The database can't be reached. A turn that needs it now is resumed later."""


class StorageConflict(StorageError):
    """Another writer was first, or a constraint rejected the row."""

    code = "CONFLICT"


class StorageRefused(StorageError):
    """The data folder or the schema is unusable; the message says what to do."""


class SettingsError(ThreadkeepError):
    """A setting is invalid; the message names it and what it accepts."""

    code = "SETTINGS_ERROR"
