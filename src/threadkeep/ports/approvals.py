"""Storage of turns' requests to their users."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from threadkeep.domain.approval import ApprovalKind, Decision
from threadkeep.domain.ids import AgentId, ConversationId, TurnId, UserId
from threadkeep.ports.tools import Grant
from threadkeep.ports.turn_log import HeldTurn, Lease


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
class Decided:
    """What became of a decision: it counts, an earlier one does, or the request is no longer open.

    `held` is the turn, if it was waiting and the node that received the decision can read its log; that node
    runs it now. Otherwise another node does.
    """

    outcome: Literal["taken", "same", "other", "over"]
    held: HeldTurn | None = None


@dataclass(frozen=True, slots=True)
class AllowedTool:
    """A tool whose every call a user has allowed in a conversation, and when."""

    server: str
    name: str
    at: int


class ApprovalStore(Protocol):
    """Turns' requests to their users."""

    async def add(self, approval: Approval) -> None:
        """Stores a request, once."""
        ...

    async def get(self, turn_id: TurnId, request_id: str) -> Approval | None:
        """One request of a turn."""
        ...

    async def open_of(self, user_id: UserId, turn_id: TurnId | None = None) -> Sequence[OpenApproval]:
        """The open requests of a user's turns, or of one of them, oldest first."""
        ...

    async def decisions(self, turn_id: TurnId) -> Mapping[str, Decision]:
        """The decisions on a turn's requests, by their ids."""
        ...

    async def granted(self, conversation_id: ConversationId) -> frozenset[Grant]:
        """The tools that a conversation's user has allowed in it."""
        ...

    async def allowed_tools(self, conversation_id: ConversationId) -> Sequence[AllowedTool]:
        """The same for people: each tool once, the latest one first."""
        ...

    async def disallow(self, conversation_id: ConversationId, server: str, tool_name: str) -> bool:
        """Takes back that a tool is allowed in a conversation; False if it wasn't."""
        ...

    async def decide(self, turn_id: TurnId, request_id: str, decision: Decision, lease: Lease) -> Decided:
        """Stores the first decision on a request; a waiting turn then belongs to this node."""
        ...

    async def withdraw(self, turn_id: TurnId, request_id: str, decision: Decision) -> bool:
        """Expires a request; False if it has a decision."""
        ...

    async def expired(self, now: int, *, limit: int) -> Sequence[TurnId]:
        """Turns whose requests have expired."""
        ...

    async def close_of_ended(self, now: int) -> int:
        """Closes expired requests of turns that have ended; returns how many."""
        ...
