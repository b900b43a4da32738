"""How many turns a user may run and files they may upload, counted in PostgreSQL: one count for all nodes.

Each user has one row, and one statement both checks and takes, so that no two nodes take the same slot: the
second waits for the row lock and sees the first one's update.

`paced_to` is the time up to which the user's turns are used up, had they come evenly: at most a minute ahead.
`beginning` holds the turns taken lately, each with its time. The statement's snapshot may be older than the
row it updates: a turn in `beginning` that the snapshot does not show in `tk_turns` counts too.
"""

import time

from threadkeep.domain.caps import MINUTE_S, TurnCaps
from threadkeep.domain.errors import RateLimited
from threadkeep.domain.ids import TurnId, UserId
from threadkeep.storage.database.connector import Database, Plan, Statement
from threadkeep.storage.users import ENSURE_USER

MINUTE_MS = int(MINUTE_S * 1000)
TAKEN_LATELY_MS = 15_000
"""Longer than starting a turn takes: a node that dies meanwhile holds the slot no longer than this."""

# Without `:after`, the turn that the new one replaces.
_RUNNING = """SELECT COUNT(*) FROM tk_turns
    WHERE user_id = :user_id AND status = 'RUNNING' AND origin = 'live'
        AND CAST(id AS text) <> COALESCE(CAST(:after AS text), '')"""
_LATELY = f"""FROM json_each_text(CAST(kept.beginning AS json)) AS taken
    WHERE CAST(taken.value AS bigint) > {{now}} - {TAKEN_LATELY_MS}"""
_UNSEEN = f"""SELECT COUNT(*) {_LATELY}
    AND NOT EXISTS (SELECT 1 FROM tk_turns WHERE tk_turns.id = CAST(taken.key AS uuid))"""
# Without a turn id it is a call outside any turn: only the rate per minute counts.
_TAKE = Statement(
    f"""INSERT INTO tk_allowances AS kept (user_id, paced_to, beginning)
    SELECT :user_id, {{now}} * 1000 + :step_us, CASE WHEN CAST(:turn_id AS text) IS NULL THEN '{{}}'
        ELSE CAST(json_build_object(CAST(:turn_id AS text), {{now}}) AS text) END
    WHERE :at_once = 0 OR ({_RUNNING}) < :at_once
    ON CONFLICT (user_id) DO UPDATE
    SET paced_to = GREATEST(kept.paced_to, {{now}} * 1000) + :step_us,
        beginning = (SELECT CAST(COALESCE(jsonb_object_agg(taken.key, taken.value), '{{}}')
            || CAST(excluded.beginning AS jsonb) AS text) {_LATELY})
    WHERE GREATEST(kept.paced_to, {{now}} * 1000) + :step_us <= ({{now}} + {MINUTE_MS}) * 1000
        AND (:at_once = 0 OR ({_RUNNING}) + ({_UNSEEN}) < :at_once)
    RETURNING user_id"""
)
# Undoes `_TAKE` for a turn that did not start.
_GIVE_BACK = Statement(
    """UPDATE tk_allowances SET paced_to = paced_to - :step_us,
        beginning = CAST(CAST(beginning AS jsonb) - CAST(:turn_id AS text) AS text)
    WHERE user_id = :user_id"""
)
# How long until the user may take the next one; no row if that is now.
_WAIT = Statement(
    f"""SELECT paced_to + :step_us - ({{now}} + {MINUTE_MS}) * 1000 FROM tk_allowances
    WHERE user_id = :user_id AND paced_to + :step_us > ({{now}} + {MINUTE_MS}) * 1000"""
)
# The same pace, for files: several are taken at once.
_TAKE_UPLOADS = Statement(
    f"""INSERT INTO tk_allowances AS kept (user_id, paced_to, beginning, uploads_paced_to)
    VALUES (:user_id, 0, '{{}}', {{now}} * 1000 + :cost_us)
    ON CONFLICT (user_id) DO UPDATE
    SET uploads_paced_to = GREATEST(kept.uploads_paced_to, {{now}} * 1000) + :cost_us
    WHERE GREATEST(kept.uploads_paced_to, {{now}} * 1000) + :cost_us <= ({{now}} + {MINUTE_MS}) * 1000
    RETURNING user_id"""
)
# Asked only after a refusal.
_WAIT_FOR_UPLOADS = Statement(
    f"""SELECT uploads_paced_to + :cost_us - ({{now}} + {MINUTE_MS}) * 1000 FROM tk_allowances
    WHERE user_id = :user_id"""
)


class SqlAllowances:
    """What each user has left, across all nodes."""

    def __init__(self, database: Database, caps: TurnCaps) -> None:
        self._database = database
        self._caps = caps
        self._step_us = MINUTE_MS * 1000 // caps.per_minute if caps.per_minute else 0

    async def take_turn(
        self, user_id: UserId, turn_id: TurnId, running_here: int, *, after: TurnId | None = None
    ) -> None:
        """Takes one of the user's turns, counting all nodes; raises RateLimited beyond the cap."""
        if self._caps.at_once or self._caps.per_minute:
            await self._take(user_id, turn_id, self._caps.at_once, after)

    async def give_turn_back(self, user_id: UserId, turn_id: TurnId) -> None:
        """Gives back what was taken for a turn that failed to start."""
        if self._caps.at_once or self._caps.per_minute:
            await self._database.execute(_GIVE_BACK(user_id=user_id, turn_id=turn_id, step_us=self._step_us))

    async def take_call(self, user_id: UserId) -> None:
        """Takes one of the user's calls per minute."""
        if self._caps.per_minute:
            await self._take(user_id, None, 0)

    async def take_completion(self, user_id: UserId, *, turns_here: int, completions_here: int) -> None:
        """Takes a reply outside any conversation: only its own node knows of it, of turns all do."""
        most = self._caps.at_once
        if most and completions_here >= most:
            raise self._caps.too_many_at_once()
        if most or self._caps.per_minute:
            await self._take(user_id, None, most and most - completions_here)

    async def take_uploads(self, user_id: UserId, count: int) -> None:
        """Takes files from those that the user may upload per minute, on whichever node."""
        if most := self._caps.uploads_per_minute:
            cost_us = MINUTE_MS * 1000 * min(count, most) // most
            if not await self._database.write(lambda: _take_uploads(user_id, cost_us)):
                rows = await self._database.fetch(_WAIT_FOR_UPLOADS(user_id=user_id, cost_us=cost_us))
                raise self._caps.too_many_uploads(wait_s=rows[0][0] / 1_000_000 if rows else 1)

    async def _take(
        self, user_id: UserId, turn_id: TurnId | None, at_once: int, after: TurnId | None = None
    ) -> None:
        values = {
            "user_id": user_id,
            "turn_id": turn_id,
            "step_us": self._step_us,
            "at_once": at_once,
            "after": after,
        }
        if not await self._database.execute(_TAKE(**values)):
            raise await self._refusal(user_id)

    async def _refusal(self, user_id: UserId) -> RateLimited:
        waits = await self._database.fetch(_WAIT(user_id=user_id, step_us=self._step_us))
        if waits or not self._caps.at_once:
            return self._caps.too_many_a_minute(wait_s=waits[0][0] / 1_000_000 if waits else 1)
        return self._caps.too_many_at_once()


def _take_uploads(user_id: UserId, cost_us: int) -> Plan[bool]:
    # Somebody may upload a file before anything else.
    yield ENSURE_USER(id=user_id, now=int(time.time() * 1000))
    return bool((yield _TAKE_UPLOADS(user_id=user_id, cost_us=cost_us)))
