"""Conversations of other products, before they become ours."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from threadkeep.domain.parts import BLANK_LINE


@dataclass(frozen=True, slots=True)
class ForeignText:
    """A text; `iteration` counts the calls of the other product's model."""

    text: str
    iteration: int = 1


@dataclass(frozen=True, slots=True)
class ForeignThought:
    """Reasoning of the other product's model."""

    text: str
    iteration: int = 1


@dataclass(frozen=True, slots=True)
class ForeignCall:
    """A tool call of the other product's assistant."""

    name: str
    arguments: Mapping[str, object]
    result: object
    failed: bool = False
    iteration: int = 1


@dataclass(frozen=True, slots=True)
class ForeignFile:
    """A file of a message: a separate one in the archive, or a text within the conversation."""

    file_name: str
    """Empty if only the archive has it."""
    instead: str
    """The text that replaces the file if it can't be stored; may be empty."""
    asset_id: str | None = None
    content: str | None = None
    iteration: int = 1


ForeignPart = ForeignText | ForeignThought | ForeignCall | ForeignFile


@dataclass(frozen=True, slots=True)
class ForeignMessage:
    """A message from another product, part by part; for the user's, text and files count."""

    id: str
    is_question: bool
    parts: Sequence[ForeignPart]
    at: int | None
    model: str | None = None
    follows: str | None = None
    """The previous message; several can follow the same one."""

    @property
    def text(self) -> str:
        """The message's text."""
        return BLANK_LINE.join(part.text for part in self.parts if isinstance(part, ForeignText))


@dataclass(frozen=True, slots=True)
class ForeignConversation:
    """A conversation from another product, with all its branches."""

    product: str
    id: str
    title: str | None
    created_at: int | None
    updated_at: int | None
    messages: Sequence[ForeignMessage]
    """Each comes after the one that it follows."""
    last: str | None
    """The last message of the branch that was shown."""
    is_archived: bool = False
