"""Money: what the ledger says is what the model was asked for."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from tests.proof.checker.found import Found


def money_is_right(found: Found) -> Iterator[str]:
    """Each answered call is charged once, with what the model said; under a budget, none is forgotten."""
    price_in, price_out = found.seen.price
    answered: dict[str, Counter[tuple[int, int]]] = defaultdict(Counter)
    made = Counter[str]()
    for call in found.seen.calls:
        user = call.mark.split("-")[0]
        if call.status == "answered":
            answered[user][call.input_tokens, max(call.output_tokens, 1)] += 1
        if call.status != "refused":
            made[user] += 1
    charged: dict[str, Counter[tuple[int, int]]] = defaultdict(Counter)
    cost, rows = Counter[str](), Counter[str]()
    query = (
        "SELECT user_id, input_tokens, output_tokens, estimated, cost FROM tk_ledger WHERE purpose = 'turn'"
    )
    for user, input_tokens, output_tokens, is_estimated, amount in found.rows(query):
        rows[user] += 1
        cost[user] += amount or 0
        if not is_estimated:
            charged[user][input_tokens, output_tokens] += 1
            if amount != input_tokens * price_in + output_tokens * price_out:
                yield f"{user} was charged {amount} for {input_tokens} + {output_tokens} tokens"
    for user in sorted({*charged, *answered}):
        if extra := charged[user] - answered[user]:
            yield f"{user} was charged for calls that the model didn't answer so: {dict(extra)}"
        if rows[user] > made[user] + found.seen.losses:
            yield f"{user} was charged {rows[user]} times for {made[user]} calls"
        least = sum((i * price_in + o * price_out) * n for (i, o), n in answered[user].items())
        if found.seen.budget is not None and cost[user] < least:
            yield f"{user} was charged {cost[user]}, but the model's answers cost {least}"
    yield from _charged_as_shown(found, charged)


def _charged_as_shown(found: Found, charged: dict[str, Counter[tuple[int, int]]]) -> Iterator[str]:
    """Every usage that was shown is in the ledger, and the other way round."""
    shown: dict[str, Counter[tuple[int, int]]] = defaultdict(Counter)
    untold: set[str] = set()
    for turn in found.turns:
        if turn.id not in found.seen.replays:
            untold.add(turn.user)  # its log is gone
        for event in found.seen.replays.get(turn.id, ()):
            if event["type"] == "usage" and not event["estimated"]:
                shown[turn.user][event["input_tokens"], event["output_tokens"]] += 1
    for user in sorted({*shown, *charged}):
        if missing := shown[user] - charged[user]:
            yield f"{user} was shown usage that isn't in the ledger: {dict(missing)}"
        if user not in untold and (extra := charged[user] - shown[user]):
            yield f"{user} was charged for usage that was never shown: {dict(extra)}"


def no_budget_was_passed(found: Found) -> Iterator[str]:
    """Nobody spent more than they may; no reservation is left, and sums are what the ledger adds up to."""
    spent: dict[str, Any] = dict(found.rows("SELECT user_id, sum(cost) FROM tk_ledger GROUP BY user_id"))
    if found.seen.budget is not None:
        for user, amount in spent.items():
            if (amount or 0) > found.seen.budget:
                yield f"{user} spent {amount} of {found.seen.budget}"
    for id_, user, turn in found.rows("SELECT id, user_id, turn_id FROM tk_reservations"):
        yield f"a reservation of {user} was never settled: {id_}, turn {turn}"
