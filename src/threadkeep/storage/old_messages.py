"""Converts replies of version 1 to parts, some at a time: migration 0002's step in Python.

The table `tk_messages_before` holds the replies still to convert; it is dropped when none is left.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import msgspec

from threadkeep.domain.errors import StorageRefused
from threadkeep.domain.ids import PayloadId, is_uuid
from threadkeep.domain.message import Message
from threadkeep.domain.old_reply import OldReply
from threadkeep.domain.parts import FilePart, ThoughtStep
from threadkeep.domain.retrieval import Citation
from threadkeep.ports.turn_log import LogChunk, RebuildReply
from threadkeep.storage.columns import to_json
from threadkeep.storage.database.connector import Plan, Row, Rows, Statement
from threadkeep.storage.messages import COLUMNS, TURN_ID, to_message
from threadkeep.storage.parts import calls_in, to_columns
from threadkeep.storage.tool_calls import COLUMNS as CALL_COLUMNS
from threadkeep.storage.tool_calls import to_tool_call

T = TypeVar("T")

BATCH = 100


def _among(sql: str) -> Statement:
    """A statement in which {ids} is a JSON list."""
    return Statement(
        sql.format(ids="SELECT value FROM json_each(:ids)"),
        postgres=sql.format(
            ids="SELECT CAST(value AS uuid) FROM json_array_elements_text(CAST(:ids AS json))"
        ),
    )


IS_WAITING = Statement(
    "SELECT count(*) FROM sqlite_master WHERE name = 'tk_messages_before'",
    postgres="SELECT count(*) FROM pg_class WHERE oid = to_regclass('tk_messages_before')",
)
_SOME = Statement(
    "SELECT id, thought_process, citations, artifact_ids FROM tk_messages_before ORDER BY id LIMIT :limit"
)
_MESSAGES = _among(f"SELECT {COLUMNS} FROM tk_messages WHERE id IN ({{ids}})")
_CALLS = _among(
    f"SELECT {CALL_COLUMNS} FROM tk_tool_calls WHERE message_id IN ({{ids}}) ORDER BY message_id, position"
)
_FILES = _among("SELECT id, file_name, media_type, size FROM tk_payloads WHERE id IN ({ids})")
_CHUNKS = _among(
    """SELECT turn_id, first_seq, last_seq, events FROM tk_turn_chunks WHERE turn_id IN ({ids})
    ORDER BY turn_id, first_seq"""
)
_UPDATE_MESSAGE = Statement(
    "UPDATE tk_messages SET content = :content, parts = :parts, file_count = :file_count WHERE id = :id"
)
_UPDATE_CALL = Statement(
    """UPDATE tk_tool_calls SET artifact_ids = :artifact_ids
    WHERE turn_id = :turn_id AND tool_call_id = :tool_call_id"""
)
_FORGET = _among("DELETE FROM tk_messages_before WHERE id IN ({ids})")
_DROP = Statement("DROP TABLE tk_messages_before")

_decode_steps = msgspec.json.Decoder(tuple[ThoughtStep, ...]).decode
_decode_citations = msgspec.json.Decoder(tuple[Citation, ...]).decode
_decode_ids = msgspec.json.Decoder(tuple[PayloadId, ...]).decode


def rebuild_some(rebuild: RebuildReply | None) -> Plan[bool]:
    """Converts some more replies; returns whether some may be left. Must run alone."""
    ((is_waiting,),) = yield IS_WAITING()
    if not is_waiting:
        return False
    rows = yield _SOME(limit=BATCH)
    if not rows:
        yield _DROP()
        return False
    if rebuild is None:
        raise StorageRefused(
            "The database has an older version. Start this version's server once to migrate it."
        )
    yield from _rebuild(rows, rebuild)
    yield _FORGET(ids=_json_list(row[0] for row in rows))
    return True


def _rebuild(rows: Rows, rebuild: RebuildReply) -> Plan[None]:
    ids = _json_list(row[0] for row in rows)
    messages = {row[0]: row for row in (yield _MESSAGES(ids=ids))}
    calls = _grouped((call.message_id, call) for call in map(to_tool_call, (yield _CALLS(ids=ids))))
    turn_ids = _json_list(row[TURN_ID] for row in messages.values() if row[TURN_ID])
    chunks = _grouped((row[0], LogChunk(*row)) for row in (yield _CHUNKS(ids=turn_ids)))
    # Another engine may have used file ids that are not UUIDs.
    file_ids = _json_list(id_ for *_, named in rows for id_ in _file_ids(named) if is_uuid(id_))
    files = {row[0]: _file(row) for row in (yield _FILES(ids=file_ids))}
    for id_, steps, citations, named in rows:
        if (row := messages.get(id_)) is None:  # deleted meanwhile
            continue
        message = to_message(row, ())
        old = OldReply(
            content=message.text,
            created_at=message.created_at,
            steps=_decode_steps(steps) if steps else (),
            citations=_decode_citations(citations) if citations else (),
            files=tuple(files.get(it, FilePart(file_id=it)) for it in _file_ids(named)),
            calls=tuple(calls.get(id_, ())),
        )
        flat = replace(message, parts=old.parts())
        yield from _update(rebuild(flat, chunks.get(message.turn_id or "", ())))


def _update(message: Message) -> Plan[None]:
    yield _UPDATE_MESSAGE(id=message.id, **to_columns(message))
    for call in calls_in(message.parts):
        if call.artifact_ids:
            yield _UPDATE_CALL(
                turn_id=call.turn_id,
                tool_call_id=call.tool_call_id,
                artifact_ids=to_json(call.artifact_ids),
            )


def _json_list(ids: Iterable[str]) -> str:
    return to_json(list(ids))


def _grouped(pairs: Iterable[tuple[str, T]]) -> Mapping[str, Sequence[T]]:
    groups: dict[str, list[T]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def _file_ids(named: str | None) -> tuple[PayloadId, ...]:
    return _decode_ids(named) if named else ()


def _file(row: Row) -> FilePart:
    id_, file_name, media_type, size = row
    return FilePart(file_id=id_, file_name=file_name or "", media_type=media_type, size=size)
