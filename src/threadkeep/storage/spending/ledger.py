"""The ledger in the database: reservations, budgets, and sums of what model calls have used."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import msgspec

from threadkeep.domain.errors import StorageConflict
from threadkeep.domain.ids import AgentId, TurnId, UserId
from threadkeep.domain.ledger import DIMENSIONS, BudgetState, Charge, Reservation, UsageFilter, UsageSum
from threadkeep.domain.message import Usage
from threadkeep.domain.money import Budget, BudgetScope, Cost, Payer, Purpose, month_before, month_of
from threadkeep.storage.database.columns import to_json
from threadkeep.storage.database.connector import Database, Plan, Query, Row, Rows, Statement
from threadkeep.storage.spending.charges import (
    FREE,
    MOST_COUNTED,
    SpendingKey,
    add_charges,
    count_spending,
    released,
)
from threadkeep.storage.spending.former_users import former_name

NOTHING_KNOWN: Mapping[str, Usage] = {}

_KEYS = """(SELECT json_extract(value, '$[0]') AS of_scope, json_extract(value, '$[1]') AS of_id,
        json_extract(value, '$[2]') AS of_period, json_extract(value, '$[3]') AS of_currency,
        json_extract(value, '$[4]') AS of_former
    FROM json_each(:keys)) AS budget"""
_KEYS_ON_POSTGRES = """(SELECT value ->> 0 AS of_scope, value ->> 1 AS of_id, value ->> 2 AS of_period,
        value ->> 3 AS of_currency, value ->> 4 AS of_former
    FROM json_array_elements(CAST(:keys AS json))) AS budget"""
# What budgets have spent and reserved; a user's also what was spent under the same id before it was deleted.
_GET = """SELECT of_scope, of_id, of_period, COALESCE(kept.spent, 0) + COALESCE(former.spent, 0),
        COALESCE(kept.reserved, 0)
    FROM {keys}
    LEFT JOIN tk_spending AS kept ON kept.scope = of_scope AND kept.scope_id = of_id
        AND kept.period = of_period AND kept.currency = of_currency
    LEFT JOIN tk_former_spending AS former ON former.name = of_former AND former.period = of_period
        AND former.currency = of_currency"""
_READ = Statement(_GET.format(keys=_KEYS), postgres=_GET.format(keys=_KEYS_ON_POSTGRES))

# The turn must still be ours. Its end, and a node that takes it over, wait until the reservation is stored.
_LOCK_TURN = Statement(
    "SELECT id FROM tk_turns WHERE id = :id AND fence = :fence AND status = 'RUNNING'", locks="FOR SHARE"
)
_RESERVE = Statement(
    """INSERT INTO tk_reservations
        (id, user_id, agent_id, key_id, purpose, model, amount, currency, held_by, at, day, fence, turn_id)
    VALUES (:id, :user_id, :agent_id, :key_id, :purpose, :model, :amount, :currency, :held_by, :at, :day,
        :fence, :turn_id)"""
)
# Not what another node has reserved for the same turn, nor anything once another node has the turn: that one
# charges what was cut off.
_RELEASE = Statement(
    """DELETE FROM tk_reservations WHERE id = :id AND fence = :fence
        AND NOT EXISTS (SELECT 1 FROM tk_turns
            WHERE tk_turns.id = COALESCE(tk_reservations.turn_id, tk_reservations.id)
                AND tk_turns.fence > :fence)
    RETURNING amount, currency, held_by"""
)
_COUNT_RESERVATIONS = Statement("SELECT COUNT(*) FROM tk_reservations")

# Of calls outside turns whose node was lost, and of turns that have ended or are gone without a charge.
_ABANDONED = Statement(
    """SELECT kept.id, kept.user_id, kept.agent_id, kept.key_id, kept.purpose, kept.model, kept.amount,
        kept.currency, kept.at, kept.day, kept.held_by
    FROM tk_reservations AS kept
    LEFT JOIN tk_turns AS turn ON turn.id = COALESCE(kept.turn_id, kept.id)
        AND turn.status IN ('RUNNING', 'WAITING')
    WHERE kept.at < :before AND (kept.purpose <> 'turn' OR turn.id IS NULL) ORDER BY kept.at LIMIT :limit""",
    locks="FOR UPDATE OF kept SKIP LOCKED",
)
# Of a turn's calls that a node made which no longer holds it.
_LOST = Statement(
    """SELECT id, user_id, agent_id, key_id, purpose, model, amount, currency, at, day, held_by
    FROM tk_reservations WHERE turn_id = :turn_id AND fence < :fence ORDER BY at, id""",
    locks="FOR UPDATE",
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
        CAST(SUM(CASE WHEN cost IS NULL THEN 1 ELSE 0 END) AS bigint),
        CAST(SUM(CASE WHEN reported THEN 1 ELSE 0 END) AS bigint),
        CAST(COALESCE(SUM(reported_cost / {_PART}), 0) AS bigint),
        CAST(COALESCE(SUM(reported_cost % {_PART}), 0) AS bigint)
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
_FORGET_FORMER = Statement("DELETE FROM tk_former_spending WHERE period < :day AND period <> :month")
# When a user is deleted; the rest of their data goes by cascade.
_FREE_OF_USER = Statement(
    "DELETE FROM tk_reservations WHERE user_id = :user_id RETURNING amount, currency, held_by"
)
# Without a lock: the caller has locked the user, so that nothing is charged meanwhile, and their calls.
_SPENT_BY = Statement(
    "SELECT period, currency, spent, reserved FROM tk_spending WHERE scope = 'user' AND scope_id = :user_id"
)
_KEEP_SPENT = Statement(
    f"""INSERT INTO tk_former_spending (name, period, currency, spent)
    VALUES (:name, :period, :currency, :spent) ON CONFLICT (name, period, currency)
    DO UPDATE SET spent = MIN(tk_former_spending.spent + excluded.spent, {MOST_COUNTED})""",
    postgres=f"""INSERT INTO tk_former_spending (name, period, currency, spent)
    VALUES (:name, :period, :currency, :spent) ON CONFLICT (name, period, currency)
    DO UPDATE SET spent =
        LEAST(CAST(tk_former_spending.spent AS numeric) + excluded.spent, {MOST_COUNTED})""",
)
_FORGET_USER = Statement("DELETE FROM tk_spending WHERE scope = 'user' AND scope_id = :user_id")
_MOVE_RESERVATIONS = Statement(
    """UPDATE tk_reservations
    SET user_id = :receiver, held_by = REPLACE(held_by, :giver_holds, :receiver_holds)
    WHERE user_id = :giver"""
)
_MOVE = Statement("UPDATE tk_ledger SET user_id = :receiver WHERE user_id = :giver")


class SqlLedger:
    """Storage of the ledger. The calls of turns are charged with the log's chunks instead."""

    def __init__(self, database: Database, key: bytes) -> None:
        self._database = database
        self._key = key

    async def charge(self, charge: Charge) -> None:
        """Adds a call outside a turn and settles its reservation; once, however often it is tried."""
        await self._database.write(lambda: add_charges([charge]))

    async def reserve(self, reservation: Reservation, budgets: Sequence[Budget]) -> int | BudgetState:
        """Reserves for a call in all of its budgets, or in none; returns the amount, or the one without room.

        Replaces what had been reserved under the same id for a call that was not billed. StorageConflict if
        the turn has ended or another node runs it.
        """
        former = self._former(reservation.payer.user_id)
        return await self._database.write(lambda: _reserve(reservation, budgets, former), urgent=True)

    async def release(self, reservation_id: str, fence: int | None = None) -> None:
        """Gives back what was reserved for a call that was not billed.

        Does nothing if another node has taken the turn over: what is reserved for it is that node's.
        """
        await self._database.write(lambda: _release(reservation_id, fence), urgent=True)

    async def states(self, budgets: Sequence[Budget], currency: str) -> Sequence[BudgetState]:
        """What budgets have spent and reserved."""
        user_id = next((UserId(it.scope_id) for it in budgets if it.scope is BudgetScope.USER), None)
        former = self._former(user_id) if user_id else None
        return _states(budgets, await self._database.fetch(_read(_keys(budgets, currency), former)))

    async def open_reservations(self) -> int:
        """How many calls have something reserved, on all nodes."""
        ((count,),) = await self._database.fetch(_COUNT_RESERVATIONS())
        return count

    def _former(self, user_id: UserId) -> str:
        return former_name(self._key, user_id)

    async def usage(self, which: UsageFilter, by: Collection[str]) -> Sequence[UsageSum]:
        """Sums of calls by these dimensions, in their order; apart for each currency."""
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

    async def charge_lost(
        self, turn_id: TurnId, fence: int, spent: Mapping[str, Usage] = NOTHING_KNOWN
    ) -> Sequence[Charge]:
        """Charges what a turn's earlier nodes have reserved for calls that nobody will report any more.

        `spent` is what is known of some of them, by the reservation's id; the others are charged in full:
        they may have been made.
        """
        return await self._database.write(lambda: _charge_lost(turn_id, fence, spent))

    async def charge_abandoned(self, before: int) -> Sequence[Charge]:
        """Charges in full what was reserved for some of the calls that nobody is left to charge."""
        return await self._database.write(lambda: _charge_abandoned(before))

    async def forget_spending(self, today: str) -> int:
        """Forgets what was spent before the last month; the ledger still knows.

        Of deleted users, whose ledger is gone, it forgets all but this day and this month.
        """
        past = await self._database.execute(_FORGET_SPENDING(before=month_before(today)))
        former = await self._database.execute(_FORGET_FORMER(day=today, month=month_of(today)))
        return len(past) + len(former)


def _reserve(reservation: Reservation, budgets: Sequence[Budget], former: str) -> Plan[int | BudgetState]:
    """Reserves as much as there is, instead of what the same turn may have reserved before."""
    turn_id = reservation.turn_id or reservation.id
    if reservation.fence is not None and not (yield _LOCK_TURN(id=turn_id, fence=reservation.fence)):
        raise StorageConflict("The turn has ended, or another node runs it.")
    freed = yield FREE(ids=to_json([reservation.id]))
    keys = _keys(budgets, reservation.currency)
    # All rows at once, those that are given back and those that are asked for: locked apart, two reservations
    # could wait for each other.
    yield from count_spending((), released(freed), also=keys)
    tightest = min(_states(budgets, (yield _read(keys, former))), key=lambda it: it.left)
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
        fence=reservation.fence or 0,
        turn_id=reservation.turn_id,
    )
    yield from count_spending((), ((key, amount) for key in keys))
    return amount


def _release(reservation_id: str, fence: int | None) -> Plan[None]:
    freed = yield _RELEASE(id=reservation_id, fence=fence or 0)
    yield from count_spending((), released(freed))


def _charge_abandoned(before: int) -> Plan[Sequence[Charge]]:
    rows = yield _ABANDONED(before=before, limit=ABANDONED_AT_ONCE)
    charges = [_charge_in_full(row) for row in rows]
    if charges:
        yield from add_charges(charges)
    return charges


def _charge_lost(turn_id: TurnId, fence: int, spent: Mapping[str, Usage]) -> Plan[Sequence[Charge]]:
    rows = yield _LOST(turn_id=turn_id, fence=fence)
    charges = [_charge_in_full(row) for row in rows]
    charges = [replace(it, usage=spent.get(it.id, it.usage)) for it in charges]
    if charges:
        yield from add_charges(charges)
    return charges


def _charge_in_full(row: Row) -> Charge:
    id_, user_id, agent_id, key_id, purpose, model, amount, currency, at, day, held_by = row
    # Of the agents that ran its agent, those with a budget.
    held = (scope_id for scope, scope_id, _ in msgspec.json.decode(held_by) if scope == BudgetScope.AGENT)
    within = tuple(AgentId(it) for it in held if it != agent_id)
    return Charge(
        id=id_,
        payer=Payer(user_id, agent_id, key_id, within),
        purpose=Purpose(purpose),
        model=model,
        usage=Usage(0, 0, estimated=True, cost=Cost.of(amount, currency)),
        at=at,
        day=day,
        reservation_id=id_,
    )


def forget_spending_of(user_id: UserId, former: str) -> Plan[None]:
    """Gives back what a user who is deleted has reserved; what they have spent is kept under another name.

    A call that still runs may be billed, and nobody will charge it: it counts as spent. The user is locked.
    """
    freed = yield _FREE_OF_USER(user_id=user_id)
    rows = yield _SPENT_BY(user_id=user_id)
    for period, currency, spent, reserved in rows:
        if paid := min(spent + reserved, MOST_COUNTED):
            yield _KEEP_SPENT(name=former, period=period, currency=currency, spent=paid)
    yield from count_spending((), released(freed), also=_keys_of_user(user_id, rows))
    yield _FORGET_USER(user_id=user_id)


def move_spending(giver: UserId, receiver: UserId) -> Plan[None]:
    """Gives one user's calls to another, with what is spent and reserved for them. The giver is locked."""
    yield _MOVE(giver=giver, receiver=receiver)
    yield _MOVE_RESERVATIONS(
        giver=giver,
        receiver=receiver,
        giver_holds=to_json([BudgetScope.USER, giver])[:-1],
        receiver_holds=to_json([BudgetScope.USER, receiver])[:-1],
    )
    rows = yield _SPENT_BY(user_id=giver)
    keys = _keys_of_user(receiver, rows)
    yield from count_spending(
        zip(keys, (spent for *_, spent, _ in rows), strict=True),
        zip(keys, (reserved for *_, reserved in rows), strict=True),
        also=_keys_of_user(giver, rows),
    )
    yield _FORGET_USER(user_id=giver)


def _keys_of_user(user_id: UserId, rows: Rows) -> list[SpendingKey]:
    return [(BudgetScope.USER, user_id, period, currency) for period, currency, *_ in rows]


def _keys(budgets: Sequence[Budget], currency: str) -> list[SpendingKey]:
    return [(*_holder(it), currency) for it in budgets]


def _holder(budget: Budget) -> tuple[str, str, str]:
    """How a reservation names a budget that counts it."""
    return budget.scope, budget.scope_id, budget.period


def _read(keys: Sequence[SpendingKey], former: str | None) -> Query:
    """Asks for what is spent and reserved; a user's also under the name of the same user before."""
    return _READ(keys=to_json([(*key, former if key[0] == BudgetScope.USER else None) for key in keys]))


def _states(budgets: Sequence[Budget], rows: Rows) -> list[BudgetState]:
    found = {row[:3]: row[3:] for row in rows}
    return [BudgetState(it, *found[_holder(it)]) for it in budgets]


def _usage_sum(row: Row, by: Collection[str]) -> UsageSum:
    groups, (currency, turns, calls, *tokens), (estimated, *costs) = row[:6], row[6:13], row[13:]
    parts, rest, unpriced, reported, reported_parts, reported_rest = costs
    return UsageSum(
        {name: value for name, value in zip(DIMENSIONS, groups, strict=True) if name in by},
        currency,
        turns,
        calls,
        *tokens,
        estimated=bool(estimated),
        cost=parts * _PART + rest,
        unpriced=unpriced,
        reported=reported,
        reported_cost=reported_parts * _PART + reported_rest,
    )
