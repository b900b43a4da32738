"""Reruns over HTTP: streamed like turns, but not stored; they end when their client leaves."""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, Struct
from starlette.requests import Request

from threadkeep.domain.events import TurnEvent
from threadkeep.handling.leaving import unless_client_leaves
from threadkeep.handling.routing import RequestContext
from threadkeep.handling.stream import EventStream, StreamEnd
from threadkeep.protocols.threadkeep.encode import event_frame
from threadkeep.services.reruns import FinishedRerun, Rerun, Run
from threadkeep.sse import frame
from threadkeep.wire.messages import FailureView, cost_view, usage_view
from threadkeep.wire.reruns import ModelRunView, RerunView, RunCallView

RESULT = "rerun"
"""The type of a stream's last event: the result, as JSON responses have it."""

_encode = msgspec.json.Encoder().encode


class RerunBody(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What to change; the rest is as it was in the turn."""

    model: Annotated[
        Annotated[str, Meta(min_length=1, max_length=200)] | None,
        Meta(description="One that the agent offers; by default, the turn's."),
    ] = None
    temperature: Annotated[
        Annotated[float, Meta(ge=0, le=2)] | None,
        Meta(description="How freely the model chooses words; by default, as in the turn."),
    ] = None
    system_prompt: Annotated[
        Annotated[str, Meta(max_length=100_000)] | None,
        Meta(description="In place of the agent's own; only for the agent's owner."),
    ] = None


async def rerun_turn(request: RequestContext, *, turn_id: str, body: RerunBody) -> EventStream | RerunView:
    """Run a turn's stored request again, beside its conversation, which stays as it is.

    A tool call that the turn made, too, takes its result; any other ends the rerun with `NEEDS_TOOL`. You can
    run your own turns with the models that the agent offers. As the agent's owner, you can also run those
    that their users share with you, with any model.

    The response streams events like those of a turn, then one of the type `rerun` with the whole result. With
    `Accept: application/json`, it is that result. Nothing is stored: the rerun ends when you leave.
    A repeated request with the same `Idempotency-Key` gets the first result: of a stream, its last event.
    """
    rerun = await request.services.reruns.prepare(
        request.user,
        turn_id,
        model=body.model,
        temperature=body.temperature,
        system_prompt=body.system_prompt,
    )
    accept = request.http.headers.get("accept", "")
    if "application/json" in accept and "text/event-stream" not in accept:
        return _rerun_view(await _finished(rerun, request.http))
    return EventStream(rerun, _Frames(rerun), {})


async def _finished(rerun: Rerun, request: Request) -> FinishedRerun:
    """Runs to the end, unless the client leaves before."""

    async def run() -> None:
        async with rerun:
            async for _ in rerun:
                pass

    await unless_client_leaves(request, run())
    finished = rerun.finished()
    if (over_budget := rerun.spending.refused) is not None and not finished.rerun.text:
        raise over_budget
    return finished


class _Frames:
    """A rerun in the `events` dialect, with its result at the end."""

    def __init__(self, rerun: Rerun) -> None:
        self._rerun = rerun

    def encode_chunk(self, chunk: TurnEvent, /) -> bytes:
        """One frame."""
        return event_frame(chunk)

    def end(self, how: StreamEnd) -> bytes:
        """The result."""
        return frame(_encode(_rerun_view(self._rerun.finished())), event=RESULT)


def _rerun_view(finished: FinishedRerun) -> RerunView:
    failure = finished.failure
    return RerunView(
        turn_id=finished.turn_id,
        question=finished.question,
        outcome=finished.outcome,
        rerun=_run_view(finished.rerun),
        original=_run_view(finished.original),
        error=FailureView(code=failure.code, message=failure.message, retryable=failure.retryable)
        if failure
        else UNSET,
    )


def _run_view(run: Run) -> ModelRunView:
    return ModelRunView(
        model=run.model,
        text=run.text,
        calls=[
            RunCallView(
                tool_name=call.call.tool_name,
                server=call.call.server,
                arguments=call.arguments,
                status=call.call.status,
                in_both=call.in_both,
            )
            for call in run.calls
        ],
        usage=usage_view(run.usage),
        cost=cost_view(run.usage.cost),
        duration_ms=run.duration_ms,
    )
