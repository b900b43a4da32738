"""A briefing: a notice an agent sends to a user, which can become a card in a conversation."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from threadkeep.domain.choice import Choice
from threadkeep.domain.errors import InvalidRequest
from threadkeep.domain.ids import AgentId, BriefingId, MessageId, UserId
from threadkeep.domain.text import check_line, check_storable, is_blank


class Priority(Choice):
    """How urgent a briefing is; P0 is the most urgent."""

    P0 = "P0"
    P1 = "P1"
    P2 = "P2"
    P3 = "P3"


@dataclass(frozen=True, slots=True)
class BriefingCard:
    """A briefing in a conversation: a copy that later changes don't affect."""

    briefing_id: BriefingId
    title: str
    summary: str
    priority: Priority
    sent_at: int
    data: Mapping[str, object] | None = None
    actions: tuple[Mapping[str, object], ...] = ()

    @property
    def text(self) -> str:
        """Its text, for searching."""
        return f"{self.title}\n{self.summary}"


@dataclass(frozen=True, slots=True)
class Briefing:
    """A notice for one user from one agent. `message_id` is its card's, once there is one."""

    id: BriefingId
    agent_id: AgentId
    user_id: UserId
    title: str
    summary: str
    priority: Priority
    data: Mapping[str, object] | None
    actions: tuple[Mapping[str, object], ...]
    created_at: int
    read_at: int | None = None
    message_id: MessageId | None = None

    def __post_init__(self) -> None:
        check_line(self.title, "title", most=500)
        if is_blank(self.summary):
            raise InvalidRequest("`summary` can't be blank.", param="summary")
        check_storable(self.summary, "summary")

    def read(self, now: int) -> "Briefing":
        """Marks it read; the first time counts."""
        return self if self.read_at is not None else replace(self, read_at=now)

    def card(self) -> BriefingCard:
        """The card for the conversation."""
        return BriefingCard(
            self.id, self.title, self.summary, self.priority, self.created_at, self.data, self.actions
        )
