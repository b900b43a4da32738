"""What is kept about a user, in responses."""

from collections.abc import Sequence

from threadkeep.domain.memory import Memory
from threadkeep.wire.view import Id, Time, View, rfc3339


class MemoryView(View, frozen=True, kw_only=True):
    """Something that an agent remembers about the user."""

    id: Id
    content: str
    tags: Sequence[str]
    created_at: Time


class InstructionsView(View, frozen=True, kw_only=True):
    """What the user tells every agent."""

    text: str


def memory_view(memory: Memory) -> MemoryView:
    """A memory as responses show it."""
    return MemoryView(
        id=memory.id, content=memory.content, tags=memory.tags, created_at=rfc3339(memory.created_at)
    )
