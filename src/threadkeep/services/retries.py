"""Requests that clients repeat by themselves: the turns that they may mean."""

from threadkeep.domain.conversation import Conversation
from threadkeep.domain.turn import Turn, TurnStatus
from threadkeep.storage.store import Store

RETRIED_MS = 10 * 60 * 1000
"""How long after the end of its turn a client's own retry of the same request returns that turn."""
MOST_LOOKED_AT = 40
"""Among how many of a conversation's newest messages a retry finds its turn, on any branch."""


def is_retried(turn: Turn, now: int) -> bool:
    """Whether a client's own retry returns an ended turn instead of another one. A failed one is repeated
    indeed: that is what its client wants.
    """
    is_recent = turn.ended_at is not None and now - turn.ended_at < RETRIED_MS
    return is_recent and turn.status is not TurnStatus.FAILED


async def retried_turns(store: Store, conversation: Conversation, now: int) -> list[Turn]:
    """The turns that a client's own retry may mean, newest first: those that run, wait or ended just now."""
    before = conversation.last_seq - MOST_LOOKED_AT
    begun = await store.turns.begun_after(conversation.id, before, limit=MOST_LOOKED_AT)
    return [turn for turn, _ in reversed(begun) if turn.is_active or is_retried(turn, now)]
