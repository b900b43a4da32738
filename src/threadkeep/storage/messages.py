"""Messages in the database."""

from collections.abc import Iterable, Sequence
from itertools import accumulate, takewhile
from typing import Any, NamedTuple

import msgspec

from threadkeep.domain.conversation import Conversation
from threadkeep.domain.errors import StorageConflict
from threadkeep.domain.feedback import FeedbackByMessage
from threadkeep.domain.ids import ConversationId, MessageId, UserId
from threadkeep.domain.message import (
    ContentType,
    Failure,
    Message,
    MessageRole,
    MessageStatus,
    MessageWindow,
    Usage,
)
from threadkeep.domain.tool_call import ToolCall, ToolCallFilter, ToolRecord, derived_id
from threadkeep.storage.conversations import (
    ADVANCE_FOR_CARD,
    ADVANCE_FOR_MESSAGES,
    ConversationRows,
    advance_values,
)
from threadkeep.storage.conversations import GET as GET_CONVERSATION
from threadkeep.storage.database.columns import to_json, to_json_or_null
from threadkeep.storage.database.connector import LAST_SEQ, Database, Plan, Row, Rows, Statement
from threadkeep.storage.database.unchecked import unchecked
from threadkeep.storage.feedback import feedback_on
from threadkeep.storage.file_rows import mark_sent
from threadkeep.storage.parts import decode_card, to_columns, to_parts
from threadkeep.storage.path_moves import on_path
from threadkeep.storage.siblings import MOST_SIBLINGS_A_PAGE, Siblings, family_sizes, siblings
from threadkeep.storage.text_bytes import ROW_BYTES, message_bytes
from threadkeep.storage.tool_calls import (
    NEWEST_ROLE,
    NEWEST_WITH_ID,
    TOOL_CALL,
    TOOL_CALLS_OF_MESSAGES,
    UNSETTLED_IDS,
    USED_IDS,
    to_tool_call,
    tool_calls_query,
)

MOST_PAGE_BYTES = 4 * 1024 * 1024
"""A page of messages ends with the one that reaches this size, so it has at least one."""
MOST_CALLS_A_PAGE = 500
"""A page ends before the message whose tool calls would be more; their large values are stored apart."""


class MessageRun(list[Message]):
    """Messages in a row."""

    is_cut = False
    """Whether more of those that were asked for follow: the page ended because of its size."""

    def end_within(self, most: int, sizes: Iterable[int]) -> None:
        """Leaves as many of the first messages as have no more than so much in all."""
        count = _first_within(most, sizes)
        self.is_cut = self.is_cut or count < len(self)
        del self[count:]


class MessagePage(NamedTuple):
    """A range of a conversation's messages; the siblings and the feedback of those that have any."""

    conversation: Conversation
    messages: Sequence[Message]
    siblings: Siblings
    feedback: FeedbackByMessage
    is_cut: bool = False
    """Whether more of the messages that were asked for follow: the page ended because of its size."""


COLUMNS = """id, conversation_id, seq, turn_id, role, content, content_type, parts, status, created_at,
    completed_at, token_count, usage, model, error, parent_id, on_path, tool_call_count"""
_OF_ANY_PATH = COLUMNS.replace("on_path", f"{on_path()} AS on_path")
_MOST_OTHER_BYTES = 4 * 1024


def _page(order: str, condition: str = "") -> Statement:
    """A page. SQLite reads row after row until there are `most_bytes`; PostgreSQL, which sends all rows at
    once, adds their sizes up first.
    """
    rows = f"""SELECT {COLUMNS if condition else _OF_ANY_PATH} FROM tk_messages
    WHERE conversation_id = :conversation_id AND seq > :after_seq AND seq < :before_seq {condition}
    ORDER BY seq {order} LIMIT :limit OFFSET :offset"""
    return Statement(
        rows,
        postgres=f"""SELECT {COLUMNS} FROM (
        SELECT {COLUMNS}, SUM(octet_length(content) + COALESCE(octet_length(parts), 0)) OVER (
            ORDER BY seq {order} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes_before
        FROM ({rows}) AS page) AS sized
    WHERE bytes_before IS NULL OR bytes_before < :most_bytes ORDER BY seq {order}""",
    )


# Pages of the active path, and of all messages, from either end.
_PATH = _page("ASC", f"AND {on_path()}")
_PATH_NEWEST_FIRST = _page("DESC", f"AND {on_path()}")
_ALL = _page("ASC")
_ALL_NEWEST_FIRST = _page("DESC")
PAGES = {  # by whether the newest come first, and whether those off the path are in it
    (False, False): _PATH,
    (True, False): _PATH_NEWEST_FIRST,
    (False, True): _ALL,
    (True, True): _ALL_NEWEST_FIRST,
}
# Whether a page that ended because of its size has a next one.
_GOES_ON = Statement(
    """SELECT 1 FROM tk_messages
    WHERE conversation_id = :conversation_id AND seq > :after_seq AND seq < :before_seq LIMIT 1"""
)
_GOES_ON_ON_PATH = Statement(
    f"""SELECT 1 FROM tk_messages
    WHERE conversation_id = :conversation_id AND seq > :after_seq AND seq < :before_seq AND {on_path()}
    LIMIT 1"""
)

# The tool calls of a message have rows of their own, and `tool_call_count` says whether there are any.
ADD_MESSAGE = Statement(
    f"""INSERT INTO tk_messages ({COLUMNS}, file_count)
    VALUES (:id, :conversation_id, :seq, :turn_id, :role, :content, :content_type, :parts, :status,
        :created_at, :completed_at, :token_count, :usage, :model, :error, :parent_id, :on_path,
        :tool_call_count, :file_count)"""
)

# `get` reads a message as a page of one, and pages go by number.
_SEQ = Statement("SELECT seq FROM tk_messages WHERE id = :id AND conversation_id = :conversation_id")
# For a node that takes a turn over or ends a waiting one.
REPLY_OF_TURN = Statement(
    f"""SELECT {COLUMNS} FROM tk_messages
    WHERE id = (SELECT assistant_message_id FROM tk_turns WHERE id = :turn_id)"""
)

_decode_usage = msgspec.json.Decoder(Usage).decode
_decode_failure = msgspec.json.Decoder(Failure).decode
# A dict lookup takes a tenth of the time of calling the enumeration, and pages have many messages.
_message = unchecked(Message)
_role = {role.value: role for role in MessageRole}.__getitem__
_status = {status.value: status for status in MessageStatus}.__getitem__


class SqlMessages:
    """Messages, and their tools' results."""

    def __init__(self, database: Database, rows: ConversationRows) -> None:
        self._database = database
        self._rows = rows

    async def page(
        self, conversation_id: ConversationId, which: MessageWindow, *, offset: int, limit: int
    ) -> MessageRun:
        """A range of messages with their tool calls, in the requested order; it ends early where they are
        large.
        """
        return await self._database.read(lambda: _page_plan(conversation_id, which, offset, limit))

    async def page_of(
        self,
        user_id: UserId,
        conversation_id: ConversationId,
        which: MessageWindow,
        *,
        offset: int,
        limit: int,
    ) -> MessagePage | None:
        """A conversation of the user that isn't deleted, with a range of its messages."""
        return await self._database.read(
            lambda: self._conversation_and_page(user_id, conversation_id, which, offset, limit)
        )

    def _conversation_and_page(
        self,
        user_id: UserId,
        conversation_id: ConversationId,
        which: MessageWindow,
        offset: int,
        limit: int,
    ) -> Plan[MessagePage | None]:
        rows = yield GET_CONVERSATION(id=conversation_id, user_id=user_id)
        if not rows:
            return None
        conversation = self._rows.read(rows[0])
        messages = yield from _page_plan(conversation_id, which, offset, limit)
        found: Siblings = {}
        if messages and conversation.has_branches:  # few have any: spare the others a query
            sizes = yield from family_sizes(conversation_id, messages)
            messages.end_within(MOST_SIBLINGS_A_PAGE, (sizes.get(it.parent_id, 0) for it in messages))
            found = yield from siblings(conversation_id, messages, sizes)
        feedback = yield from feedback_on(messages)
        return MessagePage(conversation, messages, found, feedback, messages.is_cut)

    async def get(self, conversation_id: ConversationId, message_id: MessageId) -> Message | None:
        """One message of a conversation with its tool calls."""
        rows = await self._database.fetch(_SEQ(id=message_id, conversation_id=conversation_id))
        if not rows:
            return None
        seq = rows[0][0]
        window = MessageWindow(seq - 1, seq + 1, with_overwritten=True)
        (message,) = await self.page(conversation_id, window, offset=0, limit=1)
        return message

    async def add_card(self, conversation: Conversation, message: Message) -> None:
        """Stores a card; StorageConflict if the conversation has changed since it was read."""
        await self._database.write(lambda: add_card(conversation, message))

    async def add(self, conversation: Conversation, messages: Sequence[Message]) -> None:
        """Stores messages without a turn, all or none; StorageConflict if the conversation has changed since
        it was read, or a turn has begun.
        """
        await self._database.write(lambda: _add(conversation, messages))

    async def tool_calls(
        self,
        user_id: UserId,
        which: ToolCallFilter,
        *,
        before: tuple[int, str, str] | None,
        offset: int,
        limit: int,
    ) -> Sequence[ToolRecord]:
        """The user's tool calls by `(created_at, turn_id, tool_call_id)`, newest first, after a position."""
        rows = await self._database.fetch(tool_calls_query(user_id, which, before, offset, limit))
        return [ToolRecord(to_tool_call(row[:-1]), row[-1]) for row in rows]

    async def ids_in_use(self, conversation_id: ConversationId, ids: Iterable[str]) -> set[str]:
        """Which of these ids tool calls of a conversation already have; a turn's count from its end."""
        rows = await self._database.fetch(USED_IDS(conversation_id=conversation_id, ids=to_json(list(ids))))
        return {id_ for (id_,) in rows}

    async def tool_call(self, conversation_id: ConversationId, tool_call_id: str) -> ToolCall | None:
        """The newest tool call of a conversation that has this id or is sent under it, on any branch."""
        rows = await self._database.fetch(
            NEWEST_WITH_ID(conversation_id=conversation_id, tool_call_id=tool_call_id)
        )
        if not rows:
            own = await self._database.fetch(UNSETTLED_IDS(conversation_id=conversation_id))
            found = (it for it in own if derived_id(*it) == tool_call_id)
            if it := next(found, None):
                rows = await self._database.fetch(TOOL_CALL(turn_id=it[0], tool_call_id=it[1]))
        return to_tool_call(rows[0]) if rows else None

    async def activated_role(self, conversation_id: ConversationId, *, since: int) -> ToolCall | None:
        """The newest call on the active path since a time that gave the agent a role."""
        rows = await self._database.fetch(NEWEST_ROLE(conversation_id=conversation_id, since=since))
        return to_tool_call(rows[0]) if rows else None


def _page_plan(
    conversation_id: ConversationId, which: MessageWindow, offset: int, limit: int
) -> Plan[MessageRun]:
    found = yield PAGES[which.newest_first, which.with_overwritten](
        conversation_id=conversation_id,
        after_seq=which.after_seq,
        before_seq=LAST_SEQ if which.before_seq is None else which.before_seq,
        limit=limit,
        offset=offset,
        most_bytes=MOST_PAGE_BYTES,
    )
    rows = found[: _first_within(MOST_CALLS_A_PAGE, (row[-1] for row in found))]
    calls: dict[str, list[ToolCall]] = {}
    if seqs := [row[2] for row in rows if row[-1]]:  # queried only if there are any
        its_calls = yield TOOL_CALLS_OF_MESSAGES(
            conversation_id=conversation_id,
            first=min(seqs),
            last=max(seqs),
            with_overwritten=which.with_overwritten,
        )
        for call in map(to_tool_call, its_calls):
            calls.setdefault(call.message_id, []).append(call)
    page = MessageRun(to_message(row, calls.get(row[0], ())) for row in rows)
    page.is_cut = len(rows) < len(found)
    if not page.is_cut and len(found) < limit and _may_be_cut(found):
        page.is_cut = yield from _goes_on(conversation_id, which, found[-1][2])
    return page


def _first_within(most: int, sizes: Iterable[int]) -> int:
    """How many of the first ones have no more than so much in all; at least one."""
    return max(sum(1 for _ in takewhile(lambda size: size <= most, accumulate(sizes))), 1)


def _may_be_cut(rows: Rows) -> bool:
    """Whether a page can have reached its size: a character has at most four bytes."""
    texts = 4 * sum(len(row[5]) + len(row[7] or "") for row in rows)
    return texts + len(rows) * _MOST_OTHER_BYTES >= MOST_PAGE_BYTES


def _goes_on(conversation_id: ConversationId, which: MessageWindow, last_seq: int) -> Plan[bool]:
    """Whether a window has more messages after one."""
    before = LAST_SEQ if which.before_seq is None else which.before_seq
    bounds = (which.after_seq, last_seq) if which.newest_first else (last_seq, before)
    statement = _GOES_ON if which.with_overwritten else _GOES_ON_ON_PATH
    return bool((yield statement(conversation_id=conversation_id, after_seq=bounds[0], before_seq=bounds[1])))


def add_card(conversation: Conversation, message: Message) -> Plan[None]:
    """Adds a card to a conversation that has not moved on since it was read."""
    values = message_values(message)
    size = ROW_BYTES + message_bytes(values)
    if not (yield ADVANCE_FOR_CARD(**advance_values(conversation, message, message.parent_id, size))):
        raise StorageConflict("The conversation has changed since it was read.")
    yield ADD_MESSAGE(**values)


def _add(conversation: Conversation, messages: Sequence[Message]) -> Plan[None]:
    first, rows = messages[0], [message_values(it) for it in messages]
    size = sum(ROW_BYTES + message_bytes(row) for row in rows)
    if not (yield ADVANCE_FOR_MESSAGES(**advance_values(conversation, first, first.parent_id, size))):
        raise StorageConflict("The conversation has changed since it was read.")
    for message, row in zip(messages, rows, strict=True):
        yield from mark_sent(conversation.id, message.files)
        yield ADD_MESSAGE(**row)


def message_values(message: Message) -> dict[str, Any]:
    """A message as a row; its tool calls have rows of their own."""
    return {
        "id": message.id,
        "conversation_id": message.conversation_id,
        "seq": message.seq,
        "turn_id": message.turn_id,
        "role": message.role,
        "status": message.status,
        "created_at": message.created_at,
        "completed_at": message.completed_at,
        "token_count": message.token_count,
        "usage": to_json_or_null(message.usage),
        "model": message.model,
        "error": to_json_or_null(message.error),
        "parent_id": message.parent_id,
        "on_path": message.on_path,
        **to_columns(message),
    }


def text_of(content: str, content_type: str) -> str:
    """A message's text, from its row."""
    return content if content_type == ContentType.TEXT else decode_card(content).text


def to_message(row: Row, tool_calls: Sequence[ToolCall]) -> Message:
    """A row of `tk_messages` as a message."""
    (
        id_, conversation_id, seq, turn_id, role, content, content_type, parts, status, created_at,
        completed_at, token_count, usage, model, error, parent_id, on_path, _,
    ) = row  # fmt: skip
    its_role = _role(role)
    return _message(
        id=id_,
        conversation_id=conversation_id,
        seq=seq,
        turn_id=turn_id,
        role=its_role,
        parts=to_parts(its_role, content_type, content, parts, tool_calls),
        status=_status(status),
        created_at=created_at,
        completed_at=completed_at,
        token_count=token_count,
        usage=_decode_usage(usage) if usage else None,
        model=model,
        error=_decode_failure(error) if error else None,
        parent_id=parent_id,
        on_path=bool(on_path),
    )
