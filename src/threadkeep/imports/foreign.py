"""Conversations of other products, before they become ours."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

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
class MoreParagraphs:
    """What follows texts among some parts, by index. Joined once: copying a text for each would never end."""

    _by_index: dict[int, list[str]] = field(default_factory=dict[int, list[str]])

    def add(self, index: int, text: str) -> None:
        """Adds a paragraph to the text at this index."""
        self._by_index.setdefault(index, []).append(text)

    def added_to(self, parts: Sequence[ForeignPart]) -> list[ForeignPart]:
        """The parts, with all paragraphs of each text."""
        return [self._with_all(index, part) for index, part in enumerate(parts)]

    def _with_all(self, index: int, part: ForeignPart) -> ForeignPart:
        if not isinstance(part, ForeignText) or index not in self._by_index:
            return part
        return replace(part, text=BLANK_LINE.join((part.text, *self._by_index[index])))


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
