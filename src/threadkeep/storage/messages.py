"""Messages in the database, and the turns that write them."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import msgspec

from threadkeep.domain.briefing import BriefingCard
from threadkeep.domain.compaction import Compaction
from threadkeep.domain.conversation import BegunTurn, Conversation, EndedTurn
from threadkeep.domain.errors import StorageConflict
from threadkeep.domain.ids import ConversationId, PayloadId, TurnId, UserId
from threadkeep.domain.message import (
    Citation,
    ContentType,
    Failure,
    Message,
    MessageRole,
    MessageStatus,
    ThoughtStep,
    Usage,
)
from threadkeep.domain.tool_call import ToolCall
from threadkeep.domain.turn import Turn, TurnOrigin, TurnStatus
from threadkeep.ports.store import MessageWindow
from threadkeep.storage.columns import to_json, to_json_or_null
from threadkeep.storage.database import Database, Plan, Row, Rows, Statement
from threadkeep.storage.tool_calls import (
    ADD_TOOL_CALL,
    TOOL_CALLS_BY_TOOL,
    TOOL_CALLS_OF_MESSAGES,
    to_tool_call,
    tool_call_values,
)

_COLUMNS = """id, conversation_id, seq, turn_id, role, content, status, created_at, completed_at,
    thought_process, citations, artifact_ids, token_count, usage, model, error, content_type,
    tool_call_count"""
_LAST_SEQ = 2**63 - 1


def _page(*, newest_first: bool, with_overwritten: bool) -> Statement:
    return Statement(
        f"""SELECT {_COLUMNS} FROM tk_messages
        WHERE conversation_id = :conversation_id AND seq > :after_seq AND seq < :before_seq
            {"" if with_overwritten else "AND status <> 'OVERWRITTEN'"}
        ORDER BY seq {"DESC" if newest_first else "ASC"} LIMIT :limit OFFSET :offset"""
    )


PAGES = {
    which: _page(newest_first=which[0], with_overwritten=which[1])
    for which in product((False, True), repeat=2)
}

_ADVANCE = """UPDATE tk_conversations SET last_seq = :last_seq, message_count = :message_count,
        active_turn_id = :active_turn_id, updated_at = :now, last_message_at = :now
    WHERE id = :conversation_id AND last_seq = :expected_seq AND deleted_at IS NULL"""
_ADVANCE_FOR_CARD = Statement(f"{_ADVANCE} RETURNING id")
_ADVANCE_FOR_TURN = Statement(f"{_ADVANCE} AND active_turn_id IS NULL RETURNING id")

_INSERT_TURN = """INSERT INTO tk_turns
    (id, conversation_id, user_message_id, assistant_message_id, origin, status, model, started_at)"""
_ADD_TURN = Statement(
    f"""{_INSERT_TURN} VALUES
    (:turn_id, :conversation_id, :asked_id, :reply_id, :origin, 'RUNNING', :model, :now)"""
)
_INSERT_MESSAGE = """INSERT INTO tk_messages (id, conversation_id, seq, turn_id, role, content_type, content,
    status, model, created_at, completed_at)"""
_ADD_ASKED_AND_REPLY = Statement(
    f"""{_INSERT_MESSAGE} VALUES
    (:asked_id, :conversation_id, :asked_seq, :turn_id, 'user', 'text', :content,
        'COMPLETED', NULL, :now, :now),
    (:reply_id, :conversation_id, :reply_seq, :turn_id, 'assistant', 'text', '',
        'PENDING', :model, :now, NULL)"""
)
# PostgreSQL takes the three steps in one statement, hence in one round trip.
_BEGIN_IN_ONE = Statement(
    f"""WITH conversation AS ({_ADVANCE} AND active_turn_id IS NULL RETURNING id),
    turn AS ({_INSERT_TURN}
        SELECT :turn_id::uuid, id, :asked_id::uuid, :reply_id::uuid, :origin, 'RUNNING', :model, :now::bigint
        FROM conversation)
    {_INSERT_MESSAGE}
        SELECT :asked_id::uuid, id, :asked_seq::bigint, :turn_id::uuid, 'user', 'text', :content,
            'COMPLETED', NULL, :now::bigint, :now::bigint FROM conversation
        UNION ALL
        SELECT :reply_id::uuid, id, :reply_seq::bigint, :turn_id::uuid, 'assistant', 'text', '',
            'PENDING', :model, :now::bigint, NULL FROM conversation
    RETURNING id"""
)
_ADD_CARD = Statement(
    f"""{_INSERT_MESSAGE} VALUES
    (:id, :conversation_id, :seq, NULL, 'system', 'briefing_card', :content, 'COMPLETED', NULL, :now, :now)"""
)

_END_TURN = Statement(
    """UPDATE tk_turns SET status = :status, usage = :usage, error = :error, ended_at = :now
    WHERE id = :turn_id AND status = 'RUNNING' RETURNING id"""
)
_END_REPLY = Statement(
    """UPDATE tk_messages SET status = :status, content = :content, thought_process = :thought_process,
        citations = :citations, artifact_ids = :artifact_ids, tool_call_count = :tool_call_count,
        token_count = :token_count, usage = :usage, model = :model, error = :error, completed_at = :now
    WHERE id = :id"""
)
_FREE = Statement(
    """UPDATE tk_conversations SET active_turn_id = NULL, updated_at = :now, last_message_at = :now
    WHERE id = :conversation_id AND active_turn_id = :turn_id"""
)

_TURN_COLUMNS = """turn.id, turn.conversation_id, turn.user_message_id, turn.assistant_message_id,
    turn.status, turn.started_at, turn.origin, turn.model, turn.ended_at, turn.usage, turn.error"""
_GET_TURN = Statement(
    f"""SELECT {_TURN_COLUMNS} FROM tk_turns AS turn
    JOIN tk_conversations AS conversation ON conversation.id = turn.conversation_id
    WHERE turn.id = :id AND conversation.user_id = :user_id AND conversation.deleted_at IS NULL"""
)
_NEWEST_COMPACTION = Statement(
    """SELECT id, conversation_id, from_seq, to_seq, summary, archived_count, tokens_before, tokens_after,
        created_at
    FROM tk_compactions WHERE conversation_id = :conversation_id ORDER BY to_seq DESC LIMIT 1"""
)

_decode_thoughts = msgspec.json.Decoder(tuple[ThoughtStep, ...]).decode
_decode_citations = msgspec.json.Decoder(tuple[Citation, ...]).decode
_decode_ids = msgspec.json.Decoder(tuple[PayloadId, ...]).decode
_decode_usage = msgspec.json.Decoder(Usage).decode
_decode_failure = msgspec.json.Decoder(Failure).decode
_decode_card = msgspec.json.Decoder(BriefingCard).decode


class SqlMessages:
    """The messages and turns of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(
        self, conversation_id: ConversationId, which: MessageWindow, *, offset: int, limit: int
    ) -> Sequence[Message]:
        """A run of messages; their tool calls are fetched only where there are any."""
        rows = await self._database.fetch(
            PAGES[which.newest_first, which.with_overwritten](
                conversation_id=conversation_id,
                after_seq=which.after_seq,
                before_seq=_LAST_SEQ if which.before_seq is None else which.before_seq,
                limit=limit,
                offset=offset,
            )
        )
        calls: dict[str, list[ToolCall]] = {}
        if seqs := [row[2] for row in rows if row[-1]]:
            found = await self._database.fetch(
                TOOL_CALLS_OF_MESSAGES(conversation_id=conversation_id, first=min(seqs), last=max(seqs))
            )
            for call in map(to_tool_call, found):
                calls.setdefault(call.message_id, []).append(call)
        return [_message(row, calls.get(row[0], ())) for row in rows]

    async def begin_turn(self, begun: BegunTurn) -> None:
        """Keeps a begun turn, unless the conversation has moved on since it was read."""
        values = _begin_values(begun)
        if self._database.dialect == "postgres":
            moved_on = not await self._database.execute(_BEGIN_IN_ONE(**values))
        else:
            moved_on = not await self._database.write(lambda: _begin(values))
        if moved_on:
            raise StorageConflict("The conversation has changed since it was read.")

    async def end_turn(self, ended: EndedTurn) -> None:
        """Keeps a turn's end, all or nothing."""
        await self._database.write(lambda: _end(ended))

    async def get_turn(self, user_id: UserId, turn_id: TurnId) -> Turn | None:
        """One turn in a conversation of the user that is not deleted."""
        rows = await self._database.fetch(_GET_TURN(id=turn_id, user_id=user_id))
        return _turn(rows[0]) if rows else None

    async def add_card(self, conversation: Conversation, message: Message) -> None:
        """Keeps a card, unless the conversation has moved on since it was read."""
        await self._database.write(lambda: _add_card(conversation, message))

    async def newest_compaction(self, conversation_id: ConversationId) -> Compaction | None:
        """The summary that stands for the archived messages."""
        rows = await self._database.fetch(_NEWEST_COMPACTION(conversation_id=conversation_id))
        return Compaction(*rows[0]) if rows else None

    async def tool_calls(
        self, user_id: UserId, tool_name: str, *, before: tuple[int, str] | None, limit: int
    ) -> Sequence[ToolCall]:
        """The user's calls of one tool over all conversations, newest first."""
        time, call_id = before or (_LAST_SEQ, "")
        rows = await self._database.fetch(
            TOOL_CALLS_BY_TOOL(
                user_id=user_id, tool_name=tool_name, before_time=time, before_id=call_id, limit=limit
            )
        )
        return [to_tool_call(row) for row in rows]


def _begin_values(begun: BegunTurn) -> dict[str, Any]:
    conversation, turn, asked, reply = (
        begun.conversation,
        begun.turn,
        begun.user_message,
        begun.assistant_message,
    )
    return {
        **_advance_values(conversation, asked.seq),
        "turn_id": turn.id,
        "origin": turn.origin,
        "model": turn.model,
        "asked_id": asked.id,
        "asked_seq": asked.seq,
        "content": asked.content,
        "reply_id": reply.id,
        "reply_seq": reply.seq,
    }


def _advance_values(conversation: Conversation, first_new_seq: int) -> dict[str, Any]:
    return {
        "conversation_id": conversation.id,
        "last_seq": conversation.last_seq,
        "expected_seq": first_new_seq - 1,
        "message_count": conversation.message_count,
        "active_turn_id": conversation.active_turn_id,
        "now": conversation.updated_at,
    }


def _begin(values: dict[str, Any]) -> Plan[Rows]:
    advanced = yield _ADVANCE_FOR_TURN(**values)
    if advanced:
        yield _ADD_TURN(**values)
        yield _ADD_ASKED_AND_REPLY(**values)
    return advanced


def _add_card(conversation: Conversation, message: Message) -> Plan[None]:
    if not (yield _ADVANCE_FOR_CARD(**_advance_values(conversation, message.seq))):
        raise StorageConflict("The conversation has changed since it was read.")
    yield _ADD_CARD(
        id=message.id,
        conversation_id=conversation.id,
        seq=message.seq,
        content=to_json(message.content),
        now=message.created_at,
    )


def _end(ended: EndedTurn) -> Plan[None]:
    turn, reply, now = ended.turn, ended.assistant_message, ended.turn.ended_at
    usage, error = to_json_or_null(turn.usage), to_json_or_null(turn.error)
    if not (yield _END_TURN(turn_id=turn.id, status=turn.status, usage=usage, error=error, now=now)):
        raise StorageConflict("The turn has ended already.")
    yield _END_REPLY(
        id=reply.id,
        status=reply.status,
        content=reply.content,
        thought_process=to_json_or_null(reply.thought_process),
        citations=to_json_or_null(reply.citations),
        artifact_ids=to_json_or_null(reply.artifact_ids),
        tool_call_count=len(reply.tool_calls),
        token_count=reply.token_count,
        usage=to_json_or_null(reply.usage),
        model=reply.model,
        error=to_json_or_null(reply.error),
        now=reply.completed_at,
    )
    for position, call in enumerate(reply.tool_calls):
        yield ADD_TOOL_CALL(**tool_call_values(call, ended.conversation, position))
    yield _FREE(conversation_id=ended.conversation.id, turn_id=turn.id, now=now)


def _message(row: Row, tool_calls: Sequence[ToolCall]) -> Message:
    (
        id_, conversation_id, seq, turn_id, role, content, status, created_at, completed_at, thoughts,
        citations, artifact_ids, token_count, usage, model, error, content_type, _,
    ) = row  # fmt: skip
    return Message(
        id_, conversation_id, seq, turn_id, MessageRole(role),
        content if content_type == ContentType.TEXT else _decode_card(content),
        MessageStatus(status), created_at, completed_at,
        _decode_thoughts(thoughts) if thoughts else (),
        _decode_citations(citations) if citations else (),
        _decode_ids(artifact_ids) if artifact_ids else (),
        tuple(tool_calls), token_count,
        _decode_usage(usage) if usage else None,
        model,
        _decode_failure(error) if error else None,
    )  # fmt: skip


def _turn(row: Row) -> Turn:
    (
        id_, conversation_id, asked_id, reply_id, status, started_at, origin, model, ended_at, usage, error,
    ) = row  # fmt: skip
    return Turn(
        id_, conversation_id, asked_id, reply_id, TurnStatus(status), started_at, TurnOrigin(origin), model,
        ended_at, _decode_usage(usage) if usage else None, _decode_failure(error) if error else None,
    )  # fmt: skip
