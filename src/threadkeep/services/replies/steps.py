"""Steps of agents in code: what happened in a turn, for its user, and without content for admins."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import msgspec

from threadkeep.aside import LogWork
from threadkeep.domain.errors import Forbidden, TurnNotFound
from threadkeep.domain.events import LogChunk
from threadkeep.domain.ids import AgentId, TurnId, is_uuid
from threadkeep.domain.turn import Turn
from threadkeep.domain.user import User
from threadkeep.engine.recorded_steps import (
    RecordedStep,
    RecordedSteps,
    StepRecorder,
    steps_of_parts,
)
from threadkeep.log.format import DAMAGED, decode_entries
from threadkeep.log.replies import written_so_far
from threadkeep.services.approvals import request_id_of
from threadkeep.services.turns import Turns
from threadkeep.storage.store import Store

log = logging.getLogger("threadkeep.turns")

MOST_VALUES_BYTES = 8 * 1024 * 1024
"""Of the large results on one page; a note replaces the others."""


@dataclass(frozen=True, slots=True)
class ShownSteps:
    """A turn's steps, and whether the reader may see what is inside: results, errors, hidden ones."""

    turn: Turn
    recorded: RecordedSteps
    is_open: bool
    closed: frozenset[str] = frozenset()
    """The agents that ran inside the turn, and into which the reader may not see."""

    def shows(self, step: RecordedStep) -> bool:
        """Whether the reader may see what is inside a step."""
        return self.is_open and self.closed.isdisjoint(step.agents)


class Steps:
    """The use cases of steps."""

    def __init__(self, store: Store, turns: Turns) -> None:
        self._store = store
        self._turns = turns

    async def of(self, user: User, turn_id: str) -> ShownSteps:
        """The steps of one of the user's turns."""
        turn = await self._turns.get(user, turn_id)
        conversation = await self._store.conversations.get(user.id, turn.conversation_id)
        agent = await self._store.agents.get(conversation.agent_id) if conversation else None
        is_open = agent is not None and agent.is_open_to(user)
        recorded = await self._recorded(turn)
        closed = await self._closed_to(user, recorded) if is_open else frozenset[str]()
        return ShownSteps(turn, recorded, is_open, closed)

    async def _closed_to(self, user: User, recorded: RecordedSteps) -> frozenset[str]:
        ids = {it for step in recorded.steps for it in step.agents}
        agents = {it: await self._store.agents.get(AgentId(it)) for it in ids}
        return frozenset(it for it, agent in agents.items() if agent is None or not agent.is_open_to(user))

    async def for_admin(self, user: User, turn_id: str) -> ShownSteps:
        """The steps of any user's turn."""
        if not user.is_admin:
            raise Forbidden("Only an admin can see the steps of other users' turns.")
        turn = await self._store.turns.find(TurnId(turn_id.lower())) if is_uuid(turn_id) else None
        if turn is None:
            raise TurnNotFound
        return ShownSteps(turn, await self._recorded(turn), is_open=False)

    async def values(self, turn: Turn, steps: Sequence[RecordedStep]) -> Mapping[str, bytes]:
        """The large results of some steps, as JSON; a note replaces one that is gone or would be too much."""
        found: dict[str, bytes] = {}
        left = MOST_VALUES_BYTES
        for step in steps:
            if step.ref is None:
                continue
            if (step.size or 0) > left:
                found[step.ref] = _unavailable("There is too much on this page; ask for fewer steps at once.")
                continue
            content = await self._store.states.value(turn.id, step.ref)
            left -= len(content or b"")
            found[step.ref] = _unavailable("The result is gone.") if content is None else _intact(content)
        return found

    async def _recorded(self, turn: Turn) -> RecordedSteps:
        try:
            journaled = await self._journaled(turn)
        except DAMAGED as exc:
            log.error("couldn't read the steps of turn %s: %s", turn.id, exc)
            journaled = None
        if journaled is not None:
            return journaled
        reply = await self._store.messages.get(turn.conversation_id, turn.assistant_message_id)
        if reply is None:
            raise TurnNotFound
        return steps_of_parts((await written_so_far(self._store.log, reply)).parts)

    async def _journaled(self, turn: Turn) -> RecordedSteps | None:
        """What log and journal say; None if they are trimmed, or the agent isn't in code."""
        recorder, work = StepRecorder(partial(request_id_of, turn)), LogWork()

        def add(chunks: Sequence[LogChunk]) -> None:
            for chunk in chunks:
                for entry in decode_entries(chunk.events):
                    recorder.add(entry)

        async for chunks in self._store.log.pages(turn.id, 0):
            await work.take(add, chunks, at_end=False)
        if not recorder.is_of_program:
            return None
        return await work.end(partial(recorder.steps, is_over=not turn.is_active))


def _intact(content: bytes) -> bytes:
    try:
        msgspec.json.decode(content)
    except msgspec.DecodeError:
        return _unavailable("The result is damaged.")
    return content


def _unavailable(reason: str) -> bytes:
    return msgspec.json.encode({"unavailable": True, "reason": reason})
