"""Requests that can be repeated, in the database."""

from dataclasses import dataclass

from threadkeep.domain.ids import UserId
from threadkeep.storage.database.connector import Database, Plan, Statement


@dataclass(frozen=True, slots=True)
class BegunRequest:
    """A request that was sent before."""

    request_hash: str
    response: str | None
    """What it was answered, encrypted; None while nobody knows."""


MOST_OF_A_USER = 500
"""A user's oldest requests are forgotten first, so that nobody fills the disk with them."""

# Of two at once, the second gets no row back and finds the first one's.
_BEGIN = Statement(
    """INSERT INTO tk_requests (user_id, name, request_hash, began_at)
    VALUES (:user_id, :name, :request_hash, {now}) ON CONFLICT DO NOTHING"""
)
_FIND = Statement("SELECT request_hash, response FROM tk_requests WHERE user_id = :user_id AND name = :name")
_FORGET_OLDEST = Statement(
    """DELETE FROM tk_requests WHERE user_id = :user_id AND name IN (
        SELECT name FROM tk_requests WHERE user_id = :user_id
        ORDER BY began_at DESC LIMIT 100 OFFSET :most)"""
)
_ANSWER = Statement("UPDATE tk_requests SET response = :response WHERE user_id = :user_id AND name = :name")
_FORGET = Statement("DELETE FROM tk_requests WHERE user_id = :user_id AND name = :name")
_FORGET_OLD = Statement("DELETE FROM tk_requests WHERE began_at < :before")


class SqlRepeats:
    """The requests of users that carry a key, by the keys' hashes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin(self, user_id: UserId, name: str, request_hash: str) -> BegunRequest | None:
        """Notes that a request begins; returns the one that began before under the same name, if any."""
        return await self._database.write(lambda: _begin(user_id, name, request_hash))

    async def answer(self, user_id: UserId, name: str, response: str) -> None:
        """Keeps how a request was answered."""
        await self._database.execute(_ANSWER(user_id=user_id, name=name, response=response))

    async def forget(self, user_id: UserId, name: str) -> None:
        """Forgets a request that was refused: it can be sent again."""
        await self._database.execute(_FORGET(user_id=user_id, name=name))

    async def forget_old(self, before: int) -> int:
        """Forgets the requests that began before a time; returns how many."""
        return len(await self._database.execute(_FORGET_OLD(before=before)))


def _begin(user_id: UserId, name: str, request_hash: str) -> Plan[BegunRequest | None]:
    if (yield _BEGIN(user_id=user_id, name=name, request_hash=request_hash)):
        yield _FORGET_OLDEST(user_id=user_id, most=MOST_OF_A_USER)
        return None
    ((found_hash, response),) = yield _FIND(user_id=user_id, name=name)
    return BegunRequest(found_hash, response)
