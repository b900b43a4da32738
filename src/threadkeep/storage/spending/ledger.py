"""The ledger in the database: reservations, budgets, and sums of what model calls have used."""

from collections.abc import Collection, Sequence

from threadkeep.domain.errors import StorageConflict
from threadkeep.domain.ids import UserId
from threadkeep.domain.message import Usage
from threadkeep.domain.money import Budget, BudgetScope, Cost, Payer, Purpose
from threadkeep.ports.ledger import DIMENSIONS, BudgetState, Charge, Reservation, UsageFilter, UsageSum
from threadkeep.storage.database.columns import to_json
from threadkeep.storage.database.connector import Database, Plan, Row, Rows, Statement
from threadkeep.storage.spending.charges import SpendingKey, add_charges, change_spending, give_back

_KEYS = """(SELECT json_extract(value, '$[0]') AS of_scope, json_extract(value, '$[1]') AS of_id,
        json_extract(value, '$[2]') AS of_period, json_extract(value, '$[3]') AS of_currency
    FROM json_each(:keys)) AS budget"""
_KEYS_ON_POSTGRES = """(SELECT value ->> 0 AS of_scope, value ->> 1 AS of_id, value ->> 2 AS of_period,
        value ->> 3 AS of_currency FROM json_array_elements(CAST(:keys AS json))) AS budget"""
_IS_BUDGET = "scope = of_scope AND scope_id = of_id AND period = of_period AND currency = of_currency"
_GET = "SELECT scope, scope_id, period, spent, reserved FROM {keys} JOIN tk_spending ON " + _IS_BUDGET
# What budgets have spent and reserved: while they are locked, in order, and as anybody sees it.
_LOCK = Statement(
    f"{_GET.format(keys=_KEYS)} ORDER BY scope, scope_id, period",
    postgres=f"""{_GET.format(keys=_KEYS_ON_POSTGRES)}
    ORDER BY scope, scope_id, period, currency FOR UPDATE OF tk_spending""",
)
_READ = Statement(_GET.format(keys=_KEYS), postgres=_GET.format(keys=_KEYS_ON_POSTGRES))

# The turn must still be ours. Its end, and a node that takes it over, wait until the reservation is stored.
_LOCK_TURN = Statement(
    "SELECT id FROM tk_turns WHERE id = :id AND fence = :fence AND status = 'RUNNING'", locks="FOR SHARE"
)
_RESERVED = Statement("SELECT id FROM tk_reservations WHERE id = :id")
_RESERVE = Statement(
    """INSERT INTO tk_reservations
        (id, user_id, agent_id, key_id, purpose, model, amount, currency, held_by, at, day)
    VALUES (:id, :user_id, :agent_id, :key_id, :purpose, :model, :amount, :currency, :held_by, :at, :day)"""
)

# A budget's first reservation in a period sums up the ledger. No call may be charged meanwhile: it would see
# no row to add to, and be missing from the sum.
_STOP_CHARGES = Statement("SELECT 1", postgres="LOCK TABLE tk_ledger IN SHARE MODE")
_OPEN = {
    scope: Statement(
        f"""INSERT INTO tk_spending (scope, scope_id, period, currency, spent, reserved)
        VALUES (:scope, :scope_id, :period, :currency,
            (SELECT CAST(COALESCE(SUM(cost), 0) AS bigint) FROM tk_ledger
                WHERE {column} = :of_id AND currency = :currency AND day >= :period AND day <= :last_day),
            (SELECT CAST(COALESCE(SUM(amount), 0) AS bigint) FROM tk_reservations
                WHERE currency = :currency AND REPLACE(held_by, :held, '') <> held_by))
        ON CONFLICT DO NOTHING"""
    )
    for scope, column in (
        (BudgetScope.USER, "user_id"),
        (BudgetScope.AGENT, "agent_id"),
        (BudgetScope.KEY, "key_id"),
    )
}

# Of calls outside turns whose node was lost, and of turns that have ended or are gone without a charge.
_ABANDONED = Statement(
    """SELECT kept.id, kept.user_id, kept.agent_id, kept.key_id, kept.purpose, kept.model, kept.amount,
        kept.currency, kept.at, kept.day
    FROM tk_reservations AS kept
    LEFT JOIN tk_turns AS turn ON turn.id = kept.id AND turn.status IN ('RUNNING', 'WAITING')
    WHERE kept.at < :before AND (kept.purpose <> 'turn' OR turn.id IS NULL) ORDER BY kept.at LIMIT :limit""",
    locks="FOR UPDATE OF kept SKIP LOCKED",
)
ABANDONED_AT_ONCE = 100
# Costs are summed in two parts: the sum of a large installation has more digits than the databases' numbers.
_PART = 1_000_000
_USAGE = f"""SELECT CASE WHEN :by_day THEN day END AS by_day, CASE WHEN :by_user THEN user_id END AS by_user,
        CASE WHEN :by_agent THEN agent_id END AS by_agent, CASE WHEN :by_key THEN key_id END AS by_key,
        CASE WHEN :by_model THEN model END AS by_model, CASE WHEN :by_purpose THEN purpose END AS by_purpose,
        currency, CAST(SUM(turns) AS bigint), COUNT(*), CAST(SUM(input_tokens) AS bigint),
        CAST(SUM(output_tokens) AS bigint), CAST(SUM(cache_read_tokens) AS bigint),
        CAST(SUM(cache_write_tokens) AS bigint), MAX(CASE WHEN estimated THEN 1 ELSE 0 END),
        CAST(COALESCE(SUM(cost / {_PART}), 0) AS bigint), CAST(COALESCE(SUM(cost % {_PART}), 0) AS bigint),
        CAST(SUM(CASE WHEN cost IS NULL THEN 1 ELSE 0 END) AS bigint)
    FROM tk_ledger"""
_DAYS = "day >= :first_day AND day <= :last_day"
_GROUPED = """GROUP BY by_day, by_user, by_agent, by_key, by_model, by_purpose, currency
    ORDER BY by_day, by_user, by_agent, by_key, by_model, by_purpose, currency"""
_USAGE_OF_USER = Statement(f"{_USAGE} WHERE user_id = :user_id AND {_DAYS} {_GROUPED}")
_USAGE_OF_USER_WITH_AGENT = Statement(
    f"{_USAGE} WHERE user_id = :user_id AND agent_id = :agent_id AND {_DAYS} {_GROUPED}"
)
# For a key that is limited to some agents.
_USAGE_OF_USER_WITHIN = Statement(
    f"{_USAGE} WHERE user_id = :user_id AND agent_id IN ({{ids}}) AND {_DAYS} {_GROUPED}"
)
# For admins.
_USAGE_OF_ALL = Statement(f"{_USAGE} WHERE {_DAYS} {_GROUPED}")
_USAGE_OF_AGENT = Statement(f"{_USAGE} WHERE agent_id = :agent_id AND {_DAYS} {_GROUPED}")

_FORGET_SPENDING = Statement("DELETE FROM tk_spending WHERE period < :before AND reserved = 0")
# When a user is deleted; the rest of their data goes by cascade.
_RESERVED_OF_USER = Statement("SELECT id FROM tk_reservations WHERE user_id = :user_id", locks="FOR UPDATE")
_FORGET_USER = Statement("DELETE FROM tk_spending WHERE scope = 'user' AND scope_id = :user_id")
_MOVE_RESERVATIONS = Statement(
    """UPDATE tk_reservations
    SET user_id = :receiver, held_by = REPLACE(held_by, :giver_holds, :receiver_holds)
    WHERE user_id = :giver"""
)
_MOVE = Statement("UPDATE tk_ledger SET user_id = :receiver WHERE user_id = :giver")


class SqlLedger:
    """The ledger of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def charge(self, charge: Charge) -> None:
        """Adds a call outside a turn and settles its reservation."""
        await self._database.write(lambda: add_charges([charge]))

    async def reserve(self, reservation: Reservation, budgets: Sequence[Budget]) -> int | BudgetState:
        """Reserves for a call in all of its budgets, or in none."""
        while True:
            outcome = await self._database.write(lambda: _reserve(reservation, budgets), urgent=True)
            if outcome is not None:
                return outcome
            await self._database.write(lambda: _open(budgets, reservation.currency), urgent=True)

    async def release(self, reservation_id: str) -> None:
        """Gives back what was reserved for a call that was not billed."""
        await self._database.write(lambda: give_back([reservation_id]), urgent=True)

    async def states(self, budgets: Sequence[Budget], currency: str) -> Sequence[BudgetState]:
        """What budgets have spent and reserved."""
        while True:
            rows = await self._database.fetch(_READ(keys=to_json(_keys(budgets, currency))))
            if len(rows) == len(budgets):
                return _states(budgets, rows)
            await self._database.write(lambda: _open(budgets, currency))

    async def usage(self, which: UsageFilter, by: Collection[str]) -> Sequence[UsageSum]:
        """Sums of calls by dimensions."""
        if which.user_id is None:
            query = _USAGE_OF_AGENT if which.agent_id else _USAGE_OF_ALL
        elif which.agent_id is not None:
            query = _USAGE_OF_USER_WITH_AGENT
        else:
            query = _USAGE_OF_USER if which.agents is None else _USAGE_OF_USER_WITHIN
        rows = await self._database.fetch(
            query(
                user_id=which.user_id,
                agent_id=which.agent_id,
                ids=to_json(which.agents),
                first_day=which.first_day,
                last_day=which.last_day,
                **{f"by_{it}": it in by for it in DIMENSIONS},
            )
        )
        return [_usage_sum(row, by) for row in rows]

    async def charge_abandoned(self, before: int) -> int:
        """Charges in full what was reserved for calls that nobody is left to charge, some at a time."""
        count = 0
        while charged := await self._database.write(lambda: _charge_abandoned(before)):
            count += charged
        return count

    async def forget_spending(self, before_period: str) -> int:
        """Forgets what budgets have spent in periods long past."""
        return len(await self._database.execute(_FORGET_SPENDING(before=before_period)))


def _reserve(reservation: Reservation, budgets: Sequence[Budget]) -> Plan[int | BudgetState | None]:
    """Reserves as much as there is; None if the ledger must be summed up first."""
    if reservation.fence is not None and not (yield _LOCK_TURN(id=reservation.id, fence=reservation.fence)):
        raise StorageConflict("The turn has ended, or another node runs it.")
    if (yield _RESERVED(id=reservation.id)):
        yield from give_back([reservation.id])
    keys = _keys(budgets, reservation.currency)
    rows = yield _LOCK(keys=to_json(keys))
    if len(rows) < len(budgets):
        return None
    tightest = min(_states(budgets, rows), key=lambda it: it.left)
    if tightest.left < reservation.least:
        return tightest
    amount = min(tightest.left, reservation.most)
    payer = reservation.payer
    yield _RESERVE(
        id=reservation.id,
        user_id=payer.user_id,
        agent_id=payer.agent_id,
        key_id=payer.key_id,
        purpose=reservation.purpose,
        model=reservation.model,
        amount=amount,
        currency=reservation.currency,
        held_by=to_json([key[:3] for key in keys]),
        at=reservation.at,
        day=reservation.day,
    )
    yield from change_spending((), ((key, amount) for key in keys))
    return amount


def _open(budgets: Sequence[Budget], currency: str) -> Plan[None]:
    """Begins to count what budgets have spent and reserved, from the ledger and the reservations."""
    yield _STOP_CHARGES()
    for budget in budgets:
        yield _OPEN[budget.scope](
            scope=budget.scope,
            scope_id=budget.scope_id,
            of_id=budget.scope_id,
            period=budget.period,
            last_day=f"{budget.period}-31" if budget.is_monthly else budget.period,
            currency=currency,
            held=to_json(_holder(budget)),
        )


def _charge_abandoned(before: int) -> Plan[int]:
    rows = yield _ABANDONED(before=before, limit=ABANDONED_AT_ONCE)
    charges = [_charge_in_full(row) for row in rows]
    if charges:
        yield from add_charges(charges)
    return len(charges)


def _charge_in_full(row: Row) -> Charge:
    id_, user_id, agent_id, key_id, purpose, model, amount, currency, at, day = row
    return Charge(
        id=id_,
        payer=Payer(user_id, agent_id, key_id),
        purpose=Purpose(purpose),
        model=model,
        usage=Usage(0, 0, estimated=True, cost=Cost.of(amount, currency)),
        at=at,
        day=day,
        reservation_id=id_,
    )


def forget_spending_of(user_id: UserId) -> Plan[None]:
    """Gives back what a user who is deleted has reserved, and forgets what their budgets have spent."""
    if rows := (yield _RESERVED_OF_USER(user_id=user_id)):
        yield from give_back([id_ for (id_,) in rows])
    yield _FORGET_USER(user_id=user_id)


def move_spending(giver: UserId, receiver: UserId) -> Plan[None]:
    """Gives one user's calls to another, whose spending is then summed again."""
    yield _MOVE(giver=giver, receiver=receiver)
    yield _MOVE_RESERVATIONS(
        giver=giver,
        receiver=receiver,
        giver_holds=to_json([BudgetScope.USER, giver])[:-1],
        receiver_holds=to_json([BudgetScope.USER, receiver])[:-1],
    )
    for user_id in (giver, receiver):
        yield _FORGET_USER(user_id=user_id)


def _keys(budgets: Sequence[Budget], currency: str) -> list[SpendingKey]:
    return [(*_holder(it), currency) for it in budgets]


def _holder(budget: Budget) -> tuple[str, str, str]:
    """How a reservation names a budget that counts it."""
    return budget.scope, budget.scope_id, budget.period


def _states(budgets: Sequence[Budget], rows: Rows) -> list[BudgetState]:
    found = {row[:3]: row[3:] for row in rows}
    return [BudgetState(it, *found[_holder(it)]) for it in budgets]


def _usage_sum(row: Row, by: Collection[str]) -> UsageSum:
    groups, (currency, turns, calls, *tokens, estimated, parts, rest, unpriced) = row[:6], row[6:]
    return UsageSum(
        {name: value for name, value in zip(DIMENSIONS, groups, strict=True) if name in by},
        currency,
        turns,
        calls,
        *tokens,
        estimated=bool(estimated),
        cost=parts * _PART + rest,
        unpriced=unpriced,
    )
