"""How a briefing's card reads to a model: its labels' language, and the time zone of its time."""

from dataclasses import dataclass
from datetime import UTC, tzinfo
from typing import Literal

from threadkeep.domain.briefing import BriefingCard
from threadkeep.domain.text import one_line
from threadkeep.domain.times import time_in

MOST_SUMMARY_CHARACTERS = 500

CardLanguage = Literal["en", "zh"]

_FORMS: dict[CardLanguage, str] = {
    "en": "[Briefing {time}]\nTitle: {title}\nSummary: {summary}\nPriority: {priority}",
    "zh": "[简报 {time}]\n标题：{title}\n摘要：{summary}\n优先级：{priority}",
}


@dataclass(frozen=True, slots=True)
class CardStyle:
    """How all cards of a server read; the specification's labels are Chinese."""

    zone: tzinfo = UTC
    language: CardLanguage = "zh"

    def render(self, card: BriefingCard) -> str:
        """A briefing's card as the model reads it."""
        # One line each: a line break in somebody's text would start a line that looks like ours.
        title, summary = one_line(card.title), one_line(card.summary)
        if len(summary) > MOST_SUMMARY_CHARACTERS:
            summary = summary[:MOST_SUMMARY_CHARACTERS] + "..."
        return _FORMS[self.language].format(
            time=f"{time_in(card.sent_at, self.zone):%Y-%m-%d %H:%M}",
            title=title,
            summary=summary,
            priority=card.priority,
        )
