"""Imports that users start themselves: they upload a file, and Threadkeep imports it in the background.

The node that received the file imports it and stores its progress, so that every node can show it. If the
user stops the import or the node ends, what is imported stays. Importing the file again adds nothing twice.
"""

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import BinaryIO

from threadkeep.clock import Clock
from threadkeep.domain.agent import Agent
from threadkeep.domain.caps import OperatorCaps
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.document import MOST_NAME_CHARACTERS
from threadkeep.domain.errors import (
    UNEXPECTED,
    ImportInProgress,
    ImportNotFound,
    ShuttingDown,
    ThreadkeepError,
    UnsupportedImport,
)
from threadkeep.domain.ids import ImportId, is_uuid, new_uuid
from threadkeep.domain.import_run import (
    MOST_LINKS,
    MOST_LISTED,
    ImportedConversation,
    ImportFailure,
    ImportProblem,
    ImportProgress,
    ImportRun,
    ImportStatus,
)
from threadkeep.domain.text import check_line
from threadkeep.domain.user import User
from threadkeep.domain.user_events import UserEvent, UserEventType
from threadkeep.imports.confined import UploadedExports
from threadkeep.imports.report import ImportReport
from threadkeep.imports.source import ImportSource, SourceStopped
from threadkeep.imports.user_import import Import, UsersImport
from threadkeep.ports.allowances import Allowances
from threadkeep.runtime.user_events import UserEvents
from threadkeep.services.agents import Agents
from threadkeep.storage.store import Store
from threadkeep.tasks import end_tasks

log = logging.getLogger("threadkeep.imports")

MOST_KEPT = 10
MOST_AT_ONCE = 8
"""On one node, each with a process that reads its file; further imports wait. Few of them work at once."""
NOTE_EVERY_S = 0.5
"""So soon an import ends whose user was deleted, or stopped it on another node."""
END_WITHIN_S = 5.0
MOST_CHARACTERS = 300
"""Of a problem or a note."""

NewImport = Callable[[User, UsersImport], Import]


@dataclass(slots=True)
class _Running:
    """A run on this node."""

    run: ImportRun
    user: User
    agent: Agent
    file: BinaryIO
    """Closing it deletes it, because it has no name on the disk."""
    source: ImportSource | None = None
    """The file, while it is read."""
    report: ImportReport = field(default_factory=ImportReport)
    found: int | None = None
    links: list[ImportedConversation] = field(default_factory=list[ImportedConversation])
    unannounced: list[Conversation] = field(default_factory=list[Conversation])
    stopped: asyncio.Event = field(default_factory=asyncio.Event)
    is_cut_off: bool = False

    @property
    def goes_on(self) -> bool:
        """Whether nobody has stopped it."""
        return not self.stopped.is_set()

    def stop(self) -> None:
        """Lets it end soon, whether it waits, counts or imports."""
        self.stopped.set()
        if self.source is not None:
            self.source.stop()

    def added(self, conversation: Conversation) -> None:
        """A conversation was added."""
        self.unannounced.append(conversation)
        if len(self.links) < MOST_LINKS:
            self.links.append(ImportedConversation(conversation.id, conversation.title or ""))

    @property
    def progress(self) -> ImportProgress:
        """How far it is."""
        report = self.report
        listed = report.left_out[:MOST_LISTED]
        problems = [ImportProblem(_short(it.what), _short(it.why), it.reason) for it in listed]
        return ImportProgress(
            found=self.found,
            done=report.done if self.found is None else min(report.done, self.found),
            imported=report.added.get("conversation", 0),
            messages=report.added.get("message", 0),
            files=report.added.get("file", 0),
            already_there=report.there,
            empty=report.empty,
            left_out=len(report.left_out),
            problems=tuple(problems),
            notes=tuple(map(_short, report.notes[:MOST_LISTED])),
            conversations=tuple(self.links),
        )


class ImportRuns:
    """The use cases of imports."""

    def __init__(
        self,
        store: Store,
        agents: Agents,
        allowances: Allowances,
        user_events: UserEvents,
        exports: UploadedExports,
        new_import: NewImport,
        clock: Clock,
        caps: OperatorCaps,
    ) -> None:
        self._store = store
        self._agents = agents
        self._allowances = allowances
        self._user_events = user_events
        self.exports = exports
        self._new_import = new_import
        self._clock = clock
        self._caps = caps
        self._room = asyncio.Semaphore(MOST_AT_ONCE)
        self._running: dict[ImportId, tuple[_Running, asyncio.Task[None]]] = {}
        self._is_closing = False

    async def admit(self, user: User, agent_id: str | None) -> Agent:
        """Admits a new import before its file is read, as one of the user's uploads; returns its agent.

        Refuses a user whose last import still runs.
        """
        self._check_open()
        runs = await self._store.import_runs.latest(user.id)
        if running := next((it for it in runs if it.status is ImportStatus.RUNNING), None):
            raise _in_progress(running.id)
        await self._allowances.take_uploads(user.id, 1)
        return await (self._agents.get(user, agent_id) if agent_id else self._agents.default_of(user))

    async def begin(self, user: User, agent: Agent, file_name: str, file: BinaryIO) -> ImportRun:
        """Starts to import an uploaded export; it may be closed then. UnsupportedImport if it isn't one."""
        check_line(file_name, "fileName", most=MOST_NAME_CHARACTERS)
        with ExitStack() as stack:
            own = stack.enter_context(os.fdopen(os.dup(file.fileno()), "rb"))
            # Only to see whether it can be read: while it waits for its turn, it needs no process.
            async with self.exports.open(user.id, file_name, own):
                pass
            run = ImportRun(
                id=ImportId(new_uuid()),
                user_id=user.id,
                agent_id=agent.id,
                file_name=file_name,
                size=os.fstat(own.fileno()).st_size,
                status=ImportStatus.RUNNING,
                progress=ImportProgress(),
                started_at=self._clock(),
            )
            if other := await self._store.import_runs.begin(run, most=MOST_KEPT):
                raise _in_progress(other)
            if self._is_closing:  # since the upload began; nothing would wait for the run
                interrupted = ImportStatus.INTERRUPTED
                await self._store.import_runs.end(run.id, interrupted, run.progress, self._clock(), None)
            self._check_open()
            stack.pop_all()  # the run closes the file
            self._start(_Running(run, user, agent, own))
        return run

    async def get(self, user: User, import_id: str) -> ImportRun:
        """One of the user's latest imports."""
        id_ = ImportId(import_id.lower())
        run = await self._store.import_runs.get(user.id, id_) if is_uuid(import_id) else None
        if run is None:
            raise ImportNotFound
        return run

    async def latest(self, user: User) -> Sequence[ImportRun]:
        """The user's latest imports, newest first."""
        return await self._store.import_runs.latest(user.id)

    async def stop(self, user: User, import_id: str) -> ImportRun:
        """Stops an import soon, on whichever node it runs; what is imported stays."""
        run = await self.get(user, import_id)
        await self._store.import_runs.ask_to_stop(user.id, run.id)
        if here := self._running.get(run.id):
            here[0].stop()
        return run

    async def close(self) -> None:
        """Ends the imports on this node: they are interrupted."""
        self._is_closing = True
        tasks = [task for _, task in self._running.values()]
        for running, _ in self._running.values():
            running.is_cut_off = True
            running.stop()
        if tasks:
            await asyncio.wait(tasks, timeout=END_WITHIN_S)
            await end_tasks(*tasks)

    def _check_open(self) -> None:
        if self._is_closing:
            raise ShuttingDown("This server is shutting down. Try again in a moment.")

    def _start(self, running: _Running) -> None:
        task = asyncio.create_task(self._run(running))
        self._running[running.run.id] = running, task
        task.add_done_callback(lambda _: self._running.pop(running.run.id, None))

    async def _run(self, running: _Running) -> None:
        noting = asyncio.create_task(self._keep_noting(running))
        status, failure = ImportStatus.INTERRUPTED, None
        try:
            with suppress(SourceStopped):
                async with self._room_for(running):
                    if running.goes_on:
                        await self._import(running)
            status = ImportStatus.COMPLETED
            if not running.goes_on:
                status = ImportStatus.INTERRUPTED if running.is_cut_off else ImportStatus.STOPPED
        except ThreadkeepError as exc:
            reason = exc.reason if isinstance(exc, UnsupportedImport) else None
            status, failure = ImportStatus.FAILED, ImportFailure(exc.code, exc.message, reason)
        except Exception:
            log.exception("import %s failed", running.run.id)
            status, failure = ImportStatus.FAILED, ImportFailure(ThreadkeepError.code, UNEXPECTED)
        finally:
            await end_tasks(noting)
            with running.file:
                await self._store.import_runs.end(
                    running.run.id, status, running.progress, self._clock(), failure
                )
            await self._announce(running)

    @asynccontextmanager
    async def _room_for(self, running: _Running) -> AsyncGenerator[None]:
        """Waits until it is the run's turn, or until it is stopped."""
        entering = asyncio.create_task(self._room.acquire())
        stopping = asyncio.create_task(running.stopped.wait())
        try:
            await asyncio.wait((entering, stopping), return_when=asyncio.FIRST_COMPLETED)
            yield
        finally:
            await end_tasks(entering, stopping)
            if not entering.cancelled():
                self._room.release()

    async def _import(self, running: _Running) -> None:
        run = running.run
        async with self.exports.open(run.user_id, run.file_name, running.file) as source:
            running.source = source
            if not running.goes_on:
                return
            running.found = await source.count()
            await self._take(running, source)

    async def _take(self, running: _Running, source: ImportSource) -> None:
        rules = UsersImport(
            run_id=running.run.id,
            check_bytes=self._caps.check_bytes if self._caps.bytes else None,
            most_payload_bytes=self.exports.limits.conversation_bytes,
            most_messages=self._caps.conversation_messages,
            on_added=running.added,
            goes_on=lambda: running.goes_on,
        )
        taking = self._new_import(running.user, rules)
        running.report = taking.report
        report = await taking.take_conversations(source, running.agent)
        if report.left_out and not (report.added or report.there or report.empty) and running.goes_on:
            raise report.limit or UnsupportedImport(
                "not_an_export",
                f"{running.run.file_name} has no conversation that can be read: {report.left_out[0].why}.",
            )

    async def _keep_noting(self, running: _Running) -> None:
        """Stores a run's progress, announces it to the user's pages, and checks whether the run goes on."""
        while True:
            try:
                if not await self._store.import_runs.note(running.run.id, running.progress):
                    running.stop()
                await self._announce(running)
            except Exception:  # the next one may succeed; without any, the run would look dead
                log.warning("couldn't note the progress of import %s", running.run.id, exc_info=True)
            await asyncio.sleep(NOTE_EVERY_S)

    async def _announce(self, running: _Running) -> None:
        if added := running.unannounced[:]:
            created = UserEventType.CONVERSATION_CREATED
            await self._user_events.publish(*(UserEvent(it.user_id, created, it.id) for it in added))
            del running.unannounced[: len(added)]


def _in_progress(running: ImportId) -> ImportInProgress:
    return ImportInProgress(
        "Your last import is still running. Wait for it, or stop it.", details={"importId": running}
    )


def _short(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else text[: MOST_CHARACTERS - 1] + "…"
