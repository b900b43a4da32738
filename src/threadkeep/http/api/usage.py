"""Usage and budgets, over HTTP."""

import csv
import io
from collections.abc import Sequence
from datetime import date
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, field

from threadkeep.domain.errors import InvalidRequest
from threadkeep.domain.ledger import DIMENSIONS, BudgetState, UsageSum
from threadkeep.domain.money import Cost, amount_text
from threadkeep.handling.routing import Attachment, RequestContext
from threadkeep.wire.messages import CostView, cost_view
from threadkeep.wire.turns import BudgetView, UsageReportView, UsageSumView
from threadkeep.wire.view import rfc3339

_FIELDS = {
    "day": "date",
    "user": "user_id",
    "agent": "agent_id",
    "key": "key_id",
    "model": "model",
    "purpose": "purpose",
}
"""What each dimension is called in a response."""
_NUMBERS = (
    "turns", "calls", "inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens", "estimated",
    "cost", "currency", "unpricedCalls", "reportedCalls", "reportedCost",
)  # fmt: skip
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""A cell that begins with one of these is a formula to a spreadsheet."""


class UsageQuery(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Which days, which agent, and how to group."""

    first: Annotated[
        date | None,
        Meta(description="The first day, in the operator's time zone; by default, 29 days before the last."),
    ] = field(default=None, name="from")
    last: Annotated[date | None, Meta(description="The last day; by default, today.")] = field(
        default=None, name="to"
    )
    agent_id: Annotated[
        Annotated[str, Meta(pattern="^[0-9a-fA-F-]{36}$")] | None,
        Meta(description="Only calls for this agent."),
    ] = None
    by: Annotated[
        str,
        Meta(
            max_length=100,
            description="What to group by: `day`, `agent`, `model`, `key`, `purpose`, separated by commas; "
            "admins also by `user`, which shows all users.",
        ),
    ] = "day,agent"
    format: Annotated[
        Literal["json", "csv"], Meta(description="`json` for programs, `csv` for a spreadsheet.")
    ] = "json"


async def get_usage(request: RequestContext, *, query: UsageQuery) -> UsageReportView | Attachment:
    """Report what your model calls used and cost, in groups, and what your budgets have left.

    With `format=csv` or `Accept: text/csv`, the groups as a table.
    """
    by = _dimensions(query.by)
    sums = await request.services.usages.sums(
        request.user, by, first=query.first, last=query.last, agent_id=query.agent_id
    )
    if query.format == "csv" or "text/csv" in request.http.headers.get("accept", ""):
        return _csv(sums, by)
    budgets = await request.services.usages.budgets(request.user)
    return UsageReportView(
        items=[_sum_view(it) for it in sums], budgets=[_budget_view(it, request) for it in budgets]
    )


def _dimensions(by: str) -> list[str]:
    asked = [it.strip() for it in by.split(",") if it.strip()]
    if unknown := [it for it in asked if it not in DIMENSIONS]:
        known = ", ".join(f"`{it}`" for it in DIMENSIONS)
        raise InvalidRequest(f"Usage can't be grouped by `{unknown[0]}`, only by {known}.", param="by")
    return [it for it in DIMENSIONS if it in asked]


def _sum_view(it: UsageSum) -> UsageSumView:
    group = {_FIELDS[name]: value for name, value in it.group.items()}
    return UsageSumView(
        date=date.fromisoformat(day) if (day := group.get("date")) else UNSET,
        user_id=group.get("user_id") or UNSET,
        agent_id=group.get("agent_id", UNSET),
        key_id=group.get("key_id", UNSET),
        model=group.get("model", UNSET),
        purpose=group.get("purpose") or UNSET,
        turns=it.turns,
        calls=it.calls,
        input_tokens=it.input_tokens,
        output_tokens=it.output_tokens,
        cache_read_tokens=it.cache_read_tokens,
        cache_write_tokens=it.cache_write_tokens,
        estimated=it.estimated,
        cost=_cost_view(it.cost, it, are_known=it.unpriced < it.calls),
        unpriced_calls=it.unpriced,
        reported_calls=it.reported,
        reported_cost=_cost_view(it.reported_cost, it, are_known=it.reported_cost > 0),
    )


def _cost_view(amount: int, it: UsageSum, *, are_known: bool) -> CostView | None:
    return cost_view(Cost.of(amount, it.currency) if it.currency and are_known else None)


def _budget_view(state: BudgetState, request: RequestContext) -> BudgetView:
    budget, spending = state.budget, request.services.spending
    return BudgetView(
        scope=budget.scope.value,
        id=budget.scope_id,
        period="month" if budget.is_monthly else "day",
        limit=amount_text(budget.limit),
        spent=amount_text(state.spent),
        reserved=amount_text(state.reserved),
        currency=spending.currency,
        resets_at=rfc3339(spending.resets_at(budget)),
    )


def _csv(sums: Sequence[UsageSum], by: Sequence[str]) -> Attachment:
    written = io.StringIO(newline="")
    table = csv.writer(written)
    table.writerow([*(_camel(_FIELDS[it]) for it in by), *_NUMBERS])
    for it in sums:
        cost = amount_text(it.cost) if it.currency and it.unpriced < it.calls else ""
        numbers = (it.turns, it.calls, it.input_tokens, it.output_tokens, it.cache_read_tokens)
        reported = amount_text(it.reported_cost) if it.reported_cost else ""
        more = (it.cache_write_tokens, str(it.estimated).lower(), cost, it.currency or "", it.unpriced)
        table.writerow(
            [*(_cell(it.group[name] or "") for name in by), *numbers, *more, it.reported, reported]
        )
    return Attachment(
        written.getvalue(),
        media_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": 'attachment; filename="usage.csv"'},
    )


def _cell(text: str) -> str:
    """A text that a spreadsheet shows as it is."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))
