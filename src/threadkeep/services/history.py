"""Search of the user's own conversations. Messages are indexed after their turns, not during them."""

import asyncio
import logging
from collections.abc import Sequence
from weakref import WeakValueDictionary

from threadkeep.domain.errors import StorageError
from threadkeep.domain.ids import ConversationId, UserId
from threadkeep.domain.user import User
from threadkeep.ports.history import SaidHit
from threadkeep.ports.store import Store
from threadkeep.tasks import end_tasks

log = logging.getLogger("threadkeep.history")

FOLLOWED_AT_ONCE = 20
LOOKED_AT_ONCE = 200
PAUSE_S = 0.02


class History:
    """The use cases of history, and the task that keeps its index up to date."""

    def __init__(self, store: Store) -> None:
        self._store = store
        # A search may take long: a user's concurrent searches wait for one another, and delay nobody else.
        self._searching = WeakValueDictionary[UserId, asyncio.Lock]()
        self._waiting: dict[ConversationId, None] = {}
        self._wake = asyncio.Event()
        self._task = asyncio.create_task(self._run())

    async def search(self, user: User, query: str, *, before: int | None, limit: int) -> Sequence[SaidHit]:
        """Messages to or from the user that contain all words of a query, newest first."""
        async with self._searching.setdefault(user.id, asyncio.Lock()):
            return await self._store.history.search(user.id, query, before=before, limit=limit)

    def note(self, conversation_id: ConversationId) -> None:
        """Notes that a conversation has new content."""
        self._waiting[conversation_id] = None
        self._wake.set()

    async def follow(self, conversation_id: ConversationId) -> None:
        """Indexes a conversation now, so that its new title is searchable immediately."""
        try:
            has_more = await self._store.history.follow(conversation_id, limit=FOLLOWED_AT_ONCE)
        except StorageError as exc:
            log.warning("indexing a conversation for search later: %s", exc.message)
            has_more = True
        if has_more:
            self.note(conversation_id)

    async def catch_up(self) -> None:
        """Notes all conversations that aren't indexed yet, such as those of a stopped node."""
        after: str | None = None
        while found := await self._store.history.behind(after=after, limit=LOOKED_AT_ONCE):
            for conversation_id in found:
                self.note(conversation_id)
            after = found[-1]

    async def close(self) -> None:
        """Stops; the next start catches up."""
        await end_tasks(self._task)

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                conversation_id = next(iter(self._waiting))
                del self._waiting[conversation_id]
                try:
                    has_more = await self._store.history.follow(conversation_id, limit=FOLLOWED_AT_ONCE)
                except StorageError as exc:
                    log.warning("couldn't index a conversation for search: %s", exc.message)
                else:
                    if has_more:
                        self._waiting[conversation_id] = None
                await asyncio.sleep(PAUSE_S)  # turns go first
