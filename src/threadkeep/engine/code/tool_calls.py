"""Tool calls of a program: of the agent's servers, of the client, and of its own functions that a model or
its user sees as tools.
"""

import asyncio
import dataclasses
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from threadkeep.domain.events import ApprovalRequest, ToolResultStored
from threadkeep.domain.ids import PayloadId, derived_uuid
from threadkeep.domain.mcp import AGENT
from threadkeep.domain.payload import Lost
from threadkeep.domain.tool_rules import Rules, ToolAccess, ToolEffect, ToolRule, access_of
from threadkeep.engine.batch import Batch
from threadkeep.engine.code.claims import OpenClaim
from threadkeep.engine.code.means import AgentMeans
from threadkeep.engine.code.running import RunningCode
from threadkeep.engine.code.steps import Steps, unknown
from threadkeep.engine.ending import UnfinishedCall, interrupted
from threadkeep.engine.journal import Dispatched, InputAwaited, StepBegun, StepEnded
from threadkeep.engine.loop import Together
from threadkeep.engine.model_call import FinishedCall
from threadkeep.engine.replay import OpenBatch
from threadkeep.engine.tools import clean_use
from threadkeep.engine.turn_tools import TurnTools
from threadkeep.ports.gateway import ToolResultBlock, ToolUse
from threadkeep.ports.tools import GivenInput, Returned, Tool, Unavailable
from threadkeep.wire.programs import (
    DENIED,
    OUTCOME_UNKNOWN,
    CallClaim,
    CallReturned,
    Effect,
    ProgramError,
    StepClaim,
    StepDone,
    bare_name,
)

LEFT = "The agent's code no longer waits for this call."
TOOL_FAILED = "The tool failed."

REMOTE_CALL = "remote_"
"""What the ids of calls begin with that another server makes of its own tools."""

Ran = Callable[[Mapping[str, Any]], Awaitable[StepDone]]


class ProgramTool:
    """One function of a program as a session of tools."""

    def __init__(self, tool: Tool, ran: Ran) -> None:
        self._tool = tool
        self._ran = ran
        self.done: StepDone | None = None
        """What the function came to."""

    async def list(self) -> tuple[Sequence[Tool], Sequence[Unavailable]]:
        """The function."""
        return (self._tool,), ()

    async def call(
        self, tool: Tool, arguments: Mapping[str, Any], *, key: str, given: GivenInput | None = None
    ) -> AsyncGenerator[Returned]:
        """Runs it where the program is. Its exception is for the program; the user and models hear less."""
        done = self.done = await self._ran(arguments)
        if done.error is not None:
            yield Returned("error", error=done.error.message if done.shown else TOOL_FAILED)
        else:
            yield Returned("ok", result=msgspec.json.decode(bytes(done.shows) or done.value))


class ToolCalls:
    """Carries out a program's tool calls, also several at once, under the agent's rules."""

    def __init__(self, code: RunningCode, steps: Steps) -> None:
        self._code = code
        self._steps = steps
        self._opened: dict[int, asyncio.Task[None]] = {}
        self._calls: dict[str, UnfinishedCall] = {it.tool_call_id: it for it in code.state.open_calls}
        self._names: dict[int, str] = {}
        """The tool calls that steps of the program run as, by the claims' numbers."""
        self.waiting: set[str] = set()
        """The calls that wait for the user."""

    @property
    def open_calls(self) -> Sequence[UnfinishedCall]:
        """The calls that have no result yet."""
        return list(self._calls.values())

    def call_of(self, id_: int) -> str | None:
        """The tool call that a step of the program runs as."""
        return self._names.get(id_)

    async def open(self, scope: str) -> None:
        """Lists the tools of the servers of a scope's agent, once."""
        means = await self._code.agents.means(scope)
        if (opened := self._opened.get(id(means))) is None:
            opened = self._opened[id(means)] = asyncio.create_task(self._open(means))
        await asyncio.shield(opened)

    async def _open(self, means: AgentMeans) -> None:
        for notice in await means.tools.open(frozenset()):
            if notice not in self._code.state.noticed:
                self._code.outlet.emit(notice)

    async def call(self, claim: CallClaim, open_: OpenClaim) -> None:
        """Calls a tool of the agent's servers, or of the client."""
        code = self._code
        means = await code.agents.means(claim.scope)
        await self.open(claim.scope)
        begun = code.begun(open_, claim.tool, "tool", "write")
        use = clean_use(ToolUse(self.id_of(claim, open_), claim.tool, claim.arguments))
        await self._carry_out(_Calling(open_, begun, use, means.tools, means.result_tokens))

    async def step(self, claim: StepClaim, open_: OpenClaim) -> None:
        """Runs a function of the program that is shown as a tool's call."""
        code = self._code
        name = bare_name(claim.name)
        means = await code.agents.means(claim.scope)
        tool = Tool(
            AGENT,
            name,
            claim.title or "",
            claim.schema or {"type": "object"},
            0,  # the program keeps its own limit, and records how that ended
            is_own=True,
            effect=ToolEffect(claim.effect),
            title=code.named(claim.scope, claim.title or f"Call {name}"),
        )
        use = clean_use(ToolUse(self.id_of(claim, open_), name, claim.arguments or {}))
        begun = replace(code.begun(open_, name, "tool", claim.effect), title=claim.title)
        before = code.state.calls.get(use.id)
        attempt = before.dispatch.attempt + 1 if before and before.dispatch else 1

        async def ran(arguments: Mapping[str, Any]) -> StepDone:
            return await self._steps.run(claim, open_, begun, attempt, dict(arguments))

        session = ProgramTool(tool, ran)
        rules = made_stricter(means.rules, claim)
        tools = TurnTools(means.toolbox(session), code.around.requests, rules)
        await tools.open(frozenset())
        await self._carry_out(_Calling(open_, begun, use, tools, means.result_tokens, claim, session))

    def id_of(self, claim: StepClaim | CallClaim, open_: OpenClaim) -> str:
        """The id of a call: the model's, or one that is the same in every run."""
        if claim.call_id:
            return claim.call_id
        turn = self._code.turn
        return f"call_{derived_uuid(turn.started_at, turn.id, open_.key).replace('-', '')}"

    def note_remote(self, called: UnfinishedCall) -> None:
        """Another server calls a tool of its own; if it says nothing of the result, the turn's end does."""
        self._calls[called.tool_call_id] = called

    def end_remote(self, id_: str) -> UnfinishedCall | None:
        """Such a call has ended; None if there is none, or it is the program's."""
        return self._calls.pop(id_, None) if id_.startswith(REMOTE_CALL) else None

    def give_up(self, id_: str, open_: OpenClaim) -> None:
        """Ends a call, by its id, that the program no longer waits for."""
        code = self._code
        called = self._calls.pop(id_, None)
        ended = code.failed(open_, None, status="cancelled", is_progress=True)
        code.end(ended, *(() if called is None else (interrupted(called, LEFT),)))

    async def _carry_out(self, calling: "_Calling") -> None:
        code, open_, begun, use = self._code, calling.open, calling.begun, calling.use
        code.voices.restart(begun.step_id)
        called = dataclasses.replace(await calling.tools.called(use), parent_id=begun.parent_id)
        self._calls[use.id] = called
        code.outlet.emit(Together((begun,) if use.id in code.state.calls else (begun, called)))
        if calling.step is not None:
            self._names[calling.step.id] = use.id
        share = code.requests.share()
        try:
            open_batch = OpenBatch(FinishedCall(0, "tool_use", (use,)), code.state.calls)
            batch = await calling.tools.batch(
                open_batch,
                code.timer,
                room=calling.room,
                user_requests=share,
                wait_for_user=partial(self._wait, use.id),
            )
            await self._run(calling, batch)
        except asyncio.CancelledError:
            if open_.is_given_up:
                self.give_up(use.id, open_)
            code.voices.end(begun.step_id)
            raise
        finally:
            share.close()
        await code.stop_speaking(begun.step_id)

    async def _wait(
        self, call_id: str, requests: frozenset[str], woken: Callable[[], Awaitable[None]]
    ) -> None:
        self.waiting.add(call_id)
        with self._code.activity.waiting(requests):
            await woken()
        self.waiting.discard(call_id)

    async def _run(self, calling: "_Calling", batch: Batch) -> None:
        outlet = self._code.outlet
        async with aclosing(batch.run()) as steps:
            async for step in steps:
                match step:
                    case Dispatched() | InputAwaited() | ApprovalRequest():
                        await outlet.store(step)
                    case ToolResultStored():
                        ((block, *_),) = batch.reads()
                        self._code.end(await self._ended(calling, step, block), step, is_urgent=True)
                        del self._calls[calling.use.id]
                    case _:
                        outlet.emit(step)

    async def _ended(
        self, calling: "_Calling", stored: ToolResultStored, reads: ToolResultBlock
    ) -> StepEnded:
        """What the program receives of a call: of its own function its value, of a tool what it returned."""
        code, open_ = self._code, calling.open
        is_progress = calling.effect == "write" or calling.asked
        took = stored.duration_ms
        if calling.step is None:
            value = CallReturned(stored.status, reads.content, await self._result(stored), stored.error)
            return await code.ok(open_, value, duration_ms=took, is_progress=is_progress)
        done = calling.session.done if calling.session else None
        match stored.status:
            case "ok" if done is not None:
                return await code.ok(open_, done.value, duration_ms=took, is_progress=is_progress)
            case "error" if done is not None and done.error is not None:
                return code.failed(open_, done.error, duration_ms=took, is_progress=is_progress)
            case "denied":
                error, code_ = ProgramError("Denied", stored.error or ""), DENIED
                return code.failed(open_, error, code_, is_progress=True)
            case "unknown":
                error = unknown(code, calling.use.name)
                return code.failed(open_, error, OUTCOME_UNKNOWN, status="unknown", is_progress=True)
            case _:
                error = ProgramError("StepFailed", stored.error or TOOL_FAILED)
                return code.failed(open_, error, duration_ms=took, is_progress=is_progress)

    async def _result(self, stored: ToolResultStored) -> Any:
        """A result as a whole, wherever it is stored."""
        if (ref := stored.refs.get("result")) is None:
            return stored.result
        content = (await self._code.around.load([PayloadId(ref)]))[PayloadId(ref)]
        return stored.result if isinstance(content, Lost) else Raw(content)


@dataclass(frozen=True, slots=True)
class _Calling:
    """A call on its way to its tool."""

    open: OpenClaim
    begun: StepBegun
    use: ToolUse
    tools: TurnTools
    room: int
    """How many tokens of the result a model reads at most."""
    step: StepClaim | None = None
    """The function of the program that it runs, if it is one."""
    session: ProgramTool | None = None

    @property
    def asked(self) -> bool:
        """Whether its user decides on it."""
        return self.step is not None and self.step.access == "ask"

    @property
    def effect(self) -> Effect:
        """What a second call would do."""
        return self.step.effect if self.step else "write"


def made_stricter(rules: Rules, claim: StepClaim) -> Rules:
    """The owner's rules, and what the code itself asks for: neither can allow what the other doesn't."""
    name = bare_name(claim.name)
    access = access_of(rules, AGENT, name)
    if access is ToolAccess.ALLOW and claim.access == "ask":
        access = ToolAccess.ASK
    return {**rules, f"{AGENT}.{name}": ToolRule(access, ToolEffect(claim.effect))}
