"""Threadkeep as a contender: everything through its store, with the domain's own rules."""

from collections.abc import Sequence

from tests.making import keep_begun, keep_ended, said

from bench.data import ANSWER, MODEL, NOW, QUESTION, SPENT, Dataset
from threadkeep.domain.conversation import Conversation, ConversationFilter
from threadkeep.domain.ids import AgentId, ConversationId, UserId
from threadkeep.domain.message import MessageStatus, MessageWindow
from threadkeep.storage.store import Store

LATEST = MessageWindow(newest_first=True)
EVERYTHING = ConversationFilter()


class Threadkeep:
    """The store on one database."""

    def __init__(self, store: Store, dataset: Dataset) -> None:
        self._store = store
        self._kept = {it.id: it for it in dataset.conversations}

    async def append(self, conversation_id: ConversationId) -> None:
        """A turn as the services make it, without the model in between."""
        conversation = self._kept[conversation_id]
        now = NOW + conversation.last_seq + 1
        begun = conversation.begin_turn(QUESTION, now, model=MODEL)
        await keep_begun(self._store, begun)
        reply = begun.assistant_message.finish(MessageStatus.COMPLETED, said(ANSWER), now + 1, usage=SPENT)
        ended = begun.conversation.end_turn(begun.turn, reply, now + 1)
        await keep_ended(self._store, ended)
        self._kept[conversation_id] = ended.conversation

    async def latest(self, conversation_id: ConversationId, limit: int) -> Sequence[object]:
        """The newest messages."""
        return await self._store.messages.page(conversation_id, LATEST, offset=0, limit=limit)

    async def conversations(self, user_id: UserId, limit: int) -> Sequence[object]:
        """The first page of the list."""
        return await self._store.conversations.page(user_id, EVERYTHING, after=None, offset=0, limit=limit)

    async def main(self, user_id: UserId, agent_id: AgentId) -> Sequence[object]:
        """Get-or-create, with the new conversation that is made for the case that there is none."""
        fresh = Conversation.start(user_id, agent_id, NOW, is_main=True)
        conversation, made = await self._store.conversations.get_or_add_main(fresh)
        return () if made else (conversation,)

    async def close(self) -> None:
        """Ends the store's threads and connections."""
        await self._store.close()
