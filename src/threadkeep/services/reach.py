"""What a key that is limited to some agents reaches: these agents, and the conversations with them.

The edge asks once for each request, by the ids that it names. So no use case has to remember it, except those
that list things of several agents.
"""

from collections.abc import Mapping

from threadkeep.domain.errors import (
    AgentNotFound,
    ArtifactNotFound,
    BriefingNotFound,
    ConversationNotFound,
    FileNotFound,
    MessageNotFound,
    NotFound,
    ShareNotFound,
    TurnNotFound,
)
from threadkeep.domain.ids import FIRST_UUID, AgentId, is_uuid
from threadkeep.domain.user import User
from threadkeep.domain.user_events import UserEvent
from threadkeep.storage.keys import OfAgents
from threadkeep.storage.store import Store

NOT_FOUND: Mapping[OfAgents, type[NotFound]] = {
    "conversation_id": ConversationNotFound,
    "turn_id": TurnNotFound,
    "message_id": MessageNotFound,
    "briefing_id": BriefingNotFound,
    "artifact_id": ArtifactNotFound,
    "file_id": FileNotFound,
    "share": ShareNotFound,
}
"""What looks as if it didn't exist, by the name of its id."""


async def check_reach(store: Store, user: User, ids: Mapping[str, str]) -> None:
    """Refuses ids outside the agents of the user's key, by their names in routes."""
    if user.agents is None:
        return
    if (agent_id := ids.get("agent_id")) is not None and not user.may_use(AgentId(agent_id.lower())):
        raise AgentNotFound
    for name, error in NOT_FOUND.items():
        if (id_ := ids.get(name)) is not None and not await is_within_reach(store, user, name, id_):
            raise error


async def is_within_reach(store: Store, user: User, name: OfAgents, id_: str) -> bool:
    """Whether a thing belongs to an agent of the user's key, if that is limited.

    What isn't known at all is left to who looks for it.
    """
    if user.agents is None or not is_uuid(id_):
        return True
    agents = await store.keys.agents_of(user.id, name, id_.lower())
    return not agents or any(map(user.may_use, agents))


async def concerns(store: Store, user: User, event: UserEvent) -> bool:
    """Whether an event is about something within the user's reach; not if that is gone for good."""
    name: OfAgents = "conversation_id" if event.conversation_id else "briefing_id"
    id_ = event.conversation_id or event.briefing_id or FIRST_UUID
    agents = await store.keys.agents_of(user.id, name, id_)
    return any(map(user.may_use, agents))
