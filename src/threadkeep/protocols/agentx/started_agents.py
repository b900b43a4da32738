"""The agents that users have started: in AgentX, an agent exists until it is destroyed, turn or not."""

from threadkeep.domain.conversation import Conversation
from threadkeep.domain.errors import ConversationNotFound
from threadkeep.domain.ids import UserId
from threadkeep.domain.user import User
from threadkeep.services.conversations import Conversations

MOST_STARTED = 1_000
MOST_USERS = 1_000


class StartedByUser:
    """The started agents of each user, the same for all their clients; only of the users seen last."""

    def __init__(self) -> None:
        self._users: dict[UserId, StartedAgents] = {}

    def of(self, user_id: UserId) -> "StartedAgents":
        """Those of one user."""
        started = self._users.pop(user_id, None) or StartedAgents()
        self._users[user_id] = started
        if len(self._users) > MOST_USERS:
            del self._users[next(iter(self._users))]
        return started


class StartedAgents:
    """The conversations that one user has run or written to over AgentX, and not stopped."""

    def __init__(self) -> None:
        self._ids: dict[str, None] = {}

    def __contains__(self, id_: str) -> bool:
        return id_ in self._ids

    def add(self, id_: str) -> None:
        """Remembers a conversation; the one that was added longest ago makes room."""
        self._ids.pop(id_, None)
        self._ids[id_] = None
        if len(self._ids) > MOST_STARTED:
            del self._ids[next(iter(self._ids))]

    def remove(self, id_: str) -> None:
        """Forgets a conversation: it was stopped or deleted."""
        self._ids.pop(id_.lower(), None)

    async def of(
        self, conversations: Conversations, user: User, container_id: str | None
    ) -> list[Conversation]:
        """The started ones of an agent that still exist."""
        found: list[Conversation] = []
        for id_ in tuple(self._ids):
            try:
                conversation = await conversations.get(user, id_)
            except ConversationNotFound:
                self.remove(id_)
                continue
            if container_id in {None, conversation.agent_id}:
                found.append(conversation)
        return found
