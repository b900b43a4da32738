"""Turns in the database: how they begin and how they end."""

from collections.abc import Sequence
from typing import Any

import msgspec

from threadkeep.domain.conversation import BegunTurn, EndedTurn
from threadkeep.domain.errors import StorageConflict
from threadkeep.domain.events import LogChunk
from threadkeep.domain.ids import ConversationId, IdempotencyKey, TurnId, UserId
from threadkeep.domain.message import Failure, Message, Usage
from threadkeep.domain.receipt import TurnReceipt
from threadkeep.domain.turn import HeldRun, Turn, TurnCode, TurnOrigin, TurnStatus
from threadkeep.storage.branches import move_path
from threadkeep.storage.code.states import keep_state
from threadkeep.storage.conversations import ADVANCE_IDLE, ConversationRows, advance_values
from threadkeep.storage.database.columns import to_json, to_json_or_null
from threadkeep.storage.database.connector import Database, Plan, Query, Row, Rows, Statement
from threadkeep.storage.file_rows import mark_sent
from threadkeep.storage.messages import ADD_MESSAGE, message_values
from threadkeep.storage.outside_ids import bind_conversation, bind_message
from threadkeep.storage.parts import calls_in, to_columns
from threadkeep.storage.queued_rows import HAS_QUEUE, add_queued, decode_begun_with, take_queued
from threadkeep.storage.receipts import add_receipts
from threadkeep.storage.spending.charges import add_charges, charging, ledger_rows
from threadkeep.storage.text_bytes import ROW_BYTES, byte_length, call_bytes, message_bytes
from threadkeep.storage.tool_calls import ADD_TOOL_CALL, tool_call_values

LEASE_MS = 4_000
LOG_VERSION = 4
"""The version of log and journal: a node ignores turns that a later version has written."""
PLAIN_LOG_VERSION = 3
"""That of turns that no program runs and whose reply is not checked: nodes of the version before take these
over.
"""


_INSERT_TURN = """INSERT INTO tk_turns (id, conversation_id, user_message_id, assistant_message_id, origin,
    status, model, started_at, idempotency_key, request_hash, held_key, held_request_hash, node_id, fence,
    user_id, log_version, lease_until, queue_version, key_id, begun_with, code_key, code_version)"""
_INSERT_MESSAGE = """INSERT INTO tk_messages (id, conversation_id, seq, turn_id, role, content_type, content,
    parts, file_count, status, model, parent_id, on_path, created_at, completed_at)"""
# Ending the turn then checks what is queued behind it.
_QUEUE_VERSION = f"CASE WHEN :origin = 'live' AND {HAS_QUEUE} THEN 1 ELSE 0 END"
_INSERT_CHUNK = "INSERT INTO tk_turn_chunks (turn_id, first_seq, last_seq, events)"

_ADVANCE_FOR_TURN = Statement(ADVANCE_IDLE)
# If the message comes from the queue, `:key` is the key with which it was queued, and `:held_key` that of the
# request that sends it.
_ADD_TURN = Statement(
    f"""{_INSERT_TURN} VALUES (:turn_id, :conversation_id, :asked_id, :reply_id, :origin, 'RUNNING', :model,
        :now, :key, :request_hash, :held_key, :held_request_hash, :node_id, :fence, :user_id, :version,
        {{now}} + :length_ms, {_QUEUE_VERSION}, :key_id, :begun_with, :code_key, :code_version)"""
)
# The question and the empty reply. PostgreSQL must be told the types of values that are not its columns'.
_PAIR_ON_POSTGRES = """SELECT :asked_id::uuid, id, :asked_seq::bigint, :turn_id::uuid, 'user', 'text',
            :content, :parts, :file_count::bigint, 'COMPLETED', NULL, :asked_parent_id::uuid, TRUE,
            :now::bigint, :now::bigint
        FROM conversation
        UNION ALL
        SELECT :reply_id::uuid, id, :reply_seq::bigint, :turn_id::uuid, 'assistant', 'text', '', NULL,
            0, 'PENDING', :model, :asked_id::uuid, TRUE, :now::bigint, NULL
        FROM conversation"""
_ADD_MESSAGE_AND_REPLY = Statement(
    f"""{_INSERT_MESSAGE} VALUES (:asked_id, :conversation_id, :asked_seq, :turn_id, 'user', 'text', :content,
        :parts, :file_count, 'COMPLETED', NULL, :asked_parent_id, TRUE, :now, :now),
        (:reply_id, :conversation_id, :reply_seq, :turn_id, 'assistant', 'text', '', NULL, 0, 'PENDING',
        :model, :asked_id, TRUE, :now, NULL)""",
    postgres=f"""WITH conversation AS (SELECT :conversation_id::uuid AS id)
    {_INSERT_MESSAGE} {_PAIR_ON_POSTGRES}""",
)
# PostgreSQL does all steps in one statement and one round trip.
_BEGIN_IN_ONE = Statement(
    f"""WITH conversation AS ({ADVANCE_IDLE} RETURNING id),
    turn AS ({_INSERT_TURN}
        SELECT :turn_id::uuid, id, :asked_id::uuid, :reply_id::uuid, :origin, 'RUNNING', :model, :now::bigint,
            NULL, NULL, NULL, NULL, :node_id, :fence::bigint, :user_id, :version::bigint,
            {{now}} + :length_ms::bigint, {_QUEUE_VERSION}, :key_id::uuid, :begun_with, :code_key,
            :code_version::bigint
        FROM conversation),
    chunk AS ({_INSERT_CHUNK}
        SELECT :turn_id::uuid, :first_seq::bigint, :last_event_seq::bigint, :events FROM conversation)
    {_INSERT_MESSAGE} {_PAIR_ON_POSTGRES}"""
)

# A turn and its reply end with the same status, usage and error. A completed turn has seen what is queued
# behind it; PostgreSQL checks that again if it had to wait for a message being added.
_UPDATE_TURN = """UPDATE tk_turns SET status = :status, usage = :usage, error = :error, model = :model,
        ended_at = :now, last_event_seq = :last_event_seq, lease_until = NULL
    WHERE id = :turn_id AND status IN ('RUNNING', 'WAITING') AND fence = :fence
        AND (:status <> 'COMPLETED' OR queue_version = :queue_version)"""
_UPDATE_REPLY = """UPDATE tk_messages SET status = :status, content = :content, parts = :parts,
        tool_call_count = :tool_call_count, file_count = :file_count, token_count = :token_count,
        usage = :usage, model = :model, error = :error, completed_at = :completed_at
    WHERE id = :reply_id"""
_UPDATE_CONVERSATION = """UPDATE tk_conversations
    SET active_turn_id = NULL, updated_at = :now, last_message_at = :now,
        text_bytes = text_bytes + :text_bytes
    WHERE id = :conversation_id AND active_turn_id = :turn_id"""
# Without this, the requests of aborted turns, whose decisions nobody will read, would stay open for ever.
_UPDATE_REQUESTS = """UPDATE tk_approvals SET answered_at = :now
    WHERE turn_id = :turn_id AND answered_at IS NULL"""
# The steps of an end, one by one; `_END_IN_ONE` does them in one round trip on PostgreSQL, if no tool calls
# and no next turn come with them.
_END_TURN = Statement(_UPDATE_TURN)
_END_REPLY = Statement(_UPDATE_REPLY)
_FREE = Statement(_UPDATE_CONVERSATION)
_CLOSE_REQUESTS = Statement(_UPDATE_REQUESTS)
ADD_CHUNK = Statement(f"{_INSERT_CHUNK} VALUES (:turn_id, :first_seq, :last_event_seq, :events)")
_END_IN_ONE = Statement(
    f"""WITH turn AS ({_UPDATE_TURN} RETURNING id),
    chunk AS ({_INSERT_CHUNK} SELECT id, :first_seq::bigint, :last_event_seq::bigint, :events FROM turn),
    reply AS ({_UPDATE_REPLY} AND EXISTS (SELECT 1 FROM turn)),
    conversation AS ({_UPDATE_CONVERSATION} AND EXISTS (SELECT 1 FROM turn)),
    requests AS ({_UPDATE_REQUESTS} AND EXISTS (SELECT 1 FROM turn)),
    {charging(accepted="id FROM turn")}
    SELECT id FROM turn"""
)

TURN_COLUMNS = """turn.id, turn.conversation_id, turn.user_message_id, turn.assistant_message_id,
    turn.status, turn.started_at, turn.origin, turn.model, turn.ended_at, turn.last_event_seq, turn.usage,
    turn.error, turn.key_id, turn.begun_with, turn.code_key, turn.code_version"""
# Only in a conversation of the user's that is not deleted.
_GET = Statement(
    f"""SELECT {TURN_COLUMNS} FROM tk_turns AS turn
    JOIN tk_conversations AS conversation ON conversation.id = turn.conversation_id
    WHERE turn.id = :id AND conversation.user_id = :user_id AND conversation.deleted_at IS NULL"""
)
# For admins, as long as its user has it.
_FIND = Statement(
    f"""SELECT {TURN_COLUMNS} FROM tk_turns AS turn
    JOIN tk_conversations AS conversation ON conversation.id = turn.conversation_id
    WHERE turn.id = :id AND conversation.deleted_at IS NULL"""
)
# A program's run: as long as this fence holds, and nobody has stopped the turn.
_HELD_RUN = Statement(
    f"""SELECT {TURN_COLUMNS}, conversation.user_id, conversation.agent_id FROM tk_turns AS turn
    JOIN tk_conversations AS conversation ON conversation.id = turn.conversation_id
    WHERE turn.id = :id AND turn.fence = :fence AND turn.status = 'RUNNING' AND NOT turn.abort_requested
        AND turn.code_key IS NOT NULL AND conversation.deleted_at IS NULL"""
)
# For nodes that check on a turn: whose it is does not matter.
_STATUS = Statement("SELECT status FROM tk_turns WHERE id = :id")
# In the order of their replies: ids come from several nodes' clocks.
BEGUN_AFTER = Statement(
    f"""SELECT {TURN_COLUMNS}, reply.seq FROM tk_messages AS reply
    JOIN tk_turns AS turn ON turn.id = reply.turn_id AND turn.assistant_message_id = reply.id
    WHERE reply.conversation_id = :conversation_id AND reply.seq > :seq AND turn.origin = 'live'
    ORDER BY reply.seq LIMIT :limit"""
)
# A repeated request may have the key with which the message was queued, or that of the request that sent it
# from the queue.
BY_KEY = Statement(
    f"""SELECT {TURN_COLUMNS}, turn.request_hash FROM tk_turns AS turn
    WHERE turn.conversation_id = :conversation_id AND turn.idempotency_key = :key
    UNION ALL SELECT {TURN_COLUMNS}, turn.held_request_hash FROM tk_turns AS turn
    WHERE turn.conversation_id = :conversation_id AND turn.held_key = :key"""
)

_decode_usage = msgspec.json.Decoder(Usage).decode
_decode_failure = msgspec.json.Decoder(Failure).decode

_RUN = "run\n"


class SqlTurns:
    """Turns: their start and end."""

    def __init__(self, database: Database, conversations: ConversationRows) -> None:
        self._database = database
        self._conversations = conversations

    async def begin(self, begun: BegunTurn) -> None:
        """Stores a turn with the opening of its log and all that its start changes; all or nothing.

        StorageConflict if the conversation or the queued message has changed since it was read, or if a new
        conversation's outside id, its key, or its place as the main one, was taken meanwhile.
        """
        values, asked = _begin_values(begun), begun.user_message
        is_plain = begun.key is None and begun.queue is None and begun.waiting_end is None
        is_plain = is_plain and begun.branch is None and begun.outside_id is None
        is_plain = is_plain and begun.new_conversation is None and begun.conversation_outside_id is None
        if self._database.dialect == "postgres" and asked is not None and is_plain and not asked.files:
            if not await self._database.execute(Query(_BEGIN_IN_ONE, values)):
                raise _moved_on()
        else:
            await self._database.write(lambda: self._begin_first(begun, values))

    def _begin_first(self, begun: BegunTurn, values: dict[str, Any]) -> Plan[None]:
        """Stores a turn, after its conversation if that is new."""
        if (conversation := begun.new_conversation) is not None:
            is_main, key = conversation.is_main, begun.conversation_key
            yield from self._conversations.add(conversation, is_main=is_main, key=key)
        if begun.conversation_outside_id is not None:
            yield from bind_conversation(begun.conversation, begun.conversation_outside_id)
        yield from _begin_after_waiting(begun, values)

    async def end(
        self,
        ended: EndedTurn,
        chunk: LogChunk,
        fence: int,
        *,
        receipts: Sequence[TurnReceipt] = (),
        queue_version: int = 0,
        next_turn: BegunTurn | None = None,
        state: bytes | None = None,
    ) -> None:
        """Stores a turn's end: the rest of its log, the reply, the conversation free or in its next turn;
        and its receipts that aren't stored yet. `state` is what its program keeps with the reply.

        All or nothing. StorageConflict if the turn has already ended, another node has taken it over, or the
        queue behind a completed turn has another version (0: nothing was queued).
        """
        reply = ended.assistant_message
        is_plain = (
            next_turn is None
            and not receipts
            and state is None
            and not reply.is_large
            and not calls_in(reply.parts)
        )
        if self._database.dialect == "postgres" and is_plain:
            charges = to_json(ledger_rows(chunk.charges, chunk.turn_id))
            values = _end_values(ended, chunk, fence, queue_version) | {"charges": charges}
            done = await self._database.execute(Query(_END_IN_ONE, values))
        else:
            done = await self._database.write(
                lambda: _end(ended, chunk, fence, queue_version, receipts, next_turn, state),
                heavy=reply.is_large,
            )
        if not done:
            raise StorageConflict("The turn has ended, another node runs it, or messages were queued.")

    async def get(self, user_id: UserId, turn_id: TurnId) -> Turn | None:
        """One turn in a conversation of the user's that is not deleted."""
        rows = await self._database.fetch(_GET(id=turn_id, user_id=user_id))
        return to_turn(rows[0]) if rows else None

    async def find(self, turn_id: TurnId) -> Turn | None:
        """Any user's turn, in a conversation that is not deleted."""
        rows = await self._database.fetch(_FIND(id=turn_id))
        return to_turn(rows[0]) if rows else None

    async def run(self, turn_id: TurnId, fence: int) -> HeldRun | None:
        """Any user's turn that a program runs; None once it has ended, stops, or runs elsewhere."""
        rows = await self._database.fetch(_HELD_RUN(id=turn_id, fence=fence))
        if not rows:
            return None
        *row, user_id, agent_id = rows[0]
        return HeldRun(to_turn(tuple(row)), user_id, agent_id, fence)

    async def status(self, turn_id: TurnId) -> TurnStatus | None:
        """The status of any user's turn; None if it doesn't exist."""
        rows = await self._database.fetch(_STATUS(id=turn_id))
        return TurnStatus(rows[0][0]) if rows else None

    async def begun_after(
        self, conversation_id: ConversationId, seq: int, *, limit: int
    ) -> Sequence[tuple[Turn, int]]:
        """Live turns whose replies are numbered above `seq`, in that order, each with the number."""
        rows = await self._database.fetch(BEGUN_AFTER(conversation_id=conversation_id, seq=seq, limit=limit))
        return [(to_turn(row[:-1]), row[-1]) for row in rows]

    async def find_by_key(self, conversation_id: ConversationId, key: str) -> tuple[Turn, str] | None:
        """The turn started with an idempotency key, however long ago, and the request's hash."""
        rows = await self._database.fetch(BY_KEY(conversation_id=conversation_id, key=key))
        return (to_turn(rows[0][:-1]), rows[0][-1]) if rows else None


def log_version(begun: BegunTurn) -> int:
    """The version of log and journal that a turn is written with."""
    return LOG_VERSION if begun.turn.code or begun.checks_output else PLAIN_LOG_VERSION


def _begin_values(begun: BegunTurn) -> dict[str, Any]:
    lease, opening = begun.lease, begun.opening
    assert lease is not None and opening is not None, "only a node begins turns"
    turn, asked, reply = begun.turn, begun.user_message, begun.assistant_message
    asked_values = _asked_values(asked) if asked else {}
    begun_with = to_json_or_null(turn.begun_with)
    size = ROW_BYTES + byte_length(begun_with or "")
    if asked:
        size += ROW_BYTES + message_bytes(asked_values)
    return {
        **advance_values(begun.conversation, asked or reply, begun.previous_tip_id, size),
        "user_id": begun.conversation.user_id,
        "turn_id": turn.id,
        "origin": turn.origin,
        "model": turn.model,
        "key_id": turn.key_id,
        "begun_with": begun_with,
        "asked_id": turn.user_message_id,
        "reply_id": reply.id,
        "reply_seq": reply.seq,
        **_key_values(begun.key),
        **_held_key_values(None),
        "node_id": lease.node_id,
        "fence": lease.fence,
        "length_ms": lease.length_ms,
        "version": log_version(begun),
        "code_key": turn.code.key if turn.code else None,
        "code_version": turn.code.version if turn.code else None,
        **_chunk_values(opening),
        **asked_values,
    }


def _key_values(key: IdempotencyKey | None) -> dict[str, Any]:
    return {"key": key.name if key else None, "request_hash": key.request_hash if key else None}


def _held_key_values(key: IdempotencyKey | None) -> dict[str, Any]:
    return {"held_key": key.name if key else None, "held_request_hash": key.request_hash if key else None}


def _asked_values(asked: Message) -> dict[str, Any]:
    return {"asked_seq": asked.seq, "asked_parent_id": asked.parent_id, **to_columns(asked)}


def _begin_after_waiting(begun: BegunTurn, values: dict[str, Any]) -> Plan[None]:
    if (end := begun.waiting_end) is not None:
        done = yield from _end(end.ended, end.chunk, end.fence, state=end.state)
        if not done:
            raise _moved_on()
    yield from _begin(begun, values)


def _begin(begun: BegunTurn, values: dict[str, Any]) -> Plan[None]:
    if not (yield Query(_ADVANCE_FOR_TURN, values)):
        raise _moved_on()
    if (queue := begun.queue) is not None:
        # The turn has the key with which its message was queued, and that of the request that sends it.
        values = values | _key_values((yield from take_queued(queue.taken))) | _held_key_values(begun.key)
        if queue.added is not None:
            yield from add_queued(queue.added, queue.added_key)
    elif begun.user_message is not None:
        yield from mark_sent(begun.conversation.id, begun.user_message.files)
    if begun.branch is not None:
        yield from move_path(begun.conversation.id, begun.branch)
    yield Query(_ADD_TURN, values)
    if begun.user_message is not None:
        yield Query(_ADD_MESSAGE_AND_REPLY, values)
        if begun.outside_id is not None:
            yield from bind_message(begun.conversation.id, begun.outside_id, begun.user_message.id)
    else:
        yield ADD_MESSAGE(**message_values(begun.assistant_message))
    yield Query(ADD_CHUNK, values)


def _moved_on() -> StorageConflict:
    return StorageConflict("The conversation has changed since it was read.")


def _chunk_values(chunk: LogChunk) -> dict[str, Any]:
    return {"first_seq": chunk.first_seq, "last_event_seq": chunk.last_seq, "events": chunk.events}


def _end_values(ended: EndedTurn, chunk: LogChunk, fence: int, queue_version: int) -> dict[str, Any]:
    turn, reply = ended.turn, ended.assistant_message
    columns = to_columns(reply)
    return {
        "text_bytes": message_bytes(columns) + sum(map(call_bytes, _call_rows(ended))),
        "turn_id": turn.id,
        "reply_id": reply.id,
        "conversation_id": ended.conversation.id,
        "fence": fence,
        "queue_version": queue_version,
        "status": turn.status,
        "usage": to_json_or_null(turn.usage),
        "error": to_json_or_null(turn.error),
        "now": turn.ended_at,
        **columns,
        "token_count": reply.token_count,
        "model": turn.model,
        "completed_at": reply.completed_at,
        **_chunk_values(chunk),
    }


def _end(
    ended: EndedTurn,
    chunk: LogChunk,
    fence: int,
    queue_version: int = 0,
    receipts: Sequence[TurnReceipt] = (),
    next_turn: BegunTurn | None = None,
    state: bytes | None = None,
) -> Plan[Rows]:
    values = _end_values(ended, chunk, fence, queue_version)
    done = yield Query(_END_TURN, values)
    if done:
        yield Query(ADD_CHUNK, values)
        if receipts:
            yield from add_receipts([(it, fence) for it in receipts])
        yield Query(_END_REPLY, values)
        if state is not None:
            yield from keep_state(ended.conversation.id, ended.assistant_message.id, state)
        yield from _add_tool_calls(ended)
        yield Query(_CLOSE_REQUESTS, values)
        yield Query(_FREE, values)
        if next_turn is not None:
            yield from _begin(next_turn, _begin_values(next_turn))
        if chunk.charges:
            yield from add_charges(chunk.charges)
    return done


def _add_tool_calls(ended: EndedTurn) -> Plan[None]:
    for row in _call_rows(ended):
        yield ADD_TOOL_CALL(**row)


def _call_rows(ended: EndedTurn) -> list[dict[str, Any]]:
    calls = calls_in(ended.assistant_message.parts)
    return [tool_call_values(call, ended.conversation, position) for position, call in enumerate(calls)]


def run_key(run_id: str) -> str:
    """The key of an imported run's turn: no client can send one with a line break."""
    return f"{_RUN}{run_id}"


def run_of(key: str | None) -> str | None:
    """The run that a key names; None if it is a client's."""
    return key.removeprefix(_RUN) if key is not None and key.startswith(_RUN) else None


def to_turn(row: Row) -> Turn:
    """A row of `tk_turns` as a turn."""
    (
        id_, conversation_id, asked_id, reply_id, status, started_at, origin, model, ended_at, last_event_seq,
        usage, error, key_id, begun_with, code_key, code_version,
    ) = row  # fmt: skip
    return Turn(
        id=id_,
        conversation_id=conversation_id,
        user_message_id=asked_id,
        assistant_message_id=reply_id,
        status=TurnStatus(status),
        started_at=started_at,
        origin=TurnOrigin(origin),
        model=model,
        ended_at=ended_at,
        last_event_seq=last_event_seq,
        usage=_decode_usage(usage) if usage else None,
        error=_decode_failure(error) if error else None,
        key_id=key_id,
        begun_with=decode_begun_with(begun_with),
        code=TurnCode(code_key, code_version) if code_key is not None else None,
    )
