"""The next turn: that of the first queued message, which begins in the commit that ends the previous turn."""

import logging

from threadkeep.domain.conversation import EndedTurn
from threadkeep.domain.errors import StorageError, ThreadkeepError
from threadkeep.domain.queued import QueuedMessage
from threadkeep.domain.turn import TurnStatus
from threadkeep.log.writer import LogWriter, persist
from threadkeep.runtime.opened_turn import OpenedTurn, open_turn
from threadkeep.runtime.prepared_turn import PrepareNextTurn
from threadkeep.storage.store import Store
from threadkeep.storage.turn_log import HeldTurn

log = logging.getLogger("threadkeep.turns")


class NextTurns:
    """Opens the turns that follow those of this node."""

    def __init__(self, node_id: str, store: Store, writer: LogWriter) -> None:
        self._node_id = node_id
        self._store = store
        self._writer = writer

    async def open(
        self, held: HeldTurn, ended: EndedTurn, message: QueuedMessage, prepare_next: PrepareNextTurn
    ) -> OpenedTurn | None:
        """The turn of a queued message; None if it can't begin, and the queue is held."""
        if ended.turn.status is not TurnStatus.COMPLETED:
            return None
        begun_with, began_at = held.turn.begun_with, held.turn.started_at
        if begun_with is not None and begun_with.leaves_queue and message.created_at <= began_at:
            return None
        # Loaded again: cards may have arrived since the turn began.
        user_id, id_ = held.conversation.user_id, held.conversation.id
        conversation = await persist(lambda: self._store.conversations.get(user_id, id_))
        if conversation is None:  # deleted
            return None
        at = ended.turn.ended_at or held.turn.started_at
        freed = conversation.end_turn(held.turn, ended.assistant_message, at).conversation
        try:
            prepared = await persist(lambda: prepare_next(held.turn, freed, message))
        except StorageError:
            raise
        except ThreadkeepError as exc:
            log.info("the queue is on hold: %s", exc.message)
            return None
        return open_turn(prepared, self._node_id, self._writer)
