"""Charges: adds calls to the ledger and counts them in what their users, agents and keys have spent.

They are counted whether or not there is a budget, so that one that is set later finds what was spent, and
nothing ever sums up the ledger for it. A turn's calls are charged in the transaction that stores their usage
events. Charging is the last step of any transaction, and rows of `tk_spending` are written in order, so that
two nodes never wait for each other.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from threadkeep.domain.ids import TurnId
from threadkeep.domain.ledger import Charge
from threadkeep.domain.money import MOST, UNIT, BudgetScope, Cost, month_of
from threadkeep.storage.database.columns import to_json
from threadkeep.storage.database.connector import Plan, Rows, Statement

SpendingKey = tuple[str, str, str, str]
"""A row of `tk_spending`: scope, scope_id, period and currency."""

_LEDGER: Mapping[str, tuple[str, Callable[[Charge], Any]]] = {
    "id": ("uuid", lambda it: it.id),
    "user_id": ("text", lambda it: it.payer.user_id),
    "agent_id": ("uuid", lambda it: it.payer.agent_id),
    "key_id": ("uuid", lambda it: it.payer.key_id),
    "purpose": ("text", lambda it: it.purpose),
    "model": ("text", lambda it: it.model),
    "input_tokens": ("bigint", lambda it: it.usage.input_tokens),
    "output_tokens": ("bigint", lambda it: it.usage.output_tokens),
    "cache_read_tokens": ("bigint", lambda it: it.usage.cache_read_tokens),
    "cache_write_tokens": ("bigint", lambda it: it.usage.cache_write_tokens),
    "estimated": ("boolean", lambda it: it.usage.estimated),
    "cost": ("bigint", lambda it: _amount_of(it.usage.cost)),
    "currency": ("text", lambda it: _currency_of(it.usage.cost or it.reported_cost)),
    "turns": ("bigint", lambda it: int(it.is_first)),
    "at": ("bigint", lambda it: it.at),
    "day": ("text", lambda it: it.day),
    "reported": ("boolean", lambda it: it.is_reported),
    "reported_cost": ("bigint", lambda it: _amount_of(it.reported_cost)),
}
"""A charge as a row of `tk_ledger`: each column, its type, and what it holds."""
LEDGER_COLUMNS = ", ".join(_LEDGER)
_GIVEN = ", ".join(f"json_extract(value, '$.{column}')" for column in _LEDGER)
_GIVEN_ON_POSTGRES = ", ".join(
    f"CAST(value ->> '{column}' AS {type_})" for column, (type_, _) in _LEDGER.items()
)
MOST_COUNTED = MOST * UNIT
"""Of what is spent: no budget is larger, and the databases' numbers hardly are."""
_SPENDING = "tk_spending (scope, scope_id, period, currency, spent, reserved)"
_COUNTED = f"""ON CONFLICT (scope, scope_id, period, currency) DO UPDATE
    SET spent = MIN(tk_spending.spent + excluded.spent, {MOST_COUNTED}),
        reserved = tk_spending.reserved + excluded.reserved"""
_COUNTED_ON_POSTGRES = f"""ON CONFLICT (scope, scope_id, period, currency) DO UPDATE
    SET spent = LEAST(CAST(tk_spending.spent AS numeric) + excluded.spent, {MOST_COUNTED}),
        reserved = tk_spending.reserved + excluded.reserved"""


def charging(accepted: str | None = None) -> str:
    """The parts of a PostgreSQL statement that charge `:charges`; those of `accepted` turns, if it is a part
    that returns their ids.

    A call that is in the ledger already changes nothing.
    """
    where = f"WHERE CAST(value ->> 'turn_id' AS uuid) IN (SELECT {accepted})" if accepted else ""
    return f"""given ({LEDGER_COLUMNS}, reservation_id, turn_id, within) AS (
        SELECT {_GIVEN_ON_POSTGRES},
            CAST(value ->> 'reservation_id' AS uuid), CAST(value ->> 'turn_id' AS uuid), value -> 'within'
        FROM json_array_elements(CAST(:charges AS json)) {where}),
    charged AS (INSERT INTO tk_ledger ({LEDGER_COLUMNS}) SELECT {LEDGER_COLUMNS} FROM given
        ON CONFLICT DO NOTHING RETURNING id, user_id, agent_id, key_id, cost, currency, day),
    settled AS (DELETE FROM tk_reservations USING given JOIN charged ON charged.id = given.id
        WHERE tk_reservations.id = given.reservation_id
        RETURNING tk_reservations.amount, tk_reservations.currency, tk_reservations.held_by),
    changes (scope, scope_id, period, currency, spent, reserved) AS (
        SELECT scope, scope_id, period, currency, SUM(spent), SUM(reserved)
        FROM (SELECT held.scope, held.scope_id, held.period, currency, cost AS spent, 0 AS reserved
            FROM charged, LATERAL (VALUES ('user', user_id, day), ('user', user_id, left(day, 7)),
                ('agent', CAST(agent_id AS text), left(day, 7)), ('key', CAST(key_id AS text), left(day, 7))
            ) AS held (scope, scope_id, period) WHERE cost > 0 AND held.scope_id IS NOT NULL
            UNION ALL SELECT 'agent', outer_id, left(charged.day, 7), charged.currency, charged.cost, 0
            FROM charged JOIN given ON given.id = charged.id,
                json_array_elements_text(given.within) AS outer_id WHERE charged.cost > 0
            UNION ALL SELECT held ->> 0, held ->> 1, held ->> 2, currency, 0, -amount
            FROM settled, json_array_elements(CAST(held_by AS json)) AS held) AS change
        GROUP BY scope, scope_id, period, currency),
    counted AS (INSERT INTO {_SPENDING}
        SELECT scope, scope_id, period, currency, LEAST(spent, {MOST_COUNTED}), reserved FROM changes
        ORDER BY scope, scope_id, period, currency
        {_COUNTED_ON_POSTGRES})"""


# On PostgreSQL one statement does everything and returns nothing. SQLite adds the rows and says whether
# anything is reserved; the rest follows in steps of the same transaction.
_CHARGE = Statement(
    f"""INSERT INTO tk_ledger ({LEDGER_COLUMNS})
    SELECT {_GIVEN} FROM json_each(:charges) WHERE TRUE
    ON CONFLICT DO NOTHING RETURNING id, EXISTS (SELECT 1 FROM tk_reservations)""",
    postgres=f"WITH {charging()} SELECT 1 WHERE FALSE",
)
FREE = Statement(
    "DELETE FROM tk_reservations WHERE id IN ({ids}) RETURNING amount, currency, held_by",
)
# In order, so that it never waits for a row while it holds a later one.
_COUNT = Statement(
    f"""INSERT INTO {_SPENDING}
    SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'),
        json_extract(value, '$[3]'), json_extract(value, '$[4]'), json_extract(value, '$[5]')
    FROM json_each(:changes) WHERE TRUE
    {_COUNTED}""",
    postgres=f"""INSERT INTO {_SPENDING}
    SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, CAST(value ->> 4 AS bigint),
        CAST(value ->> 5 AS bigint)
    FROM json_array_elements(CAST(:changes AS json)) AS given (value) ORDER BY 1, 2, 3, 4
    {_COUNTED_ON_POSTGRES}""",
)


def ledger_rows(charges: Iterable[Charge], turn_id: TurnId | None = None) -> list[dict[str, Any]]:
    """Charges as `:charges` has them: their rows, what they settle, and their turn."""
    return [
        {column: value(charge) for column, (_, value) in _LEDGER.items()}
        | {
            "reservation_id": charge.reservation_id,
            "turn_id": turn_id,
            "within": charge.payer.within,
        }
        for charge in charges
    ]


def _amount_of(cost: Cost | None) -> int | None:
    return cost and cost.trillionths


def _currency_of(cost: Cost | None) -> str | None:
    return cost and cost.currency


def add_charges(charges: Sequence[Charge]) -> Plan[None]:
    """Adds calls to the ledger, settles what was reserved for them, and counts what they cost."""
    added = yield _CHARGE(charges=to_json(ledger_rows(charges)))
    if not added:
        return
    new = {id_ for id_, _ in added}
    charged = [it for it in charges if it.id in new]
    has_reservations = added[0][1]
    freed = (yield FREE(ids=to_json([it.reservation_id for it in charged]))) if has_reservations else ()
    paid = ((it, it.usage.cost) for it in charged if it.usage.cost)
    yield from count_spending(
        ((key, cost.trillionths) for it, cost in paid for key in _keys_of(it, cost)), released(freed)
    )


def count_spending(
    spent: Iterable[tuple[SpendingKey, int]],
    reserved: Iterable[tuple[SpendingKey, int]],
    also: Iterable[SpendingKey] = (),
) -> Plan[None]:
    """Adds to what is spent and reserved. These rows, and those of `also`, are then locked."""
    changes: dict[SpendingKey, list[int]] = {key: [0, 0] for key in also}
    for key, amount in spent:
        if amount:
            changes.setdefault(key, [0, 0])[0] += amount
    for key, amount in reserved:
        changes.setdefault(key, [0, 0])[1] += amount
    if changes:
        rows = ((*key, min(paid, MOST_COUNTED), held) for key, (paid, held) in changes.items())
        yield _COUNT(changes=to_json(list(rows)))


def released(freed: Rows) -> Iterator[tuple[SpendingKey, int]]:
    """What freed reservations take back from the budgets that counted them."""
    for amount, currency, held_by in freed:
        for scope, scope_id, period in msgspec.json.decode(held_by):
            yield (scope, scope_id, period, currency), -amount


def _keys_of(charge: Charge, cost: Cost) -> Iterator[SpendingKey]:
    """What a call counts towards."""
    payer, month = charge.payer, month_of(charge.day)
    yield BudgetScope.USER, payer.user_id, charge.day, cost.currency
    yield BudgetScope.USER, payer.user_id, month, cost.currency
    for agent_id in (payer.agent_id, *payer.within):
        if agent_id:
            yield BudgetScope.AGENT, agent_id, month, cost.currency
    if payer.key_id:
        yield BudgetScope.KEY, payer.key_id, month, cost.currency
