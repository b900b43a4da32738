"""Moves everything from one user to another, such as from `local` once users sign in."""

from collections.abc import Callable

from threadkeep.domain.errors import InvalidRequest
from threadkeep.domain.ids import ConversationId, UserId
from threadkeep.storage.imports.reassignment import Moved
from threadkeep.storage.store import Store

INDEXED_AT_ONCE = 200


async def reassign(store: Store, giver: UserId, receiver: UserId, now: int, *, alone: bool) -> Moved:
    """Moves everything in one transaction, then makes it searchable for the new owner."""
    if giver == receiver:
        raise InvalidRequest("The two users are the same.", param="user")
    moved = await store.whole_conversations.reassign(giver, receiver, now, alone=alone)
    for conversation_id in moved.unsearchable:
        await make_searchable(store, conversation_id)
    return moved


async def make_searchable(
    store: Store, conversation_id: ConversationId, goes_on: Callable[[], bool] = lambda: True
) -> None:
    """Indexes a conversation now instead of after its turns; if it is stopped, a cleanup does the rest."""
    while goes_on() and await store.history.follow(conversation_id, limit=INDEXED_AT_ONCE):
        pass
