"""Checks after turns of agents in code whether their programs do the same when they run again."""

import asyncio
import logging
from collections.abc import Sequence
from functools import partial

from threadkeep.aside import LogWork
from threadkeep.domain.agent import BUILT_IN, Agent
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.events import Done, Failed, LogChunk, Terminal, TurnEvent
from threadkeep.domain.turn import Turn
from threadkeep.domain.user import User
from threadkeep.engine.code import codes
from threadkeep.engine.code.check import difference
from threadkeep.engine.code.replay import CodeState, ReplayingCode
from threadkeep.log.format import decode_entries
from threadkeep.services.replies.program_starts import ProgramStarts
from threadkeep.storage.store import Store
from threadkeep.tasks import end_tasks

log = logging.getLogger("threadkeep.agents")

MOST_AT_ONCE = 8
"""How many turns are checked at a time; what ends meanwhile is not."""
MOST_S = 300.0
"""How long a check may take if the agent has no limit of its own."""
NO_RUN = 0
"""The number of a check among a turn's runs, which begin with 1."""

_OF_PROGRAM = frozenset({codes.AGENT_FAILED, codes.OUTCOME_UNKNOWN})
"""The errors that say how a program has ended, and not what has ended it."""


class CodeChecks:
    """Runs programs once more, against what their turns have recorded."""

    def __init__(self, store: Store, starts: ProgramStarts, *, is_on: bool) -> None:
        self._store = store
        self._starts = starts
        self._is_on = is_on
        self._running: set[asyncio.Task[None]] = set()

    def begin(self, user: User, agent: Agent, turn: Turn, conversation: Conversation) -> None:
        """Checks a turn that has ended, if the settings say so; nobody waits for that."""
        if self._is_on and len(self._running) < MOST_AT_ONCE:
            limit_s = agent.settings.generation_timeout_s
            task = asyncio.create_task(self._report(user, turn, conversation, limit_s))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def close(self) -> None:
        """Ends all checks."""
        await end_tasks(*self._running)

    async def difference(
        self, user: User, turn: Turn, conversation: Conversation, limit_s: float
    ) -> str | None:
        """What a turn's program does otherwise when it runs again; None if it does the same.

        Also None if the program did not end the turn itself: then nobody knows what it would have done.
        """
        state, end = await self._read(turn)
        code = self._starts.code_of(turn)
        if code is None or code.key.startswith(BUILT_IN) or end is None or not _is_of_program(end):
            return None
        start = await self._starts.prepare(user, turn, conversation, state, code, run=NO_RUN, is_check=True)
        program = self._starts.run(start)
        try:
            async with asyncio.timeout(limit_s or MOST_S):
                value = partial(self._store.states.value, turn.id)
                contents = partial(self._store.payloads.load, conversation.id)
                found = await difference(turn, program, state, value, end, contents)
        finally:
            await program.close()
        return found and f"{code.key} isn't deterministic: {found}"

    async def _report(self, user: User, turn: Turn, conversation: Conversation, limit_s: float) -> None:
        try:
            found = await self.difference(user, turn, conversation, limit_s)
        except TimeoutError:
            log.warning("couldn't check turn %s: the agent's code took too long to run again", turn.id)
        except Exception:
            log.exception("couldn't check turn %s", turn.id)
        else:
            if found is not None:
                log.error("turn %s: %s", turn.id, found)

    async def _read(self, turn: Turn) -> tuple[CodeState, Terminal | None]:
        """What a turn has recorded, and how it ended."""
        replaying, work = _Reading(), LogWork()
        async for chunks in self._store.log.pages(turn.id, 0):
            await work.take(replaying.add, chunks, at_end=False)
        return await work.end(replaying.code.state, {}), replaying.end


class _Reading:
    """What a turn's log says."""

    def __init__(self) -> None:
        self.code = ReplayingCode()
        self.end: Terminal | None = None

    def add(self, chunks: Sequence[LogChunk]) -> None:
        """The next part of it."""
        for chunk in chunks:
            for entry in decode_entries(chunk.events):
                self.code.add(entry)
                if isinstance(entry, TurnEvent) and isinstance(entry.body, Done | Failed):
                    self.end = entry.body


def _is_of_program(end: Terminal) -> bool:
    match end:
        case Done(stop_reason="end_turn"):
            return True
        case Failed(code):
            return code in _OF_PROGRAM
        case _:
            return False
