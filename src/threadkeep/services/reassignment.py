"""Moves everything from one user to another, such as from `local` once users sign in."""

from collections.abc import Callable

from threadkeep.domain.agent import AuditEntry
from threadkeep.domain.errors import InvalidRequest
from threadkeep.domain.ids import ConversationId, UserId, new_uuid
from threadkeep.domain.user import LOCAL
from threadkeep.storage.imports.reassignment import Moved
from threadkeep.storage.store import Store

INDEXED_AT_ONCE = 200


def reassigned(actor: UserId, giver: UserId, receiver: UserId, now: int) -> AuditEntry:
    """What the audit says of it; on the command line, the actor is `local`."""
    return AuditEntry(new_uuid(), now, actor, "reassign_user", None, {"giver": giver, "receiver": receiver})


async def reassign(store: Store, giver: UserId, receiver: UserId, now: int, *, alone: bool) -> Moved:
    """Moves everything in one transaction, then makes it searchable for the new owner."""
    if giver == receiver:
        raise InvalidRequest("The two users are the same.", param="user")
    entry = reassigned(LOCAL, giver, receiver, now)
    moved = await store.whole_conversations.reassign(giver, receiver, now, entry, alone=alone)
    for conversation_id in moved.unsearchable:
        await make_searchable(store, conversation_id)
    return moved


async def make_searchable(
    store: Store, conversation_id: ConversationId, goes_on: Callable[[], bool] = lambda: True
) -> None:
    """Indexes a conversation now instead of after its turns; if it is stopped, a cleanup does the rest."""
    while goes_on() and await store.history.follow(conversation_id, limit=INDEXED_AT_ONCE):
        pass
