"""Approvals: what a turn asks its user, and what they decide."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from threadkeep.domain.choice import Choice
from threadkeep.domain.ids import AgentId, ConversationId, TurnId


class ApprovalKind(Choice):
    """What a turn waits for: approval of a tool call, an answer for the model, one for an MCP server, or the
    result of a tool that the client runs.
    """

    TOOL = "tool"
    QUESTION = "question"
    ELICITATION = "elicitation"
    CLIENT_TOOL = "client_tool"


class ApprovalAction(Choice):
    """How a request ended; users can't choose `expire`."""

    ALLOW = "allow"
    DENY = "deny"
    EDIT = "edit"
    ANSWER = "answer"
    RESULT = "result"
    EXPIRE = "expire"


class ApprovalScope(Choice):
    """What an approval covers: this call, or every call of this tool in the conversation."""

    ONCE = "once"
    CONVERSATION = "conversation"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A user's decision, or their client's.

    `arguments` are the call's as the user edited them. `content` answers a question, or is what a tool
    returned that the client ran. `error` says why that failed, or why a call is denied if not by the user.
    """

    action: ApprovalAction
    at: int
    scope: ApprovalScope = ApprovalScope.ONCE
    arguments: Mapping[str, Any] | None = None
    content: Any = None
    error: str | None = None

    @property
    def is_grant(self) -> bool:
        """Whether it allows every call of the tool in the conversation."""
        return self.action is ApprovalAction.ALLOW and self.scope is ApprovalScope.CONVERSATION


@dataclass(frozen=True, slots=True, kw_only=True)
class CallApproval:
    """The request to the user, or to their client, about a tool call; `decision` is None while it waits."""

    request_id: str
    message: str
    expires_at: int
    decision: Decision | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """A turn's request to its user, and the decision once there is one."""

    request_id: str
    turn_id: TurnId
    conversation_id: ConversationId
    kind: ApprovalKind
    message: str
    created_at: int
    expires_at: int
    tool_call_id: str | None = None
    tool_name: str | None = None
    server: str | None = None
    arguments: Mapping[str, Any] | None = None
    schema: Mapping[str, Any] | None = None
    url: str | None = None
    decision: Decision | None = None
    tool_definition: str | None = None
    """The digest of the tool that permission for the conversation would cover."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenApproval(Approval):
    """A request that waits for a decision, and what its user knows the conversation by."""

    agent_id: AgentId
    title: str | None


@dataclass(frozen=True, slots=True)
class AllowedTool:
    """A tool whose every call a user has allowed in a conversation, and when."""

    server: str
    name: str
    at: int
