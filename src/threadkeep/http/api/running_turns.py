"""Running turns over HTTP, for admins."""

from collections.abc import Sequence

from threadkeep.domain.turn import RunningTurn
from threadkeep.handling.paging import PageQuery, Pager
from threadkeep.handling.routing import RequestContext
from threadkeep.wire.turns import RunningTurnView, StoppedTurnView
from threadkeep.wire.view import PageView, rfc3339


async def list_running_turns(request: RequestContext, *, query: PageQuery) -> PageView[RunningTurnView]:
    """List the running turns of all users on all nodes, oldest first, without content. For admins."""
    pager = Pager(request.cursors, request.user, "running turns", query)
    found = await request.services.running_turns.page(
        request.user, after=pager.after(str), offset=pager.offset, limit=pager.fetch_limit
    )
    return pager.page(found, lambda turn: turn.id, _views)


async def abort_running_turn(request: RequestContext, *, turn_id: str) -> StoppedTurnView:
    """Stop any user's turn and keep its partial answer. For admins; the audit log records it."""
    stopped = await request.services.running_turns.abort(request.user, turn_id)
    return StoppedTurnView(turn_id=turn_id.lower(), status="GENERATION_ABORTED" if stopped else "IDLE")


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
            state="aborting" if turn.is_aborting else "stalled" if turn.is_stalled else "running",
            agent=turn.code.key if turn.code else None,
            code_version=turn.code.version if turn.code else None,
            waits_for="worker" if turn.waits_for_program else None,
        )
        for turn in turns
    ]
