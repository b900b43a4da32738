"""Conversations in the database."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from threadkeep.domain.conversation import (
    Conversation,
    ConversationFilter,
    ConversationStatus,
    ListedStatus,
    TitleSource,
)
from threadkeep.domain.errors import StorageConflict
from threadkeep.domain.ids import AgentId, ConversationId, IdempotencyKey, MessageId, UserId
from threadkeep.domain.message import Message
from threadkeep.domain.secret import Secret
from threadkeep.storage.database.columns import to_json, to_object
from threadkeep.storage.database.connector import Database, Plan, Query, Row, Statement
from threadkeep.storage.database.unchecked import unchecked
from threadkeep.storage.file_contents import FileContents
from threadkeep.storage.purging import (
    CONVERSATIONS_AT_ONCE,
    HOLD_EXPIRED,
    HOLD_LEFT,
    HOLD_OWNED,
    LET_ALL_GO,
    PURGE,
    hold,
    purge,
)
from threadkeep.storage.secrets import SecretBox
from threadkeep.storage.session_ids import kept_session, sealed_session, session_hash
from threadkeep.storage.text_bytes import ROW_BYTES, byte_length
from threadkeep.storage.users import ENSURE_USER

_COLUMNS = """id, user_id, agent_id, session_id, title, title_source, status, is_main, metadata, last_seq,
    message_count, archived_to_seq, active_turn_id, created_at, updated_at, last_message_at, deleted_at,
    tip_id, is_pinned, deletes_at"""


def conversation_columns(table: str) -> str:
    """The columns of a conversation, for a statement that calls its table so."""
    return ", ".join(f"{table}.{name}" for name in _COLUMNS.replace("\n", " ").replace(" ", "").split(","))


_SESSION_ID = 3
"""Index of the session id in a row."""

_INSERT = f"""INSERT INTO tk_conversations ({_COLUMNS}, session_hash, text_bytes, held_by)
    VALUES (:id, :user_id, :agent_id, :session_id, :title, :title_source, :status, :is_main, :metadata,
        :last_seq, :message_count, :archived_to_seq, :active_turn_id, :created_at, :updated_at,
        :last_message_at, {{deleted_at}}, :tip_id, :is_pinned, :deletes_at, :session_hash, :text_bytes,
        {{held_by}})"""
_INSERT_SHOWN = _INSERT.format(deleted_at=":deleted_at", held_by="NULL")
_ADD = Statement(_INSERT_SHOWN)
# Written in pieces: nobody sees it before the last one.
_ADD_HELD = Statement(_INSERT.format(deleted_at="{now}", held_by=":held_by"))
# Every piece says that its writer still holds the conversation. This also locks it.
_HOLD = Statement("UPDATE tk_conversations SET deleted_at = {now} WHERE id = :id AND held_by = :held_by")
_LET_GO = Statement(f"UPDATE tk_conversations SET held_by = '{PURGE}' WHERE id = :id AND held_by = :held_by")
_REVEAL = Statement(
    """UPDATE tk_conversations SET deleted_at = NULL, held_by = NULL,
        is_main = :is_main AND NOT EXISTS (SELECT 1 FROM tk_conversations AS other
            WHERE other.user_id = tk_conversations.user_id AND other.agent_id = tk_conversations.agent_id
                AND other.is_main AND other.deleted_at IS NULL)
    WHERE id = :id AND held_by = :held_by RETURNING is_main""",
    postgres="""UPDATE tk_conversations SET deleted_at = NULL, held_by = NULL,
        is_main = CAST(:is_main AS boolean) AND NOT EXISTS (SELECT 1 FROM tk_conversations AS other
            WHERE other.user_id = tk_conversations.user_id AND other.agent_id = tk_conversations.agent_id
                AND other.is_main AND other.deleted_at IS NULL)
    WHERE id = :id AND held_by = :held_by RETURNING is_main""",
)
# Two requests may create the main conversation at once: the second gets no row back and reads the first
# one's.
_ADD_MAIN = Statement(f"{_INSERT_SHOWN} ON CONFLICT DO NOTHING")

# A repeated request finds the conversation that the first one created, and its hash says whether it is the
# same request.
_ADD_KEY = Statement(
    """INSERT INTO tk_creation_keys (user_id, idempotency_key, request_hash, conversation_id)
    VALUES (:user_id, :key, :request_hash, :id)"""
)
_FIND_KEY = Statement(
    """SELECT conversation_id, request_hash FROM tk_creation_keys
    WHERE user_id = :user_id AND idempotency_key = :key"""
)

# Only the user's own, and only while it is not deleted: anything else is not found.
_BY_ID = (
    f"SELECT {_COLUMNS} FROM tk_conversations WHERE id = :id AND user_id = :user_id AND deleted_at IS NULL"
)
GET = Statement(_BY_ID)
# For a repeated request: the conversation that it created may have been deleted since.
_OF_ANY_STATUS = Statement(f"SELECT {_COLUMNS} FROM tk_conversations WHERE id = :id")
# By hash, since the session id may be stored encrypted. It opens a conversation of any user.
BY_SESSION = Statement(
    f"SELECT {_COLUMNS} FROM tk_conversations WHERE session_hash = :session_hash AND deleted_at IS NULL"
)
# Held until the commit, so that two changes follow one another and none is lost.
LOCK = Statement(_BY_ID, locks="FOR UPDATE")
# At most one row: a unique index allows no second main conversation.
GET_MAIN = Statement(
    f"""SELECT {_COLUMNS} FROM tk_conversations
    WHERE user_id = :user_id AND agent_id = :agent_id AND is_main AND deleted_at IS NULL"""
)
# For a node that takes a turn over or ends a waiting one: any user's, even in a deleted conversation.
OF_TURN = Statement(
    f"""SELECT {_COLUMNS} FROM tk_conversations
    WHERE id = (SELECT conversation_id FROM tk_turns WHERE id = :turn_id)"""
)
# The last number and the path's tip are the version: an append prepared on another, or for another agent, is
# refused. A title that was set meanwhile stays.
_UNCHANGED = """id = :conversation_id AND last_seq = :expected_seq AND agent_id = :agent_id
        AND COALESCE(CAST(tip_id AS text), '') = :expected_tip AND deleted_at IS NULL"""
ADVANCE = f"""UPDATE tk_conversations SET last_seq = :last_seq, message_count = :message_count,
        active_turn_id = :active_turn_id, updated_at = :now, last_message_at = :now,
        title = COALESCE(title, :title), title_source = COALESCE(title_source, :title_source),
        tip_id = :tip_id, text_bytes = text_bytes + :text_bytes, deletes_at = NULL
    WHERE {_UNCHANGED}"""
# A conversation runs one turn at a time, and takes nothing else from clients meanwhile.
ADVANCE_IDLE = f"{ADVANCE} AND active_turn_id IS NULL"
ADVANCE_FOR_MESSAGES = Statement(ADVANCE_IDLE)
# A card may arrive while a turn runs or just as it ends, so it leaves `active_turn_id` alone.
ADVANCE_FOR_CARD = Statement(
    f"""UPDATE tk_conversations SET last_seq = :last_seq, message_count = :message_count, updated_at = :now,
        last_message_at = :now, tip_id = :tip_id, text_bytes = text_bytes + :text_bytes, deletes_at = NULL
    WHERE {_UNCHANGED}"""
)
# What users and titles change; messages and turns have statements of their own.
_UPDATE = Statement(
    """UPDATE tk_conversations SET session_id = :session_id, session_hash = :session_hash, title = :title,
        title_source = :title_source, status = :status, metadata = :metadata, is_pinned = :is_pinned,
        deletes_at = :deletes_at,
        text_bytes = text_bytes + :text_bytes
    WHERE id = :id"""
)

_BEGUN_WITH = Statement(
    f"""SELECT {conversation_columns("conversation")} FROM tk_conversations AS conversation
    JOIN tk_messages AS question ON question.conversation_id = conversation.id AND question.seq = 1
    WHERE conversation.user_id = :user_id AND conversation.updated_at >= :since
        AND conversation.deleted_at IS NULL AND question.role = 'user' AND question.content = :question
        AND NOT EXISTS (SELECT 1 FROM tk_outside_conversations AS outside
            WHERE outside.conversation_id = conversation.id AND outside.outside_id <> :but_by)
    ORDER BY conversation.updated_at DESC, conversation.id DESC LIMIT :limit"""
)
# Only while no turn has run in it, on no branch: replies stay with the agent that gave them.
_CHANGE_AGENT = Statement(
    """UPDATE tk_conversations SET agent_id = :agent_id
    WHERE id = :id AND last_seq = :last_seq AND active_turn_id IS NULL AND NOT is_main
        AND deleted_at IS NULL
        AND NOT EXISTS (SELECT 1 FROM tk_turns AS turn WHERE turn.conversation_id = tk_conversations.id)"""
)


@cache
def _page(
    *, by_agent: bool, by_agents: bool, status: ListedStatus | None, pinned: bool | None, after: bool
) -> Statement:
    is_deleted = status is ListedStatus.DELETED
    time = "deleted_at" if is_deleted else "updated_at"
    pins = {None: "", True: "is_pinned", False: "NOT is_pinned"}
    conditions = [
        f"user_id = :user_id AND deleted_at IS {'NOT NULL AND held_by IS NULL' if is_deleted else 'NULL'}",
        "agent_id = :agent_id" if by_agent else "",
        "agent_id IN ({ids})" if by_agents else "",
        "status = :status" if status and not is_deleted else "",
        pins[pinned],
        f"({time}, id) < (:after_time, :after_id)" if after else "",
    ]
    sql = f"""SELECT {_COLUMNS} FROM {{table}} WHERE {" AND ".join(filter(None, conditions))}
        ORDER BY {time} DESC, id DESC LIMIT :limit OFFSET :offset"""
    if pinned and not is_deleted:  # SQLite would read all conversations for the few that are pinned
        in_sqlite = sql.replace("{table}", "tk_conversations INDEXED BY tk_conversations_pinned")
        return Statement(in_sqlite, postgres=sql.replace("{table}", "tk_conversations"))
    return Statement(sql.replace("{table}", "tk_conversations"))


# Only hides the conversation; it can be restored until it is purged.
_DELETE = Statement(
    """UPDATE tk_conversations SET deleted_at = :now
    WHERE id = :id AND user_id = :user_id AND deleted_at IS NULL"""
)
# The user may have a new main conversation with the agent by now; then this one returns as an ordinary one.
_RESTORE = Statement(
    """UPDATE tk_conversations SET deleted_at = NULL, deletes_at = NULL,
        is_main = is_main AND (deleted_at IS NULL OR NOT EXISTS (
            SELECT 1 FROM tk_conversations AS other
            WHERE other.user_id = tk_conversations.user_id AND other.agent_id = tk_conversations.agent_id
                AND other.is_main AND other.deleted_at IS NULL))
    WHERE id = :id AND user_id = :user_id AND held_by IS NULL"""
)
# A dict lookup: calling an enumeration is slow, and pages have many rows.
_conversation = unchecked(Conversation)
_status = {status.value: status for status in ConversationStatus}.__getitem__
_title_source = {source.value: source for source in TitleSource}.get


class ConversationRows:
    """Conversations as rows: session ids are encrypted if there is a key, and found by hash."""

    def __init__(self, box: SecretBox) -> None:
        self._box = box

    def read(self, row: Row) -> Conversation:
        """A row of `tk_conversations` as the aggregate; the session id stays encrypted until used."""
        return _to_conversation(row, kept_session(self._box, row[_SESSION_ID]))

    def values(self, conversation: Conversation) -> dict[str, Any]:
        """The aggregate as a row."""
        values = {name: getattr(conversation, name) for name in Conversation.__slots__}
        values["metadata"] = metadata = to_json(conversation.metadata)
        values["text_bytes"] = ROW_BYTES + byte_length(metadata)
        return values | sealed_session(self._box, conversation.session_id)

    def add(
        self, conversation: Conversation, *, is_main: bool, key: IdempotencyKey | None = None
    ) -> Plan[None]:
        """Adds a conversation, main or not, with its request's key; its user becomes known."""
        yield ENSURE_USER(id=conversation.user_id, now=conversation.created_at)
        yield _ADD(**self.values(conversation) | {"is_main": is_main})
        if key is not None:
            yield _ADD_KEY(
                user_id=conversation.user_id,
                key=key.name,
                request_hash=key.request_hash,
                id=conversation.id,
            )

    def add_held(self, conversation: Conversation, holder: str) -> Plan[None]:
        """Adds one that nobody sees until `reveal`."""
        yield ENSURE_USER(id=conversation.user_id, now=conversation.created_at)
        yield _ADD_HELD(**self.values(conversation) | {"is_main": False, "held_by": holder})


def still_hold(conversation_id: ConversationId, holder: str) -> Plan[None]:
    """Locks a conversation that is being written; StorageConflict if somebody else has it by now."""
    if not (yield _HOLD(id=conversation_id, held_by=holder)):
        raise StorageConflict("The conversation is gone, or is being imported elsewhere.")


def reveal(conversation_id: ConversationId, holder: str, *, is_main: bool) -> Plan[bool]:
    """Shows a conversation that is written; returns whether it is the main one, if there is no other."""
    rows = yield _REVEAL(id=conversation_id, held_by=holder, is_main=is_main)
    if not rows:
        raise StorageConflict("The conversation is gone, or is being imported elsewhere.")
    return bool(rows[0][0])


def let_go(conversation_id: ConversationId, holder: str) -> Query:
    """Leaves a conversation that won't be finished to its purge."""
    return _LET_GO(id=conversation_id, held_by=holder)


class SqlConversations:
    """The conversations of a database, without their messages."""

    def __init__(self, database: Database, rows: ConversationRows, file_contents: FileContents) -> None:
        self._database = database
        self._rows = rows
        self._file_contents = file_contents

    async def add(self, conversation: Conversation) -> None:
        """Stores a new conversation."""
        await self._database.write(lambda: self._rows.add(conversation, is_main=conversation.is_main))

    async def add_once(self, conversation: Conversation, key: IdempotencyKey) -> None:
        """Stores a new conversation with its request's key; StorageConflict if its user has used the key."""
        await self._database.write(lambda: self._rows.add(conversation, is_main=False, key=key))

    async def find_by_key(self, user_id: UserId, key: str) -> tuple[Conversation, str] | None:
        """The conversation, deleted or not, that a user created with a key, and the request's hash."""
        return await self._database.read(lambda: self._find_by_key(user_id, key))

    async def get_or_add_main(self, fresh: Conversation) -> tuple[Conversation, bool]:
        """The user's main conversation with the agent, and whether `fresh` just became it.

        Looks first, inserts only if missing; the second of two inserts returns the first one's.
        """
        if (found := await self.get_main(fresh.user_id, fresh.agent_id)) is not None:
            return found, False
        return await self._database.write(lambda: self._get_or_add_main(fresh))

    async def get_main(self, user_id: UserId, agent_id: AgentId) -> Conversation | None:
        """The user's main conversation with the agent, if there is one."""
        rows = await self._database.fetch(GET_MAIN(user_id=user_id, agent_id=agent_id))
        return self._rows.read(rows[0]) if rows else None

    async def get(self, user_id: UserId, conversation_id: ConversationId) -> Conversation | None:
        """One of the user's conversations that is not deleted."""
        rows = await self._database.fetch(GET(id=conversation_id, user_id=user_id))
        return self._rows.read(rows[0]) if rows else None

    async def by_session(self, session_id: str) -> Conversation | None:
        """The conversation that a session id opens, any user's, unless it is deleted."""
        rows = await self._database.fetch(BY_SESSION(session_hash=session_hash(session_id)))
        return self._rows.read(rows[0]) if rows else None

    async def page(
        self,
        user_id: UserId,
        which: ConversationFilter,
        *,
        after: tuple[int, str] | None,
        offset: int,
        limit: int,
    ) -> Sequence[Conversation]:
        """The user's conversations by `(updated_at, id)`, newest first, after a position.

        Deleted ones only if the filter includes them; they are ordered by `(deleted_at, id)`.
        """
        statement = _page(
            by_agent=which.agent_id is not None,
            by_agents=which.agents is not None,
            status=which.status,
            pinned=which.pinned,
            after=after is not None,
        )
        after_time, after_id = after or (0, "")
        rows = await self._database.fetch(
            statement(
                user_id=user_id,
                agent_id=which.agent_id,
                ids=to_json(which.agents),
                status=which.status,
                after_time=after_time,
                after_id=after_id,
                limit=limit,
                offset=offset,
            )
        )
        return [self._rows.read(row) for row in rows]

    async def begun_with(
        self, user_id: UserId, question: str, since: int, *, but_by: str, limit: int
    ) -> Sequence[Conversation]:
        """The user's conversations that begin with this question and changed since a time, newest first; not
        those that a client knows by an outside id, except by this one.
        """
        values = {
            "user_id": user_id,
            "question": question,
            "since": since,
            "but_by": but_by,
            "limit": limit,
        }
        return [self._rows.read(row) for row in await self._database.fetch(_BEGUN_WITH(**values))]

    async def update(
        self,
        user_id: UserId,
        conversation_id: ConversationId,
        change: Callable[[Conversation], Conversation],
    ) -> Conversation | None:
        """Changes title, status, pin, metadata or session exclusively; the change must be pure."""
        return await self._database.write(lambda: self._update(user_id, conversation_id, change))

    async def change_agent(self, conversation: Conversation, agent_id: AgentId) -> bool:
        """Gives a conversation another agent, and returns whether it did: not to the main one, not after a
        turn, and not if it has changed since it was read.
        """
        values = {"id": conversation.id, "last_seq": conversation.last_seq, "agent_id": agent_id}
        return bool(await self._database.execute(_CHANGE_AGENT(**values)))

    async def delete(self, user_id: UserId, conversation_id: ConversationId, now: int) -> bool:
        """Hides a conversation, and with it everything that is reached through it; it can be restored."""
        return bool(await self._database.execute(_DELETE(id=conversation_id, user_id=user_id, now=now)))

    async def restore(self, user_id: UserId, conversation_id: ConversationId) -> Conversation | None:
        """Restores a deleted conversation; no longer as the main one if there is a new main one."""
        rows = await self._database.execute(_RESTORE(id=conversation_id, user_id=user_id))
        return await self.get(user_id, conversation_id) if rows else None

    async def purge(
        self, user_id: UserId, conversation_id: ConversationId, *, only_deleted: bool = False
    ) -> bool:
        """Purges a conversation, deleted before or not, or only a deleted one; returns whether it did.

        It is gone for everyone at once. Its rows go in pieces; `purge_left` finishes what a crash interrupts.
        """
        which = {"id": conversation_id, "user_id": user_id, "only_deleted": only_deleted}
        return bool(await self._purge(HOLD_OWNED(**which)))

    async def purge_deleted_before(self, time: int) -> Sequence[ConversationId]:
        """Purges some of the conversations deleted before a time; returns which, none once all are gone."""
        return await self._purge(HOLD_EXPIRED(time=time, limit=CONVERSATIONS_AT_ONCE))

    async def purge_left(self) -> Sequence[ConversationId]:
        """Purges some of the conversations that a crash has left, half written or half purged; returns which,
        none once all are gone.
        """
        return await self._purge(HOLD_LEFT(limit=CONVERSATIONS_AT_ONCE))

    async def let_all_go(self) -> None:
        """Gives up all conversations that are being written; for a process that is known to be alone."""
        await self._database.execute(LET_ALL_GO())

    async def _purge(self, query: Query) -> Sequence[ConversationId]:
        if held := await hold(self._database, query):
            await purge(self._database, self._file_contents, held)
        return held

    def _find_by_key(self, user_id: UserId, key: str) -> Plan[tuple[Conversation, str] | None]:
        keys = yield _FIND_KEY(user_id=user_id, key=key)
        if not keys:
            return None
        id_, request_hash = keys[0]
        rows = yield _OF_ANY_STATUS(id=id_)
        return (self._rows.read(rows[0]), request_hash) if rows else None

    def _get_or_add_main(self, fresh: Conversation) -> Plan[tuple[Conversation, bool]]:
        yield ENSURE_USER(id=fresh.user_id, now=fresh.created_at)
        if (yield _ADD_MAIN(**self._rows.values(fresh))):
            return fresh, True
        (row,) = yield GET_MAIN(user_id=fresh.user_id, agent_id=fresh.agent_id)
        return self._rows.read(row), False

    def _update(
        self,
        user_id: UserId,
        conversation_id: ConversationId,
        change: Callable[[Conversation], Conversation],
    ) -> Plan[Conversation | None]:
        rows = yield LOCK(id=conversation_id, user_id=user_id)
        if not rows:
            return None
        before = self._rows.read(rows[0])
        changed = change(before)
        values = self._rows.values(changed)
        values["text_bytes"] = byte_length(values["metadata"]) - byte_length(to_json(before.metadata))
        yield _UPDATE(**values)
        return changed


def advance_values(
    conversation: Conversation, first_new: Message, previous_tip_id: MessageId | None, text_bytes: int
) -> dict[str, Any]:
    """The parameters of ADVANCE for a conversation that has grown by some messages, and by how much."""
    return {
        "conversation_id": conversation.id,
        "agent_id": conversation.agent_id,
        "last_seq": conversation.last_seq,
        "expected_seq": first_new.seq - 1,
        "expected_tip": previous_tip_id or "",
        "message_count": conversation.message_count,
        "active_turn_id": conversation.active_turn_id,
        "title": conversation.title,
        "title_source": conversation.title_source,
        "tip_id": conversation.tip_id,
        "now": conversation.updated_at,
        "text_bytes": text_bytes,
    }


def _to_conversation(row: Row, session_id: Secret) -> Conversation:
    (
        id_, user_id, agent_id, _, title, title_source, status, is_main, metadata, last_seq,
        message_count, archived_to_seq, active_turn_id, created_at, updated_at, last_message_at, deleted_at,
        tip_id, is_pinned, deletes_at,
    ) = row  # fmt: skip
    return _conversation(
        id=id_,
        user_id=user_id,
        agent_id=agent_id,
        session_id=session_id,
        title=title,
        title_source=_title_source(title_source),
        status=_status(status),
        is_main=bool(is_main),
        metadata=to_object(metadata),
        last_seq=last_seq,
        message_count=message_count,
        archived_to_seq=archived_to_seq,
        active_turn_id=active_turn_id,
        created_at=created_at,
        updated_at=updated_at,
        last_message_at=last_message_at,
        deleted_at=deleted_at,
        tip_id=tip_id,
        is_pinned=bool(is_pinned),
        deletes_at=deletes_at,
    )
