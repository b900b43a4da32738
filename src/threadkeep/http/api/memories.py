"""What agents remember about the user, and the user's own instructions, over HTTP."""

from dataclasses import replace
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from threadkeep.domain.ids import MemoryId
from threadkeep.domain.memory import Memory
from threadkeep.handling.paging import PageQuery, Pager
from threadkeep.handling.routing import RequestContext
from threadkeep.wire.memories import InstructionsView, MemoryView, memory_view
from threadkeep.wire.view import PageView


class MemoryPatch(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to change."""

    content: Annotated[
        str | UnsetType, Meta(description="What the agent should remember, at most 4,000 characters.")
    ] = UNSET
    tags: Annotated[
        tuple[str, ...] | UnsetType,
        Meta(description="At most 20 words to find it by, of at most 100 characters each."),
    ] = UNSET


class InstructionsBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The user's own instructions; an empty text removes them."""

    text: Annotated[
        str, Meta(description="What every agent should know or do for you, at most 10,000 characters.")
    ]


async def list_memories(request: RequestContext, *, agent_id: str, query: PageQuery) -> PageView[MemoryView]:
    """List what an agent remembers about you, newest first. Nobody else sees it, not even its owner."""
    pager = Pager(request.cursors, request.user, f"memories {agent_id.lower()}", query)
    before = pager.after(str)
    found = await request.services.memories.page(
        request.user,
        agent_id,
        before=MemoryId(before) if before else None,
        offset=pager.offset,
        limit=pager.fetch_limit,
    )
    return pager.page(found, lambda it: it.id, lambda items: [memory_view(it) for it in items])


async def patch_memory(
    request: RequestContext, *, agent_id: str, memory_id: str, body: MemoryPatch
) -> MemoryView:
    """Correct something that an agent remembers about you."""

    def changed(memory: Memory) -> Memory:
        return replace(
            memory,
            content=memory.content if body.content is UNSET else body.content.strip(),
            tags=memory.tags if body.tags is UNSET else body.tags,
        )

    return memory_view(await request.services.memories.change(request.user, agent_id, memory_id, changed))


async def delete_memory(request: RequestContext, *, agent_id: str, memory_id: str) -> None:
    """Make an agent forget one thing about you."""
    await request.services.memories.forget(request.user, agent_id, memory_id)


async def delete_memories(request: RequestContext, *, agent_id: str) -> None:
    """Make an agent forget everything about you."""
    await request.services.memories.forget_all(request.user, agent_id)


async def get_instructions(request: RequestContext) -> InstructionsView:
    """Read what you tell every agent."""
    return InstructionsView(text=await request.services.memories.instructions(request.user))


async def put_instructions(request: RequestContext, *, body: InstructionsBody) -> InstructionsView:
    """Replace what you tell every agent: part of the prompt from the next turn on.

    Agents whose `settings.userInstructions` is false don't get it.
    """
    return InstructionsView(text=await request.services.memories.instruct(request.user, body.text))
