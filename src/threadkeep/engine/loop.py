"""One turn: model, tools, model … until the model has replied, from any state of the turn."""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any

from threadkeep.context.attachments import files_in, with_contents
from threadkeep.context.call_ids import CallIds
from threadkeep.context.estimates import estimate_request_tokens
from threadkeep.context.outputs import with_repair
from threadkeep.context.request import TOKENS_KEPT_FOR_THE_REPLY, BuiltRequest
from threadkeep.domain.approval import ApprovalAction
from threadkeep.domain.errors import DatabaseAway, OutputInvalid, ThreadkeepError
from threadkeep.domain.events import (
    ApprovalResponse,
    EventBody,
    IterationRestart,
    IterationStart,
    Notice,
    Retrieval,
    Terminal,
    ToolCalled,
    ToolResultStored,
    TurnResumed,
    UsageReported,
    UserMessage,
)
from threadkeep.domain.ids import PayloadId
from threadkeep.domain.message import Usage
from threadkeep.domain.payload import Lost
from threadkeep.domain.receipt import TurnReceipt
from threadkeep.domain.turn import Turn
from threadkeep.engine.asking import ModelAsking
from threadkeep.engine.batch import Paused
from threadkeep.engine.ending import (
    MAX_ITERATIONS,
    UnfinishedCall,
    completed,
    failed,
    interrupted,
    last_events,
    stopped,
)
from threadkeep.engine.journal import Dispatched, JournalEntry
from threadkeep.engine.model_call import FinishedCall, ModelCall, with_user_text
from threadkeep.engine.outputs import CheckOutput, cannot_be_repaired, invalid, output_in, text_of
from threadkeep.engine.recorded_calls import RecordedTools
from threadkeep.engine.replay import NEW_TURN, OpenBatch, TurnState
from threadkeep.engine.spending import FreeSpending, ModelSpending
from threadkeep.engine.steering import Steering, nobody_steers
from threadkeep.engine.stop import Stop, Stopped, TurnLost
from threadkeep.engine.timer import TurnTimer
from threadkeep.engine.tools import clean_use
from threadkeep.engine.turn_models import TurnModels
from threadkeep.engine.turn_tools import TurnTools
from threadkeep.ports.gateway import (
    ModelMessage,
    ModelRequest,
    ToolSpec,
    ToolUse,
)

log = logging.getLogger("threadkeep.engine")

NO_LAST_REPLY = (
    "The agent reached its limit of tool rounds before it replied with the JSON that was asked for."
)
BROKE_OFF = "The model's reply broke off before the tool was called."


@dataclass(frozen=True, slots=True)
class TurnLimits:
    """A turn's time limit; 0 means no limit."""

    max_iterations: int
    generation_timeout_s: float
    hands_off: bool = True
    """Whether another node can resume the turn; if not, it ends with its process."""


@dataclass(frozen=True, slots=True)
class Pause:
    """The turn waits for its user to decide the requests with these ids."""

    requests: frozenset[str]


@dataclass(frozen=True, slots=True)
class HandOff:
    """Another node resumes the turn from its log."""


@dataclass(frozen=True, slots=True)
class Together:
    """Entries that are stored in one commit, or not at all, such as the end of a model call."""

    entries: tuple[EventBody | JournalEntry, ...]
    is_before_effect: bool = False
    """Whether something takes effect as soon as they are stored, which only the turn's owner may do."""
    is_progress: bool = False
    """Whether losing the node after them is a first loss again."""
    is_urgent: bool = False
    """Whether they are stored as soon as possible, though nothing waits for that."""


@dataclass(frozen=True, slots=True)
class StateLeft:
    """What a program keeps with its reply; stored with the turn's end."""

    state: bytes


TurnStep = EventBody | JournalEntry | Together | TurnReceipt | StateLeft | Pause | HandOff
"""A turn's output: entries for its log or journal, its receipt, or a sign that it continues later."""

LoadContents = Callable[[Iterable[PayloadId]], Awaitable[Mapping[PayloadId, bytes | Lost]]]
"""Reads files of the conversation."""


async def nothing_stored(ids: Iterable[PayloadId]) -> Mapping[PayloadId, bytes | Lost]:
    """For conversations without files."""
    return {}


Build = Callable[[Sequence[ToolSpec]], Awaitable[BuiltRequest | ModelRequest]]
"""Builds the first request, once the tools are known; one without a receipt where none is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What runs a model, in a turn or outside any: models, tools, limits, who pays, files, signals."""

    models: TurnModels
    tools: TurnTools | RecordedTools
    limits: TurnLimits
    stop: Stop = field(default_factory=Stop)
    spending: ModelSpending = field(default_factory=FreeSpending)
    load: LoadContents = nothing_stored
    steering: Steering = nobody_steers
    asks_again: bool = True
    """Whether a reply that broke off is asked for again; not in a rerun."""
    after_reply: Steering = nobody_steers
    """What the user says to a reply, which then isn't the last; only in a rerun."""
    check_output: CheckOutput | None = None
    """Checks the last reply against the schema that its request asks for; a rerun shows what it is."""
    tool_choice: str | None = None
    """The tool that the first model call must make, or "" for any; None: the model decides."""


async def run_turn(
    turn: Turn,
    build: Build,
    around: Surroundings,
    *,
    state: TurnState = NEW_TURN,
    opening: Sequence[Notice | Retrieval | TurnResumed] = (),
) -> AsyncGenerator[TurnStep]:
    """Runs a turn from its current state, step by step.

    It ends in exactly one Done or Failed, unless it pauses or is handed off. `opening` are the events before
    it: notices, passages found, or that it is resumed.
    """
    for event in opening:
        yield event
    limits, stop = around.limits, around.stop
    timer = TurnTimer(limits.generation_timeout_s, state.ran_ms / 1000, lambda: stop.request("timeout"))
    run = _Run(turn, build, around, state, timer)
    steps = run.steps()
    try:
        while True:
            yield await stop.guard(steps.__anext__)
    except StopAsyncIteration:
        end = completed(turn, stop_reason=run.stop_reason, has_spoken=run.has_spoken, output=run.output)
    except Paused as exc:
        end = Pause(exc.requests)
    except Stopped as exc:
        is_handed_off = exc.reason == "hand_off" and limits.hands_off
        timeout_s = limits.generation_timeout_s
        end = HandOff() if is_handed_off else stopped(turn, exc.reason, timeout_s=timeout_s)
    except TurnLost:
        raise
    except ThreadkeepError as exc:
        if isinstance(exc, DatabaseAway) and limits.hands_off:
            raise  # as if this node had died: the turn is resumed from its log
        end = failed(exc)
    except Exception as exc:
        log.exception("turn %s failed", turn.id)
        end = failed(exc)
    finally:
        timer.stop()
        await steps.aclose()
        await run.asking.settle()
    if isinstance(end, Pause | HandOff):
        yield end
        return
    if stop.reason == "expire":
        for request_id in state.open_requests:
            yield ApprovalResponse(request_id, ApprovalAction.EXPIRE)
    for event in run.last_events(end):
        yield event


class _Run:
    """A running turn: its text, requests and usage so far."""

    def __init__(
        self, turn: Turn, build: Build, around: Surroundings, state: TurnState, timer: TurnTimer
    ) -> None:
        self._turn = turn
        self._build = build
        self._around = around
        self._models = around.models
        self._tools = around.tools
        self._limits = around.limits
        self._state = state
        self._timer = timer
        self._request = state.request or ModelRequest("", "", ())
        self._restart_from = state.restart_from
        self._batch = state.batch
        """The tool calls of the model's last reply, until all have results."""
        self._reply: tuple[ModelMessage, ...] = ()
        """The model's last reply, if it calls no tools."""
        self._spent = Usage(estimate_request_tokens(self._request), 0)
        self._iteration = state.iteration
        self.asking = ModelAsking(around.models, around.spending, unreported=state.unreported)
        self._call_ids = CallIds(())
        self._open_calls: dict[str, UnfinishedCall] = {it.tool_call_id: it for it in state.open_calls}
        self._usage = state.usage
        self.stop_reason = state.stop_reason or "end_turn"
        """Why the model stopped, or why it wasn't called again."""
        self.has_spoken = state.has_spoken
        """Whether the reply has anything to read."""
        self.output: Any = None
        """The reply as a value, if that is what was asked for."""
        self._was_refused = state.was_refused
        """Whether a reply wasn't the JSON that was asked for: a second one fails the turn."""
        self._asks_again = False
        """Whether the model is to be called again at once, because its last reply was refused."""

    async def steps(self) -> AsyncGenerator[EventBody | JournalEntry | Together | TurnReceipt]:
        """The normal course of a turn."""
        if self._state.stop_reason is not None:  # only the end is missing
            self._take_output(self._state.last_text)
            return
        for notice in await self._tools.open(self._state.unknown):
            if notice not in self._state.noticed:
                yield notice
        if self._state.is_new:
            built = await self._build(self._tools.specs)
            self._request = built if isinstance(built, ModelRequest) else built.request
            if isinstance(built, BuiltRequest):
                yield TurnReceipt(self._turn.id, self._turn.conversation_id, built.receipt, built.texts)
        self._call_ids = CallIds(self._request.messages, self._tools.taken_ids)
        while True:
            if self._batch is None:
                async with aclosing(self._ask_model()) as asked:
                    async for step in asked:
                        yield step
            if self._batch is None and not await self._hear_more():
                return
            if self._limits.max_iterations and self._iteration >= self._limits.max_iterations:
                self.stop_reason, most = MAX_ITERATIONS, self._iteration
                notice = Notice("MAX_ITERATIONS", f"The agent has reached its limit of {most} tool rounds.")
                if notice not in self._state.noticed:
                    yield notice
                if self._is_checked:
                    raise OutputInvalid(NO_LAST_REPLY)
                return
            if self._batch is not None:
                async with aclosing(self._use_tools(self._batch)) as used:
                    async for step in used:
                        yield step
                self._batch = None

    async def _ask_model(self) -> AsyncGenerator[EventBody | JournalEntry | Together]:
        """One model call, or an interrupted one again; ends with its usage."""
        self._check_boundary()
        for event in await self._begin_call():
            yield event
        await self._load_contents()
        asks_again = self._around.asks_again
        while True:
            reply = self.asking.reply(self._asked(), self._call_tool, self._restart, asks_again=asks_again)
            async with aclosing(reply) as said:
                async for step in said:
                    if isinstance(step, ModelCall):
                        yield await self._finish(step)
                    else:
                        yield step
            if not self._asks_again:
                return
            self._asks_again = False
            self._check_boundary()

    def _asked(self) -> ModelRequest:
        """The request; which tool the model must call is said for the first call only."""
        choice, names = self._around.tool_choice, [it.name for it in self._request.tools]
        is_first = self._iteration == 1 and not self._was_refused
        if choice is None or not is_first or not names or choice not in ("", *names):
            return self._request
        return replace(self._request, tool_choice=choice)

    @property
    def _is_checked(self) -> bool:
        """Whether the last reply must be JSON of a schema."""
        return self._request.output is not None and self._around.check_output is not None

    async def _problem(self, call: FinishedCall) -> str | None:
        """Why a reply isn't the JSON that was asked for. A model may refuse to give it."""
        check, schema = self._around.check_output, self._request.output
        if check is None or schema is None or call.tool_uses or call.stop_reason == "refusal":
            return None
        return await check(schema, text_of(call))

    def _refuse(self, call: FinishedCall, problem: str) -> Together:
        """Asks for a reply again, once; what it has said no longer counts."""
        if self._was_refused:
            raise invalid(problem)
        if (error := cannot_be_repaired(call, problem)) is not None:
            raise error
        self._was_refused = self._asks_again = True
        messages = with_repair(self._request.messages, call.reply(), problem)
        self._request = replace(self._request, messages=messages)
        said, reported = self.asking.take_unshown(), tuple(self._report())
        restart = IterationRestart(self._iteration)
        return Together((*said, call.refused(problem), *reported, restart), is_progress=True)

    def _take_output(self, text: str) -> None:
        if self._is_checked and self.stop_reason != "refusal":
            self.output = output_in(text)

    async def _finish(self, call: ModelCall) -> Together:
        finished = call.finished(self._iteration)
        if (problem := await self._problem(finished)) is not None:
            return self._refuse(finished, problem)
        self._spent = self.asking.unreported or self._spent
        self.stop_reason = call.stop_reason
        self.has_spoken = self.has_spoken or call.has_spoken
        if not finished.tool_uses:
            self._take_output(text_of(finished))
        self._batch = OpenBatch(finished) if finished.tool_uses else None
        self._reply = () if finished.tool_uses else finished.reply()
        said = self.asking.take_unshown()
        return Together((*said, finished.entry(), *self._report()), is_progress=True)

    def _report(self) -> Iterator[UsageReported]:
        for reported in self.asking.report():
            self._usage += reported.usage
            yield reported

    def _restart(self) -> Iterator[EventBody]:
        """Discards a reply that broke off; what it used is reported, since it was billed."""
        for open_call in self._open_calls.values():
            yield interrupted(open_call, BROKE_OFF)
        self._open_calls.clear()
        yield from self._report()
        yield IterationRestart(self._iteration)

    async def _load_contents(self) -> None:
        """Loads the request's files that it doesn't have yet: from its beginning, or from tools."""
        ids = {PayloadId(it.content_id) for it in files_in(self._request.messages)}
        if missing := ids - self._request.contents.keys():
            self._request = with_contents(self._request, await self._around.load(missing))

    def _check_boundary(self) -> None:
        if self._limits.hands_off:
            self._around.stop.check_boundary()

    async def _begin_call(self) -> list[EventBody]:
        """The events before a model call, which starts or restarts; adds what the user has sent meanwhile."""
        if self._restart_from is not None:
            restart = IterationRestart(self._iteration, self._restart_from)
            self._restart_from = None
            return [*self._report(), restart]
        self._hear(await self._around.steering())
        self._iteration += 1
        return [IterationStart(self._iteration, is_checked=self._is_checked)]

    async def _hear_more(self) -> bool:
        """Whether the user says something to the model's reply, which is to be answered, too."""
        if more := await self._around.after_reply():
            self._add(*self._reply)
            self._hear(more)
        return bool(more)

    def _hear(self, said: Sequence[UserMessage]) -> None:
        for message in said:
            messages = with_user_text(self._request.messages, message.content)
            self._request = replace(self._request, messages=messages)

    def _add(self, *messages: ModelMessage) -> None:
        self._request = replace(self._request, messages=(*self._request.messages, *messages))

    async def _call_tool(self, use: ToolUse) -> tuple[ToolUse, ToolCalled]:
        use = await self._call_ids.settle(clean_use(use))
        called = self._open_calls[use.id] = await self._tools.called(use)
        return use, called

    def _room_for_results(self) -> int:
        """How many tokens a call's tool results may take: half of the rest, because more calls may follow."""
        reply = self._request.max_tokens or TOKENS_KEPT_FOR_THE_REPLY
        spent = self._spent.input_tokens + self._spent.output_tokens
        return (self._models.current.model.context_tokens - reply - spent) // 2

    async def _use_tools(self, open_batch: OpenBatch) -> AsyncGenerator[EventBody | JournalEntry]:
        batch = await self._tools.batch(open_batch, self._timer, room=self._room_for_results())
        async with aclosing(batch.run()) as running:
            async for step in running:
                match step:
                    case Dispatched():  # not yet stored, so no tool has received its call
                        self._check_boundary()
                    case ToolResultStored():
                        del self._open_calls[step.tool_call_id]
                    case _:
                        pass
                yield step
        self._add(*open_batch.call.with_results(batch.reads(), as_blocks=bool(self._request.tools)))

    def last_events(self, end: Terminal) -> Iterator[EventBody]:
        """The turn's end, after closing what an interrupted turn left open."""
        yield from self.asking.take_unshown()
        yield from last_events(
            end,
            open_calls=self._open_calls.values(),
            why=self._tools.why_open,
            reported=self._usage,
            unreported=self.asking.unreported,
            model=self._models.current.id,
            waiting=self._state.waiting,
        )
