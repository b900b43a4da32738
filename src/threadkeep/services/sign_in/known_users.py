"""Users as admins manage them: who there is, and who may not come in."""

from collections.abc import Sequence

from threadkeep.clock import Clock
from threadkeep.domain.agent import AuditEntry
from threadkeep.domain.errors import Forbidden, InvalidRequest, UserNotFound
from threadkeep.domain.ids import UserId, new_uuid
from threadkeep.domain.sign_in.session import KnownUser, SuspendedBy
from threadkeep.domain.user import LOCAL, User
from threadkeep.services.keys import Keys
from threadkeep.services.running_turns import RunningTurns
from threadkeep.services.sign_in.sessions import Sessions
from threadkeep.storage.store import Store


class KnownUsers:
    """The use cases of admins with users."""

    def __init__(
        self, store: Store, sessions: Sessions, keys: Keys, running_turns: RunningTurns, clock: Clock
    ) -> None:
        self._store = store
        self._sessions = sessions
        self._keys = keys
        self._running_turns = running_turns
        self._clock = clock

    async def page(self, user: User, *, after: str, offset: int, limit: int) -> Sequence[KnownUser]:
        """The users that this server knows, by their ids."""
        _check_admin(user)
        return await self._store.known_users.page(after=after, offset=offset, limit=limit)

    async def suspend(self, user: User, user_id: str) -> KnownUser:
        """Keeps a user out: their sessions end, their keys and tokens don't count, their turns stop.

        What they have stays. Only an admin lifts it.
        """
        id_ = self._other(user, user_id)
        await self.keep_out(id_, "admin", self._entry(user, "suspend_user", id_))
        return await self._found(id_)

    async def keep_out(self, user_id: UserId, by: SuspendedBy, entry: AuditEntry) -> None:
        """The same, also for a user whom their provider no longer knows; UserNotFound if we don't either."""
        if not await self._store.known_users.suspend(user_id, by, self._clock(), entry):
            raise UserNotFound
        await self.end_all_of(user_id)

    async def end_all_of(self, user_id: UserId) -> None:
        """Ends what a suspended user still has open."""
        self._sessions.forget_user(user_id)
        self._keys.forget_user(user_id)
        await self._running_turns.abort_all_of(user_id)

    async def unsuspend(self, user: User, user_id: str) -> KnownUser:
        """Lets a user in again: their keys and tokens count, and they can sign in."""
        id_ = self._other(user, user_id)
        if not await self._store.known_users.unsuspend(id_, self._entry(user, "unsuspend_user", id_)):
            raise UserNotFound
        self._sessions.forget_user(id_)
        return await self._found(id_)

    def _other(self, user: User, user_id: str) -> UserId:
        _check_admin(user)
        if user_id == user.id:
            raise InvalidRequest("You can't suspend yourself.", param="user_id")
        if user_id == LOCAL:
            raise InvalidRequest("Nobody signs in as `local`, so it can't be suspended.", param="user_id")
        # No user's id contains a NUL, and PostgreSQL refuses to search for it.
        if "\x00" in user_id:
            raise UserNotFound
        return UserId(user_id)

    async def _found(self, user_id: UserId) -> KnownUser:
        found = await self._store.known_users.find(user_id)
        if found is None:  # deleted meanwhile
            raise UserNotFound
        return found

    def _entry(self, user: User, action: str, user_id: UserId) -> AuditEntry:
        return AuditEntry(new_uuid(), self._clock(), user.id, action, None, {"userId": user_id})


def _check_admin(user: User) -> None:
    if not user.is_admin:
        raise Forbidden("Only an admin can manage users.")
