"""One turn: model, tools, model … until the model has answered."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from threadkeep.domain.errors import ThreadkeepError
from threadkeep.domain.events import (
    Done,
    EventBody,
    Failed,
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
from threadkeep.engine.model_call import ModelCall
from threadkeep.engine.stop import Stop, Stopped, StopReason
from threadkeep.engine.token_estimates import estimate_request_tokens, estimate_tokens
from threadkeep.engine.tools import Toolbox, clean_use
from threadkeep.ports.gateway import (
    Gateway,
    GatewayError,
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
    taken_ids: TakenIds = none_taken,
) -> AsyncGenerator[EventBody]:
    """Everything that happens in a turn once it has begun, ending in exactly one Done or Failed, always.

    `opening` is what was amiss or was found before it began. `taken_ids` knows the conversation's earlier
    tool calls.
    """
    for event in opening:
        yield event
    run = _Run(turn, build, gateway, toolbox, limits, taken_ids)
    steps = run.steps()
    timer = None
    if limits.generation_timeout_s:
        loop = asyncio.get_running_loop()
        timer = loop.call_later(limits.generation_timeout_s, stop.request, "timeout")
    try:
        while True:
            yield await stop.guard(steps.__anext__)
    except StopAsyncIteration:
        end = run.answered()
    except Stopped as stopped:
        end = run.stopped(stopped.reason)
    except GatewayError as exc:
        end = Failed(exc.code, exc.message, exc.retryable)
    except ThreadkeepError as exc:
        end = Failed(exc.code, exc.message)
    except Exception:
        log.exception("turn %s failed", turn.id)
        end = Failed("INTERNAL_ERROR", "Something went wrong on our side; it has been logged.")
    finally:
        if timer is not None:
            timer.cancel()
        await steps.aclose()
    for event in run.loose_ends():
        yield event
    yield run.with_usage(end)


class _Run:
    """A turn under way: what it has said, asked for and spent so far."""

    def __init__(
        self,
        turn: Turn,
        build: Build,
        gateway: Gateway,
        toolbox: Toolbox,
        limits: TurnLimits,
        taken_ids: TakenIds,
    ) -> None:
        self._turn = turn
        self._build = build
        self._request = ModelRequest(None, "", ())
        self._gateway = gateway
        self._signed_by = signer(gateway.name, turn.model or gateway.default_model)
        self._toolbox = toolbox
        self._limits = limits
        self._call: ModelCall | None = None
        self._taken_ids = taken_ids
        self._call_ids = CallIds((), taken_ids)
        self._open_calls: dict[str, ToolCalled] = {}
        self._usage = Usage(0, 0)
        self._stop_reason = "end_turn"
        self._has_spoken = False

    async def steps(self) -> AsyncGenerator[EventBody]:
        """The turn as it goes well."""
        for notice in await self._toolbox.open():
            yield notice
        self._request = await self._build(self._toolbox.specs)
        self._call_ids = CallIds(self._request.messages, self._taken_ids)
        iteration = 0
        while True:
            iteration += 1
            yield IterationStart(iteration)
            call = self._call = ModelCall(self._signed_by)
            async with aclosing(self._call_model(call)) as said:
                async for event in said:
                    yield event
            yield self._spend(call)
            self._stop_reason = call.stop_reason
            if not call.tool_uses:
                return
            if self._limits.max_iterations and iteration >= self._limits.max_iterations:
                self._stop_reason = "max_iterations"
                yield Notice("MAX_ITERATIONS", f"The agent may use tools {iteration} times and has done so.")
                return
            async with aclosing(self._use_tools(call)) as used:
                async for event in used:
                    yield event

    async def _call_model(self, call: ModelCall) -> AsyncGenerator[EventBody]:
        stream = self._gateway.stream(self._request)
        try:
            async for event in stream:
                match event:
                    case TextDelta(text):
                        text = storable(text)
                        call.add_text(text)
                        self._has_spoken = self._has_spoken or not is_blank(text)
                        yield Text(text)
                    case ThoughtDelta(text):
                        text = storable(text)
                        call.add_thought(text)
                        yield Thought(text)
                    case ThoughtSigned(signature):
                        call.end_thought(signature)
                    case ToolUse():
                        call.add_tool_use(clean_use(event))
                    case ModelUsage():
                        call.usage = event.plausible()
                    case Retrying(code, message):
                        yield Notice(code, message)
                    case ModelStopped(reason):
                        call.stop_reason = reason
        finally:
            await stream.aclose()
        call.replace_tool_uses(await self._call_ids.settle(call.tool_uses))

    async def _use_tools(self, call: ModelCall) -> AsyncGenerator[EventBody]:
        for use in call.tool_uses:
            called = self._open_calls[use.id] = await self._toolbox.called(use)
            yield called
        running = self._toolbox.run(call.tool_uses)
        try:
            async for event in running:
                if isinstance(event, ToolResulted):
                    del self._open_calls[event.tool_call_id]
                yield event
        finally:
            await running.aclose()
        answers = [self._toolbox.answer(use) for use in call.tool_uses]
        told = call.message(), ModelMessage("user", tuple(answers))
        if not self._request.tools:
            told = _in_words(call, answers)
        self._request = replace(self._request, messages=(*self._request.messages, *told))

    def _spend(self, call: ModelCall) -> UsageReported:
        """Counts what a call has cost; estimated where the provider did not say, or said what cannot be."""
        self._call = None
        told = call.usage
        if told:
            spent = Usage(
                input_tokens=told.input_tokens,
                output_tokens=told.output_tokens,
                cache_read_tokens=told.cache_read_tokens,
                cache_write_tokens=told.cache_write_tokens,
            )
        else:
            asked = estimate_request_tokens(self._request)
            spent = Usage(asked, estimate_tokens(call.written), estimated=True)
        self._usage = Usage(
            input_tokens=self._usage.input_tokens + spent.input_tokens,
            output_tokens=self._usage.output_tokens + spent.output_tokens,
            estimated=self._usage.estimated or spent.estimated,
            cache_read_tokens=self._usage.cache_read_tokens + spent.cache_read_tokens,
            cache_write_tokens=self._usage.cache_write_tokens + spent.cache_write_tokens,
        )
        return UsageReported(
            input_tokens=spent.input_tokens,
            output_tokens=spent.output_tokens,
            estimated=spent.estimated,
            cache_read_tokens=spent.cache_read_tokens,
            cache_write_tokens=spent.cache_write_tokens,
        )

    def loose_ends(self) -> Iterator[EventBody]:
        """Whatever a turn that broke off has left open: calls without a result, a call without its cost."""
        for called in self._open_calls.values():
            yield ToolResulted(
                called.tool_call_id, called.tool_name, "interrupted", error="The turn ended before the tool."
            )
        if self._call is not None:
            yield self._spend(self._call)

    def answered(self) -> Terminal:
        """How a turn ends that was not broken off."""
        if not self._has_spoken and self._stop_reason == "max_iterations":
            message = "The agent has used tools as often as it may, without an answer."
            return Failed("AGENTX_ERROR", message, retryable=True)
        if not self._has_spoken:
            return Failed("AGENTX_ERROR", "The model gave an empty reply.", retryable=True)
        return Done("COMPLETED", self._turn.assistant_message_id, self._usage, self._stop_reason)

    def stopped(self, reason: StopReason) -> Terminal:
        """How a turn ends that was broken off."""
        match reason:
            case "abort":
                return Done("CANCELLED", self._turn.assistant_message_id, self._usage, "aborted")
            case "timeout":
                limit = self._limits.generation_timeout_s
                return Failed("GENERATION_TIMEOUT", f"The turn took longer than {limit:g} s.", retryable=True)
            case "interrupt":
                return Failed("INTERRUPTED", "The server was stopped during this turn.", retryable=True)

    def with_usage(self, end: Terminal) -> Terminal:
        """The end with all that was spent, the loose ends included."""
        return replace(end, usage=self._usage) if isinstance(end, Done) else end


def _in_words(call: ModelCall, answers: Sequence[ToolResultBlock]) -> tuple[ModelMessage, ModelMessage]:
    """Calls and results of a model that was offered no tools: providers refuse tool blocks without tools."""
    said = call.text
    names = ", ".join(use.name for use in call.tool_uses)
    asked = f"(Asks for tools: {names}.)" if is_blank(said) else said
    heard = "\n".join(answer.content for answer in answers)
    return ModelMessage("assistant", (TextBlock(asked),)), ModelMessage("user", (TextBlock(heard),))
