"""A user's usage, over HTTP."""

from datetime import date
from typing import Annotated

from msgspec import Meta, Struct, field

from threadkeep.domain.times import time_in
from threadkeep.http.requests.routing import Call
from threadkeep.wire.turns import DayUsageView, UsageReportView


class UsageQuery(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Which days, and which agent."""

    first: Annotated[
        date | None, Meta(description="The first day (UTC); by default, 29 days before the last.")
    ] = field(default=None, name="from")
    last: Annotated[date | None, Meta(description="The last day (UTC); by default, today.")] = field(
        default=None, name="to"
    )
    agent_id: Annotated[
        Annotated[str, Meta(pattern="^[0-9a-fA-F-]{36}$")] | None,
        Meta(description="Only turns with this agent."),
    ] = None


async def get_usage(call: Call, *, query: UsageQuery) -> UsageReportView:
    """Report how many turns you had and how many tokens they cost, by day (UTC) and agent."""
    days = await call.services.usages.by_day(
        call.user, first=query.first, last=query.last, agent_id=query.agent_id
    )
    return UsageReportView(
        items=[
            DayUsageView(
                date=time_in(it.day).date(),
                agent_id=it.agent_id,
                turns=it.turns,
                input_tokens=it.input_tokens,
                output_tokens=it.output_tokens,
                cache_read_tokens=it.cache_read_tokens,
                cache_write_tokens=it.cache_write_tokens,
                estimated=it.estimated,
            )
            for it in days
        ]
    )
