"""One turn: model, tools, model … until the model has replied, from any state of the turn."""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from threadkeep.context.attachments import files_in, with_contents
from threadkeep.context.call_ids import CallIds, TakenIds, none_taken
from threadkeep.context.estimates import estimate_request_tokens, estimate_usage
from threadkeep.context.request import TOKENS_KEPT_FOR_THE_REPLY, BuiltRequest
from threadkeep.context.tool_results import TURN_ENDED
from threadkeep.domain.approval import ApprovalAction
from threadkeep.domain.errors import ThreadkeepError
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
)
from threadkeep.domain.ids import PayloadId
from threadkeep.domain.message import Usage
from threadkeep.domain.payload import Lost
from threadkeep.domain.receipt import TurnReceipt
from threadkeep.domain.tool_rules import Rules, ToolRule
from threadkeep.domain.turn import Turn
from threadkeep.engine.batch import Batch, Paused
from threadkeep.engine.ending import (
    MAX_ITERATIONS,
    OpenCall,
    completed,
    failed,
    interrupted,
    last_events,
    stopped,
)
from threadkeep.engine.journal import Dispatched, JournalEntry
from threadkeep.engine.model_call import ModelCall, reply_events, with_user_text
from threadkeep.engine.permissions import ToolPermissions, may_ask
from threadkeep.engine.replay import NEW_TURN, OpenBatch, TurnState
from threadkeep.engine.spending import FreeSpending, TurnSpending
from threadkeep.engine.steering import Steering, nobody_steers
from threadkeep.engine.stop import Stop, Stopped
from threadkeep.engine.timer import TurnTimer
from threadkeep.engine.tools import Toolbox, clean_use
from threadkeep.engine.turn_models import TurnModels
from threadkeep.engine.user_requests import UserRequests
from threadkeep.ports.gateway import (
    GatewayError,
    GatewayUnavailable,
    ModelRequest,
    ReplyBrokeOff,
    ToolSpec,
    ToolUse,
)

log = logging.getLogger("threadkeep.engine")

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


TurnStep = EventBody | JournalEntry | TurnReceipt | Pause | HandOff
"""A turn's output: an entry for its log or journal, its receipt, or a sign that it continues later."""

LoadContents = Callable[[Iterable[PayloadId]], Awaitable[Mapping[PayloadId, bytes | Lost]]]
"""Reads files of the conversation."""


async def nothing_stored(ids: Iterable[PayloadId]) -> Mapping[PayloadId, bytes | Lost]:
    """For conversations without files."""
    return {}


Build = Callable[[Sequence[ToolSpec]], Awaitable[BuiltRequest | ModelRequest]]
"""Builds the first request, once the tools are known; one without a receipt where none is kept."""


@dataclass(frozen=True, slots=True)
class TurnTools:
    """The tools that a turn can use, how it asks its user about them, and the owner's rules."""

    toolbox: Toolbox
    user_requests: UserRequests
    rules: Rules = field(default_factory=dict[str, ToolRule])
    taken_ids: TakenIds = none_taken
    """Knows the conversation's earlier tool calls."""


async def run_turn(
    turn: Turn,
    build: Build,
    models: TurnModels,
    tools: TurnTools,
    limits: TurnLimits,
    stop: Stop,
    *,
    state: TurnState = NEW_TURN,
    load: LoadContents = nothing_stored,
    opening: Sequence[Notice | Retrieval | TurnResumed] = (),
    steering: Steering = nobody_steers,
    spending: TurnSpending | None = None,
) -> AsyncGenerator[TurnStep]:
    """Runs a turn from its current state, step by step.

    It ends in exactly one Done or Failed, unless it pauses or is handed off. `opening` are the events before
    it: notices, passages found, or that it is resumed.
    """
    for event in opening:
        yield event
    timer = TurnTimer(limits.generation_timeout_s, state.ran_ms / 1000, lambda: stop.request("timeout"))
    spending = spending or FreeSpending()
    run = _Run(turn, build, models, tools, limits, stop, state, load, steering, timer, spending)
    steps = run.steps()
    try:
        while True:
            yield await stop.guard(steps.__anext__)
    except StopAsyncIteration:
        end = completed(turn, stop_reason=run.stop_reason, has_spoken=run.has_spoken)
    except Paused as exc:
        end = Pause(exc.requests)
    except Stopped as exc:
        is_handed_off = exc.reason == "hand_off" and limits.hands_off
        timeout_s = limits.generation_timeout_s
        end = HandOff() if is_handed_off else stopped(turn, exc.reason, timeout_s=timeout_s)
    except ThreadkeepError as exc:
        end = failed(exc)
    except Exception as exc:
        log.exception("turn %s failed", turn.id)
        end = failed(exc)
    finally:
        timer.stop()
        await steps.aclose()
        await run.release_unused()
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
        self,
        turn: Turn,
        build: Build,
        models: TurnModels,
        tools: TurnTools,
        limits: TurnLimits,
        stop: Stop,
        state: TurnState,
        load: LoadContents,
        steering: Steering,
        timer: TurnTimer,
        spending: TurnSpending,
    ) -> None:
        self._turn = turn
        self._spending = spending
        self._timer = timer
        self._build = build
        self._request = state.request or ModelRequest("", "", ())
        self._models = models
        self._tools = tools
        self._toolbox = tools.toolbox
        self._limits = limits
        self._stop = stop
        self._state = state
        self._load = load
        self._restart_from = state.restart_from
        self._steering = steering
        self._batch = state.batch
        """The tool calls of the model's last reply, until all have results."""
        self._spent = Usage(estimate_request_tokens(self._request), 0)
        self._iteration = state.iteration
        self._permissions = ToolPermissions(tools.rules, state.unknown)
        self._call: ModelCall | None = None
        self._is_reserved = False
        """Whether a model call has reserved what it can cost, and isn't charged yet."""
        self._call_ids = CallIds((), tools.taken_ids)
        self._open_calls: dict[str, OpenCall] = {it.tool_call_id: it for it in state.open_calls}
        self._usage = state.usage
        self._unreported = state.unreported and spending.priced(models.current.id, state.unreported)
        self.stop_reason = state.stop_reason or "end_turn"
        """Why the model stopped, or why it wasn't called again."""
        self.has_spoken = state.has_spoken
        """Whether the reply has anything to read."""

    async def steps(self) -> AsyncGenerator[EventBody | JournalEntry | TurnReceipt]:
        """The normal course of a turn."""
        if self._state.stop_reason is not None:  # only the end is missing
            return
        for notice in await self._toolbox.open(self._permissions.is_denied):
            if notice not in self._state.noticed:
                yield notice
        await self._load_grants()
        if self._state.is_new:
            built = await self._build(self._toolbox.specs)
            self._request = built if isinstance(built, ModelRequest) else built.request
            if isinstance(built, BuiltRequest):
                yield TurnReceipt(self._turn.id, self._turn.conversation_id, built.receipt, built.texts)
        self._call_ids = CallIds(self._request.messages, self._tools.taken_ids)
        while True:
            if self._batch is None:
                async with aclosing(self._ask_model()) as asked:
                    async for step in asked:
                        yield step
            if self._batch is None:
                return
            if self._limits.max_iterations and self._iteration >= self._limits.max_iterations:
                self.stop_reason, most = MAX_ITERATIONS, self._iteration
                notice = Notice("MAX_ITERATIONS", f"The agent has reached its limit of {most} tool rounds.")
                if notice not in self._state.noticed:
                    yield notice
                return
            async with aclosing(self._use_tools(self._batch)) as used:
                async for step in used:
                    yield step
            self._batch = None

    async def _ask_model(self) -> AsyncGenerator[EventBody | JournalEntry]:
        """One model call, or an interrupted one again; ends with its usage."""
        self._check_boundary()
        for event in await self._begin_call():
            yield event
        await self._load_contents()
        has_restarted = False
        while True:
            request = await self._spending.reserve(self._models.current.model, self._request)
            self._is_reserved = True
            call = self._call = ModelCall(self._models.current.signer)
            try:
                stream = self._models.current.stream(request)
                async with aclosing(reply_events(stream, call, self._call_tool)) as said:
                    async for event in said:
                        yield event
                break
            except GatewayUnavailable as exc:
                self._call = None  # the provider didn't reply, so it bills nothing
                await self.release_unused()
                needs_price = self._spending.is_limited
                for step in self._models.fall_back(exc, self._request, needs_price=needs_price):
                    yield step
            except ReplyBrokeOff:
                if has_restarted:
                    raise
                has_restarted = True
                for event in self._restart(call):
                    yield event
            except GatewayError:
                if call.is_empty:  # the provider refused the request
                    self._call = None
                raise
        self._spent = self._unreported = self._usage_of(call)
        self._call, self.stop_reason = None, call.stop_reason
        self.has_spoken = self.has_spoken or call.has_spoken
        finished = call.finished(self._iteration)
        self._batch = OpenBatch(finished) if finished.tool_uses else None
        yield finished.entry()
        self._unreported, self._usage = None, self._usage + self._spent
        self._is_reserved = False
        yield UsageReported.of(self._spent, self._models.current.id)

    async def release_unused(self) -> None:
        """Gives back what was reserved for a call that was not made or not billed."""
        if self._is_reserved and self._call is None and self._unreported is None:
            await self._spending.release()
            self._is_reserved = False

    def _restart(self, call: ModelCall) -> Iterator[EventBody]:
        """Discards a reply that broke off; what it used is reported, since it was billed."""
        for open_call in self._open_calls.values():
            yield interrupted(open_call, BROKE_OFF)
        self._open_calls.clear()
        spent = self._usage_of(call)
        self._call, self._usage = None, self._usage + spent
        self._is_reserved = False
        yield UsageReported.of(spent, self._models.current.id)
        yield IterationRestart(self._iteration)

    async def _load_contents(self) -> None:
        """Loads the request's files that it doesn't have yet: from its beginning, or from tools."""
        ids = {PayloadId(it.content_id) for it in files_in(self._request.messages)}
        if missing := ids - self._request.contents.keys():
            self._request = with_contents(self._request, await self._load(missing))

    def _check_boundary(self) -> None:
        if self._limits.hands_off:
            self._stop.check_boundary()

    async def _begin_call(self) -> list[EventBody]:
        """The events before a model call, which starts or restarts; adds what the user has sent meanwhile."""
        if self._restart_from is not None:
            restart = IterationRestart(self._iteration, self._restart_from)
            spent, self._unreported, self._restart_from = self._unreported, None, None
            self._usage += spent or Usage(0, 0)
            return [UsageReported.of(spent, self._models.current.id), restart] if spent else [restart]
        for message in await self._steering():
            messages = with_user_text(self._request.messages, message.content)
            self._request = replace(self._request, messages=messages)
        self._iteration += 1
        return [IterationStart(self._iteration)]

    async def _call_tool(self, use: ToolUse) -> tuple[ToolUse, ToolCalled]:
        use = await self._call_ids.settle(clean_use(use))
        called, tool = await self._toolbox.called(use), self._toolbox.tool(use)
        if tool and self._permissions.must_ask(tool, use.arguments):
            called = replace(called, asks=True)
        self._open_calls[use.id] = called
        return use, called

    def _room_for_results(self) -> int:
        """How many tokens a call's tool results may take: half of the rest, because more calls may follow."""
        reply = self._request.max_tokens or TOKENS_KEPT_FOR_THE_REPLY
        spent = self._spent.input_tokens + self._spent.output_tokens
        return (self._models.current.model.context_tokens - reply - spent) // 2

    async def _load_grants(self) -> None:
        """Reads what the user allows in this conversation: it may have been taken back meanwhile."""
        if may_ask(self._tools.rules):
            self._permissions.replace_grants(await self._tools.user_requests.granted())

    async def _use_tools(self, open_batch: OpenBatch) -> AsyncGenerator[EventBody | JournalEntry]:
        await self._load_grants()
        batch = Batch(
            open_batch,
            self._toolbox,
            self._tools.user_requests,
            self._permissions,
            self._timer,
            room=self._room_for_results(),
        )
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
        both = open_batch.call.with_results(batch.reads(), as_blocks=bool(self._request.tools))
        self._request = replace(self._request, messages=(*self._request.messages, *both))

    def _usage_of(self, call: ModelCall) -> Usage:
        """The usage of a call; estimated if the provider reported none or implausible numbers."""
        usage = call.usage.as_usage() if call.usage else estimate_usage(self._request, call.written)
        if call.usage is None and not call.is_complete:
            usage = self._spending.cut_off(usage)
        return self._spending.priced(self._models.current.id, usage)

    def last_events(self, end: Terminal) -> Iterator[EventBody]:
        """The turn's end, after closing what an interrupted turn left open."""
        return last_events(
            end,
            open_calls=self._open_calls.values(),
            why=TURN_ENDED,
            reported=self._usage,
            unreported=self._usage_of(self._call) if self._call else self._unreported,
            model=self._models.current.id,
            waiting=self._state.waiting,
        )
