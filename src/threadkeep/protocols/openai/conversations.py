"""`/v1/conversations`: conversations without their responses and items."""

from dataclasses import replace
from typing import Any, Literal

from msgspec import Struct

from threadkeep.domain.agent import Agent
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.errors import ConversationNotFound, InvalidRequest
from threadkeep.handling.routing import RequestContext
from threadkeep.protocols.openai.added_items import SentItems, check_parts, messages_of
from threadkeep.protocols.openai.decode import Metadata
from threadkeep.protocols.openai.ids import conversation_id, parse_conversation_id
from threadkeep.protocols.openai.models import asked_of


class ConversationView(Struct, frozen=True, kw_only=True):
    """A conversation."""

    id: str
    object: Literal["conversation"] = "conversation"
    created_at: int
    metadata: dict[str, Any]


class DeletedConversation(Struct, frozen=True, kw_only=True):
    """A conversation that was deleted."""

    id: str
    object: Literal["conversation.deleted"] = "conversation.deleted"
    deleted: bool = True


class CreateConversation(Struct, frozen=True):
    """The body of a request for a conversation; `model`, the agent, is a field of ours."""

    metadata: Metadata | None = None
    items: SentItems | None = None
    model: str | None = None


class UpdateConversation(Struct, frozen=True):
    """What to change."""

    metadata: Metadata


async def create_conversation(request: RequestContext, *, body: CreateConversation) -> ConversationView:
    """Create a conversation with an agent, by default with the user's default agent."""
    check_parts(body.items or ())
    said = await messages_of(request, body.items or ())
    agents = request.services.agents
    agent = (await asked_of(request, body.model))[0] if body.model else await agents.default_of(request.user)
    request.services.added_messages.check(agent, said)  # refused items must not create anything
    conversation, is_new = await request.services.conversations.create(
        request.user, agent.id, title=None, metadata=dict(body.metadata or {})
    )
    if not is_new:
        raise InvalidRequest(
            "This agent allows one conversation per user, and you already have it: "
            f"{conversation_id(conversation.id)}.",
            param="model",
        )
    if said:
        await request.services.added_messages.add(request.user, conversation.id, said)
    return view(conversation, conversation_id(conversation.id))


async def get_conversation(request: RequestContext, *, conversation: str) -> ConversationView:
    """Read a conversation."""
    return view(await found(request, conversation), conversation)


async def update_conversation(
    request: RequestContext, *, conversation: str, body: UpdateConversation
) -> ConversationView:
    """Replace a conversation's metadata."""
    own = await found(request, conversation)
    metadata = dict[str, object](body.metadata)
    changed = await request.services.conversations.update(
        request.user, own.id, lambda it: replace(it, metadata=metadata)
    )
    return view(changed, conversation)


async def delete_conversation(request: RequestContext, *, conversation: str) -> DeletedConversation:
    """Delete a conversation; its owner can restore it for a while."""
    own = await found(request, conversation)
    await request.services.conversations.delete(request.user, own.id, purge=False)
    return DeletedConversation(id=conversation)


async def found(request: RequestContext, id_: str) -> Conversation:
    """One of the user's conversations, within the reach of their key."""
    conversation = await request.services.outside.find(request.user, parse_conversation_id(id_))
    if conversation is None:
        raise ConversationNotFound
    return conversation


async def with_agent(request: RequestContext, conversation: Conversation, agent: Agent) -> Conversation:
    """A conversation with the agent that its first response names: before, it has none for OpenAI."""
    if conversation.agent_id == agent.id:
        return conversation
    changed = await request.services.conversations.change_agent(request.user, conversation, agent)
    if changed is None:
        raise InvalidRequest(
            "This conversation is with another agent. Send that one as `model`, or start another.",
            param="model",
        )
    return changed


def view(conversation: Conversation, id_: str) -> ConversationView:
    """A conversation under the id by which its client knows it."""
    return ConversationView(
        id=id_,
        created_at=conversation.created_at // 1000,
        metadata=dict(conversation.metadata),
    )
