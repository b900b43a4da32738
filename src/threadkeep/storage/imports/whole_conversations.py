"""Exports and imports whole conversations."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Literal

from threadkeep.domain.agent import AuditEntry
from threadkeep.domain.conversation import Conversation, WholeConversation
from threadkeep.domain.errors import StorageError
from threadkeep.domain.ids import FIRST_UUID, ConversationId, ImportId, MemoryId, PayloadId, TurnId, UserId
from threadkeep.domain.memory import KeptMemory, Memory
from threadkeep.domain.payload import Payload
from threadkeep.domain.turn import KeptTurn
from threadkeep.domain.uploaded_file import UploadedFile
from threadkeep.domain.user import Movable
from threadkeep.storage.conversations import ConversationRows
from threadkeep.storage.database.columns import to_json, to_value
from threadkeep.storage.database.connector import Database, Plan, Statement
from threadkeep.storage.documents.documents import document_totals
from threadkeep.storage.file_contents import FileContents
from threadkeep.storage.file_rows import FILE_BYTES, NewContent, contents_of, known_contents
from threadkeep.storage.files import files_in
from threadkeep.storage.imports.reassignment import MOVABLE, Moved, reassign
from threadkeep.storage.imports.writing import ForkWriter, Writer, WritingStopped, size_of
from threadkeep.storage.payloads.database import BY_ID as PAYLOADS_BY_ID
from threadkeep.storage.payloads.database import OF_CONVERSATION as PAYLOADS_OF_CONVERSATION
from threadkeep.storage.payloads.database import Contents, to_payload
from threadkeep.storage.purging import HOLD_UNFINISHED, hold, purge
from threadkeep.storage.text_bytes import text_bytes_of
from threadkeep.storage.turns import TURN_COLUMNS, run_of, to_turn

Owned = Literal["user", "agent", "conversation", "memory", "document", "message"]
CheckBytes = Callable[[int], None]
"""Raises LimitNotAllowed if a user may not have that many bytes."""


@dataclass(frozen=True, slots=True)
class AddedConversation:
    """What became of a conversation that was to be stored."""

    is_main: bool
    """Not if the user already has a main one with this agent."""
    text_bytes: int
    """The size of its texts and values, without files."""


# Deleted or not: an import must not use an id that is taken. An agent without an owner has an empty one.
_OWNERS: Mapping[Owned, Statement] = {
    "user": Statement("SELECT id FROM tk_users WHERE id = :id"),
    "agent": Statement("SELECT COALESCE(owner_id, '') FROM tk_agents WHERE id = :id"),
    "conversation": Statement("SELECT user_id FROM tk_conversations WHERE id = :id"),
    "memory": Statement("SELECT user_id FROM tk_memories WHERE id = :id"),
    "message": Statement(
        """SELECT user_id FROM tk_conversations
        WHERE id = (SELECT conversation_id FROM tk_messages WHERE id = :id) AND held_by IS NULL"""
    ),
    "document": Statement("SELECT agent_id FROM tk_documents WHERE id = :id"),
}
_UNFINISHED = Statement(
    "SELECT 1 FROM tk_conversations WHERE id IN ({ids}) AND user_id = :user_id AND held_by IS NOT NULL"
)
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
# The same of some turns.
TURNS_BY_ID = Statement(
    f"""SELECT {TURN_COLUMNS}, turn.idempotency_key FROM tk_turns AS turn
    WHERE turn.id IN ({{ids}}) AND turn.conversation_id = :conversation_id"""
)


class SqlWholeConversations:
    """Reads whole conversations from a database and adds them to it."""

    def __init__(
        self, database: Database, contents: Contents, file_contents: FileContents, rows: ConversationRows
    ) -> None:
        self._database = database
        self._rows = rows
        self._contents = contents
        self._file_contents = file_contents

    async def owner_of(self, kind: Owned, id_: str) -> str | None:
        """The owner of an item, deleted or not: a user, or a document's agent. None if it doesn't exist."""
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
        """The metadata of a conversation's values and files, by id."""
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
        """The size of all texts and values in the user's conversations, without files."""
        return await self._database.read(lambda: text_bytes_of(user_id))

    async def turns_by_id(
        self, conversation_id: ConversationId, ids: Collection[TurnId]
    ) -> Sequence[KeptTurn]:
        """Some turns of a conversation."""
        rows = await self._database.fetch(TURNS_BY_ID(conversation_id=conversation_id, ids=to_json(ids)))
        return [KeptTurn(to_turn(row[:-1]), run_of(row[-1])) for row in rows]

    async def payloads_by_id(
        self, conversation_id: ConversationId, ids: Collection[PayloadId]
    ) -> Sequence[Payload]:
        """The metadata of some of a conversation's values and files."""
        rows = await self._database.fetch(PAYLOADS_BY_ID(conversation_id=conversation_id, ids=to_json(ids)))
        return [to_payload(row)[0] for row in rows]

    async def clear(self, user_id: UserId, ids: Collection[ConversationId]) -> None:
        """Removes what is left of the user's conversations with these ids that were never finished."""
        unfinished = await self._database.fetch(_UNFINISHED(user_id=user_id, ids=to_json(ids)))
        if unfinished:
            held = await hold(self._database, HOLD_UNFINISHED(user_id=user_id, ids=to_json(ids)))
            await purge(self._database, self._file_contents, held)
            await self._contents.forget(held)

    async def add(
        self,
        whole: WholeConversation,
        content: Callable[[Payload], bytes],
        check_bytes: CheckBytes | None = None,
        *,
        within: ImportId | None = None,
        goes_on: Callable[[], bool] | None = None,
    ) -> AddedConversation:
        """Stores a whole conversation, in pieces; nobody sees it before the last one.

        `content` is called for each payload, in a thread. Before that, `check_bytes` is called with the size
        of the conversation's texts and values, and of all files and documents that the user would then have.
        StorageConflict if one of its ids is taken, or if the run `within` which it is imported has ended;
        WritingStopped if it no longer `goes_on`. Then nothing of it stays.
        """
        conversation = whole.conversation
        files, own, size = await asyncio.to_thread(_measure, whole)
        check = check_bytes and partial(_check, conversation.user_id, contents_of(files), size, check_bytes)
        async with self._writing(conversation, check, within=within, goes_on=goes_on) as writer:
            for file in files:
                await writer.add_file(file, content)
            for payload in {it.sha256: it for it in whole.payloads if it.id not in own}.values():
                await writer.add_value(payload, content)
            await writer.add_rows(whole, own, spent_by=conversation.user_id)
            is_main = await writer.reveal()
        return AddedConversation(is_main, size)

    @asynccontextmanager
    async def forking(self, copy: Conversation, source_id: ConversationId) -> AsyncGenerator[ForkWriter]:
        """Stores a copy of part of another conversation, which appears when the block ends without an error.

        Its turns don't count as usage.
        """
        async with self._writing(copy) as writer:
            yield ForkWriter(writer, self._contents, copy, source_id)
            await writer.reveal()

    @asynccontextmanager
    async def _writing(
        self,
        conversation: Conversation,
        check: Callable[[], Plan[None]] | None = None,
        *,
        within: ImportId | None = None,
        goes_on: Callable[[], bool] | None = None,
    ) -> AsyncGenerator[Writer]:
        """Writes a conversation; if it isn't finished, nothing of it stays."""
        writer = Writer(
            self._database,
            self._rows,
            self._contents,
            self._file_contents,
            conversation,
            within=within,
            goes_on=goes_on,
        )
        await writer.begin(check)
        try:
            yield writer
        except BaseException as exc:
            with suppress(StorageError):  # otherwise the cleanup finds it
                await writer.give_up()
                if isinstance(exc, Exception) and not isinstance(exc, WritingStopped):
                    await writer.remove()  # where nobody waits for the end
            raise

    async def movable(self, giver: UserId) -> Movable:
        """How much a user has that `reassign` would move."""
        ((conversations, agents, briefings, memories),) = await self._database.fetch(MOVABLE(giver=giver))
        return Movable(conversations, agents, briefings, memories)

    async def reassign(
        self, giver: UserId, receiver: UserId, now: int, entry: AuditEntry | None = None, *, alone: bool
    ) -> Moved:
        """Moves everything from one user to another, all or nothing; UserNotFound if there is nothing.

        TurnInProgress while a turn of the giver runs, unless we are known to be `alone` on this database.
        """
        return await self._database.write(lambda: reassign(giver, receiver, now, entry, alone=alone))


def _measure(whole: WholeConversation) -> tuple[list[UploadedFile], set[PayloadId], int]:
    """The files of a conversation, the payloads that they are, and the size of everything else."""
    files = list(files_in(whole))
    own = {payload.id for file in files for payload in file.payloads(whole.conversation.id)}
    return files, own, size_of(whole, own)


def _check(
    user_id: UserId, contents: Mapping[str, NewContent], size: int, check_bytes: CheckBytes
) -> Plan[None]:
    known = yield from known_contents(user_id, contents)
    ((file_bytes,),) = yield FILE_BYTES(user_id=user_id)
    _, document_bytes = yield from document_totals(user_id)
    new = sum(it.size for sha256, it in contents.items() if sha256 not in known)
    check_bytes(size + file_bytes + new + document_bytes)
