"""Messages in the database."""

from collections.abc import Sequence
from itertools import product

import msgspec

from threadkeep.domain.briefing import BriefingCard
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.errors import StorageConflict
from threadkeep.domain.ids import ConversationId, MessageId, PayloadId, UserId
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
from threadkeep.ports.messages import MessageWindow, ToolCallFilter, ToolRecord
from threadkeep.storage.columns import to_json
from threadkeep.storage.conversations import GET as GET_CONVERSATION
from threadkeep.storage.conversations import advance_values, to_conversation
from threadkeep.storage.database import Database, Plan, Row, Statement
from threadkeep.storage.tool_calls import TOOL_CALLS_OF_MESSAGES, to_tool_call, tool_calls_query

_COLUMNS = """id, conversation_id, seq, turn_id, role, content, status, created_at, completed_at,
    thought_process, citations, artifact_ids, token_count, usage, model, error, content_type,
    tool_call_count"""
_LAST_SEQ = 2**63 - 1


def _page(*, newest_first: bool, with_overwritten: bool) -> Statement:
    return Statement(
        f"""SELECT {_COLUMNS} FROM tk_messages
        WHERE conversation_id = :conversation_id AND seq > :after_seq AND seq < :before_seq
            {"" if with_overwritten else "AND status <> 'OVERWRITTEN'"}
        ORDER BY seq {"DESC" if newest_first else "ASC"} LIMIT :limit OFFSET :offset""",
    )


PAGES = {
    which: _page(newest_first=which[0], with_overwritten=which[1])
    for which in product((False, True), repeat=2)
}

# A card may come while a turn runs, or just when it ends: which turn runs is none of its business.
_ADVANCE_FOR_CARD = Statement(
    """UPDATE tk_conversations SET last_seq = :last_seq, message_count = :message_count, updated_at = :now,
        last_message_at = :now
    WHERE id = :conversation_id AND last_seq = :expected_seq AND deleted_at IS NULL RETURNING id"""
)
_ADD_CARD = Statement(
    """INSERT INTO tk_messages (id, conversation_id, seq, role, content_type, content, status, created_at,
        completed_at)
    VALUES (:id, :conversation_id, :seq, 'system', 'briefing_card', :content, 'COMPLETED', :now, :now)"""
)

_GET = Statement(f"SELECT {_COLUMNS} FROM tk_messages WHERE id = :id")
REPLY_OF_TURN = Statement(
    f"""SELECT {_COLUMNS} FROM tk_messages
    WHERE id = (SELECT assistant_message_id FROM tk_turns WHERE id = :turn_id)"""
)

_decode_thoughts = msgspec.json.Decoder(tuple[ThoughtStep, ...]).decode
_decode_citations = msgspec.json.Decoder(tuple[Citation, ...]).decode
_decode_ids = msgspec.json.Decoder(tuple[PayloadId, ...]).decode
_decode_usage = msgspec.json.Decoder(Usage).decode
_decode_failure = msgspec.json.Decoder(Failure).decode
_decode_card = msgspec.json.Decoder(BriefingCard).decode
# A look into a dict takes a tenth of what calling the enumeration does, and pages have many messages.
_role = {role.value: role for role in MessageRole}.__getitem__
_status = {status.value: status for status in MessageStatus}.__getitem__


class SqlMessages:
    """The messages of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(
        self, conversation_id: ConversationId, which: MessageWindow, *, offset: int, limit: int
    ) -> Sequence[Message]:
        """A run of messages with their tool calls."""
        return await self._database.read(lambda: _page_plan(conversation_id, which, offset, limit))

    async def page_of(
        self,
        user_id: UserId,
        conversation_id: ConversationId,
        which: MessageWindow,
        *,
        offset: int,
        limit: int,
    ) -> tuple[Conversation, Sequence[Message]] | None:
        """One of the user's conversations with a run of its messages."""
        return await self._database.read(
            lambda: _conversation_and_page(user_id, conversation_id, which, offset, limit)
        )

    async def get(self, message_id: MessageId) -> Message | None:
        """One message with its tool calls, whosever it is."""
        rows = await self._database.fetch(_GET(id=message_id))
        if not rows:
            return None
        conversation_id, seq = rows[0][1], rows[0][2]
        window = MessageWindow(seq - 1, seq + 1, with_overwritten=True)
        (message,) = await self.page(conversation_id, window, offset=0, limit=1)
        return message

    async def add_card(self, conversation: Conversation, message: Message) -> None:
        """Keeps a card, unless the conversation has moved on since it was read."""
        await self._database.write(lambda: add_card(conversation, message))

    async def tool_calls(
        self,
        user_id: UserId,
        which: ToolCallFilter,
        *,
        before: tuple[int, str, str] | None,
        offset: int,
        limit: int,
    ) -> Sequence[ToolRecord]:
        """The user's tool calls in conversations that are not deleted, newest first, after a position."""
        rows = await self._database.fetch(tool_calls_query(user_id, which, before, offset, limit))
        return [ToolRecord(to_tool_call(row[:-1]), row[-1]) for row in rows]


def _page_plan(
    conversation_id: ConversationId, which: MessageWindow, offset: int, limit: int
) -> Plan[Sequence[Message]]:
    rows = yield PAGES[which.newest_first, which.with_overwritten](
        conversation_id=conversation_id,
        after_seq=which.after_seq,
        before_seq=_LAST_SEQ if which.before_seq is None else which.before_seq,
        limit=limit,
        offset=offset,
    )
    calls: dict[str, list[ToolCall]] = {}
    if seqs := [row[2] for row in rows if row[-1]]:  # asked for only where there are any
        found = yield TOOL_CALLS_OF_MESSAGES(conversation_id=conversation_id, first=min(seqs), last=max(seqs))
        for call in map(to_tool_call, found):
            calls.setdefault(call.message_id, []).append(call)
    return [to_message(row, calls.get(row[0], ())) for row in rows]


def _conversation_and_page(
    user_id: UserId, conversation_id: ConversationId, which: MessageWindow, offset: int, limit: int
) -> Plan[tuple[Conversation, Sequence[Message]] | None]:
    rows = yield GET_CONVERSATION(id=conversation_id, user_id=user_id)
    if not rows:
        return None
    page = yield from _page_plan(conversation_id, which, offset, limit)
    return to_conversation(rows[0]), page


def add_card(conversation: Conversation, message: Message) -> Plan[None]:
    """Adds a card to a conversation that has not moved on since it was read."""
    if not (yield _ADVANCE_FOR_CARD(**advance_values(conversation, message.seq))):
        raise StorageConflict("The conversation has changed since it was read.")
    yield _ADD_CARD(
        id=message.id,
        conversation_id=conversation.id,
        seq=message.seq,
        content=to_json(message.content),
        now=message.created_at,
    )


def text_of(content: str, content_type: str) -> str:
    """What a message says, from its row."""
    return content if content_type == ContentType.TEXT else _decode_card(content).text


def to_message(row: Row, tool_calls: Sequence[ToolCall]) -> Message:
    """A row of `tk_messages` as a message."""
    (
        id_, conversation_id, seq, turn_id, role, content, status, created_at, completed_at, thoughts,
        citations, artifact_ids, token_count, usage, model, error, content_type, _,
    ) = row  # fmt: skip
    return Message(
        id_, conversation_id, seq, turn_id, _role(role),
        content if content_type == ContentType.TEXT else _decode_card(content),
        _status(status), created_at, completed_at,
        _decode_thoughts(thoughts) if thoughts else (),
        _decode_citations(citations) if citations else (),
        _decode_ids(artifact_ids) if artifact_ids else (),
        tuple(tool_calls), token_count,
        _decode_usage(usage) if usage else None,
        model,
        _decode_failure(error) if error else None,
    )  # fmt: skip
