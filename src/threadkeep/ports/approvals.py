"""Where it is kept what turns ask their users."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from threadkeep.domain.approval import Answer, ApprovalKind
from threadkeep.domain.ids import ConversationId, TurnId, UserId
from threadkeep.ports.turn_log import HeldTurn, Lease


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """Something that a turn asks its user, and the answer once there is one."""

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


@dataclass(frozen=True, slots=True)
class Answered:
    """What came of an answer: it counts, another one did before, or nobody waits for it any more.

    `held` is the turn, where it was waiting and the node that took the answer can read it: that one runs it
    now. Else another node does.
    """

    outcome: Literal["taken", "same", "other", "over"]
    held: HeldTurn | None = None


class ApprovalStore(Protocol):
    """What turns ask their users."""

    async def add(self, approval: Approval) -> None:
        """Keeps a request, once."""
        ...

    async def get(self, turn_id: TurnId, request_id: str) -> Approval | None:
        """One request of a turn."""
        ...

    async def open_of(self, user_id: UserId, turn_id: TurnId | None = None) -> Sequence[Approval]:
        """What a user's turns wait for, or one of them, oldest first."""
        ...

    async def answers(self, turn_id: TurnId) -> Mapping[str, Answer]:
        """The answers to a turn's requests, by their ids."""
        ...

    async def granted(self, conversation_id: ConversationId) -> frozenset[tuple[str, str]]:
        """The servers and tools that a conversation's user allows in it."""
        ...

    async def answer(self, turn_id: TurnId, request_id: str, answer: Answer, lease: Lease) -> Answered:
        """Keeps the first answer to a request; a turn that waits becomes the node's own with it."""
        ...

    async def withdraw(self, turn_id: TurnId, request_id: str, answer: Answer) -> bool:
        """Keeps that nobody waits for an answer any more; False where there is one."""
        ...

    async def expired(self, now: int, *, limit: int) -> Sequence[TurnId]:
        """Turns that wait for an answer whose time is over."""
        ...
