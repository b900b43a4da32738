"""When conversations are deleted that nobody writes in: the operator's rule, and the stricter ones of agents.

Nobody loses a conversation without notice, however the rules change: its user is told first, and from then on
it is kept for the time of the notice.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from threadkeep.domain.ids import AgentId, UserId

DAY_MS = 24 * 60 * 60 * 1000
NOTICE_MS = 7 * DAY_MS
"""How long before its deletion the user of a conversation is told, or half the time if that is shorter."""
NOTICE_OF_SHORTER_MS = 30 * DAY_MS
"""The same for somebody else's conversation that began when its agent's owner allowed more time."""
MOST_DAYS = 36_500
_ALWAYS = 1 << 62


class Whose(Enum):
    """Whose conversations with an agent a rule is for."""

    ANYBODYS = "anybody's"
    OWNERS = "its owner's"
    OTHERS = "others'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Which conversations are deleted after which time without a message, and how long before is told."""

    days: int
    notice_ms: int
    whose: Whose = Whose.ANYBODYS
    begun_from: int = 0
    begun_before: int = _ALWAYS

    @property
    def age_ms(self) -> int:
        """How long a conversation is kept after the last message."""
        return self.days * DAY_MS


@dataclass(frozen=True, slots=True)
class AgentRetention:
    """What an agent's owner wants."""

    agent_id: AgentId
    owner_id: UserId | None
    days: int
    since: int
    shortened_at: int | None
    """When the owner last made it shorter; None if never."""

    @property
    def rules(self) -> Iterator[Rule]:
        """The owner's wish counts for others' conversations that began after it was made.

        Who began one while it was longer is told earlier.
        """
        notice_ms = notice_of(self.days)
        yield Rule(days=self.days, notice_ms=notice_ms, whose=Whose.OWNERS)
        latest = max(self.since, self.shortened_at or 0)
        yield Rule(days=self.days, notice_ms=notice_ms, whose=Whose.OTHERS, begun_from=latest)
        if latest > self.since:
            yield Rule(
                days=self.days,
                notice_ms=NOTICE_OF_SHORTER_MS,
                whose=Whose.OTHERS,
                begun_from=self.since,
                begun_before=latest,
            )


def operators_rule(days: int) -> Rule | None:
    """The operator's rule; None if conversations stay."""
    return Rule(days=days, notice_ms=notice_of(days)) if days else None


def notice_of(days: int) -> int:
    """How long before the deletion its user is told."""
    return min(NOTICE_MS, days * DAY_MS // 2)
