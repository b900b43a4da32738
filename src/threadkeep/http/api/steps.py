"""Steps of agents in code over HTTP."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any

from msgspec import UNSET, Meta, Raw, UnsetType

from threadkeep.handling.paging import PageQuery, Pager
from threadkeep.handling.routing import RequestContext
from threadkeep.services.replies.steps import RecordedStep, ShownSteps
from threadkeep.wire.steps import CodeView, DivergedView, StepErrorView, StepsView, StepView
from threadkeep.wire.view import rfc3339


class StepsQuery(PageQuery, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Which page of a turn's steps, and how much of them."""

    values: Annotated[
        bool,
        Meta(description="Results and hidden steps, too, if you are the agent's owner or an admin."),
    ] = False


async def list_turn_steps(request: RequestContext, *, turn_id: str, query: StepsQuery) -> StepsView:
    """List what an agent in code did in a turn, in order of begin; of other agents, tool calls and questions.

    Results, errors and hidden steps are only for users who may see the agent's insides.
    """
    shown = await request.services.steps.of(request.user, turn_id)
    return await _page(request, shown, query, with_values=query.values and shown.is_open, with_titles=True)


async def list_running_turn_steps(request: RequestContext, *, turn_id: str, query: PageQuery) -> StepsView:
    """List the steps of any user's turn without results, errors and titles. For admins."""
    shown = await request.services.steps.for_admin(request.user, turn_id)
    return await _page(request, shown, query, with_values=False, with_titles=False)


async def _page(
    request: RequestContext, shown: ShownSteps, query: PageQuery, *, with_values: bool, with_titles: bool
) -> StepsView:
    pager = Pager(request.cursors, request.user, f"steps {shown.turn.id}", query)
    after = pager.after(int) or 0
    recorded = shown.recorded
    after_it = (it for it in recorded.steps if it.number > after)
    steps = [it for it in after_it if not it.is_hidden or (with_values and shown.shows(it))]
    some = steps[pager.offset : pager.offset + pager.fetch_limit]
    open_ = [it for it in some[: query.limit] if shown.shows(it)]
    values = await request.services.steps.values(shown.turn, open_) if with_values else None
    views = partial(_views, shown, values=values, with_titles=with_titles)
    page = pager.page(some, lambda step: step.number, views)
    code, diverged = recorded.code or shown.turn.code, recorded.diverged if shown.is_open else None
    return StepsView(
        items=page.items,
        next_cursor=page.next_cursor,
        code=CodeView(key=code.key, version=code.version) if code else None,
        diverged=DivergedView(recorded=diverged.recorded, asked=diverged.asked) if diverged else UNSET,
    )


def _views(
    shown: ShownSteps,
    steps: Sequence[RecordedStep],
    *,
    values: Mapping[str, bytes] | None,
    with_titles: bool,
) -> list[StepView]:
    return [
        StepView(
            step_id=step.step_id,
            name=step.name,
            title=step.title if with_titles else None,
            kind=step.kind,
            status=step.status,
            effect=step.effect,
            attempt=step.attempt,
            started_at=rfc3339(step.started_at),
            duration_ms=step.duration_ms,
            bytes=step.size,
            agent=step.agent,
            parent_id=step.parent_id,
            error=_error(step) if shown.shows(step) else UNSET,
            value=UNSET if values is None or not shown.shows(step) else _value(step, values),
            hidden=step.is_hidden,
        )
        for step in steps
    ]


def _error(step: RecordedStep) -> StepErrorView | UnsetType:
    error = step.error
    return UNSET if error is None else StepErrorView(type=error.type, message=error.message)


def _value(step: RecordedStep, values: Mapping[str, bytes]) -> Any:
    if step.ref is not None:
        return Raw(values[step.ref])
    return UNSET if step.value is None else step.value
