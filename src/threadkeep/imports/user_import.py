"""Imports a file's content for a user: each conversation completely or not at all, nothing twice.

Ids stay the same if they are free. If an id belongs to another user, because a file can be imported for two
users, the item and everything that belongs to it get ids derived from the user's and the old ones, the same
every time.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

from threadkeep.clock import Clock
from threadkeep.domain.agent import Agent
from threadkeep.domain.briefing import Briefing
from threadkeep.domain.conversation import Conversation, WholeConversation, new_session_id
from threadkeep.domain.document import Document, DocumentStatus
from threadkeep.domain.errors import (
    InvalidRequest,
    LimitNotAllowed,
    StorageConflict,
    StorageError,
    ThreadkeepError,
    UnsupportedImport,
)
from threadkeep.domain.ids import ConversationId, DocumentId, ImportId, MemoryId, new_uuid
from threadkeep.domain.import_run import ImportProblem, SkipReason
from threadkeep.domain.memory import KeptMemory
from threadkeep.domain.parts import FilePart
from threadkeep.domain.payload import Payload
from threadkeep.domain.user import User
from threadkeep.engine.large_values import safe_media_type
from threadkeep.exports.records import KnownAgent, OwnAgent, OwnInstructions, document_name
from threadkeep.imports.agents import ImportedAgents
from threadkeep.imports.checks import check_id, safe_name
from threadkeep.imports.files import MOST_PAYLOAD_BYTES, foreign_files, keep_document
from threadkeep.imports.ids import ImportIds
from threadkeep.imports.report import ImportReport
from threadkeep.imports.source import ForeignOutline, ImportItem, ImportSource
from threadkeep.jobs.documents import READ_JOB, read_job
from threadkeep.services.branches.new_ids import with_new_ids
from threadkeep.services.file_intake import FileIntake
from threadkeep.services.reassignment import make_searchable
from threadkeep.storage.documents.document_files import FolderDocumentFiles
from threadkeep.storage.imports.whole_conversations import CheckBytes
from threadkeep.storage.imports.writing import WritingStopped
from threadkeep.storage.jobs import Job, SqlJobs
from threadkeep.storage.prompt_files import FolderPromptFiles
from threadkeep.storage.store import Store

MOST_MEMORIES = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class UsersImport:
    """What differs if users import a file themselves: the operator's rules hold, and they can stop it."""

    run_id: ImportId
    """Nothing is added once this run has ended."""
    check_bytes: CheckBytes | None
    """Gets what the user would then have in all; None if there is no limit."""
    most_payload_bytes: int
    most_messages: int
    """Of another product's conversation; one that was exported here always comes back. 0 = no limit."""
    on_added: Callable[[Conversation], None]
    goes_on: Callable[[], bool]


class Import:
    """Imports one file for one user.

    If users do it themselves, only conversations: agents, documents and memories of a file would come in past
    the rules for them.
    """

    def __init__(
        self,
        store: Store,
        jobs: SqlJobs,
        prompt_files: FolderPromptFiles,
        document_files: FolderDocumentFiles,
        intake: FileIntake,
        clock: Clock,
        user: User,
        by_user: UsersImport | None = None,
    ) -> None:
        self._store = store
        self._by_user = by_user
        self._jobs = jobs
        self._document_files = document_files
        self._intake = intake
        self._clock = clock
        self._user = user
        self.report = ImportReport()
        self._import_ids = ImportIds(store, user.id)
        self._agents = ImportedAgents(store, prompt_files, clock, user, self._import_ids, self.report)
        self._documents: dict[str, str] = {}
        self._text_bytes: int | None = None
        """How much text the user has, once that is known."""

    async def take(self, source: ImportSource, agent_name: str | None) -> ImportReport:
        """Imports everything in a file; leaves out flawed items and continues."""
        if source.is_ours and agent_name is not None:
            raise InvalidRequest("A Threadkeep export already names its agents; leave out --agent.")
        agent = None if source.is_ours else await self._agents.named(agent_name)
        return await self._take_all(source, agent)

    async def take_conversations(self, source: ImportSource, agent: Agent) -> ImportReport:
        """Imports the conversations in a file, with this agent unless they had one that is here, too."""
        return await self._take_all(source, agent)

    async def _take_all(self, source: ImportSource, agent: Agent | None) -> ImportReport:
        while (found := await source.next()) is not None:
            if self._by_user is not None and not self._by_user.goes_on():
                break
            try:
                await self._take(source, found, agent)
            except StorageConflict as exc:
                self.report.leave_out(found, str(exc))
            except StorageError:
                raise  # the database is unreachable or full: nothing more can be done
            except LimitNotAllowed as exc:  # a smaller one may still fit
                self.report.leave_out(found, exc.message, SkipReason.OVER_QUOTA)
                self.report.limit = exc
            except UnsupportedImport:
                raise  # the file can't be read any further
            except ThreadkeepError as exc:
                self.report.leave_out(found, exc.message)
            self.report.done += isinstance(found, WholeConversation | ForeignOutline | ImportProblem)
        return self.report

    async def _take(
        self, source: ImportSource, found: ImportItem | ImportProblem, agent: Agent | None
    ) -> None:
        match found:
            case ImportProblem():
                self.report.left_out.append(found)
            case OwnAgent(agent=own) if self._by_user is not None:
                await self._agents.meet_same(own.id, is_default=own.is_default)
            case KnownAgent() if self._by_user is not None:
                await self._agents.meet_same(found.id, is_default=found.is_default)
            case OwnInstructions() | Document() | KeptMemory() | Briefing() if self._by_user is not None:
                pass
            case OwnInstructions():
                await self._take_instructions(found)
            case OwnAgent():
                await self._agents.take(found)
            case KnownAgent():
                await self._agents.meet(found)
            case Document():
                await self._take_document(source, found)
            case KeptMemory():
                await self._take_memory(found)
            case WholeConversation():
                agent_id = self._agents.id_of(found.conversation.agent_id, agent and agent.id)
                conversation = replace(found.conversation, agent_id=agent_id)
                await self._take_own(source, replace(found, conversation=conversation))
            case ForeignOutline():
                assert agent is not None
                await self._take_foreign(source, found, agent)
            case Briefing():
                await self._take_briefing(found)

    def _is_too_long(self, found: ForeignOutline, whole: WholeConversation) -> bool:
        most, count = self._by_user.most_messages if self._by_user else 0, len(whole.messages)
        is_too_long = 0 < most < count
        if is_too_long:
            why = f"it has {count:,} messages; THREADKEEP_CONVERSATION_MESSAGES allows {most:,}"
            self.report.leave_out(found, why, SkipReason.TOO_LARGE)
        return is_too_long

    async def _take_own(self, source: ImportSource, whole: WholeConversation) -> None:
        """Imports a conversation of ours; unpacks its files only if it doesn't exist yet."""
        if whole.payloads and not await self._is_there(whole.conversation.id):
            most = self._by_user.most_payload_bytes if self._by_user else MOST_PAYLOAD_BYTES
            await source.unpack_payloads(most=most)
        await self._take_conversation(whole, lambda payload: source.read(payload.sha256))

    async def _is_there(self, id_: ConversationId) -> bool:
        return (await self._import_ids.find("conversation", id_, self._user.id))[1]

    async def _take_foreign(self, source: ImportSource, found: ForeignOutline, agent: Agent) -> None:
        """Imports another product's conversation; prepares its files only if it doesn't exist yet."""
        if await self._is_there(found.id):
            self.report.there += 1
            return
        async with foreign_files(
            source, found, self._intake, self._user.id, self.report.notes.append
        ) as files:
            whole = await source.convert(agent.id, self._clock(), files.known)
            if isinstance(whole, ImportProblem):
                self.report.left_out.append(whole)
                return
            if self._is_too_long(found, whole):
                return

            def content(payload: Payload) -> bytes:
                path = files.paths.get(payload.sha256)
                return source.read(payload.sha256) if path is None else path.read_bytes()

            await self._take_conversation(whole, content)

    async def _take_conversation(self, whole: WholeConversation, content: Callable[[Payload], bytes]) -> None:
        if not whole.messages:
            self.report.empty += 1
            return
        id_, is_there = await self._import_ids.find("conversation", whole.conversation.id, self._user.id)
        if is_there:
            self.report.there += 1
            return
        conversation = replace(
            whole.conversation, user_id=self._user.id, session_id=new_session_id(), active_turn_id=None
        )
        # Even if it keeps its ids, it may cite a document that has another id here.
        rename = self._import_ids.own_id if id_ != conversation.id else str
        renamed = replace(whole, conversation=conversation)
        whole = await asyncio.to_thread(with_new_ids, renamed, rename, self._documents)
        by_user = self._by_user
        try:
            added = await self._store.whole_conversations.add(
                whole,
                content,
                await self._check_bytes(),
                within=by_user.run_id if by_user else None,
                goes_on=by_user.goes_on if by_user else None,
            )
        except WritingStopped:
            return
        if self._text_bytes is not None:
            self._text_bytes += added.text_bytes
        if by_user is None:
            await make_searchable(self._store, whole.conversation.id)
        else:
            await make_searchable(self._store, whole.conversation.id, by_user.goes_on)
            by_user.on_added(whole.conversation)
        self.report.count("conversation")
        self.report.count("message", len(whole.messages))
        if files := sum(isinstance(part, FilePart) for it in whole.messages for part in it.parts):
            self.report.count("file", files)
        if conversation.is_main and not added.is_main:
            self.report.notes.append(
                f"Conversation {conversation.title or conversation.id!r} was the main conversation, but "
                "this agent already has one, so it was imported as a regular conversation."
            )

    async def _check_bytes(self) -> CheckBytes | None:
        """What checks the size of the next conversation with all that the user has."""
        check = self._by_user.check_bytes if self._by_user else None
        if check is None:
            return None
        if self._text_bytes is None:
            self._text_bytes = await self._store.whole_conversations.text_bytes(self._user.id)
        before = self._text_bytes
        return lambda size: check(before + size)

    async def _take_document(self, source: ImportSource, document: Document) -> None:
        """Stores a document's file and queues it for processing, as if it had been uploaded."""
        check_id(document.id)
        agent_id = self._agents.id_of(document.agent_id)
        id_, is_there = await self._import_ids.find("document", document.id, agent_id)
        if is_there:
            self._documents[document.id] = id_
            self.report.there += 1
            return
        fresh = replace(
            document,
            id=DocumentId(id_),
            agent_id=agent_id,
            file_name=safe_name(document.file_name, document.media_type),
            media_type=safe_media_type(document.media_type),
            status=DocumentStatus.PROCESSING,
            progress=0.0,
            chunk_count=0,
            error=None,
            updated_at=self._clock(),
        )
        await keep_document(source, document_name(document), fresh, self._document_files)
        kept = await self._store.documents.add(fresh)
        self._documents[document.id] = kept.id
        if kept.id != fresh.id:
            await self._document_files.remove(agent_id, fresh.id)
            self.report.there += 1
            return
        await self._jobs.add(Job(new_uuid(), READ_JOB, read_job(fresh, self._user.id)))
        self.report.count("document")

    async def _take_instructions(self, found: OwnInstructions) -> None:
        """Imports the user's instructions for every agent, unless they have some here already."""
        if await self._store.users.instructions(self._user.id):
            self.report.there += 1
            return
        await self._store.users.instruct(self._user.id, found.text, self._clock())
        self.report.count("set of instructions")

    async def _take_memory(self, kept: KeptMemory) -> None:
        check_id(kept.memory.id)
        id_, is_there = await self._import_ids.find("memory", kept.memory.id, self._user.id)
        if is_there:
            self.report.there += 1
            return
        agent_id, memory = self._agents.id_of(kept.agent_id), replace(kept.memory, id=MemoryId(id_))
        await self._store.memories.add(self._user.id, agent_id, memory, most=MOST_MEMORIES)
        self.report.count("memory")

    async def _take_briefing(self, briefing: Briefing) -> None:
        check_id(briefing.id)
        if await self._store.briefings.get(self._user.id, briefing.id) is not None:
            self.report.there += 1
            return
        card = await self._import_ids.card(briefing.message_id) if briefing.message_id else None
        agent_id = self._agents.id_of(briefing.agent_id)
        taken = replace(briefing, user_id=self._user.id, agent_id=agent_id, message_id=card)
        await self._store.briefings.add(taken)
        self.report.count("briefing")
