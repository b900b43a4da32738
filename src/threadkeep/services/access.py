"""What a user can access. Anything else looks like it doesn't exist."""

from threadkeep.domain.agent import Agent
from threadkeep.domain.conversation import Branch, Conversation
from threadkeep.domain.errors import (
    AgentNotFound,
    ConversationNotFound,
    IdempotencyMismatch,
    MessageNotFound,
    TurnNotFound,
)
from threadkeep.domain.ids import ConversationId, IdempotencyKey, MessageId, TurnId, is_uuid
from threadkeep.domain.message import Message
from threadkeep.domain.turn import Turn
from threadkeep.domain.user import User
from threadkeep.storage.store import Store


def to_conversation_id(conversation_id: str) -> ConversationId:
    """Treats an invalid id like an id that doesn't exist."""
    if not is_uuid(conversation_id):
        raise ConversationNotFound
    return ConversationId(conversation_id.lower())


async def own_conversation(store: Store, user: User, conversation_id: str) -> Conversation:
    """One of the user's conversations."""
    conversation = await store.conversations.get(user.id, to_conversation_id(conversation_id))
    if conversation is None:
        raise ConversationNotFound
    return conversation


async def created_with(store: Store, user: User, key: IdempotencyKey) -> Conversation | None:
    """The conversation that an earlier request with the same key has created."""
    found = await store.conversations.find_by_key(user.id, key.name)
    if found is None:
        return None
    conversation, request_hash = found
    if request_hash != key.request_hash:
        raise IdempotencyMismatch("This Idempotency-Key was already used with a different body.")
    if conversation.deleted_at is not None or not user.may_use(conversation.agent_id):
        raise ConversationNotFound
    return conversation


async def own_turn(store: Store, user: User, turn_id: str) -> Turn:
    """One of the user's turns."""
    turn = await store.turns.get(user.id, TurnId(turn_id.lower())) if is_uuid(turn_id) else None
    if turn is None:
        raise TurnNotFound
    return turn


async def agent_to_ask(store: Store, user: User, conversation: Conversation) -> Agent:
    """A conversation's agent, if the user can still get replies from it."""
    agent = await store.agents.get(conversation.agent_id)
    if agent is None or not agent.is_visible_to(user):
        raise AgentNotFound("This conversation's agent was deleted or made private.")
    return agent


async def own_message(store: Store, conversation: Conversation, message_id: str) -> Message:
    """A message of a conversation, on any branch."""
    message = await store.messages.get(conversation.id, to_message_id(message_id))
    if message is None:
        raise MessageNotFound
    return message


async def branch_up_to(store: Store, conversation: Conversation, message_id: str | None) -> Branch:
    """The branch of a conversation that ends with a message, or before the first one."""
    wanted = None if message_id is None else to_message_id(message_id)
    branch = await store.branches.up_to(conversation.id, wanted)
    if branch is None:
        raise MessageNotFound
    return branch


def to_message_id(message_id: str) -> MessageId:
    """Treats an invalid id like an id that doesn't exist."""
    if not is_uuid(message_id):
        raise MessageNotFound
    return MessageId(message_id.lower())
