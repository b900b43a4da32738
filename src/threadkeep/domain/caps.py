"""The operator's caps on what an agent's owner can set."""

import math
from dataclasses import dataclass, replace
from typing import Literal

from threadkeep.domain.agent import Agent, AgentDraft, AgentSettings, Visibility
from threadkeep.domain.errors import ConversationFull, Forbidden, LimitNotAllowed, RateLimited
from threadkeep.domain.text import size_text
from threadkeep.domain.user import User

MINUTE_S = 60.0

CAPPED_SETTINGS = {
    "max_tokens": "reply_tokens",
    "max_iterations": "iterations",
    "max_message_chars": "message_chars",
}
"""An agent's limits, each with the cap on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorCaps:
    """The operator's maximums; 0 or empty means no cap."""

    reply_tokens: int = 0
    iterations: int = 0
    message_chars: int = 0
    documents: int = 0
    bytes: int = 0
    conversation_messages: int = 0
    """For imports, forks and added messages: no limit ends a conversation that exists."""
    publish: Literal["owner", "admin"] = "owner"
    client_tools: bool = True
    """Whether requests can bring tools that the client runs, if the agent accepts them."""

    def check(self, user: User, draft: AgentDraft, current: Agent | None = None) -> None:
        """Refuses a draft that exceeds the caps; values that it doesn't change are accepted."""
        for setting, cap in CAPPED_SETTINGS.items():
            value, most = getattr(draft.settings, setting) or 0, getattr(self, cap)
            is_changed = current is None or value != getattr(current.settings, setting)
            if most and value > most and is_changed:
                name = _camel(setting)
                raise LimitNotAllowed(
                    f"`settings.{name}` can't exceed {most}, the limit set by the operator.",
                    param=f"settings.{name}",
                    details={"limit": name, "most": most},
                )
        self._check_visibility(user, draft, current)

    def limited(self, agent: Agent) -> Agent:
        """An agent with the limits that apply when it runs."""
        settings = self.capped(agent.settings)
        return agent if settings is agent.settings else replace(agent, settings=settings)

    def capped(self, settings: AgentSettings) -> AgentSettings:
        """The limits that apply: the smaller of each setting and its cap."""
        lowered: dict[str, int | bool] = {
            setting: most
            for setting, cap in CAPPED_SETTINGS.items()
            if (most := getattr(self, cap)) and not 0 < (getattr(settings, setting) or 0) <= most
        }
        if settings.client_tools and not self.client_tools:
            lowered["client_tools"] = False
        return replace(settings, **lowered) if lowered else settings

    def check_room(self, documents: int, size: int) -> None:
        """Refuses documents if a user's agents would then have too many, or the user too much."""
        if self.documents and documents > self.documents:
            raise LimitNotAllowed(
                f"Your agents' documents can't exceed {self.documents} documents in total; adding this would "
                f"bring them to {documents}. Delete some documents first.",
                details={"limit": "documents", "most": self.documents},
            )
        self.check_bytes(size)

    def check_bytes(self, size: int) -> None:
        """Refuses what would give its user too many bytes: of conversations, files and documents."""
        if self.bytes and size > self.bytes:
            raise LimitNotAllowed(
                f"This would bring your conversations, files and documents to {size_text(size)}; the limit, "
                f"THREADKEEP_USER_BYTES, is {size_text(self.bytes)}. Permanently delete some conversations, "
                "or delete some documents.",
                details={"limit": "bytes", "most": self.bytes},
            )

    def check_messages(self, count: int) -> None:
        """Refuses a copy or an addition if a conversation would then have too many messages."""
        if 0 < self.conversation_messages < count:
            raise ConversationFull(
                f"The conversation would have {count:,} messages; THREADKEEP_CONVERSATION_MESSAGES allows "
                f"{self.conversation_messages:,}.",
                details={"limit": "conversationMessages", "most": self.conversation_messages},
            )

    def _check_visibility(self, user: User, draft: AgentDraft, current: Agent | None) -> None:
        was_public = current is not None and current.visibility is Visibility.PUBLIC
        publishes = draft.visibility is Visibility.PUBLIC and not was_public
        if publishes and self.publish == "admin" and not user.is_admin:
            raise Forbidden("Only an admin can make an agent public on this server.", param="visibility")


NO_CAPS = OperatorCaps()


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(it.capitalize() for it in others)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnCaps:
    """How many turns of one user may run at once and begin in a minute, and how many files the user may
    upload, and what else they may create, in a minute; 0 means no cap.
    """

    at_once: int = 0
    per_minute: int = 0
    uploads_per_minute: int = 0
    writes_per_minute: int = 0

    def too_many_at_once(self) -> RateLimited:
        """The error for a user who has too many turns running."""
        return RateLimited(
            f"You already have {self.at_once} turns running, the most allowed at once. Wait for one to "
            "finish.",
            details={"limit": "runningTurns", "most": self.at_once},
        )

    def too_many_a_minute(self, *, wait_s: float) -> RateLimited:
        """The error for a user who has started too many turns."""
        wait_s = max(1, math.ceil(wait_s))
        return RateLimited(
            f"You can start {self.per_minute} turns per minute. Try again in {wait_s} s.",
            details={"limit": "turnsPerMinute", "most": self.per_minute},
            retry_after_s=wait_s,
        )

    def too_many_uploads(self, *, wait_s: float) -> RateLimited:
        """The error for a user who has uploaded too many files."""
        wait_s = max(1, math.ceil(wait_s))
        return RateLimited(
            f"You can upload {self.uploads_per_minute} files per minute. Try again in {wait_s} s.",
            details={"limit": "uploadsPerMinute", "most": self.uploads_per_minute},
            retry_after_s=wait_s,
        )

    def too_many_writes(self, *, wait_s: float) -> RateLimited:
        """The error for a user who has created too many things."""
        wait_s = max(1, math.ceil(wait_s))
        return RateLimited(
            f"You can create {self.writes_per_minute} things per minute besides turns. Try again in "
            f"{wait_s} s.",
            details={"limit": "writesPerMinute", "most": self.writes_per_minute},
            retry_after_s=wait_s,
        )
