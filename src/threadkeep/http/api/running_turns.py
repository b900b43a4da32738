"""Turns that run or wait, and the processes that run programs, over HTTP, for admins."""

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta

from threadkeep.domain.agent import SeenWorker
from threadkeep.domain.turn import ActiveFilter, RunningTurn
from threadkeep.handling.paging import PageQuery, Pager
from threadkeep.handling.routing import RequestContext
from threadkeep.wire.turns import ProgramView, RunningTurnView, StoppedTurnView, WorkersView, WorkerView
from threadkeep.wire.view import PageView, rfc3339


class RunningTurnsQuery(PageQuery, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Which page of the turns, and which of them."""

    agent: (
        Annotated[str, Meta(max_length=64, description="The key of the program that is their agent.")] | None
    ) = None
    step: Annotated[str, Meta(max_length=200, description="The step that they are in.")] | None = None
    older_than_s: (
        Annotated[float, Meta(ge=0, le=10**9, description="How long ago they began, at least.")] | None
    ) = None
    waits_for: Annotated[
        Literal["person", "worker", "nothing"] | None, Meta(description="Only turns that wait for this.")
    ] = None


async def list_running_turns(
    request: RequestContext, *, query: RunningTurnsQuery
) -> PageView[RunningTurnView]:
    """List all users' turns that run or wait, on all nodes, oldest first, without content. For admins."""
    pager = Pager(request.cursors, request.user, "running turns", query)
    only = ActiveFilter(
        code_key=query.agent,
        step=query.step,
        older_than_ms=None if query.older_than_s is None else round(query.older_than_s * 1000),
        waits_for=query.waits_for,
    )
    found = await request.services.running_turns.page(
        request.user, after=pager.after(str), offset=pager.offset, limit=pager.fetch_limit, only=only
    )
    return pager.page(found, lambda turn: turn.id, _views)


async def stop_running_turn(request: RequestContext, *, turn_id: str) -> StoppedTurnView:
    """Stop any user's turn and keep its partial answer. For admins; the audit log records it."""
    stopped = await request.services.running_turns.abort(request.user, turn_id)
    return StoppedTurnView(turn_id=turn_id.lower(), status="GENERATION_ABORTED" if stopped else "IDLE")


async def list_workers(request: RequestContext) -> WorkersView:
    """List the processes that run agents in code, on all nodes, the oldest first. For admins."""
    return WorkersView(items=[_worker(it) for it in await request.services.workers.all(request.user)])


def _views(turns: Sequence[RunningTurn]) -> list[RunningTurnView]:
    return [
        RunningTurnView(
            id=turn.id,
            conversation_id=turn.conversation_id,
            user_id=turn.user_id,
            agent_id=turn.agent_id,
            node_id=turn.node_id,
            model=turn.model,
            started_at=rfc3339(turn.started_at),
            state=_state(turn),
            agent=turn.code.key if turn.code else None,
            code_version=turn.code.version if turn.code else None,
            step=turn.step.name if turn.step else None,
            step_since=rfc3339(turn.step.since) if turn.step else None,
            worker=turn.node_id if turn.code and not turn.waits_for else None,
            waits_for=turn.waits_for,
        )
        for turn in turns
    ]


def _state(turn: RunningTurn) -> Literal["running", "aborting", "stalled", "waiting"]:
    if turn.is_aborting:
        return "aborting"
    if turn.waits_for:
        return "waiting"
    return "stalled" if turn.is_stalled else "running"


def _worker(worker: SeenWorker) -> WorkerView:
    return WorkerView(
        id=worker.id,
        name=worker.name,
        node=worker.node,
        sdk=worker.sdk,
        agents=[ProgramView(key=it.key, version=it.version) for it in worker.codes],
        capacity=worker.capacity,
        running=worker.running,
        connected_at=rfc3339(worker.connected_at),
        last_beat_at=rfc3339(worker.seen_at),
        blocked_ms=worker.blocked_ms,
        is_draining=worker.is_draining,
    )
