"""Writes conversations in pieces: nobody sees one before its last piece, and others write in between."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from io import BytesIO
from itertools import chain, islice
from typing import Any, TypeVar

from threadkeep.domain.conversation import Conversation, WholeConversation
from threadkeep.domain.errors import StorageConflict
from threadkeep.domain.ids import ConversationId, ImportId, MessageId, PayloadId, UserId, new_uuid
from threadkeep.domain.payload import Payload
from threadkeep.domain.uploaded_file import UploadedFile
from threadkeep.storage.code.states import KEPT_STATES, copy_states
from threadkeep.storage.compactions import ADD as ADD_COMPACTION
from threadkeep.storage.compactions import compaction_bytes
from threadkeep.storage.conversations import ConversationRows, let_go, reveal, still_hold
from threadkeep.storage.database.columns import to_json
from threadkeep.storage.database.connector import Database, Plan, Query, Rows, single
from threadkeep.storage.feedback import putting
from threadkeep.storage.file_contents import FileContents
from threadkeep.storage.file_rows import contents_of
from threadkeep.storage.files import add_forked, add_imported, files_in
from threadkeep.storage.imports.recorded_turns import ADD_ENDED_TURN, ended_turn_values
from threadkeep.storage.imports.runs import STILL_RUNS
from threadkeep.storage.messages import ADD_MESSAGE, message_values
from threadkeep.storage.parts import calls_in
from threadkeep.storage.payloads.database import ADD as ADD_PAYLOAD
from threadkeep.storage.payloads.database import Contents, payload_bytes, payload_values
from threadkeep.storage.purging import purge
from threadkeep.storage.text_bytes import ROW_BYTES, call_bytes, count, message_bytes
from threadkeep.storage.tool_calls import ADD_TOOL_CALL, tool_call_values


class WritingStopped(Exception):
    """Somebody has stopped the import of a conversation; nothing of it stays."""


T = TypeVar("T")

ROWS_AT_ONCE = 200
BYTES_AT_ONCE = 1024 * 1024
FILES_AT_ONCE = 20
STATES_AT_ONCE = 2
COPIED_AT_ONCE = 5
"""Contents in the database, which can be large."""


class Writer:
    """Writes one conversation. If another one writes or purges it meanwhile, the next piece is refused."""

    def __init__(
        self,
        database: Database,
        rows: ConversationRows,
        contents: Contents,
        file_contents: FileContents,
        conversation: Conversation,
        *,
        within: ImportId | None = None,
        goes_on: Callable[[], bool] | None = None,
    ) -> None:
        self._database = database
        self._rows = rows
        self._contents = contents
        self._file_contents = file_contents
        self._conversation = conversation
        self._within = within
        self._goes_on = goes_on
        self._id = new_uuid()

    async def begin(self, check: Callable[[], Plan[None]] | None = None) -> None:
        """Stores the conversation, unless the check refuses it."""

        def plan() -> Plan[None]:
            yield from self._check_run()
            if check is not None:
                yield from check()
            yield from self._rows.add_held(self._conversation, self._id)

        await self._database.write(plan)

    async def write(self, plan: Callable[[], Plan[T]]) -> T:
        """Writes a piece."""
        self.check_stop()

        def piece() -> Plan[T]:
            yield from self._check_run()
            yield from still_hold(self._conversation.id, self._id)
            return (yield from plan())

        return await self._database.write(piece)

    def check_stop(self) -> None:
        """Raises WritingStopped if it doesn't go on."""
        if self._goes_on is not None and not self._goes_on():
            raise WritingStopped

    async def add_file(self, file: UploadedFile, content: Callable[[Payload], bytes]) -> None:
        """Adds a file of a message. Its bytes are stored before the rows that name them."""
        self.check_stop()
        conversation, new = self._conversation, contents_of([file])
        sources = {it.sha256: it for it in file.payloads(conversation.id)}
        found = await asyncio.to_thread(lambda: {sha256: content(it) for sha256, it in sources.items()})
        for sha256, it in new.items():
            await self._file_contents.stage_bytes(it.id, found[sha256])

        def plan() -> Plan[dict[str, Any]]:
            kept = yield from add_imported(conversation, file, new)
            for sha256, it in new.items():
                if kept[sha256] == it.id:
                    source = found[sha256]
                    yield from self._file_contents.write_within(it.id, lambda source=source: BytesIO(source))
            return kept

        kept = await self.write(plan)
        await self._file_contents.settle(
            {it.id: kept[sha256] for sha256, it in new.items() if kept[sha256] != it.id}
        )

    async def add_value(self, payload: Payload, content: Callable[[Payload], bytes]) -> None:
        """Adds the bytes of a value or of a tool's file."""
        self.check_stop()
        found = await asyncio.to_thread(content, payload)
        await self._contents.write(self._conversation.id, payload.sha256, found)

    async def add_rows(
        self, part: WholeConversation, files: Collection[PayloadId], *, spent_by: UserId | None
    ) -> None:
        """Adds all rows but files; turns count for `spent_by`, the bytes of all towards the user's limit."""
        size = await asyncio.to_thread(size_of, part, files)
        await self.write(lambda: single(count(self._conversation.id, size)))
        pieces = _pieces(_queries(part, self._conversation, files, spent_by))
        while (piece := await asyncio.to_thread(next, pieces, None)) is not None:
            await self.write(lambda piece=piece: _run(piece))

    async def fetch(self, query: Query) -> Rows:
        """Reads something that the next pieces need."""
        return await self._database.fetch(query)

    async def reveal(self) -> bool:
        """Shows the conversation; returns whether it is the main one."""
        is_main = self._conversation.is_main
        return await self.write(lambda: reveal(self._conversation.id, self._id, is_main=is_main))

    async def give_up(self) -> None:
        """Leaves what is written to a purge, unless another writer has it by now."""
        await self._database.execute(let_go(self._conversation.id, self._id))

    async def remove(self) -> None:
        """Purges what was given up."""
        await purge(self._database, self._file_contents, [self._conversation.id])

    def _check_run(self) -> Plan[None]:
        if self._within is not None and not (yield STILL_RUNS(id=self._within)):
            raise StorageConflict("The import has ended.")


class ForkWriter:
    """Writes a copy of another conversation, page by page."""

    def __init__(
        self, writer: Writer, contents: Contents, copy: Conversation, source_id: ConversationId
    ) -> None:
        self._writer = writer
        self._contents = contents
        self._copy = copy
        self._source_id = source_id
        self._copied: set[str] = set()

    async def add(self, part: WholeConversation) -> None:
        """Adds messages, and the turns, payloads and compactions that come with them."""
        files: set[PayloadId] = set()
        for some in _batches(files_in(part), FILES_AT_ONCE):
            files |= await self._writer.write(lambda some=some: add_forked(self._copy, some))
        names = {it.sha256 for it in part.payloads if it.id not in files} - self._copied
        await self._contents.copy(self._source_id, self._copy.id, names)
        for some in _batches(names, COPIED_AT_ONCE):
            await self._writer.write(
                lambda some=some: self._contents.copy_within(self._source_id, self._copy.id, some)
            )
        self._copied |= names
        await self._writer.add_rows(part, files, spent_by=None)

    async def add_states(self, copies: Sequence[tuple[MessageId, MessageId]]) -> None:
        """Copies what programs keep with replies, each given with its copy."""
        kept = await self._writer.fetch(KEPT_STATES(ids=to_json([it for it, _ in copies])))
        ids = {message_id for (message_id,) in kept}
        for some in _batches((it for it in copies if it[0] in ids), STATES_AT_ONCE):
            await self._writer.write(lambda some=some: copy_states(self._copy.id, some))


def _batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch


def _run(queries: Sequence[Query]) -> Plan[None]:
    for query in queries:
        _ = yield query  # not `yield from`: a list takes no rows


def _pieces(queries: Iterator[Query]) -> Iterator[list[Query]]:
    """As many rows as one transaction takes; a large one has its own."""
    piece: list[Query] = []
    size = 0
    for query in queries:
        size += sum(len(it) for it in query.values.values() if isinstance(it, str))
        piece.append(query)
        if len(piece) >= ROWS_AT_ONCE or size >= BYTES_AT_ONCE:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece


def _queries(
    part: WholeConversation, conversation: Conversation, files: Collection[PayloadId], spent_by: UserId | None
) -> Iterator[Query]:
    """What other rows refer to comes before them."""
    return chain(
        (ADD_PAYLOAD(**payload_values(it)) for it in part.payloads if it.id not in files),
        (ADD_ENDED_TURN(**ended_turn_values(it.turn, spent_by, it.run_id)) for it in part.turns),
        _messages(part, conversation),
        (ADD_COMPACTION(**{name: getattr(it, name) for name in it.__slots__}) for it in part.compactions),
        map(putting, part.feedback),
    )


def _messages(part: WholeConversation, conversation: Conversation) -> Iterator[Query]:
    for message in part.messages:
        yield ADD_MESSAGE(**message_values(message))
        for position, call in enumerate(calls_in(message.parts)):
            yield ADD_TOOL_CALL(**tool_call_values(call, conversation, position))


def size_of(whole: WholeConversation, files: Collection[PayloadId]) -> int:
    """What the rows and texts of a whole conversation take, without its own row; `files` count elsewhere."""
    size = sum(payload_bytes(payload) for payload in whole.payloads if payload.id not in files)
    size += sum(map(compaction_bytes, whole.compactions))
    for message in whole.messages:
        size += ROW_BYTES + message_bytes(message_values(message))
        calls = (tool_call_values(call, whole.conversation, 0) for call in calls_in(message.parts))
        size += sum(map(call_bytes, calls))
    return size
