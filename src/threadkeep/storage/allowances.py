"""How many turns a user may run, and what else they may do a minute, counted in PostgreSQL: one count for all
nodes.

Each user has one row, and one statement both checks and takes, so that no two nodes take the same slot: the
second waits for the row lock and sees the first one's update.

`paced_to` is the time up to which the user's turns are used up, had they come evenly: at most a minute ahead.
`beginning` holds the turns taken lately, each with its time. The statement's snapshot may be older than the
row it updates: a turn in `beginning` that the snapshot does not show in `tk_turns` counts too. `replies`
holds replies outside turns, each with the time until which it has its place.
"""

import time
from collections.abc import Collection
from functools import cache
from typing import Literal

from threadkeep.domain.caps import MINUTE_S, TurnCaps
from threadkeep.domain.errors import RateLimited
from threadkeep.domain.ids import ConversationId, TurnId, UserId
from threadkeep.ports.allowances import HELD_S, ReplyPlace
from threadkeep.storage.database.columns import to_json
from threadkeep.storage.database.connector import Database, Plan, Statement
from threadkeep.storage.documents.documents import document_totals
from threadkeep.storage.file_rows import FILE_BYTES
from threadkeep.storage.text_bytes import OF_CONVERSATION, text_bytes_of
from threadkeep.storage.users import ENSURE_USER

MINUTE_MS = int(MINUTE_S * 1000)
HELD_MS = int(HELD_S * 1000)
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
_REPLIES = """FROM json_each_text(CAST(kept.replies AS json)) AS reply
    WHERE CAST(reply.value AS bigint) > {now}"""


def _object_of(name: str, value: str) -> str:
    """A JSON object with one member, or none if its name is null."""
    return f"""CASE WHEN CAST({name} AS text) IS NULL THEN '{{}}'
        ELSE CAST(json_build_object(CAST({name} AS text), {value}) AS text) END"""


# Of a turn, of a reply outside turns, or of neither: then only the rate per minute counts.
_TAKE = Statement(
    f"""INSERT INTO tk_allowances AS kept (user_id, paced_to, beginning, replies)
    SELECT :user_id, {{now}} * 1000 + :step_us, {_object_of(":turn_id", "{now}")},
        {_object_of(":reply_id", f"{{now}} + {HELD_MS}")}
    WHERE :at_once = 0 OR ({_RUNNING}) < :at_once
    ON CONFLICT (user_id) DO UPDATE
    SET paced_to = GREATEST(kept.paced_to, {{now}} * 1000) + :step_us,
        beginning = (SELECT CAST(COALESCE(jsonb_object_agg(taken.key, taken.value), '{{}}')
            || CAST(excluded.beginning AS jsonb) AS text) {_LATELY}),
        replies = (SELECT CAST(COALESCE(jsonb_object_agg(reply.key, reply.value), '{{}}')
            || CAST(excluded.replies AS jsonb) AS text) {_REPLIES})
    WHERE GREATEST(kept.paced_to, {{now}} * 1000) + :step_us <= ({{now}} + {MINUTE_MS}) * 1000
        AND (:at_once = 0
            OR ({_RUNNING}) + ({_UNSEEN}) + (SELECT COUNT(*) {_REPLIES}) < :at_once)
    RETURNING user_id"""
)
# Undoes `_TAKE` for a turn that did not start.
_GIVE_BACK = Statement(
    """UPDATE tk_allowances SET paced_to = paced_to - :step_us,
        beginning = CAST(CAST(beginning AS jsonb) - CAST(:turn_id AS text) AS text)
    WHERE user_id = :user_id"""
)
# Only what still has its place: what was given back meanwhile stays so.
_RENEW_REPLIES = Statement(
    f"""UPDATE tk_allowances SET replies = CAST(CAST(replies AS jsonb) || (
        SELECT COALESCE(jsonb_object_agg(value, {{now}} + {HELD_MS}), '{{}}')
        FROM json_array_elements_text(CAST(:ids AS json))
        WHERE jsonb_exists(CAST(replies AS jsonb), value)) AS text)
    WHERE user_id = :user_id"""
)
_GIVE_REPLY_BACK = Statement(
    """UPDATE tk_allowances SET replies = CAST(CAST(replies AS jsonb) - CAST(:id AS text) AS text)
    WHERE user_id = :user_id"""
)
# How long until the user may take the next one; no row if that is now.
_WAIT = Statement(
    f"""SELECT paced_to + :step_us - ({{now}} + {MINUTE_MS}) * 1000 FROM tk_allowances
    WHERE user_id = :user_id AND paced_to + :step_us > ({{now}} + {MINUTE_MS}) * 1000"""
)


Paced = Literal["uploads_paced_to", "writes_paced_to"]
"""What else has such a pace, by its column; several can be taken at once."""


@cache
def take_of(column: Paced) -> Statement:
    """Takes some."""
    return Statement(
        f"""INSERT INTO tk_allowances AS kept (user_id, paced_to, beginning, {column})
        VALUES (:user_id, 0, '{{}}', {{now}} * 1000 + :cost_us)
        ON CONFLICT (user_id) DO UPDATE
        SET {column} = GREATEST(kept.{column}, {{now}} * 1000) + :cost_us
        WHERE GREATEST(kept.{column}, {{now}} * 1000) + :cost_us <= ({{now}} + {MINUTE_MS}) * 1000
        RETURNING user_id"""
    )


@cache
def wait_for(column: Paced) -> Statement:
    """How long until some can be taken; asked only after a refusal."""
    return Statement(
        f"""SELECT {column} + :cost_us - ({{now}} + {MINUTE_MS}) * 1000 FROM tk_allowances
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

    async def take_reply(self, place: ReplyPlace, running_here: int) -> None:
        """Takes a reply outside any turn, counting all nodes."""
        if self._caps.at_once or self._caps.per_minute:
            await self._take(place.user_id, None, self._caps.at_once, reply_id=place.id)

    async def renew_replies(self, places: Collection[ReplyPlace]) -> None:
        """Gives replies that still run their places for another while."""
        for user_id in {place.user_id for place in places} if self._caps.at_once else ():
            ids = [place.id for place in places if place.user_id == user_id]
            await self._database.execute(_RENEW_REPLIES(user_id=user_id, ids=to_json(ids)))

    async def give_reply_back(self, place: ReplyPlace) -> None:
        """Frees the place of a reply that has ended."""
        if self._caps.at_once:
            await self._database.execute(_GIVE_REPLY_BACK(user_id=place.user_id, id=place.id))

    async def take_uploads(self, user_id: UserId, count: int) -> None:
        """Takes files from those that the user may upload per minute, on whichever node."""
        most = self._caps.uploads_per_minute
        if most and (wait_s := await self._paced("uploads_paced_to", user_id, count, most)):
            raise self._caps.too_many_uploads(wait_s=wait_s)

    async def take_write(self, user_id: UserId) -> None:
        """Takes one of the things that the user may create per minute besides turns, on whichever node."""
        most = self._caps.writes_per_minute
        if most and (wait_s := await self._paced("writes_paced_to", user_id, 1, most)):
            raise self._caps.too_many_writes(wait_s=wait_s)

    async def _paced(self, column: Paced, user_id: UserId, count: int, most: int) -> float:
        """Takes some and returns 0, or takes none and returns how many seconds to wait."""
        cost_us = MINUTE_MS * 1000 * min(count, most) // most
        if await self._database.write(lambda: _take_paced(column, user_id, cost_us)):
            return 0
        rows = await self._database.fetch(wait_for(column)(user_id=user_id, cost_us=cost_us))
        return max(rows[0][0] / 1_000_000, 0.001) if rows else 1

    async def _take(
        self,
        user_id: UserId,
        turn_id: TurnId | None,
        at_once: int,
        after: TurnId | None = None,
        *,
        reply_id: str | None = None,
    ) -> None:
        values = {
            "user_id": user_id,
            "turn_id": turn_id,
            "reply_id": reply_id,
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


def _take_paced(column: Paced, user_id: UserId, cost_us: int) -> Plan[bool]:
    # Somebody may do this before anything else.
    yield ENSURE_USER(id=user_id, now=int(time.time() * 1000))
    return bool((yield take_of(column)(user_id=user_id, cost_us=cost_us)))


class UserBytes:
    """How much each user stores, from the counts in the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of_user(self, user_id: UserId) -> int:
        """The bytes of all rows, texts and files of a user, and of the documents of their agents."""
        return await self._database.read(lambda: _of_user(user_id))

    async def of_conversation(self, conversation_id: ConversationId) -> int:
        """The bytes of a conversation's rows and texts; files count for their user."""
        rows = await self._database.fetch(OF_CONVERSATION(conversation_id=conversation_id))
        return rows[0][0] if rows else 0


def _of_user(user_id: UserId) -> Plan[int]:
    texts = yield from text_bytes_of(user_id)
    ((files,),) = yield FILE_BYTES(user_id=user_id)
    _, documents = yield from document_totals(user_id)
    return texts + files + documents
