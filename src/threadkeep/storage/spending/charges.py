"""Charges: adds calls to the ledger and counts them in the budgets that are in use.

A turn's calls are charged in the transaction that stores their usage events. Charging is the last step of any
transaction, and rows of `tk_spending` are locked in order, so that two nodes never wait for each other.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from threadkeep.domain.ids import TurnId
from threadkeep.domain.money import BudgetScope, Cost, Payer, month_of
from threadkeep.ports.ledger import Charge
from threadkeep.storage.database.columns import to_json
from threadkeep.storage.database.connector import Plan, Rows, Statement

SpendingKey = tuple[str, str, str, str]
"""A row of `tk_spending`: scope, scope_id, period and currency."""

LEDGER_COLUMNS = """id, user_id, agent_id, key_id, purpose, model, input_tokens, output_tokens,
    cache_read_tokens, cache_write_tokens, estimated, cost, currency, turns, at, day"""
_TYPES = [
    *("uuid", "text", "uuid", "uuid", "text", "text", "bigint", "bigint", "bigint", "bigint", "boolean"),
    *("bigint", "text", "bigint", "bigint", "text", "uuid", "uuid"),
]
_EXTRACTED = ", ".join(f"json_extract(value, '$[{at}]')" for at in range(16))
_IS_CHANGED = """scope = change ->> 0 AND scope_id = change ->> 1 AND period = change ->> 2
        AND currency = change ->> 3"""


def charging(accepted: str | None = None) -> str:
    """The parts of a PostgreSQL statement that charge `:charges`; those of `accepted` turns, if it is a part
    that returns their ids.

    A call that is in the ledger already changes nothing. The rows of `tk_spending` are locked before any
    is changed; most calls have none.
    """
    given = ", ".join(f"CAST(value ->> {at} AS {type_})" for at, type_ in enumerate(_TYPES))
    where = f"WHERE CAST(value ->> 17 AS uuid) IN (SELECT {accepted})" if accepted else ""
    return f"""given ({LEDGER_COLUMNS}, reservation_id, turn_id) AS (
        SELECT {given} FROM json_array_elements(CAST(:charges AS json)) {where}),
    charged AS (INSERT INTO tk_ledger ({LEDGER_COLUMNS}) SELECT {LEDGER_COLUMNS} FROM given
        ON CONFLICT DO NOTHING RETURNING id, user_id, agent_id, key_id, cost, currency, day),
    settled AS (DELETE FROM tk_reservations USING given JOIN charged ON charged.id = given.id
        WHERE tk_reservations.id = given.reservation_id
        RETURNING tk_reservations.amount, tk_reservations.currency, tk_reservations.held_by),
    changes (scope, scope_id, period, currency, spent, reserved) AS (
        SELECT scope, scope_id, period, currency, CAST(SUM(spent) AS bigint), CAST(SUM(reserved) AS bigint)
        FROM (SELECT held.scope, held.scope_id, held.period, currency, cost AS spent, 0 AS reserved
            FROM charged, LATERAL (VALUES ('user', user_id, day), ('user', user_id, left(day, 7)),
                ('agent', CAST(agent_id AS text), left(day, 7)), ('key', CAST(key_id AS text), left(day, 7))
            ) AS held (scope, scope_id, period) WHERE cost IS NOT NULL
            UNION ALL SELECT held ->> 0, held ->> 1, held ->> 2, currency, 0, -amount
            FROM settled, json_array_elements(CAST(held_by AS json)) AS held) AS change
        GROUP BY scope, scope_id, period, currency),
    locked AS MATERIALIZED (SELECT scope, scope_id, period, currency, changes.spent, changes.reserved
        FROM tk_spending JOIN changes USING (scope, scope_id, period, currency)
        ORDER BY scope, scope_id, period, currency FOR UPDATE OF tk_spending),
    spent AS (UPDATE tk_spending AS kept
        SET spent = kept.spent + locked.spent, reserved = kept.reserved + locked.reserved FROM locked
        WHERE kept.scope = locked.scope AND kept.scope_id = locked.scope_id AND kept.period = locked.period
            AND kept.currency = locked.currency)"""


# On PostgreSQL one statement does everything and returns nothing. SQLite adds the rows and says whether any
# budget is in use; if so, the rest follows in steps of the same transaction.
_CHARGE = Statement(
    f"""INSERT INTO tk_ledger ({LEDGER_COLUMNS})
    SELECT {_EXTRACTED} FROM json_each(:charges) WHERE TRUE
    ON CONFLICT DO NOTHING RETURNING id, EXISTS (SELECT 1 FROM tk_spending)""",
    postgres=f"WITH {charging()} SELECT 1 WHERE FALSE",
)
_FREE = Statement(
    "DELETE FROM tk_reservations WHERE id IN ({ids}) RETURNING amount, currency, held_by",
)
# A step of its own, so that an update never waits while it holds a later row.
_LOCK = Statement(
    "SELECT 1 WHERE FALSE",
    postgres=f"""SELECT 1 FROM tk_spending JOIN json_array_elements(CAST(:changes AS json)) AS change
        ON {_IS_CHANGED}
    ORDER BY scope, scope_id, period, currency FOR UPDATE OF tk_spending""",
)
_CHANGE = Statement(
    """UPDATE tk_spending SET spent = spent + more_spent, reserved = reserved + more_reserved
    FROM (SELECT json_extract(value, '$[0]') AS of_scope, json_extract(value, '$[1]') AS of_id,
            json_extract(value, '$[2]') AS of_period, json_extract(value, '$[3]') AS of_currency,
            json_extract(value, '$[4]') AS more_spent, json_extract(value, '$[5]') AS more_reserved
        FROM json_each(:changes)) AS change
    WHERE scope = of_scope AND scope_id = of_id AND period = of_period AND currency = of_currency""",
    postgres=f"""UPDATE tk_spending SET spent = spent + CAST(change ->> 4 AS bigint),
        reserved = reserved + CAST(change ->> 5 AS bigint)
    FROM json_array_elements(CAST(:changes AS json)) AS change
    WHERE {_IS_CHANGED}""",
)


def charge_values(charges: Iterable[Charge], turn_id: TurnId | None = None) -> list[tuple[Any, ...]]:
    """Charges as rows of `:charges`, with what they settle and their turn."""
    return [
        (
            it.id, it.payer.user_id, it.payer.agent_id, it.payer.key_id, it.purpose, it.model,
            it.usage.input_tokens, it.usage.output_tokens, it.usage.cache_read_tokens,
            it.usage.cache_write_tokens, it.usage.estimated, *_cost_values(it.usage.cost),
            int(it.is_first), it.at, it.day, it.reservation_id, turn_id,
        )
        for it in charges
    ]  # fmt: skip


def _cost_values(cost: Cost | None) -> tuple[int | None, str | None]:
    return (cost.trillionths, cost.currency) if cost else (None, None)


def add_charges(charges: Sequence[Charge]) -> Plan[None]:
    """Adds calls to the ledger, settles what was reserved for them, and counts them in their budgets."""
    added = yield _CHARGE(charges=to_json(charge_values(charges)))
    if not added or not added[0][1]:
        return
    new = {id_ for id_, _ in added}
    charged = [it for it in charges if it.id in new]
    freed = yield _FREE(ids=to_json([it.reservation_id for it in charged]))
    spent = ((key, it.usage.cost.trillionths) for it in charged if it.usage.cost for key in _keys_of(it))
    yield from change_spending(spent, released(freed))


def give_back(reservation_ids: Sequence[str]) -> Plan[None]:
    """Gives back what was reserved for calls that were not billed."""
    freed = yield _FREE(ids=to_json(reservation_ids))
    yield from change_spending((), released(freed))


def change_spending(
    spent: Iterable[tuple[SpendingKey, int]], reserved: Iterable[tuple[SpendingKey, int]]
) -> Plan[None]:
    """Adds to what budgets have spent and reserved, where these are in use."""
    changes: defaultdict[SpendingKey, list[int]] = defaultdict(lambda: [0, 0])
    for key, amount in spent:
        changes[key][0] += amount
    for key, amount in reserved:
        changes[key][1] += amount
    if changes:
        rows = to_json([(*key, *amounts) for key, amounts in changes.items()])
        yield _LOCK(changes=rows)
        yield _CHANGE(changes=rows)


def released(freed: Rows) -> Iterator[tuple[SpendingKey, int]]:
    """What freed reservations take back from the budgets that counted them."""
    for amount, currency, held_by in freed:
        for scope, scope_id, period in msgspec.json.decode(held_by):
            yield (scope, scope_id, period, currency), -amount


def _keys_of(charge: Charge) -> Iterator[SpendingKey]:
    """The budgets that a call counts against, whether or not they are in use."""
    payer: Payer = charge.payer
    currency = charge.usage.cost.currency if charge.usage.cost else ""
    month = month_of(charge.day)
    yield BudgetScope.USER, payer.user_id, charge.day, currency
    yield BudgetScope.USER, payer.user_id, month, currency
    if payer.agent_id:
        yield BudgetScope.AGENT, payer.agent_id, month, currency
    if payer.key_id:
        yield BudgetScope.KEY, payer.key_id, month, currency
