"""History, summary and briefings as what a model can be sent."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Literal

from threadkeep.domain.briefing import BriefingCard
from threadkeep.domain.message import Message, MessageRole, MessageStatus
from threadkeep.domain.text import is_blank

MOST_SUMMARY_CHARACTERS = 500


@dataclass(frozen=True, slots=True)
class ContextMessage:
    """One entry of a model's history. Every provider takes these two roles, and no other."""

    role: Literal["user", "assistant"]
    content: str


def is_in_context(message: Message) -> bool:
    """Overwritten messages and replies without a word stay out."""
    return message.status is not MessageStatus.OVERWRITTEN and not (
        isinstance(message.content, str) and is_blank(message.content)
    )


def to_context(messages: Iterable[Message], *, summary: str | None, zone: tzinfo) -> list[ContextMessage]:
    """Messages, oldest first, as role and content; the summary of what is archived stands first."""
    history = [_entry(message, zone) for message in messages if is_in_context(message)]
    return [ContextMessage("user", f"[摘要 Summary]\n{summary}"), *history] if summary else history


def _entry(message: Message, zone: tzinfo) -> ContextMessage:
    if isinstance(message.content, BriefingCard):
        return ContextMessage("user", render_card(message.content, zone))
    return ContextMessage("assistant" if message.role is MessageRole.ASSISTANT else "user", message.content)


def render_card(card: BriefingCard, zone: tzinfo) -> str:
    """A briefing card as the model reads it."""
    sent = datetime.fromtimestamp(card.sent_at / 1000, zone)
    summary = card.summary
    if len(summary) > MOST_SUMMARY_CHARACTERS:
        summary = summary[:MOST_SUMMARY_CHARACTERS] + "..."
    return f"[简报 {sent:%Y-%m-%d %H:%M}]\n标题：{card.title}\n摘要：{summary}\n优先级：{card.priority}"
