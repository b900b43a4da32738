"""Purges conversations in pieces, so that nobody waits long for the database.

A purge holds its conversation first: from then on nobody sees it, and nobody can restore it. Its rows
go some hundred at a time, its own row last. If a crash ends this, the next cleanup goes on.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from threadkeep.domain.errors import StorageConflict
from threadkeep.domain.ids import FIRST_UUID, LAST_UUID, AgentId, ContentId, ConversationId, UserId
from threadkeep.storage.database.columns import to_json
from threadkeep.storage.database.connector import Database, Plan, Query, Statement
from threadkeep.storage.database.pieces import Pace
from threadkeep.storage.file_contents import FileContents
from threadkeep.storage.file_rows import forget_files_of, forget_some_of_user
from threadkeep.storage.receipts import forget_some_receipts

S = TypeVar("S")
T = TypeVar("T")

PURGE = "purge"
"""Holds a conversation that is being purged."""
CONVERSATIONS_AT_ONCE = 20
SILENT_MS = 10 * 60 * 1000
"""A writer adds pieces much more often, unless its process has ended."""
TRIES = 5
_TURNS_AT_ONCE = 100
_WEIGHTS = {"tk_payload_contents": 50, "tk_states": 50, "tk_step_values": 50, "tk_entries": 5, "tk_chunks": 5}
"""How many other rows one of these counts as."""
_FILE_WEIGHT = 10
_RECEIPT_WEIGHT = 5
_Place = tuple[str, str]
"""The conversation and the turn whose log went last."""
_BEGIN, _END = (FIRST_UUID, FIRST_UUID), (LAST_UUID, LAST_UUID)


def _some(table: str, key: str, of: str = "conversation_id IN ({ids})") -> Statement:
    return Statement(
        f"DELETE FROM {table} WHERE ({key}) IN (SELECT {key} FROM {table} WHERE {of} LIMIT :limit)"
    )


# What refers to a row goes before it, so that a cascade finds nothing. Logs, receipts and files go first.
OF_CONVERSATIONS: Mapping[str, Statement] = {
    "tk_shares": _some("tk_shares", "id"),
    "tk_queued": _some("tk_queued", "message_id"),
    "tk_approvals": _some("tk_approvals", "id"),
    "tk_executions": _some("tk_executions", "conversation_id, run_id, event_id"),
    "tk_runs": _some("tk_runs", "conversation_id, run_id"),
    "tk_compactions": _some("tk_compactions", "id"),
    "tk_compaction_progress": _some("tk_compaction_progress", "conversation_id"),
    "tk_payload_contents": _some("tk_payload_contents", "conversation_id, sha256"),
    "tk_payloads": _some("tk_payloads", "id"),
    "tk_entries": _some("tk_entries", "id"),
    "tk_feedback": _some("tk_feedback", "message_id"),
    "tk_outside_messages": _some("tk_outside_messages", "conversation_id, outside_id"),
    "tk_outside_conversations": _some("tk_outside_conversations", "user_id, outside_id"),
    "tk_creation_keys": _some("tk_creation_keys", "user_id, idempotency_key"),
    "tk_searchable": _some("tk_searchable", "conversation_id"),
    "tk_tool_calls": _some("tk_tool_calls", "turn_id, tool_call_id"),
    "tk_path_moves": _some("tk_path_moves", "conversation_id"),
    "tk_states": _some("tk_states", "message_id"),
    "tk_step_values": _some("tk_step_values", "id"),
    "tk_messages": _some("tk_messages", "id"),
    "tk_turns": _some("tk_turns", "id"),
}
# Of agents that are deleted with their user.
_OF_AGENT = "agent_id IN ({ids})"
_OF_DOCUMENT = f"document_id IN (SELECT id FROM tk_documents WHERE {_OF_AGENT})"
_OF_COLLECTION = "collection IN (SELECT number FROM tk_collections WHERE {})"
OF_AGENTS: Mapping[str, Statement] = {
    "tk_chunks": _some("tk_chunks", "id", _OF_DOCUMENT),
    "tk_documents": _some("tk_documents", "id", _OF_AGENT),
    "tk_terms": _some("tk_terms", "collection, term", _OF_COLLECTION.format(_OF_AGENT)),
    "tk_memories": _some("tk_memories", "id", _OF_AGENT),
    "tk_briefings": _some("tk_briefings", "user_id, id", _OF_AGENT),
}
_OF_USER = "user_id = :user_id"
OF_USERS: Mapping[str, Statement] = {
    "tk_terms": _some("tk_terms", "collection, term", _OF_COLLECTION.format(_OF_USER)),
    "tk_memories": _some("tk_memories", "id", _OF_USER),
    "tk_briefings": _some("tk_briefings", "user_id, id", _OF_USER),
    "tk_ledger": _some("tk_ledger", "id", _OF_USER),
    "tk_requests": _some("tk_requests", "user_id, name", _OF_USER),
}
# The log's chunks are found by their turns, page by page: most turns have none left.
_TURNS = Statement(
    """SELECT id FROM tk_turns WHERE conversation_id = :conversation_id AND id > :after
    ORDER BY id LIMIT :limit"""
)
_FORGET_CHUNKS = Statement(
    """DELETE FROM tk_turn_chunks WHERE (turn_id, first_seq) IN (
        SELECT turn_id, first_seq FROM tk_turn_chunks WHERE turn_id IN ({ids}) LIMIT :limit)"""
)
# Each piece looks again: another purge may have finished meanwhile, and an import may write the same ids.
_STILL_HELD = Statement(
    f"SELECT id FROM tk_conversations WHERE id IN ({{ids}}) AND held_by = '{PURGE}'",
    locks="ORDER BY id FOR NO KEY UPDATE",
)
_FORGET = Statement("DELETE FROM tk_conversations WHERE id IN ({ids})")

_HOLD = f"UPDATE tk_conversations SET held_by = '{PURGE}', deleted_at = COALESCE(deleted_at, {{now}})"
# One that another purge holds is purged by both.
HOLD_OWNED = Statement(
    f"""{_HOLD} WHERE id = :id AND user_id = :user_id AND (held_by IS NULL OR held_by = '{PURGE}')
        AND (deleted_at IS NOT NULL OR NOT :only_deleted) RETURNING id"""
)
# Each from its own index.
HOLD_OF_USER = Statement(
    f"""{_HOLD} WHERE id IN (
        SELECT id FROM (SELECT id FROM tk_conversations WHERE user_id = :user_id AND deleted_at IS NULL
            UNION ALL SELECT id FROM tk_conversations WHERE user_id = :user_id AND deleted_at IS NOT NULL
        ) AS own LIMIT :limit) RETURNING id"""
)
# Skips what another node is purging or a user is restoring at this moment.
HOLD_EXPIRED = Statement(
    f"""{_HOLD} WHERE id IN (SELECT id FROM tk_conversations
        WHERE deleted_at < :time AND held_by IS NULL ORDER BY deleted_at LIMIT :limit) RETURNING id""",
    postgres=f"""{_HOLD} WHERE id IN (SELECT id FROM tk_conversations
        WHERE deleted_at < :time AND held_by IS NULL ORDER BY deleted_at LIMIT :limit
        FOR UPDATE SKIP LOCKED) RETURNING id""",
)
# What a process has left that ended while it wrote or purged.
HOLD_LEFT = Statement(
    f"""{_HOLD} WHERE id IN (SELECT id FROM tk_conversations WHERE held_by IS NOT NULL
        AND (held_by = '{PURGE}' OR deleted_at < {{now}} - {SILENT_MS}) LIMIT :limit) RETURNING id"""
)
# What a writer of the user has left, or still writes: its next piece is refused.
HOLD_UNFINISHED = Statement(
    f"""{_HOLD} WHERE id IN ({{ids}}) AND user_id = :user_id AND held_by IS NOT NULL RETURNING id"""
)
# No other process could be writing one.
LET_ALL_GO = Statement(f"UPDATE tk_conversations SET held_by = '{PURGE}' WHERE held_by IS NOT NULL")


async def patiently(act: Callable[[], Awaitable[T]]) -> T:
    """Tries again if another transaction has locked the same rows in another order."""
    for _ in range(TRIES - 1):
        try:
            return await act()
        except StorageConflict:
            continue
    return await act()


async def hold(database: Database, query: Query) -> list[ConversationId]:
    """Holds conversations for their purge; returns which."""
    return [ConversationId(id_) for (id_,) in await patiently(lambda: database.execute(query))]


async def purge(database: Database, contents: FileContents, ids: Sequence[ConversationId]) -> None:
    """Purges conversations that are held for it."""

    def piece(place: _Place, most: int) -> Plan[tuple[_Place | None, list[ContentId]]]:
        held = [id_ for (id_,) in (yield _STILL_HELD(ids=to_json(ids)))]
        if not held:
            return None, []
        place, left, freed = yield from _forget_some(held, place, most)
        if left <= 0:
            return place, freed
        yield _FORGET(ids=to_json(held))
        return None, freed

    await _in_pieces(database, contents, piece, _BEGIN)


async def purge_agents(database: Database, contents: FileContents, ids: Sequence[AgentId]) -> None:
    """Deletes what belongs to agents, but not the agents."""

    def piece(_: bool, most: int) -> Plan[tuple[bool | None, list[ContentId]]]:
        left = yield from _forget_rows(OF_AGENTS, {"ids": to_json(ids)}, most)
        return (True if left <= 0 else None), []

    await _in_pieces(database, contents, piece, True)


async def purge_rest_of_user(database: Database, contents: FileContents, user_id: UserId) -> None:
    """Deletes what a user has besides conversations and agents."""

    def piece(_: bool, most: int) -> Plan[tuple[bool | None, list[ContentId]]]:
        left = yield from _forget_rows(OF_USERS, {"user_id": user_id}, most)
        if left <= 0:
            return True, []
        files, freed = yield from forget_some_of_user(user_id, limit=-(-left // _FILE_WEIGHT))
        return (True if files * _FILE_WEIGHT >= left else None), freed

    await _in_pieces(database, contents, piece, True)


async def _in_pieces(
    database: Database,
    contents: FileContents,
    piece: Callable[[S, int], Plan[tuple[S | None, list[ContentId]]]],
    begin: S,
) -> None:
    """Writes pieces until there is no more; each says where the next one begins."""
    place, pace = begin, Pace()
    while True:
        with pace.piece() as most:
            next_place, freed = await patiently(partial(database.write, partial(piece, place, most)))
            await contents.remove(freed)
        if next_place is None:
            return
        place = next_place


def _forget_some(
    ids: Sequence[ConversationId], place: _Place, most: int
) -> Plan[tuple[_Place, int, list[ContentId]]]:
    """Deletes some rows of conversations; returns where their logs go on, how many more rows could have been
    deleted, and the freed contents.
    """
    place, left = yield from _forget_logs(ids, place, most)
    if left > 0:
        receipts = yield from forget_some_receipts(ids, limit=-(-left // _RECEIPT_WEIGHT))
        left -= receipts * _RECEIPT_WEIGHT
    freed: list[ContentId] = []
    if left > 0:
        files, freed = yield from forget_files_of(ids, limit=-(-left // _FILE_WEIGHT))
        left -= files * _FILE_WEIGHT
    if left > 0:
        left = yield from _forget_rows(OF_CONVERSATIONS, {"ids": to_json(ids)}, left)
    return place, left, freed


def _forget_logs(ids: Sequence[ConversationId], place: _Place, left: int) -> Plan[tuple[_Place, int]]:
    for id_ in sorted(it for it in ids if it >= place[0]):
        after = place[1] if id_ == place[0] else FIRST_UUID
        while left > 0 and after != LAST_UUID:
            turns = yield _TURNS(conversation_id=id_, after=after, limit=_TURNS_AT_ONCE)
            gone = yield _FORGET_CHUNKS(ids=to_json([turn_id for (turn_id,) in turns]), limit=left)
            if len(gone) < left:
                after = turns[-1][0] if len(turns) == _TURNS_AT_ONCE else LAST_UUID
            left -= len(gone) if len(turns) < _TURNS_AT_ONCE else max(len(gone), 1)
        if left <= 0:
            return (id_, after), left
    return _END, left


def _forget_rows(tables: Mapping[str, Statement], of: Mapping[str, str], left: int) -> Plan[int]:
    """Deletes rows of one table after the other; returns how many more could have been deleted."""
    for table, delete in tables.items():
        weight = _WEIGHTS.get(table, 1)
        gone = yield delete(**of, limit=-(-left // weight))
        left -= len(gone) * weight
        if left <= 0:
            break
    return left
