"""Ids of imported items: their own, or new ones derived for the user."""

from threadkeep.domain.ids import ConversationId, MessageId, UserId, derived_uuid, is_uuid, time_of
from threadkeep.storage.imports.whole_conversations import Owned
from threadkeep.storage.store import Store


class ImportIds:
    """The ids of items imported for one user."""

    def __init__(self, store: Store, user_id: UserId) -> None:
        self._store = store
        self._user_id = user_id

    def own_id(self, id_: str) -> str:
        """The id that replaces another user's id, the same every time."""
        return derived_uuid(time_of(id_), self._user_id, id_)

    async def find(self, kind: Owned, id_: str, owner: str) -> tuple[str, bool]:
        """The id of an item here, and whether it already exists; one that was never finished doesn't."""
        if kind == "conversation":
            await self._store.whole_conversations.clear(
                self._user_id, (ConversationId(id_), ConversationId(self.own_id(id_)))
            )
        owners = {
            candidate: await self._store.whole_conversations.owner_of(kind, candidate)
            for candidate in (id_, self.own_id(id_))
        }
        for it, found in owners.items():
            if found == owner:
                return it, True
        return (id_ if owners[id_] is None else self.own_id(id_)), False

    async def card(self, message_id: MessageId) -> MessageId | None:
        """A briefing's card, if its conversation was imported, under any id."""
        for id_ in (message_id, MessageId(self.own_id(message_id))):
            if (
                is_uuid(id_)
                and await self._store.whole_conversations.owner_of("message", id_) == self._user_id
            ):
                return id_
        return None
