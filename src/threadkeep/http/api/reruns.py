"""Reruns over HTTP: streamed like turns, but not stored; they end when their client leaves."""

import asyncio
from collections.abc import Sequence
from types import TracebackType
from typing import Annotated, Self

import msgspec
from msgspec import UNSET, Meta, Struct
from starlette.requests import Request

from threadkeep.domain.events import TurnEvent
from threadkeep.handling.leaving import unless_client_leaves
from threadkeep.handling.routing import RequestContext
from threadkeep.handling.stream import EventStream, StreamEnd
from threadkeep.logs import add_to_subject
from threadkeep.protocols.threadkeep.encode import event_frame
from threadkeep.services.reruns import FinishedRerun, Rerun, RerunChanges, Run
from threadkeep.sse import frame
from threadkeep.tasks import end_tasks
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
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
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
    """
    changes = RerunChanges(model=body.model, temperature=body.temperature, system_prompt=body.system_prompt)
    rerun = await request.services.reruns.prepare(request.user, turn_id, changes)
    add_to_subject(turn_id=turn_id.lower())
    accept = request.http.headers.get("accept", "")
    if "application/json" in accept and "text/event-stream" not in accept:
        return _rerun_view(await _finished(rerun, request.http))
    return EventStream(_Running(rerun), _Frames(), {})


async def _finished(rerun: Rerun, request: Request) -> FinishedRerun:
    """Runs to the end, unless the client leaves before."""

    async def run() -> None:
        async for _ in rerun.events():
            pass

    await unless_client_leaves(request, run())
    finished = rerun.finished()
    if rerun.over_budget is not None and not finished.rerun.text:
        raise rerun.over_budget
    return finished


class _Running:
    """A rerun that goes on while somebody reads its events."""

    is_paused = False

    def __init__(self, rerun: Rerun) -> None:
        self._rerun = rerun
        self._task: asyncio.Task[None] | None = None
        self._arrived: list[TurnEvent | RerunView] = []
        self._news = asyncio.Event()
        self.has_ended = False

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._task
        await end_tasks(self._task)

    async def _run(self) -> None:
        try:
            async for event in self._rerun.events():
                self._arrived.append(event)
                self._news.set()
            self._arrived.append(_rerun_view(self._rerun.finished()))
            self.has_ended = True
        finally:
            self._news.set()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Sequence[TurnEvent | RerunView]:
        assert self._task
        if not self._arrived and (self.has_ended or self._task.done()):
            raise StopAsyncIteration
        await self._news.wait()
        self._news.clear()
        arrived, self._arrived = self._arrived, []
        if self.has_ended or self._task.done():
            self._news.set()
        return arrived

    def wake(self) -> None:
        """Wakes the reader."""
        self._news.set()


class _Frames:
    """A rerun in the `events` dialect, with its result at the end."""

    def encode_chunk(self, chunk: TurnEvent | RerunView, /) -> bytes:
        """One frame."""
        if isinstance(chunk, TurnEvent):
            return event_frame(chunk)
        return frame(_encode(chunk), event=RESULT)

    def end(self, how: StreamEnd) -> bytes:
        """Nothing: the result ends it."""
        return b""


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
                tool_name=it.call.tool_name,
                server=it.call.server,
                arguments=it.arguments,
                status=it.call.status,
                in_both=it.in_both,
            )
            for it in run.calls
        ],
        usage=usage_view(run.usage),
        cost=cost_view(run.usage.cost),
        duration_ms=run.duration_ms,
    )
