"""Exports and imports whole conversations."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from threadkeep.domain.errors import StorageConflict
from threadkeep.domain.ids import FIRST_UUID, ConversationId, ImportId, MemoryId, PayloadId, TurnId, UserId
from threadkeep.domain.memory import Memory
from threadkeep.domain.payload import Payload
from threadkeep.ports.exchange.records import KeptMemory, KeptTurn, WholeConversation
from threadkeep.ports.exchange.store import AddedConversation, CheckBytes, Moved, Owned
from threadkeep.storage.compactions import ADD as ADD_COMPACTION
from threadkeep.storage.conversations import GET_MAIN, ConversationRows
from threadkeep.storage.database.columns import to_json_or_null, to_value
from threadkeep.storage.database.connector import Database, Plan, Statement
from threadkeep.storage.documents.documents import document_totals
from threadkeep.storage.exchange.import_runs import STILL_RUNS
from threadkeep.storage.exchange.reassignment import reassign
from threadkeep.storage.exchange.text_bytes import text_bytes
from threadkeep.storage.feedback import put_feedback
from threadkeep.storage.file_contents import FileContents
from threadkeep.storage.file_rows import FILE_BYTES
from threadkeep.storage.files import add_forked, add_imported, write_contents
from threadkeep.storage.messages import ADD_MESSAGE, message_values
from threadkeep.storage.parts import calls_in
from threadkeep.storage.payloads.database import ADD as ADD_PAYLOAD
from threadkeep.storage.payloads.database import OF_CONVERSATION as PAYLOADS_OF_CONVERSATION
from threadkeep.storage.payloads.database import Contents, payload_values, to_payload
from threadkeep.storage.text_bytes import count, text_bytes_of
from threadkeep.storage.tool_calls import ADD_TOOL_CALL, tool_call_values
from threadkeep.storage.turns import TURN_COLUMNS, run_key, run_of, to_turn

# Deleted or not: an import must not use an id that is taken. An agent without an owner has an empty one.
_OWNERS: Mapping[Owned, Statement] = {
    "user": Statement("SELECT id FROM tk_users WHERE id = :id"),
    "agent": Statement("SELECT COALESCE(owner_id, '') FROM tk_agents WHERE id = :id"),
    "conversation": Statement("SELECT user_id FROM tk_conversations WHERE id = :id"),
    "memory": Statement("SELECT user_id FROM tk_memories WHERE id = :id"),
    "message": Statement(
        """SELECT user_id FROM tk_conversations
        WHERE id = (SELECT conversation_id FROM tk_messages WHERE id = :id)"""
    ),
    "document": Statement("SELECT agent_id FROM tk_documents WHERE id = :id"),
}
# Read in pages by id; an imported run's turn is recognized by its key.
TURNS = Statement(
    f"""SELECT {TURN_COLUMNS}, turn.idempotency_key FROM tk_turns AS turn
    WHERE turn.conversation_id = :conversation_id AND turn.id > :after ORDER BY turn.id LIMIT :limit"""
)
# For an export: what all agents remember, in pages by id.
MEMORIES = Statement(
    """SELECT agent_id, id, content, tags, created_at FROM tk_memories
    WHERE user_id = :user_id AND id > :after ORDER BY id LIMIT :limit"""
)
# No node and no lease: the turn does not run here.
_ADD_TURN = Statement(
    """INSERT INTO tk_turns (id, conversation_id, user_id, user_message_id, assistant_message_id, origin,
        status, model, usage, error, idempotency_key, last_event_seq, started_at, ended_at)
    VALUES (:id, :conversation_id, :user_id, :user_message_id, :assistant_message_id, :origin, :status,
        :model, :usage, :error, :key, :last_event_seq,
        :started_at, :ended_at)"""
)


class SqlExchange:
    """Reads whole conversations from a database and adds them to it."""

    def __init__(
        self, database: Database, contents: Contents, file_contents: FileContents, rows: ConversationRows
    ) -> None:
        self._database = database
        self._rows = rows
        self._contents = contents
        self._file_contents = file_contents

    async def owner_of(self, kind: Owned, id_: str) -> str | None:
        """Who owns a thing, deleted or not."""
        rows = await self._database.fetch(_OWNERS[kind](id=id_))
        return rows[0][0] if rows else None

    async def turns(
        self, conversation_id: ConversationId, *, after: TurnId | None, limit: int
    ) -> Sequence[KeptTurn]:
        """The turns of a conversation by id."""
        rows = await self._database.fetch(
            TURNS(conversation_id=conversation_id, after=after or FIRST_UUID, limit=limit)
        )
        return [KeptTurn(to_turn(row[:-1]), run_of(row[-1])) for row in rows]

    async def payloads(
        self, conversation_id: ConversationId, *, after: PayloadId | None, limit: int
    ) -> Sequence[Payload]:
        """The records of a conversation's values and files, by id."""
        rows = await self._database.fetch(
            PAYLOADS_OF_CONVERSATION(conversation_id=conversation_id, after=after or FIRST_UUID, limit=limit)
        )
        return [to_payload(row)[0] for row in rows]

    async def memories(self, user_id: UserId, *, after: MemoryId | None, limit: int) -> Sequence[KeptMemory]:
        """What agents remember about a user, by id."""
        rows = await self._database.fetch(MEMORIES(user_id=user_id, after=after or FIRST_UUID, limit=limit))
        return [
            KeptMemory(agent_id, Memory(id_, content, tuple(to_value(tags) or ()), created_at))
            for agent_id, id_, content, tags, created_at in rows
        ]

    async def text_bytes(self, user_id: UserId) -> int:
        """The size of all rows and texts of the user."""
        return await self._database.read(lambda: text_bytes_of(user_id))

    async def add(
        self,
        whole: WholeConversation,
        content: Callable[[Payload], bytes],
        check_bytes: CheckBytes | None = None,
        *,
        within: ImportId | None = None,
    ) -> AddedConversation:
        """Stores a whole conversation."""
        return await self._database.write(lambda: self._add(whole, content, check_bytes, within), heavy=True)

    async def add_fork(self, whole: WholeConversation, source_id: ConversationId) -> None:
        """Stores a copy of a part of another conversation, with the contents that it refers to."""
        names = {payload.sha256 for payload in whole.payloads}
        await self._contents.copy(source_id, whole.conversation.id, names)
        await self._database.write(lambda: self._add_fork(whole, source_id, names))

    async def reassign(self, giver: UserId, receiver: UserId, now: int, *, alone: bool) -> Moved:
        """Gives everything that one user owns to another, all or nothing."""
        return await self._database.write(lambda: reassign(giver, receiver, now, alone=alone))

    def _add(
        self,
        whole: WholeConversation,
        content: Callable[[Payload], bytes],
        check_bytes: CheckBytes | None,
        within: ImportId | None,
    ) -> Plan[AddedConversation]:
        conversation = whole.conversation
        if within is not None and not (yield STILL_RUNS(id=within)):
            raise StorageConflict("The import has ended.")
        has_main = yield GET_MAIN(user_id=conversation.user_id, agent_id=conversation.agent_id)
        is_main = conversation.is_main and not has_main
        yield from self._rows.add(conversation, is_main=is_main)
        files, contents = yield from add_imported(whole)
        size = text_bytes(whole, files)
        if check_bytes is not None:
            ((file_bytes,),) = yield FILE_BYTES(user_id=conversation.user_id)
            _, document_bytes = yield from document_totals(conversation.user_id)
            check_bytes(size + file_bytes + document_bytes)
        yield from write_contents(whole, contents, self._file_contents, content)
        for payload in whole.payloads:
            if payload.id not in files:
                yield from self._contents.write_within(conversation.id, payload.sha256, content(payload))
        yield from _add_rows(whole, files, spent_by=conversation.user_id)
        yield count(conversation.id, size)
        return AddedConversation(is_main, size)

    def _add_fork(
        self, whole: WholeConversation, source_id: ConversationId, names: Collection[str]
    ) -> Plan[None]:
        yield from self._rows.add(whole.conversation, is_main=False)
        files = yield from add_forked(whole)
        yield from self._contents.copy_within(source_id, whole.conversation.id, names)
        yield from _add_rows(whole, files, spent_by=None)
        yield count(whole.conversation.id, text_bytes(whole, files))


def _add_rows(
    whole: WholeConversation, files: Collection[PayloadId], *, spent_by: UserId | None
) -> Plan[None]:
    """All rows of a conversation but its own, its files' and its contents; its turns count for `spent_by`."""
    for payload in whole.payloads:
        if payload.id not in files:
            yield ADD_PAYLOAD(**payload_values(payload))
    for kept in whole.turns:
        yield _ADD_TURN(**_turn_values(kept), user_id=spent_by)
    for message in whole.messages:
        yield ADD_MESSAGE(**message_values(message))
        for position, call in enumerate(calls_in(message.parts)):
            yield ADD_TOOL_CALL(**tool_call_values(call, whole.conversation, position))
    for compaction in whole.compactions:
        yield ADD_COMPACTION(**{name: getattr(compaction, name) for name in compaction.__slots__})
    for feedback in whole.feedback:
        yield from put_feedback(feedback)


def _turn_values(kept: KeptTurn) -> dict[str, Any]:
    turn = kept.turn
    values = {name: getattr(turn, name) for name in turn.__slots__}
    return values | {
        "usage": to_json_or_null(turn.usage),
        "error": to_json_or_null(turn.error),
        "key": run_key(kept.run_id) if kept.run_id is not None else None,
    }
