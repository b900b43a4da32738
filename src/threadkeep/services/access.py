"""What a user may reach. Anything else is answered like what does not exist."""

from threadkeep.domain.agent import Agent
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.errors import AgentNotFound, ConversationNotFound
from threadkeep.domain.ids import ConversationId, is_uuid
from threadkeep.domain.user import User
from threadkeep.ports.store import Store


def to_conversation_id(conversation_id: str) -> ConversationId:
    """What is no id at all is answered like an id that does not exist."""
    if not is_uuid(conversation_id):
        raise ConversationNotFound
    return ConversationId(conversation_id.lower())


async def own_conversation(store: Store, user: User, conversation_id: str) -> Conversation:
    """One of the user's conversations."""
    conversation = await store.conversations.get(user.id, to_conversation_id(conversation_id))
    if conversation is None:
        raise ConversationNotFound
    return conversation


async def agent_to_ask(store: Store, user: User, conversation: Conversation) -> Agent:
    """The agent of a conversation, if the user may still have it answer."""
    agent = await store.agents.get(conversation.agent_id)
    if agent is None or not agent.is_visible_to(user):
        raise AgentNotFound("The agent of this conversation has been deleted or made private.")
    return agent
