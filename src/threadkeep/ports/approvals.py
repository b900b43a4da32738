"""Storage of turns' requests to their users."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from threadkeep.domain.approval import AllowedTool, Approval, Decision, OpenApproval
from threadkeep.domain.ids import ConversationId, TurnId, UserId
from threadkeep.ports.tools import Grant
from threadkeep.ports.turn_log import HeldTurn, Lease


@dataclass(frozen=True, slots=True)
class Decided:
    """What became of a decision: it counts, an earlier one does, or the request is no longer open.

    `held` is the turn, if it was waiting and the node that received the decision can read its log; that node
    runs it now. Otherwise another node does.
    """

    outcome: Literal["taken", "same", "other", "over"]
    held: HeldTurn | None = None


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
