"""Approvals: what a turn asks its user, and what they decide."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from threadkeep.domain.choice import Choice


class ApprovalKind(Choice):
    """What a turn waits for: approval of a tool call, an answer for the model, or one for an MCP server."""

    TOOL = "tool"
    QUESTION = "question"
    ELICITATION = "elicitation"


class ApprovalAction(Choice):
    """How a request ended; users can't choose `expire`."""

    ALLOW = "allow"
    DENY = "deny"
    EDIT = "edit"
    ANSWER = "answer"
    EXPIRE = "expire"


class ApprovalScope(Choice):
    """What an approval covers: this call, or every call of this tool in the conversation."""

    ONCE = "once"
    CONVERSATION = "conversation"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A user's decision. `arguments` are those of an edited call, `content` answers a question."""

    action: ApprovalAction
    at: int
    scope: ApprovalScope = ApprovalScope.ONCE
    arguments: Mapping[str, Any] | None = None
    content: Any = None

    @property
    def is_grant(self) -> bool:
        """Whether it allows every call of the tool in the conversation."""
        return self.action is ApprovalAction.ALLOW and self.scope is ApprovalScope.CONVERSATION


@dataclass(frozen=True, slots=True, kw_only=True)
class CallApproval:
    """The request to the user about a tool call; `decision` is None while it waits."""

    request_id: str
    message: str
    expires_at: int
    decision: Decision | None = None
