"""Search of the user's own conversations. Messages are indexed after their turns, not during them."""

import asyncio
import logging
from collections.abc import Sequence
from itertools import islice
from weakref import WeakValueDictionary

from threadkeep.domain.errors import StorageError, StorageUnavailable
from threadkeep.domain.ids import AgentId, ConversationId, UserId, is_uuid
from threadkeep.domain.message import SaidHit
from threadkeep.domain.user import User
from threadkeep.loops import Loops
from threadkeep.storage.history import SearchFilter
from threadkeep.storage.store import Store
from threadkeep.tasks import end_tasks

log = logging.getLogger("threadkeep.history")

FOLLOWED_AT_ONCE = 20
LOOKED_AT_ONCE = 200
CONVERSATIONS_AT_ONCE = 4
PAUSE_S = 0.1
FIRST_RETRY_S = 2.0
LAST_RETRY_S = 300.0


class History:
    """The use cases of history, and the task that keeps its index up to date."""

    def __init__(self, store: Store, loops: Loops) -> None:
        self._store = store
        # A search may take long: a user's concurrent searches wait for one another, and delay nobody else.
        self._searching = WeakValueDictionary[UserId, asyncio.Lock]()
        self._waiting: dict[ConversationId, None] = {}
        self._wake = asyncio.Event()
        self._failures: dict[ConversationId, int] = {}
        """How often in a row a conversation couldn't be indexed."""
        self._loop = loops.start("search indexing", self._index_waiting, self._until_woken)

    async def search(
        self,
        user: User,
        query: str,
        *,
        agent_id: str | None = None,
        since: int | None = None,
        until: int | None = None,
        before: int | None,
        limit: int,
    ) -> Sequence[SaidHit]:
        """Messages to or from the user that contain all words of a query, newest first; only those with an
        agent, and created at or after `since` and before `until`, where these are given.
        """
        agents = user.agents
        if agent_id is not None:
            if not is_uuid(agent_id) or not user.may_use(AgentId(agent_id.lower())):
                return ()
            agents = frozenset({AgentId(agent_id.lower())})
        which = SearchFilter(agents=agents, since=since, until=until)
        async with self._searching.setdefault(user.id, asyncio.Lock()):
            return await self._store.history.search(user.id, query, before=before, limit=limit, which=which)

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
        await end_tasks(self._loop.task)

    async def _until_woken(self) -> None:
        await self._wake.wait()
        self._wake.clear()  # a note about what this round indexes anyway costs one empty round

    async def _index_waiting(self) -> None:
        while self._waiting:
            # Turns go first, and what several of them add is stored in one commit.
            await asyncio.sleep(PAUSE_S)
            together = list(islice(self._waiting, CONVERSATIONS_AT_ONCE))
            await asyncio.gather(*map(self._index, together))

    async def _index(self, conversation_id: ConversationId) -> None:
        del self._waiting[conversation_id]
        try:
            has_more = await self._store.history.follow(conversation_id, limit=FOLLOWED_AT_ONCE)
        except StorageUnavailable:  # no conversation can be indexed now
            self._waiting[conversation_id] = None
            raise
        except Exception as exc:  # noqa: BLE001 - the others can be; this one gets its turn again
            self._postpone(conversation_id)
            self._loop.failed(exc)
        else:
            self._failures.pop(conversation_id, None)
            if has_more:
                self._waiting[conversation_id] = None

    def _postpone(self, conversation_id: ConversationId) -> None:
        failures = self._failures[conversation_id] = self._failures.get(conversation_id, 0) + 1
        retry_s = min(FIRST_RETRY_S * 4 ** min(failures - 1, 10), LAST_RETRY_S)
        asyncio.get_running_loop().call_later(retry_s, self.note, conversation_id)
