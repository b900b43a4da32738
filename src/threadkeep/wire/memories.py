"""What is kept about a user, in responses."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta

from threadkeep.domain.memory import Memory
from threadkeep.wire.view import CreatedAt, OwnId, View, rfc3339


class MemoryView(View, frozen=True, kw_only=True):
    """Something that an agent remembers about the user."""

    id: OwnId
    content: Annotated[str, Meta(description="What the agent remembers, as the model wrote it.")]
    tags: Annotated[Sequence[str], Meta(description="Words by which the agent finds it again.")]
    created_at: CreatedAt


class InstructionsView(View, frozen=True, kw_only=True):
    """What the user tells every agent."""

    text: Annotated[str, Meta(description="What every agent is told about you or for you.")]


def memory_view(memory: Memory) -> MemoryView:
    """A memory as responses show it."""
    return MemoryView(
        id=memory.id, content=memory.content, tags=memory.tags, created_at=rfc3339(memory.created_at)
    )
