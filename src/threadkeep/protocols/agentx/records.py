"""Records: conversations as AgentX lists them. Only the owner sees one, since it names the session."""

from typing import Any

from threadkeep.domain.conversation import Conversation


def image_record(conversation: Conversation) -> dict[str, Any]:
    """A conversation as an image; online, and with an agent, while a turn runs in it."""
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
    """The id of its AgentX agent: the running side of one conversation, so the conversation's id."""
    return conversation.id
