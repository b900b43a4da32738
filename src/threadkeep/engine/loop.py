"""One turn: model, tools, model … until the model has answered."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from threadkeep.domain.errors import ThreadkeepError
from threadkeep.domain.events import (
    EventBody,
    IterationStart,
    Notice,
    Retrieval,
    Terminal,
    Text,
    Thought,
    ToolCalled,
    ToolResulted,
    UsageReported,
)
from threadkeep.domain.message import Usage
from threadkeep.domain.text import is_blank, storable
from threadkeep.domain.turn import Turn
from threadkeep.engine.call_ids import CallIds, TakenIds, none_taken
from threadkeep.engine.context import TOKENS_KEPT_FOR_THE_REPLY
from threadkeep.engine.ending import MAX_ITERATIONS, TURN_ENDED, answered, failed, last_events, stopped
from threadkeep.engine.model_call import ModelCall
from threadkeep.engine.steering import Steering, nobody_steers, with_user_text
from threadkeep.engine.stop import Stop, Stopped
from threadkeep.engine.token_estimates import estimate_request_tokens, estimate_tokens
from threadkeep.engine.tools import Toolbox, clean_use
from threadkeep.ports.gateway import (
    Gateway,
    ModelMessage,
    ModelRequest,
    ModelStopped,
    ModelUsage,
    Retrying,
    TextBlock,
    TextDelta,
    ThoughtDelta,
    ThoughtSigned,
    ToolResultBlock,
    ToolSpec,
    ToolUse,
    signer,
)

log = logging.getLogger("threadkeep.engine")


@dataclass(frozen=True, slots=True)
class TurnLimits:
    """How long a turn may go on; 0 means no limit."""

    max_iterations: int
    generation_timeout_s: float


Build = Callable[[Sequence[ToolSpec]], Awaitable[ModelRequest]]
"""Makes the first request, once the tools are known, and keeps its receipt."""


async def run_turn(
    turn: Turn,
    build: Build,
    gateway: Gateway,
    toolbox: Toolbox,
    limits: TurnLimits,
    stop: Stop,
    *,
    opening: Sequence[Notice | Retrieval] = (),
    steering: Steering = nobody_steers,
    taken_ids: TakenIds = none_taken,
) -> AsyncGenerator[EventBody]:
    """Everything that happens in a turn once it has begun, ending in exactly one Done or Failed, always.

    `opening` is what was amiss or was found before it began. `steering` gives what the user says meanwhile,
    which is in the turn's log already. `taken_ids` knows the conversation's earlier
    tool calls.
    """
    for event in opening:
        yield event
    run = _Run(turn, build, gateway, toolbox, limits, steering, taken_ids)
    steps = run.steps()
    timer = None
    if limits.generation_timeout_s:
        loop = asyncio.get_running_loop()
        timer = loop.call_later(limits.generation_timeout_s, stop.request, "timeout")
    try:
        while True:
            yield await stop.guard(steps.__anext__)
    except StopAsyncIteration:
        end = answered(turn, stop_reason=run.stop_reason, has_spoken=run.has_spoken)
    except Stopped as exc:
        end = stopped(turn, exc.reason, timeout_s=limits.generation_timeout_s)
    except ThreadkeepError as exc:
        end = failed(exc)
    except Exception as exc:
        log.exception("turn %s failed", turn.id)
        end = failed(exc)
    finally:
        if timer is not None:
            timer.cancel()
        await steps.aclose()
    for event in run.last_events(end):
        yield event


class _Run:
    """A turn under way: what it has said, asked for and spent so far."""

    def __init__(
        self,
        turn: Turn,
        build: Build,
        gateway: Gateway,
        toolbox: Toolbox,
        limits: TurnLimits,
        steering: Steering,
        taken_ids: TakenIds,
    ) -> None:
        self._build = build
        self._request = ModelRequest(None, "", ())
        self._gateway = gateway
        self._signed_by = signer(gateway.name, turn.model or gateway.default_model)
        self._toolbox = toolbox
        self._limits = limits
        self._steering = steering
        self._call: ModelCall | None = None
        self._taken_ids = taken_ids
        self._call_ids = CallIds((), taken_ids)
        self._open_calls: dict[str, ToolCalled] = {}
        self._usage = Usage(0, 0)
        self.stop_reason = "end_turn"
        """Why the model stopped, or we asked it no more."""
        self.has_spoken = False
        """Whether the reply has anything to read."""

    async def steps(self) -> AsyncGenerator[EventBody]:
        """The turn as it goes well."""
        for notice in await self._toolbox.open():
            yield notice
        self._request = await self._build(self._toolbox.specs)
        self._call_ids = CallIds(self._request.messages, self._taken_ids)
        iteration = 0
        while True:
            iteration += 1
            await self._take_in_what_user_says()
            yield IterationStart(iteration)
            call = self._call = ModelCall(self._signed_by)
            async with aclosing(self._call_model(call)) as said:
                async for event in said:
                    yield event
            self._call, spent = None, self._cost(call)
            self._usage += spent
            yield UsageReported.of(spent)
            self.stop_reason = call.stop_reason
            if not call.tool_uses:
                return
            if self._limits.max_iterations and iteration >= self._limits.max_iterations:
                self.stop_reason = MAX_ITERATIONS
                yield Notice("MAX_ITERATIONS", f"The agent may use tools {iteration} times and has done so.")
                return
            async with aclosing(self._use_tools(call, self._room_for_results(spent))) as used:
                async for event in used:
                    yield event

    async def _take_in_what_user_says(self) -> None:
        """Lets the next call know what the user has sent since the last one, after the tools' results."""
        if said := await self._steering():
            self._request = with_user_text(self._request, [it.content for it in said])

    async def _call_model(self, call: ModelCall) -> AsyncGenerator[EventBody]:
        stream = self._gateway.stream(self._request)
        try:
            async for event in stream:
                match event:
                    case TextDelta(text):
                        text = storable(text)
                        call.add_text(text)
                        self.has_spoken = self.has_spoken or not is_blank(text)
                        yield Text(text)
                    case ThoughtDelta(text):
                        text = storable(text)
                        call.add_thought(text)
                        yield Thought(text)
                    case ThoughtSigned(signature):
                        call.end_thought(signature)
                    case ToolUse():
                        use = await self._call_ids.settle(clean_use(event))
                        call.add_tool_use(use)
                        called = self._open_calls[use.id] = await self._toolbox.called(use)
                        yield called
                    case ModelUsage():
                        call.usage = event.plausible()
                    case Retrying(code, message):
                        yield Notice(code, message)
                    case ModelStopped(reason):
                        call.stop_reason = reason
        finally:
            await stream.aclose()

    def _room_for_results(self, spent: Usage) -> int:
        """How many tokens the results of an answer may take: half of what is left, for more may follow."""
        reply = self._request.max_tokens or TOKENS_KEPT_FOR_THE_REPLY
        return (self._gateway.context_tokens - reply - spent.input_tokens - spent.output_tokens) // 2

    async def _use_tools(self, call: ModelCall, room: int) -> AsyncGenerator[EventBody]:
        running = self._toolbox.run(call.tool_uses, room=room)
        try:
            async for event in running:
                if isinstance(event, ToolResulted):
                    del self._open_calls[event.tool_call_id]
                yield event
        finally:
            await running.aclose()
        answers = [self._toolbox.answer(use) for use in call.tool_uses]
        exchanged = call.message(), ModelMessage("user", tuple(answers))
        if not self._request.tools:
            exchanged = _without_tool_blocks(call, answers)
        self._request = replace(self._request, messages=(*self._request.messages, *exchanged))

    def _cost(self, call: ModelCall) -> Usage:
        """What a call has cost; estimated where the provider did not say, or said what cannot be."""
        if call.usage is not None:
            return Usage(
                input_tokens=call.usage.input_tokens,
                output_tokens=call.usage.output_tokens,
                cache_read_tokens=call.usage.cache_read_tokens,
                cache_write_tokens=call.usage.cache_write_tokens,
            )
        asked = estimate_request_tokens(self._request)
        return Usage(asked, estimate_tokens(call.written), estimated=True)

    def last_events(self, end: Terminal) -> Iterator[EventBody]:
        """The turn's end, after what a turn that was broken off has left open."""
        return last_events(
            end,
            open_calls=self._open_calls.values(),
            why=TURN_ENDED,
            reported=self._usage,
            unreported=self._cost(self._call) if self._call else None,
        )


def _without_tool_blocks(
    call: ModelCall, answers: Sequence[ToolResultBlock]
) -> tuple[ModelMessage, ModelMessage]:
    """Calls and results of a model that was offered no tools: providers refuse tool blocks without tools."""
    said = call.text
    names = ", ".join(use.name for use in call.tool_uses)
    asked = f"(Asks for tools: {names}.)" if is_blank(said) else said
    heard = "\n".join(answer.content for answer in answers)
    return ModelMessage("assistant", (TextBlock(asked),)), ModelMessage("user", (TextBlock(heard),))
