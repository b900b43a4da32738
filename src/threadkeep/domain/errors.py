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
├── UnsupportedDocument            a file of a kind that cannot be read, or an empty one
├── Conflict
│   ├── TurnInProgress
│   ├── NothingToRegenerate
│   ├── TooFewMessages
│   └── IllegalTransition          a state machine was asked for a step it does not have
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
│   └── GenerationInterrupted      the process that ran the turn ended
├── StorageError
│   ├── StorageUnavailable         the database is away, full or read-only; trying later may help
│   ├── StorageConflict            somebody else wrote first; read again and decide anew
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
    code = "INVALID_REQUEST"


class IdempotencyMismatch(InvalidRequest):
    code = "IDEMPOTENCY_MISMATCH"


class Unauthenticated(ThreadkeepError):
    code = "UNAUTHENTICATED"


class SignInUnavailable(ThreadkeepError):
    code = "SIGN_IN_UNAVAILABLE"


class Forbidden(ThreadkeepError):
    code = "FORBIDDEN"


class NotFound(ThreadkeepError):
    """Does not exist, or is not yours: the two are never told apart."""

    noun: ClassVar[str] = "thing"

    def __init__(self, message: str = "", *, param: str | None = None, details: object = None) -> None:
        super().__init__(message or f"There is no such {self.noun}.", param=param, details=details)


class AgentNotFound(NotFound):
    code, noun = "AGENT_NOT_FOUND", "agent"


class ConversationNotFound(NotFound):
    code, noun = "CONVERSATION_NOT_FOUND", "conversation"


class MessageNotFound(NotFound):
    code, noun = "MESSAGE_NOT_FOUND", "message"


class TurnNotFound(NotFound):
    code, noun = "TURN_NOT_FOUND", "turn"


class BriefingNotFound(NotFound):
    code, noun = "BRIEFING_NOT_FOUND", "briefing"


class CompactionNotFound(NotFound):
    code, noun = "COMPACTION_NOT_FOUND", "compaction"


class DocumentNotFound(NotFound):
    code, noun = "DOCUMENT_NOT_FOUND", "document"


class ArtifactNotFound(NotFound):
    code, noun = "ARTIFACT_NOT_FOUND", "artifact"


class UserNotFound(NotFound):
    code, noun = "USER_NOT_FOUND", "user"


class RoleNotFound(NotFound):
    code, noun = "ROLE_NOT_FOUND", "role"


class McpServerNotFound(NotFound):
    code, noun = "MCP_SERVER_NOT_FOUND", "MCP server"


class RouteNotFound(NotFound):
    code, noun = "NOT_FOUND", "path"


class MethodNotAllowed(ThreadkeepError):
    code = "METHOD_NOT_ALLOWED"


class MessageContentRequired(ThreadkeepError):
    code = "MESSAGE_CONTENT_REQUIRED"


class MessageTooLong(ThreadkeepError):
    code = "MESSAGE_TOO_LONG"


class McpConfigInvalid(ThreadkeepError):
    code = "MCP_CONFIG_INVALID"


class McpNameReserved(ThreadkeepError):
    code = "MCP_NAME_RESERVED"


class McpCommandNotAllowed(ThreadkeepError):
    code = "MCP_COMMAND_NOT_ALLOWED"


class PayloadTooLarge(ThreadkeepError):
    code = "PAYLOAD_TOO_LARGE"


class UnsupportedDocument(ThreadkeepError):
    code = "UNSUPPORTED_DOCUMENT"


class Conflict(ThreadkeepError):
    code = "CONFLICT"


class TurnInProgress(Conflict):
    code = "TURN_IN_PROGRESS"


class NothingToRegenerate(Conflict):
    code = "NOTHING_TO_REGENERATE"


class TooFewMessages(Conflict):
    code = "TOO_FEW_MESSAGES"


class IllegalTransition(Conflict):
    code = "ILLEGAL_TRANSITION"


class EventsExpired(ThreadkeepError):
    code = "EVENTS_EXPIRED"


class PreconditionFailed(ThreadkeepError):
    code = "PRECONDITION_FAILED"


class RateLimited(ThreadkeepError):
    code = "RATE_LIMITED"

    def __init__(self, message: str, *, details: object = None, retry_after_s: int = 1) -> None:
        super().__init__(message, details=details)
        self.retry_after_s = retry_after_s


class ShuttingDown(ThreadkeepError):
    code = "SHUTTING_DOWN"


class GatewayNotConfigured(ThreadkeepError):
    code = "GATEWAY_NOT_CONFIGURED"

    def __init__(self) -> None:
        super().__init__(
            "No model gateway is configured. Set THREADKEEP_GATEWAY and THREADKEEP_GATEWAY_API_KEY."
        )


class SecretKeyRequired(ThreadkeepError):
    code = "SECRET_KEY_REQUIRED"


class SecretUnreadable(ThreadkeepError):
    code = "SECRET_UNREADABLE"


class TurnFailed(ThreadkeepError):
    """A turn that somebody waited for did not end well; `details` has the partial message."""


class GenerationAborted(TurnFailed):
    code = "GENERATION_ABORTED"


class GenerationTimeout(TurnFailed):
    code = "GENERATION_TIMEOUT"


class GenerationFailed(TurnFailed):
    code = "AGENTX_ERROR"


class GenerationInterrupted(TurnFailed):
    code = "INTERRUPTED"


class StorageError(ThreadkeepError):
    code = "STORAGE_UNAVAILABLE"


class StorageUnavailable(StorageError):
    """The database is away, full or read-only; nothing was written."""


class StorageConflict(StorageError):
    """Somebody else wrote first, or a constraint refused the row."""

    code = "CONFLICT"


class StorageRefused(StorageError):
    """The data folder or the schema cannot be used as it is; says what to do."""


class SettingsError(ThreadkeepError):
    """A setting is wrong; says which one and what is allowed."""

    code = "SETTINGS_ERROR"
