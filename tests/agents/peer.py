"""A server in memory for runs of agents: it claims, orders and records as the real one does.

Its journal can be run again, from any of its positions.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import Raw

from threadkeep.agents import Agent
from threadkeep.agents.blocking import call_function
from threadkeep.agents.run import FunctionRun, note_task
from threadkeep.agents.threads import Threads
from threadkeep.engine.code.claims import Claims, Diverged, OpenClaim
from threadkeep.engine.journal import StepEnded
from threadkeep.wire.programs import (
    NOTHING,
    OUTCOME_UNKNOWN,
    Ack,
    AgentClaim,
    AgentDone,
    AskClaim,
    CallClaim,
    Cancel,
    Claim,
    ClaimFailed,
    ContentClaim,
    End,
    FromProgram,
    ModelClaim,
    ModelReply,
    Output,
    OutputItem,
    ProgramError,
    Result,
    Run,
    SaveClaim,
    Settled,
    Start,
    StartConversation,
    StartMessage,
    StartUser,
    StepClaim,
    StepDone,
    StepRepeats,
    TakeClaim,
    TextItem,
    UsageClaim,
    output_size,
)

encode = msgspec.json.encode


class Lost(Exception):
    """The node died at this position."""


class Paused(Exception):
    """The run waits for its user."""


@dataclass
class Journal:
    """What is stored of a turn."""

    writes: int = 0
    begun: dict[str, int] = field(default_factory=dict[str, int])
    ended: dict[str, StepEnded] = field(default_factory=dict[str, StepEnded])
    optional: dict[str, StepEnded] = field(default_factory=dict[str, StepEnded])
    shown: list[tuple[str, OutputItem]] = field(default_factory=list[tuple[str, OutputItem]])
    saved: dict[str, Raw] = field(default_factory=dict[str, Raw])
    repeated: list[str] = field(default_factory=list[str])
    """Steps that ran although their result was recorded."""

    @property
    def text(self) -> str:
        """What is shown in the end."""
        return "".join(item.text for _, item in self.shown if isinstance(item, TextItem))


@dataclass
class Script:
    """What the outside does."""

    text: str = "hello"
    answers: dict[str, Any] = field(default_factory=dict[str, Any])
    reply: Callable[[ModelClaim], ModelReply] = lambda _: ModelReply("a reply")
    call: Callable[[CallClaim], Raw | ClaimFailed] = lambda _: Raw(b"null")
    steering: list[list[str]] = field(default_factory=list[list[str]])
    taken: dict[str, Any] = field(default_factory=dict[str, Any])
    edits: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    """Arguments as their user changed them, by the step's name."""
    state: Raw = field(default_factory=lambda: NOTHING)
    acknowledges: bool = True
    lose_after: int | None = None
    """After how many writes the node dies."""


class ThreadPools:
    """Threads of one run."""

    def __init__(self) -> None:
        self.functions = Threads("test-function", 4)
        self.steps = Threads("test-step", 4)

    def functions_inside(self, depth: int) -> Threads:
        """Those of agents that others run."""
        return self.functions

    def agent(self, key: str) -> Agent | None:
        """No other agent runs here."""
        return None


class Peer:
    """The server's side of one run."""

    def __init__(self, agent: Agent, journal: Journal, script: Script) -> None:
        self.journal = journal
        self.script = script
        self.received: list[FromProgram] = []
        self.usage: list[UsageClaim] = []
        self.models: list[ModelClaim] = []
        self.claimed: list[Claim] = []
        self.is_new_output = asyncio.Event()
        self._messages: asyncio.Queue[FromProgram] = asyncio.Queue()
        self._claims = Claims(journal.ended.values(), journal.optional)
        self._claim_keys: dict[int, OpenClaim] = {}
        self._done: dict[int, asyncio.Future[StepDone]] = {}
        self._settled: dict[int, asyncio.Event] = {}
        self._delivered = 0
        """The claim whose result was delivered last without waiting for the program."""
        self._over: asyncio.Future[End] = asyncio.get_running_loop().create_future()
        self._said_again = [item for who, item in journal.shown if who == ""]
        self._tasks: set[asyncio.Task[None]] = set()
        self.run = FunctionRun(agent, self._start(agent), ThreadPools(), self._messages.put_nowait)

    def _start(self, agent: Agent) -> Start:
        return Start(
            turn="t1",
            run=1,
            agent=agent.key,
            version=agent.version,
            user=StartUser("u1", name="Ada"),
            conversation=StartConversation("c1", "Title"),
            message=StartMessage("m1", self.script.text),
            at=1_000,
            state=self.script.state,
            saved=dict(self.journal.saved),
        )

    async def end(self) -> End:
        """Runs the function to its end; raises Lost, Paused or Diverged."""
        asyncio.get_running_loop().set_task_factory(note_task)
        self.run.begin(call_function)
        self._spawn(self._serve())
        self._spawn(self._deliver())
        try:
            async with asyncio.timeout(20):
                return await asyncio.shield(self._over)
        except (Lost, Paused) as exc:
            self.run.receive(Cancel("pause" if isinstance(exc, Paused) else "lost"))
            await self._until_silent()
            raise
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def cancelled(self, reason: Any) -> End:
        """Cancels the run; its end."""
        self.run.receive(Cancel(reason))
        return await asyncio.shield(self._over)

    def send(self, message: Any) -> None:
        """Passes a message to the program."""
        self.run.receive(message)

    async def _until_silent(self) -> None:
        while not isinstance(await self._next_message(), End):
            pass

    async def _next_message(self) -> FromProgram:
        for task in self._tasks:
            task.cancel()
        return await self._messages.get()

    def _spawn(self, coro: Any) -> None:
        task = asyncio.get_running_loop().create_task(coro)
        self._tasks.add(task)
        task.add_done_callback(self._note)

    def _note(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) and not self._over.done():
            self._over.set_exception(error)

    async def _serve(self) -> None:
        while True:
            message = await self._messages.get()
            self.received.append(message)
            match message:
                case Output():
                    self._show(message)
                case Settled(re):
                    self._settled.setdefault(re, asyncio.Event()).set()
                case StepDone(re, value, error=error):
                    if (done := self._done.get(re)) is not None and not done.done():
                        done.set_result(message)
                    if not bytes(value) and error is None:
                        self._cancel(re)
                case SaveClaim():
                    self.claimed.append(message)
                    if self._claims.has_caught_up:
                        self._save(message)
                    self.send(Result(message.id, Raw(b"null"), settle=False))
                case UsageClaim(step=int()):
                    self.usage.append(message)
                case StepRepeats(re):
                    key = self._claim_keys[re].key
                    self.journal.shown = [it for it in self.journal.shown if it[0] != key]
                case End(status=status):
                    if status != "cancelled":
                        self._claims.check_end()
                    self._over.set_result(message)
                    return
                case _:
                    self._spawn(self._carry_out(message))

    def _cancel(self, re: int) -> None:
        opened = self._claims.cancel(re)
        is_unwanted = opened is not None and self._claims.is_due(opened)
        if is_unwanted or re == self._delivered:
            # Another run must not receive earlier what this one no longer waited for.
            opened = self._claim_keys[re]
            self.journal.ended[opened.key] = StepEnded(opened.key, "cancelled", self.journal.writes)
        if (settled := self._settled.get(re)) is not None:
            settled.set()

    def _show(self, output: Output) -> None:
        for item in output.items:
            if output.step is None and self._said_again:
                assert self._said_again.pop(0) == item
                continue
            who = "" if output.step is None else self._claim_keys[output.step].key
            self.journal.shown.append((who, item))
        self.is_new_output.set()
        if self.script.acknowledges:
            self.send(Ack(sum(map(output_size, output.items))))

    async def _deliver(self) -> None:
        while True:
            delivery = await self._claims.next()
            re = delivery.claim.id
            self._settled[re] = asyncio.Event()
            self._send_ended(re, delivery.ended, settles=delivery.settles)
            if delivery.settles:
                await self._settled[re].wait()
            else:
                self._delivered = re
            self._claims.delivered(delivery.claim)

    def _send_ended(self, re: int, ended: StepEnded, *, settles: bool) -> None:
        if ended.error is not None:
            self.send(ClaimFailed(re, ended.error, code=ended.code, at=ended.at, settle=settles))
        else:
            self.send(Result(re, ended.value, at=ended.at, settle=settles))

    async def _carry_out(self, claim: Claim) -> None:
        self.claimed.append(claim)
        assert not isinstance(claim, ContentClaim), "there are no files"
        name, hash_ = _identity(claim)
        opened = self._claim_keys[claim.id] = self._claims.add(claim.id, claim.scope, name, hash_)
        if (ended := self._claims.optional(opened.key)) is not None:
            self._send_ended(claim.id, ended, settles=False)
            self._claims.close(opened)
            return
        if self._claims.is_recorded(opened.key):
            return
        await self._claims.hold(opened.key)
        match claim:
            case StepClaim():
                await self._run_step(claim, opened)
            case _:
                answer = await self._answer(claim, opened)
                if isinstance(answer, ClaimFailed):
                    self._end(opened, answer.error, answer.code)
                else:
                    self._end(opened, answer)

    async def _run_step(self, claim: StepClaim, opened: OpenClaim) -> None:
        before = self.journal.begun.get(opened.key, 0)
        self.journal.shown = [it for it in self.journal.shown if it[0] != opened.key]
        if before and claim.effect == "write":
            self._end(opened, ProgramError("OutcomeUnknown", "It may have happened."), OUTCOME_UNKNOWN)
            return
        self.journal.begun[opened.key] = before + 1
        self._write()
        if opened.key in self.journal.ended:
            self.journal.repeated.append(opened.key)
        self._done[claim.id] = asyncio.get_running_loop().create_future()
        self.send(Run(claim.id, f"key-{opened.key}", before + 1, self.script.edits.get(claim.name)))
        done = await self._done[claim.id]
        if done.error is not None:
            self._end(opened, done.error)
        elif bytes(done.value):
            self._end(opened, done.value)
        else:
            self._record(StepEnded(opened.key, "cancelled", self.journal.writes))

    async def _answer(self, claim: Claim, opened: OpenClaim) -> Raw | ClaimFailed:
        match claim:
            case ModelClaim():
                self.models.append(claim)
                return Raw(encode(self.script.reply(claim)))
            case CallClaim():
                return self.script.call(claim)
            case AskClaim(message=message):
                if message not in self.script.answers:
                    raise Paused(message)
                return Raw(encode(self.script.answers[message]))
            case TakeClaim(what="steering"):
                return Raw(encode(self.script.steering.pop(0) if self.script.steering else []))
            case TakeClaim(what=what):
                return Raw(encode(self.script.taken.get(what, [])))
            case UsageClaim():
                self.usage.append(claim)
                return Raw(b"null")
            case AgentClaim() | AgentDone():
                raise AssertionError("no other agents run here")
            case StepClaim() | SaveClaim() | ContentClaim():
                raise AssertionError(
                    "steps run in the program, points are saved at once, and there are no files"
                )

    def _save(self, claim: SaveClaim) -> None:
        self.journal.saved[claim.scope] = claim.value
        inside = f"{claim.scope}/" if claim.scope else ""
        for key in [it for it in self.journal.ended if it.startswith(inside)]:
            self.journal.optional[key] = self.journal.ended.pop(key)
        self._write()

    def _end(self, opened: OpenClaim, outcome: Raw | ProgramError, code: str | None = None) -> None:
        at = 2_000 + self.journal.writes
        if opened.is_cancelled:
            self._record(StepEnded(opened.key, "cancelled", at))
        elif isinstance(outcome, ProgramError):
            self._record(StepEnded(opened.key, "error", at, error=outcome, code=code))
        else:
            self._record(StepEnded(opened.key, "ok", at, value=outcome))

    def _record(self, ended: StepEnded) -> None:
        self.journal.ended[ended.key] = ended
        self._write()
        self._claims.end(ended)

    def _write(self) -> None:
        self.journal.writes += 1
        if self.script.lose_after is not None and self.journal.writes >= self.script.lose_after:
            raise Lost


def _identity(claim: Claim) -> tuple[str, str]:
    match claim:
        case StepClaim():
            return claim.name, claim.hash
        case ModelClaim():
            return "model", encode(claim.messages).decode().replace("/", "|")
        case AskClaim():
            return "ask", claim.message
        case TakeClaim():
            return "take", claim.what
        case CallClaim():
            return claim.tool, claim.call_id or encode(claim.arguments).decode()
        case _:
            return type(claim).__name__, ""


async def run_once(agent: Agent, **script: Any) -> tuple[End, Journal]:
    """Runs an agent to its end."""
    journal = Journal()
    return await Peer(agent, journal, Script(**script)).end(), journal


@dataclass
class Everywhere:
    """What came of losing the node after every write, and running the function again."""

    whole: End
    journal: Journal
    differ: list[str]
    repeated: list[str]
    unknown: int
    positions: int


async def lose_everywhere(agent: Agent, **given: Any) -> Everywhere:
    """Runs an agent; then, for every write, runs it, loses it there, and runs it again."""
    whole, journal = await run_once(agent, **given)
    found = Everywhere(whole, journal, [], [], 0, journal.writes)
    for position in range(1, journal.writes + 1):
        again = Journal()
        with suppress(Lost):
            await Peer(agent, again, Script(**given, lose_after=position)).end()
        try:
            end: End | Diverged = await Peer(agent, again, Script(**given)).end()
        except (Diverged, TimeoutError) as exc:
            found.differ.append(f"{position}: {exc!r}")
            continue
        is_unknown = any(it.code == OUTCOME_UNKNOWN for it in again.ended.values())
        found.unknown += is_unknown
        found.repeated += again.repeated
        if not is_unknown and (end.text, end.status, again.text) != (whole.text, whole.status, journal.text):
            found.differ.append(f"{position}: {end} {again.text!r}")
    return found


async def fails(agent: Agent, **script: Any) -> End:
    """The end of an agent that is expected to fail."""
    end, _ = await run_once(agent, **script)
    assert end.status == "failed", end
    assert end.error is not None
    return end
