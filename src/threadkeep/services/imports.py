"""Imports: what a file brings becomes a user's, each conversation whole or not at all, nothing twice.

Ids are kept where they are free. Where one is somebody else's, for a file may be brought in for two users,
the thing and all that belongs to it get ids made of the user's and the old ones, the same every time.
"""

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

from threadkeep.domain.agent import Agent, AgentSettings, Visibility
from threadkeep.domain.briefing import Briefing
from threadkeep.domain.conversation import new_session_id
from threadkeep.domain.document import Document, DocumentStatus
from threadkeep.domain.errors import InvalidRequest, StorageConflict, StorageError, ThreadkeepError
from threadkeep.domain.ids import (
    AgentId,
    ConversationId,
    DocumentId,
    MemoryId,
    MessageId,
    derived_uuid,
    is_uuid,
    new_uuid,
    time_of,
)
from threadkeep.domain.mcp import check_server_names
from threadkeep.domain.payload import Payload, content_hash
from threadkeep.domain.prompt import PromptComponent
from threadkeep.domain.user import User
from threadkeep.domain.workspace import Workspaces
from threadkeep.engine.aside import MOST_FILE_BYTES
from threadkeep.engine.rekeying import check_id, checked, rekey
from threadkeep.engine.retelling import retell
from threadkeep.engine.values import TooDeep
from threadkeep.ports.agents import AuditEntry
from threadkeep.ports.exchange import (
    Flawed,
    ForeignConversation,
    Found,
    ImportSource,
    KeptMemory,
    KnownAgent,
    OwnAgent,
    Owned,
    WholeConversation,
)
from threadkeep.ports.jobs import Job, JobStore
from threadkeep.ports.prompt_files import PromptFiles
from threadkeep.ports.store import Store
from threadkeep.services import Clock
from threadkeep.services.exports import document_name, payload_name
from threadkeep.services.reading import READ_JOB, document_path
from threadkeep.services.reassigning import make_searchable

MOST_MEMORIES = 100_000


@dataclass(slots=True)
class ImportReport:
    """What became of a file: how many things were added, were there already, or were left out and why."""

    added: dict[str, int] = field(default_factory=dict[str, int])
    there: int = 0
    empty: int = 0
    notes: list[str] = field(default_factory=list[str])
    left_out: list[Flawed] = field(default_factory=list[Flawed])

    def count(self, kind: str, number: int = 1) -> None:
        """Notes things that were added."""
        self.added[kind] = self.added.get(kind, 0) + number


class Import:
    """Brings one file in for one user."""

    def __init__(
        self,
        store: Store,
        jobs: JobStore,
        prompt_files: PromptFiles,
        workspaces: Workspaces,
        clock: Clock,
        user: User,
    ) -> None:
        self._store = store
        self._jobs = jobs
        self._prompt_files = prompt_files
        self._workspaces = workspaces
        self._clock = clock
        self._user = user
        self._agents: dict[AgentId, AgentId] = {}
        self._documents: dict[str, str] = {}
        self.report = ImportReport()

    async def take(self, source: ImportSource, agent_name: str | None) -> ImportReport:
        """Takes over all that a file brings; what is flawed is left out, and the rest goes on."""
        if source.is_ours and agent_name is not None:
            raise InvalidRequest("An export of Threadkeep names its agents itself; leave --agent out.")
        agent = None if source.is_ours else await self._agent_named(agent_name)
        for found in source.found():
            try:
                await self._take(source, found, agent)
            except (StorageConflict, TooDeep) as exc:
                self.report.left_out.append(Flawed(_name(found), str(exc)))
            except StorageError:
                raise  # the database is away or full: nothing more can be done
            except ThreadkeepError as exc:
                self.report.left_out.append(Flawed(_name(found), exc.message))
        return self.report

    async def _take(self, source: ImportSource, found: Found | Flawed, agent: Agent | None) -> None:
        match found:
            case Flawed():
                self.report.left_out.append(found)
            case OwnAgent():
                await self._take_agent(found)
            case KnownAgent():
                await self._meet(found)
            case Document():
                await self._take_document(source, found)
            case KeptMemory():
                await self._take_memory(found)
            case WholeConversation():
                await self._take_conversation(
                    self._with_agent(found), lambda payload: _content(source, payload)
                )
            case ForeignConversation():
                assert agent is not None
                whole, contents = retell(found, self._user.id, agent.id, self._clock())
                await self._take_conversation(whole, lambda payload: contents[payload.sha256])
            case Briefing():
                await self._take_briefing(found)

    async def _take_conversation(self, whole: WholeConversation, content: Callable[[Payload], bytes]) -> None:
        if not whole.messages:
            self.report.empty += 1
            return
        whole = checked(whole)
        id_, is_there = await self._place("conversation", whole.conversation.id, self._user.id)
        if is_there:
            self.report.there += 1
            return
        conversation = replace(
            whole.conversation, user_id=self._user.id, session_id=new_session_id(), active_turn_id=None
        )
        whole = replace(whole, conversation=conversation)
        if id_ != conversation.id:
            whole = rekey(whole, self._own_id, self._documents)
        is_main = await self._store.exchange.add(whole, content)
        await make_searchable(self._store, whole.conversation.id)
        self.report.count("conversation")
        self.report.count("message", len(whole.messages))
        if conversation.is_main and not is_main:
            self.report.notes.append(
                f"Conversation {conversation.title or conversation.id!r} was a main one; there is a main one "
                "with this agent, so it is a further one now."
            )

    def _with_agent(self, whole: WholeConversation) -> WholeConversation:
        agent_id = self._agent(whole.conversation.agent_id)
        return replace(whole, conversation=replace(whole.conversation, agent_id=agent_id))

    def _agent(self, agent_id: AgentId) -> AgentId:
        if agent_id not in self._agents:
            raise InvalidRequest(f"it refers to an agent {agent_id!r} that was not taken over")
        return self._agents[agent_id]

    async def _take_agent(self, own: OwnAgent) -> None:
        check_id(own.agent.id)
        check_server_names(own.agent.settings.mcp_servers)
        components = {PromptComponent(name): text for name, text in own.prompt_files.items()}
        id_, is_there = await self._place("agent", own.agent.id, self._user.id)
        if is_there:
            self.report.there += 1
        else:
            agent = replace(own.agent, id=AgentId(id_), owner_id=self._user.id)
            await self._add_agent(agent)
            for component, text in components.items():
                await self._prompt_files.write(agent.id, component, text)
            if servers := agent.settings.mcp_servers:
                self.report.notes.append(
                    f"Agent {agent.name!r}: its MCP servers {', '.join(servers)} are switched off and "
                    "without their secrets, which no export has."
                )
        self._agents[own.agent.id] = AgentId(id_)

    async def _meet(self, known: KnownAgent) -> None:
        """An agent of somebody else: the default one, the very same, or one in its place."""
        check_id(known.id)
        if known.is_default:
            self._agents[known.id] = (await self._store.agents.get_default()).id
            return
        there = await self._store.agents.get(known.id)
        if there is not None and (there.owner_id == self._user.id or there.is_visible_to(self._user)):
            self._agents[known.id] = there.id
            return
        id_ = AgentId(self._own_id(known.id))
        if await self._store.exchange.owner_of("agent", id_) is None:
            await self._add_agent(self._new_agent(id_, known.name, known.description))
        self._agents[known.id] = id_

    async def _agent_named(self, name: str | None) -> Agent:
        """The agent that foreign conversations shall be with: the default one, or one of this name."""
        if name is None:
            return await self._store.agents.get_default()
        after: str | None = None
        while page := await self._store.agents.page(self._user.id, after=after, offset=0, limit=200):
            if found := next((agent for agent in page if agent.name == name), None):
                return found
            after = page[-1].id
        agent = self._new_agent(AgentId(new_uuid()), name, "")
        await self._add_agent(agent)
        return agent

    def _new_agent(self, id_: AgentId, name: str, description: str) -> Agent:
        now = self._clock()
        return Agent(
            id_, self._user.id, name, description, "assistant", "", None, Visibility.PRIVATE,
            AgentSettings(), is_default=False, version=1, created_at=now, updated_at=now,
        )  # fmt: skip

    async def _add_agent(self, agent: Agent) -> None:
        entry = AuditEntry(new_uuid(), self._clock(), self._user.id, "import", agent.id, {"name": agent.name})
        await self._store.agents.add(agent, entry)
        self.report.count("agent")

    async def _take_document(self, source: ImportSource, document: Document) -> None:
        """Puts a document's file into its place and has it read by the server, as if it had been sent."""
        check_id(document.id)
        agent_id = self._agent(document.agent_id)
        id_, is_there = await self._place("document", document.id, agent_id)
        if is_there:
            self._documents[document.id] = id_
            self.report.there += 1
            return
        path = document_path(self._workspaces, agent_id, DocumentId(id_))
        file = source.open(document_name(document))
        if file is None:
            raise InvalidRequest("its file is not in the export")
        with file:
            await asyncio.to_thread(_copy, file, path, document)
        now = self._clock()
        fresh = replace(
            document, id=DocumentId(id_), agent_id=agent_id, status=DocumentStatus.PROCESSING, progress=0.0,
            chunk_count=0, error=None, updated_at=now,
        )  # fmt: skip
        kept = await self._store.documents.add(fresh)
        self._documents[document.id] = kept.id
        if kept.id != fresh.id:
            path.unlink()
            self.report.there += 1
            return
        await self._jobs.add(Job(new_uuid(), READ_JOB, {"agent_id": agent_id, "document_id": fresh.id}))
        self.report.count("document")

    async def _take_memory(self, kept: KeptMemory) -> None:
        check_id(kept.memory.id)
        id_, is_there = await self._place("memory", kept.memory.id, self._user.id)
        if is_there:
            self.report.there += 1
            return
        agent_id, memory = self._agent(kept.agent_id), replace(kept.memory, id=MemoryId(id_))
        await self._store.memories.add(self._user.id, agent_id, memory, most=MOST_MEMORIES)
        self.report.count("memory")

    async def _take_briefing(self, briefing: Briefing) -> None:
        check_id(briefing.id)
        if await self._store.briefings.get(self._user.id, briefing.id) is not None:
            self.report.there += 1
            return
        card = await self._card(briefing.message_id) if briefing.message_id else None
        agent_id = self._agent(briefing.agent_id)
        taken = replace(briefing, user_id=self._user.id, agent_id=agent_id, message_id=card)
        await self._store.briefings.add(taken)
        self.report.count("briefing")

    async def _card(self, message_id: MessageId) -> MessageId | None:
        """A briefing's card, if its conversation has been taken over, under whichever id."""
        for id_ in (message_id, MessageId(self._own_id(message_id))):
            message = await self._store.messages.get(id_) if is_uuid(id_) else None
            if message and await self._is_own(message.conversation_id):
                return id_
        return None

    async def _is_own(self, conversation_id: ConversationId) -> bool:
        return await self._store.exchange.owner_of("conversation", conversation_id) == self._user.id

    async def _place(self, kind: Owned, id_: str, owner: str) -> tuple[str, bool]:
        """The id that a thing has here, and whether it is here already."""
        owners = {it: await self._store.exchange.owner_of(kind, it) for it in (id_, self._own_id(id_))}
        for it, found in owners.items():
            if found == owner:
                return it, True
        return (id_ if owners[id_] is None else self._own_id(id_)), False

    def _own_id(self, id_: str) -> str:
        return derived_uuid(time_of(id_), self._user.id, id_)


def _content(source: ImportSource, payload: Payload) -> bytes:
    """The content of a payload, which must be what its hash says."""
    file = source.open(payload_name(payload))
    if file is None:
        raise InvalidRequest(f"the content of payload {payload.id} is not in the export")
    with file:
        content = file.read(MOST_FILE_BYTES + 1)
    if len(content) != payload.size or content_hash(content) != payload.sha256:
        raise InvalidRequest(f"the content of payload {payload.id} is damaged or too large")
    return content


def _copy(file: BinaryIO, path: Path, document: Document) -> None:
    """Puts a document's file into its place, if it is what its hash says."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    digest, size = hashlib.sha256(), 0
    with path.open("wb") as kept:
        while (part := file.read(1024 * 1024)) and size <= document.size:
            digest.update(part)
            size += len(part)
            kept.write(part)
    if (size, digest.hexdigest()) != (document.size, document.sha256):
        path.unlink()
        raise InvalidRequest("its file is damaged")


def _name(found: Found | Flawed) -> str:
    match found:
        case WholeConversation(conversation):
            return f"conversation {conversation.title or conversation.id!r}"
        case ForeignConversation():
            return f"conversation {found.title or found.id!r}"
        case OwnAgent(agent):
            return f"agent {agent.name!r}"
        case KnownAgent():
            return f"agent {found.name!r}"
        case Document():
            return f"document {found.file_name!r}"
        case KeptMemory():
            return f"memory {found.memory.id!r}"
        case Briefing():
            return f"briefing {found.title!r}"
        case Flawed():
            return found.what
