"""What everybody had as `local` before people signed in: an admin takes it over."""

from threadkeep.clock import Clock
from threadkeep.domain.errors import Forbidden, UserNotFound
from threadkeep.domain.sign_in.session import SignInRules
from threadkeep.domain.user import LOCAL, Movable, User
from threadkeep.mcp.personal import PersonalServers
from threadkeep.services.history import History
from threadkeep.services.keys import Keys
from threadkeep.services.reassignment import reassigned
from threadkeep.storage.store import Store


class LocalData:
    """The use cases of an admin with the data of `local`."""

    def __init__(
        self,
        store: Store,
        history: History,
        keys: Keys,
        servers: PersonalServers,
        rules: SignInRules,
        clock: Clock,
    ) -> None:
        self._store = store
        self._history = history
        self._keys = keys
        self._servers = servers
        self._rules = rules
        self._clock = clock

    async def left_for(self, user: User) -> Movable | None:
        """What a user may take over; None if there is nothing, or it isn't theirs to take."""
        if not self._can_take(user):
            return None
        left = await self._store.whole_conversations.movable(LOCAL)
        return left if left.conversations or left.agents or left.briefings or left.memories else None

    async def take(self, user: User) -> Movable:
        """Gives it all to an admin. What somebody else has taken meanwhile is gone: then nothing is moved."""
        if not self._can_take(user):
            raise Forbidden("Only an admin can take over what `local` has, and only where people sign in.")
        now = self._clock()
        entry = reassigned(user.id, LOCAL, user.id, now)
        try:
            moved = await self._store.whole_conversations.reassign(LOCAL, user.id, now, entry, alone=False)
        except UserNotFound:  # there never was one
            return Movable(0, 0, 0, 0)
        self._keys.forget_user(LOCAL)
        for conversation_id in moved.unsearchable:
            self._history.note(conversation_id)
        # Repeated after a crash, it moves the folders that are left.
        await self._servers.hand_over(LOCAL, user.id)
        return Movable(moved.conversations, moved.agents, moved.briefings, moved.memories)

    def _can_take(self, user: User) -> bool:
        return user.is_admin and self._rules.signs_in and user.id != LOCAL
