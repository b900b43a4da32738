"""Agents that an agent runs: each is a scope of the turn, from a claim that begins it to one that ends it.

The key of the first is the scope of everything in between. What it begins is recorded at once, so that a
later run goes through the agent again, as through any other code.
"""

import asyncio
from collections.abc import Iterator

from msgspec.structs import replace

from threadkeep.domain.errors import ThreadkeepError
from threadkeep.domain.events import StepChanged
from threadkeep.domain.parts import StepStatus
from threadkeep.engine.code.claims import OpenClaim
from threadkeep.engine.code.running import RunningCode
from threadkeep.engine.journal import StepBegun
from threadkeep.engine.loop import Together
from threadkeep.wire.programs import AGENT_UNUSABLE, AgentClaim, AgentDone, AgentGranted, ProgramError

MOST_DEPTH = 5
"""How many agents can run one in another, besides the turn's own."""


class AgentCalls:
    """Begins and ends the agents that a program runs."""

    def __init__(self, code: RunningCode) -> None:
        self._code = code
        self._beginning = asyncio.Lock()

    async def begin(self, claim: AgentClaim, open_: OpenClaim) -> None:
        """Lets the program run another agent, if the turn's user may."""
        async with self._beginning:  # several at once begin in the order in which they were asked for
            await self._begin(claim, open_)

    async def _begin(self, claim: AgentClaim, open_: OpenClaim) -> None:
        code = self._code
        begun = code.begun(open_, claim.agent, "agent", "read")
        chain = code.agents.chain(claim.scope)
        if len(chain) >= MOST_DEPTH:
            names = " → ".join([*(it.name for it in reversed(chain)), claim.agent])
            message = f"Agents can call each other {MOST_DEPTH} deep; this would be one more: {names}."
            self._refuse(open_, begun, message)
            return
        try:
            found = await code.around.agents.find(claim.agent)
        except ThreadkeepError as exc:
            self._refuse(open_, begun, exc.message)
            return
        name = claim.agent if found.key is not None else found.name
        begun = replace(begun, name=name, agent_id=found.id, title=found.name)
        granted = AgentGranted(open_.key, found.name, found.key, found.version, found.most_rounds)
        code.agents.add(begun, code.now())
        code.end(await code.ok(open_, granted), _changed(begun, "running"), begun)

    def _refuse(self, open_: OpenClaim, begun: StepBegun, message: str) -> None:
        code = self._code
        error = ProgramError("AgentUnusable", message)
        code.outlet.emit(Together((begun,)))
        code.end(code.failed(open_, error, AGENT_UNUSABLE))

    async def end(self, claim: AgentDone, open_: OpenClaim) -> None:
        """Records what an agent has replied, or how it failed."""
        code = self._code
        began = code.agents.get(claim.scope)
        if began is None:
            error = ProgramError("AgentUnusable", "No agent of this scope runs.")
            code.end(code.failed(open_, error, AGENT_UNUSABLE))
            return
        ended_by = code.begun(open_, began.name, "agent_end", "read")
        took = code.agents.end(claim.scope, code.now())
        status: StepStatus
        if claim.error is not None:
            status, ended = "error", code.failed(open_, claim.error, duration_ms=took)
        elif bytes(claim.value):
            ended = await code.ok(open_, claim.value, duration_ms=took)
            status = "ok" if ended.status == "ok" else "error"
        else:
            status, ended = "cancelled", await code.ok(open_, None, duration_ms=took)
        code.end(ended, _changed(began, status, took), ended_by)

    def left_open(self) -> Iterator[StepChanged]:
        """How the agents have ended that ran when the turn ended."""
        for begun in self._code.agents.open:
            yield _changed(begun, "cancelled")


def _changed(begun: StepBegun, status: StepStatus, duration_ms: int | None = None) -> StepChanged:
    return StepChanged(
        step_id=begun.step_id,
        name=begun.name,
        kind="agent",
        status=status,
        duration_ms=duration_ms,
        parent_id=begun.parent_id,
        agent=begun.title,
    )
