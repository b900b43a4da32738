"""The small interface through which this package's SQL uses either database.

SQL is written once, with `:name` parameters. A unit of work of several statements is a *plan*: a
generator that yields queries and is sent their rows. It knows neither threads nor awaits, so the same code
runs in SQLite's writer thread and on an asynchronous PostgreSQL connection.
"""

import re
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

Row = tuple[Any, ...]
Rows = Sequence[Row]
"""What a statement found or returned; an empty row for each that it changed, if it returns none. So RETURNING
isn't needed to ask whether a row changed: it costs SQLite as much as the rest of the statement."""

_PARAMETER = re.compile(r"(?<![:\w]):([a-z_][a-z0-9_]*)")

_CLOCK_SQLITE = "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"
_CLOCK_POSTGRES = "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)"
_IDS_SQLITE = "SELECT value FROM json_each(:ids)"
_IDS_POSTGRES = "SELECT value::uuid FROM json_array_elements_text(:ids::json)"

LAST_SEQ = 2**63 - 1
"""Larger than any row's number."""

T = TypeVar("T")


class Query(NamedTuple):
    """A statement and the values of its parameters.

    The value `most_bytes` ends the rows after the one that reaches it: SQLite reads them one after the other,
    PostgreSQL's statement says so itself.
    """

    statement: "Statement"
    values: Mapping[str, Any]


class Statement:
    """One SQL statement in both databases' spelling, translated once, when it is defined.

    Two words are spelled for each database: `{now}` is its own clock in ms, which all nodes share, and
    `{ids}` the UUIDs of the parameter `ids`, a list as JSON. `locks` ends the statement on PostgreSQL, where
    others write at the same time. `postgres` is the whole statement where that database says it otherwise.

    `page_columns` are the columns of a query that finds many rows: SQLite returns them in one step, as JSON.
    Each step releases the GIL, and a thread that needs it back for every row waits for every row.

    `refusal` is the error shown to users when a foreign key to a host application's table rejects the row.
    """

    __slots__ = (
        "postgres",
        "postgres_names",
        "refusal",
        "sqlite",
        "sqlite_names",
        "sqlite_page",
        "sqlite_searches",
    )

    def __init__(
        self,
        sql: str,
        *,
        postgres: str | None = None,
        locks: str = "",
        page_columns: str | None = None,
        refusal: str | None = None,
    ) -> None:
        self.refusal = refusal
        postgres = _spelled(f"{postgres or sql} {locks}".rstrip(), _CLOCK_POSTGRES, _IDS_POSTGRES)
        sql = _spelled(sql, _CLOCK_SQLITE, _IDS_SQLITE)
        self.sqlite_names = tuple(_PARAMETER.findall(sql))
        self.sqlite = _PARAMETER.sub("?", sql)
        self.sqlite_page = page_columns and (
            f"SELECT json_group_array(json_array({page_columns})) FROM ({self.sqlite})"
        )
        self.sqlite_searches = " MATCH " in sql
        names = tuple(dict.fromkeys(_PARAMETER.findall(postgres)))
        numbers = {name: f"${number}" for number, name in enumerate(names, 1)}
        self.postgres_names = names
        self.postgres = _PARAMETER.sub(lambda match: numbers[match[1]], postgres)

    def __call__(self, **values: Any) -> Query:
        return Query(self, values)


def _spelled(sql: str, clock: str, ids: str) -> str:
    return sql.replace("{now}", clock).replace("{ids}", ids)


Plan = Generator[Query, Rows, T]


def single(query: Query) -> Plan[Rows]:
    """The plan of one statement."""
    return (yield query)


class Database(Protocol):
    """A database that runs queries and plans. Driver errors are raised as StorageError."""

    @property
    def dialect(self) -> Literal["sqlite", "postgres"]:
        """For the few places where one database does in one step what the other cannot."""
        ...

    async def fetch(self, query: Query) -> Rows:
        """Runs one reading statement."""
        ...

    async def read(self, plan: Callable[[], Plan[T]]) -> T:
        """Runs a plan of reading statements in one go. The plan may be run again."""
        ...

    async def execute(self, query: Query, *, urgent: bool = False, apart: bool = False) -> Rows:
        """Runs one writing statement in a transaction of its own; returns after the commit.

        An urgent statement does not wait behind others that keep the database busy; one that runs `apart`
        waits for no other, not even an urgent one.
        """
        ...

    async def write(self, plan: Callable[[], Plan[T]], *, urgent: bool = False, heavy: bool = False) -> T:
        """Runs a plan in one transaction; returns after the commit. The plan may be run again.

        A heavy plan computes much between its statements: it never does so on the event loop.
        """
        ...

    def listen(self, channel: str) -> AsyncGenerator[str]:
        """What other processes send through the database; nothing if there are none."""
        ...

    async def close(self) -> None:
        """Finishes the accepted work and closes the database."""
        ...
