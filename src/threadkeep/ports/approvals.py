"""Storage of turns' requests to their users."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from threadkeep.domain.approval import Answer, ApprovalKind
from threadkeep.domain.ids import ConversationId, TurnId, UserId
from threadkeep.ports.tools import Grant
from threadkeep.ports.turn_log import HeldTurn, Lease


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """A turn's request to its user, and the answer once there is one."""

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
    answer: Answer | None = None
    tool_definition: str | None = None
    """The digest of the tool that leave for the conversation would cover."""


@dataclass(frozen=True, slots=True)
class Answered:
    """The fate of an answer: it counts, an earlier one does, or nothing waits for it any more.

    `held` is the turn, if it was waiting and the node that received the answer can read it; that node runs it
    now. Otherwise another node does.
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

    async def open_of(self, user_id: UserId, turn_id: TurnId | None = None) -> Sequence[Approval]:
        """The open requests of a user's turns, or of one of them, oldest first."""
        ...

    async def answers(self, turn_id: TurnId) -> Mapping[str, Answer]:
        """The answers to a turn's requests, by their ids."""
        ...

    async def granted(self, conversation_id: ConversationId) -> frozenset[Grant]:
        """The tools that a conversation's user has allowed in it."""
        ...

    async def answer(self, turn_id: TurnId, request_id: str, answer: Answer, lease: Lease) -> Answered:
        """Stores the first answer to a request; a waiting turn then belongs to this node."""
        ...

    async def withdraw(self, turn_id: TurnId, request_id: str, answer: Answer) -> bool:
        """Expires a request; False if it has an answer."""
        ...

    async def expired(self, now: int, *, limit: int) -> Sequence[TurnId]:
        """Turns whose requests have expired."""
        ...

    async def close_of_ended(self, now: int) -> int:
        """Closes expired requests of turns that have ended; returns how many."""
        ...
