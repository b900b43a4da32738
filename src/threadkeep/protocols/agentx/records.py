"""Records: a conversation as AgentX lists it. Only its owner gets to see one, for it names the session."""

from typing import Any

from threadkeep.domain.conversation import Conversation


def image_record(conversation: Conversation) -> dict[str, Any]:
    """A conversation as an image; it is online, and has an agent, while a turn runs in it."""
    record: dict[str, Any] = {
        "imageId": conversation.id,
        "containerId": conversation.agent_id,
        "sessionId": conversation.session_id.reveal(),
        "name": conversation.title or "",
        # Here both belong to the agent.
        "description": "",
        "systemPrompt": "",
        "createdAt": conversation.created_at,
        "updatedAt": conversation.updated_at,
        "online": is_online(conversation),
    }
    return record | {"agentId": agent_id_of(conversation)} if is_online(conversation) else record


def is_online(conversation: Conversation) -> bool:
    """Whether a turn runs in it."""
    return conversation.active_turn_id is not None


def agent_id_of(conversation: Conversation) -> str:
    """The id of its AgentX agent. That is the running side of one conversation, so it has its id."""
    return conversation.id
