"""Moves a conversation's path in pieces, if it is long, and for its readers all at once.

The messages that join are marked first, some hundred at a time, which nobody sees. Then a small transaction,
which may also begin a turn, changes one row of `tk_path_moves`: from now on `on_path` reads the new marks.
The other marks follow in pieces. A crash leaves the path before or the one after, and any node finishes the
marks.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace

from threadkeep.domain.conversation import Branch
from threadkeep.domain.errors import StorageConflict, StorageError
from threadkeep.domain.ids import ConversationId, MessageId, new_uuid
from threadkeep.storage.database import pieces
from threadkeep.storage.database.columns import to_json
from threadkeep.storage.database.connector import LAST_SEQ, Database, Plan, Statement
from threadkeep.storage.database.pieces import Pace

SILENT_MS = 30 * 1000
"""A writer marks pieces much more often, unless its process or its request has ended."""
SETTLED_AT_ONCE = 20


def on_path(message: str = "tk_messages", conversation_id: str = ":conversation_id") -> str:
    """The condition that a message is on the active path of its conversation.

    Nearly always the first comparison decides: no path is being moved. `message` is what the statement calls
    `tk_messages`.
    """

    def of_move(value: str) -> str:
        return f"(SELECT {value} FROM tk_path_moves WHERE tk_path_moves.conversation_id = {conversation_id})"

    return f"""{message}.on_path AND ({message}.seq <= COALESCE({of_move("after_seq")}, {LAST_SEQ})
        OR {message}.seq > {of_move("to_seq")} OR {message}.joins = {of_move("state = 'done'")})"""


# Locks the conversation, unless it has changed since it was read.
_LOCK_UNCHANGED = Statement(
    """SELECT 1 FROM tk_conversations WHERE id = :conversation_id AND last_seq = :last_seq
        AND COALESCE(CAST(tip_id AS text), '') = :expected_tip AND deleted_at IS NULL""",
    locks="FOR NO KEY UPDATE",
)
_ADD = Statement(
    """INSERT INTO tk_path_moves (conversation_id, id, after_seq, to_seq, state, touched_at)
    VALUES (:conversation_id, :id, :after_seq, :to_seq, 'prepared', {now})"""
)
_STILL_PREPARES = Statement(
    """UPDATE tk_path_moves SET touched_at = {now}
    WHERE conversation_id = :conversation_id AND id = :id AND state = 'prepared'"""
)
_JOIN = Statement("UPDATE tk_messages SET on_path = TRUE, joins = TRUE WHERE id IN ({ids}) AND NOT on_path")
_END = "UPDATE tk_path_moves SET state = '{}' WHERE conversation_id = :conversation_id AND id = :id"
_DONE = Statement(f"{_END.format('done')} AND state = 'prepared'")
_LEAVE = Statement(f"{_END.format('left')} AND state = 'prepared'")
_FIND = Statement("SELECT 1 FROM tk_path_moves WHERE conversation_id = :conversation_id")
_IS_SILENT = f"touched_at < {{now}} - {SILENT_MS}"
_FIND_SETTLING = Statement(
    f"""SELECT conversation_id FROM tk_path_moves WHERE state <> 'prepared' OR {_IS_SILENT}
    LIMIT :limit"""
)
_LOCK = Statement(
    f"""SELECT after_seq, to_seq, state, state = 'prepared' AND NOT ({_IS_SILENT}) FROM tk_path_moves
    WHERE conversation_id = :conversation_id""",
    locks="FOR UPDATE",
)
# Where a piece ends: with so many of the messages that are marked.
_PIECE = Statement(
    """SELECT seq FROM tk_messages WHERE conversation_id = :conversation_id AND on_path
        AND seq > :after_seq AND seq <= :to_seq ORDER BY seq LIMIT 1 OFFSET :before"""
)
_SETTLE = Statement(
    """UPDATE tk_messages SET on_path = (joins = :is_done), joins = FALSE
    WHERE conversation_id = :conversation_id AND on_path AND seq > :after_seq AND seq <= :to_seq
        AND (joins OR :is_done)"""
)
_GO_ON = Statement(
    """UPDATE tk_path_moves SET after_seq = :after_seq, state = :state
    WHERE conversation_id = :conversation_id"""
)
_REMOVE = Statement("DELETE FROM tk_path_moves WHERE conversation_id = :conversation_id")


@asynccontextmanager
async def prepared(
    database: Database,
    conversation_id: ConversationId,
    branch: Branch,
    *,
    last_seq: int,
    tip_id: MessageId | None,
    check: Callable[[], Plan[None]],
) -> AsyncGenerator[Branch]:
    """The branch, ready to become the active path in a small transaction within this context.

    StorageConflict if the conversation has changed since it was read: it had this last number and this tip.
    The check, which may read for long, refuses a branch that was read while another path was active.
    """
    await settle(database, conversation_id)
    if branch.hidden + len(branch.shown) <= pieces.AT_ONCE:
        yield branch
        return
    move = _Move(database, conversation_id, last_seq, tip_id, replace(branch, move_id=new_uuid()))
    try:
        await move.begin()  # from now on nobody else moves the path
        await database.read(check)
        await move.mark()
    except BaseException:
        await move.leave()
        raise
    try:
        yield move.branch
    except Exception:  # a cancelled caller doesn't know whether its transaction was the last
        await move.leave()
        raise


def done(conversation_id: ConversationId, branch: Branch) -> Plan[None]:
    """Makes a prepared branch the active path."""
    if not (yield _DONE(conversation_id=conversation_id, id=branch.move_id)):
        raise _moves_elsewhere()


def check_settled(conversation_id: ConversationId) -> Plan[None]:
    """Refuses while another move goes on."""
    if (yield _FIND(conversation_id=conversation_id)):
        raise _moves_elsewhere()


async def settle(database: Database, conversation_id: ConversationId) -> None:
    """Finishes the marks of a move that is done or was left; StorageConflict while one is prepared."""
    if not await database.fetch(_FIND(conversation_id=conversation_id)):
        return
    pace, goes_on = Pace(), True
    while goes_on:
        with pace.piece() as most:
            goes_on = await database.write(lambda most=most: _settle_some(conversation_id, most))


async def settle_all(database: Database) -> None:
    """Finishes the marks of all moves that are done or were left."""
    for (conversation_id,) in await database.fetch(_FIND_SETTLING(limit=SETTLED_AT_ONCE)):
        with suppress(StorageConflict):  # the next one may have begun
            await settle(database, conversation_id)


@dataclass(frozen=True, slots=True)
class _Move:
    """A move that is being prepared in a conversation, as long as that is as it was read."""

    database: Database
    conversation_id: ConversationId
    last_seq: int
    tip_id: MessageId | None
    branch: Branch

    async def begin(self) -> None:
        await self.database.write(self._begin)

    async def mark(self) -> None:
        pace, marked = Pace(), 0
        while marked < len(self.branch.shown):
            with pace.piece() as most:
                some = self.branch.shown[marked : marked + most]
                await self.database.write(lambda some=some: self._mark(some))
            marked += len(some)

    async def leave(self) -> None:
        with suppress(StorageError):  # then it is found by its silence
            await self.database.execute(_LEAVE(**self._names))

    @property
    def _names(self) -> dict[str, str | None]:
        return {"conversation_id": self.conversation_id, "id": self.branch.move_id}

    def _begin(self) -> Plan[None]:
        yield from self._lock()
        yield _ADD(**self._names, after_seq=self.branch.fork_seq, to_seq=self.last_seq)

    def _mark(self, some: Sequence[MessageId]) -> Plan[None]:
        yield from self._lock()
        if not (yield _STILL_PREPARES(**self._names)):
            raise _moves_elsewhere()
        joined = yield _JOIN(ids=to_json(some))
        if len(joined) != len(some):  # the branch was read while another path was active
            raise _changed()

    def _lock(self) -> Plan[None]:
        if not (
            yield _LOCK_UNCHANGED(
                conversation_id=self.conversation_id,
                last_seq=self.last_seq,
                expected_tip=self.tip_id or "",
            )
        ):
            raise _changed()


def _settle_some(conversation_id: ConversationId, most: int) -> Plan[bool]:
    """Finishes some marks; returns whether there are more."""
    found = yield _LOCK(conversation_id=conversation_id)
    if not found:
        return False
    after_seq, to_seq, state, is_prepared = found[0]
    if is_prepared:
        raise _moves_elsewhere()
    is_done = state == "done"
    piece = {"conversation_id": conversation_id, "after_seq": after_seq, "to_seq": to_seq}
    ends = yield _PIECE(**piece, before=most - 1)
    end = ends[0][0] if ends else to_seq
    yield _SETTLE(**piece | {"to_seq": end}, is_done=is_done)
    if end < to_seq:
        yield _GO_ON(conversation_id=conversation_id, after_seq=end, state="done" if is_done else "left")
    else:
        yield _REMOVE(conversation_id=conversation_id)
    return end < to_seq


def _changed() -> StorageConflict:
    return StorageConflict("The conversation has changed since it was read.")


def _moves_elsewhere() -> StorageConflict:
    return StorageConflict("The conversation's path is being moved.")
