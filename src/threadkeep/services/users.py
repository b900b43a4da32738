"""Users: deleting a user deletes their data."""

from contextlib import suppress

from threadkeep.clock import Clock
from threadkeep.domain.agent import AuditEntry
from threadkeep.domain.errors import Forbidden, Unauthenticated, UserNotFound
from threadkeep.domain.ids import UserId, new_uuid
from threadkeep.domain.sign_in.session import user_suspended
from threadkeep.domain.user import LOCAL, User
from threadkeep.mcp.personal import PersonalServers
from threadkeep.services.keys import Keys
from threadkeep.services.prompts import Prompts
from threadkeep.services.running_turns import RunningTurns
from threadkeep.services.sign_in.sessions import Sessions
from threadkeep.storage.store import Store


class Users:
    """The use cases of users."""

    def __init__(
        self,
        store: Store,
        running_turns: RunningTurns,
        prompts: Prompts,
        servers: PersonalServers,
        keys: Keys,
        sessions: Sessions,
        clock: Clock,
    ) -> None:
        self._store = store
        self._running_turns = running_turns
        self._prompts = prompts
        self._servers = servers
        self._keys = keys
        self._sessions = sessions
        self._clock = clock

    async def meet(self, user: User) -> None:
        """Registers a user who signs in, so that agents can send them briefings."""
        with suppress(Forbidden):  # the host application decides; whatever this user starts is refused
            await self._store.users.meet(user.id, self._clock())

    async def check_present(self, user: User, *, present_since: int | None = None) -> None:
        """Refuses a user who was deleted after their token was issued, and one who is suspended.

        Without a token, `present_since` counts: a host application decides who may come again. Without
        sign-in, nobody can be kept out.
        """
        since = present_since if user.token_issued_at is None else user.token_issued_at
        if since is None and user.id == LOCAL:
            return
        standing = await self._store.users.standing(user.id)
        # Tokens tell only the second: one of the second of the deletion may be older.
        if since is not None and standing.deleted_at and since <= standing.deleted_at:
            raise Unauthenticated("This user was deleted after the token was issued. Sign in again.")
        if standing.suspended_by is not None:
            raise user_suspended(standing.suspended_by)

    async def admit(self, user: User) -> None:
        """Lets in a user for whom an application asks, who becomes known; UserNotFound if a host application
        doesn't have them.
        """
        # The application decides who exists: a deleted user comes back, once the deletion has ended.
        await self.check_present(user, present_since=self._clock())
        try:
            await self._store.users.meet(user.id, self._clock())
        except Forbidden as exc:
            raise UserNotFound from exc

    async def delete(self, user: User, user_id: str) -> None:
        """Purges all data of a user; for that user, for admins, and for a key that acts for their realm."""
        # No user's id contains a NUL, and PostgreSQL refuses to search for it.
        if not _may_delete(user, user_id) or "\x00" in user_id:
            raise UserNotFound
        await self._note_deletion(user, UserId(user_id))
        if user_id == user.id:
            await self.meet(user)  # so that the deletion is noted even if there is nothing to delete
        if not await self._delete(UserId(user_id)) and user_id != user.id:
            raise UserNotFound

    async def _note_deletion(self, user: User, user_id: UserId) -> None:
        """Notes in the audit who deletes somebody else. The deletion takes the name out of it."""
        if user.key is not None and user.is_acted_for:
            # The one who asks is the application, whoever it names.
            actor, details = user.key.user_id, {"keyId": user.key.id, "userId": user_id}
        elif user_id != user.id and await self._store.known_users.find(user_id) is not None:
            actor, details = user.id, {"userId": user_id}
        else:
            return
        await self._store.agents.note(
            AuditEntry(new_uuid(), self._clock(), actor, "delete_user", None, details)
        )

    async def _delete(self, user_id: UserId) -> bool:
        await self._running_turns.abort_all_of(user_id)
        purged = await self._store.users.delete(user_id, self._clock())
        if purged is not None:
            await self._prompts.forget(purged.agent_ids)
            await self._store.payloads.forget(purged.conversation_ids)
            self._keys.forget_user(user_id)
            self._sessions.forget_user(user_id)
        await self._servers.forget(user_id)
        return purged is not None

    async def sweep(self) -> None:
        """Finishes deletions that a crash has interrupted, and cleans up after a host application that
        deletes users in the shared database.
        """
        for user_id in await self._store.users.half_deleted():
            await self._delete(user_id)
        await self._store.users.sweep(self._clock())
        await self._servers.keep_only(self._store.users.ids())


def _may_delete(user: User, user_id: str) -> bool:
    if user.key is None or not user.is_acted_for:
        return user_id == user.id or user.is_admin
    # Without a realm, only the user whom the request names twice, and not the admin who made the key.
    realm = user.key.act_as
    return user_id.startswith(f"{realm}:") if realm else user_id == user.id != user.key.user_id
