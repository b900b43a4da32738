"""The request of a turn that has ended, run again beside it: nothing is stored and no tool is called."""

import logging
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Literal, cast

from threadkeep.context.attachments import with_contents
from threadkeep.context.call_ids import CallIds
from threadkeep.context.estimates import estimate_usage
from threadkeep.domain.errors import ThreadkeepError
from threadkeep.domain.events import (
    EventBody,
    Failed,
    IterationStart,
    ToolCalled,
    ToolResultStored,
    TurnStart,
    UsageReported,
    UserMessage,
)
from threadkeep.domain.ids import PayloadId
from threadkeep.domain.message import Usage
from threadkeep.domain.parts import UserTextPart
from threadkeep.domain.turn import Turn
from threadkeep.engine.ending import MAX_ITERATIONS, completed, failed, last_events, stopped
from threadkeep.engine.loop import TurnLimits
from threadkeep.engine.model_call import FinishedCall, ModelCall, reply_events, with_user_text
from threadkeep.engine.recorded_calls import RecordedCall, RecordedCalls
from threadkeep.engine.stop import Stop, Stopped
from threadkeep.engine.timer import TurnTimer
from threadkeep.engine.tools import clean_use
from threadkeep.ports.gateway import (
    ModelEvent,
    ModelMessage,
    ModelRequest,
    ToolUse,
)

log = logging.getLogger("threadkeep.engine")

NEEDS_TOOL = "NEEDS_TOOL"
"""The outcome of a rerun whose model makes a call that the turn has no result for."""
_NOT_RECORDED = "The original turn has no result for this call."

ResultStatus = Literal["ok", "error", "timeout", "denied", "interrupted", "unknown"]
CallModel = Callable[[ModelRequest], AsyncGenerator[ModelEvent]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Original:
    """What a rerun takes from the turn that it repeats."""

    turn: Turn
    request: ModelRequest
    calls: Sequence[RecordedCall]
    steered: Sequence[UserTextPart]
    """What the user sent while the turn ran; each belongs after the model call of its iteration."""
    contents: Mapping[PayloadId, bytes] = field(default_factory=dict[PayloadId, bytes])
    """The files of the request and of the calls' results."""


class _NeedsTool(Exception):
    """The model makes a call that the turn has no result for."""

    def __init__(self, called: ToolCalled) -> None:
        self.called = called


async def rerun(
    original: Original, call_model: CallModel, limits: TurnLimits, *, model: str, signed_by: str
) -> AsyncGenerator[EventBody]:
    """Runs a turn's request again; ends in exactly one Done or Failed, like a turn."""
    turn, stop, timeout_s = original.turn, Stop(), limits.generation_timeout_s
    run = _Rerun(original, call_model, model, signed_by, limits.max_iterations)
    timer = TurnTimer(timeout_s, 0, lambda: stop.request("timeout"))
    steps = run.steps()
    try:
        yield replace(TurnStart.of(turn), model=model)
        while True:
            yield await stop.guard(steps.__anext__)
    except StopAsyncIteration:
        end = completed(turn, stop_reason=run.stop_reason, has_spoken=run.has_spoken)
    except Stopped as exc:
        end = stopped(turn, exc.reason, timeout_s=timeout_s)
    except _NeedsTool as exc:
        end = Failed(NEEDS_TOOL, _needed(exc.called))
    except ThreadkeepError as exc:
        end = failed(exc)
    except Exception as exc:
        log.exception("a rerun of turn %s failed", turn.id)
        end = failed(exc)
    finally:
        timer.stop()
        await steps.aclose()
    for event in last_events(
        end, open_calls=run.open_calls, why=_NOT_RECORDED, reported=run.usage, unreported=run.unreported
    ):
        yield event


def _needed(called: ToolCalled) -> str:
    name = f"{called.server}.{called.tool_name}" if called.server else called.tool_name
    return f"The model calls {name} with arguments that the original turn has no result for."


class _Rerun:
    """A rerun: its requests and usage so far."""

    def __init__(
        self, original: Original, call_model: CallModel, model: str, signed_by: str, max_iterations: int
    ) -> None:
        self._request = original.request
        self._contents = original.contents
        self._model = model
        self._call_model = call_model
        self._signed_by = signed_by
        self._max_iterations = max_iterations
        self._recorded = RecordedCalls(original.calls)
        self._servers = {it.name: it.call for it in original.calls}
        self._steered = list(original.steered)
        self._call_ids = CallIds(original.request.messages)
        self._call: ModelCall | None = None
        self._open: dict[str, ToolCalled] = {}
        self.usage = Usage(0, 0)
        self.stop_reason = "end_turn"
        self.has_spoken = False

    @property
    def open_calls(self) -> Sequence[ToolCalled]:
        """The calls without a result."""
        return list(self._open.values())

    @property
    def unreported(self) -> Usage | None:
        """The usage of a model call that broke off."""
        return self._spent(self._call) if self._call else None

    async def steps(self) -> AsyncGenerator[EventBody]:
        """Model calls and recorded results, until the model has replied to everything the user said."""
        iteration = 0
        while True:
            iteration += 1
            yield IterationStart(iteration)
            call = self._call = ModelCall(self._signed_by)
            self._request = with_contents(self._request, self._contents)
            stream = self._call_model(self._request)
            try:
                async with aclosing(reply_events(stream, call, self._call_tool)) as events:
                    async for event in events:
                        yield event
            except ThreadkeepError:
                if call.is_empty:  # the provider or a budget refused the call, so it cost nothing
                    self._call = None
                raise
            finished = call.finished(iteration)
            yield self._report(call)
            async with aclosing(self._results_of(finished)) as results:
                async for result in results:
                    yield result
            steered = self._steered_after(iteration, is_reply=not finished.tool_uses)
            if not finished.tool_uses and not steered:
                return
            if not finished.tool_uses:
                self._add(*finished.reply())
            for part in steered:
                self._request = replace(
                    self._request, messages=with_user_text(self._request.messages, part.text)
                )
                yield UserMessage(part.message_id, part.text)
            if self._max_iterations and iteration >= self._max_iterations:
                self.stop_reason = MAX_ITERATIONS
                return

    def _steered_after(self, iteration: int, *, is_reply: bool) -> Sequence[UserTextPart]:
        """What the user had sent by then; after a reply all the rest, as nothing else is to follow."""
        due = [it for it in self._steered if is_reply or it.iteration <= iteration]
        self._steered = [it for it in self._steered if it not in due]
        return due

    async def _call_tool(self, use: ToolUse) -> tuple[ToolUse, ToolCalled]:
        use = await self._call_ids.settle(clean_use(use))
        called = self._open[use.id] = self._called(use)
        return use, called

    def _called(self, use: ToolUse) -> ToolCalled:
        known = self._servers.get(use.name)
        name, server = (known.tool_name, known.server) if known else (use.name, "")
        return ToolCalled(use.id, name, server, use.arguments, model_name=use.name)

    def _report(self, call: ModelCall) -> UsageReported:
        spent = self._spent(call)
        self._call, self.usage, self.stop_reason = None, self.usage + spent, call.stop_reason
        self.has_spoken = self.has_spoken or call.has_spoken
        return UsageReported.of(spent, self._model)

    def _spent(self, call: ModelCall) -> Usage:
        return call.usage.as_usage() if call.usage else estimate_usage(self._request, call.written)

    async def _results_of(self, finished: FinishedCall) -> AsyncGenerator[ToolResultStored]:
        """The recorded results of a model call's tools, added to the request."""
        if not finished.tool_uses:
            return
        taken = [(use, self._recorded.take(use)) for use in finished.tool_uses]
        for use, it in taken:
            if it is None:
                raise _NeedsTool(self._open[use.id])
            yield _result(self._open.pop(use.id), it)
        reads = [it.reads for _, it in taken if it is not None]
        self._add(*finished.with_results(reads, as_blocks=bool(self._request.tools)))

    def _add(self, *messages: ModelMessage) -> None:
        self._request = replace(self._request, messages=(*self._request.messages, *messages))


def _result(called: ToolCalled, recorded: RecordedCall) -> ToolResultStored:
    call, block = recorded.call, recorded.reads[0]
    is_error = call.error is not None
    return ToolResultStored(
        called.tool_call_id,
        called.tool_name,
        cast("ResultStatus", call.status.value),
        result=None if is_error else block.content,
        error=call.error,
        duration_ms=call.duration_ms or 0,
    )
