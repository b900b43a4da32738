"""PostgreSQL 14 and later, over psycopg 3 and its pool."""

import asyncio
import logging
import os
import socket
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from functools import wraps
from types import CoroutineType
from typing import Any, Literal, LiteralString, ParamSpec, TypeVar, cast

import psycopg
from psycopg import sql
from psycopg.adapt import Dumper
from psycopg.conninfo import conninfo_to_dict
from psycopg.types.numeric import Int8Dumper
from psycopg.types.string import TextLoader
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from threadkeep.domain.errors import (
    DatabaseAway,
    Forbidden,
    SettingsError,
    StorageConflict,
    StorageRefused,
    StorageUnavailable,
)
from threadkeep.domain.ids import new_uuid
from threadkeep.storage.database.connector import Plan, Query, Row, Rows
from threadkeep.storage.database.host_users import find_host_column, tie_users
from threadkeep.storage.database.migrate import migrate, migrations
from threadkeep.storage.database.snapshot import Snapshot

log = logging.getLogger("threadkeep.storage")

P = ParamSpec("P")
T = TypeVar("T")
PostgresConnection = psycopg.AsyncConnection[tuple[Any, ...]]
_Pool = AsyncConnectionPool[PostgresConnection]

WAIT_FOR_CONNECTION_S = 5.0
LISTEN_CHECK_S = 15.0
"""How often the connection that only listens must show that it isn't dead."""
DELIVERED_WITHIN_S = 2.0
"""How long a notification that nobody waits for may take, before LISTEN counts as not working."""
MOST_READ_S = 30.0
"""A server that is frozen or cut off by the network never answers; reads stop waiting after this."""
MOST_TAKEN_AT_ONCE = 256 * 1024
"""How many characters of a page the event loop makes messages of; a thread does the others."""
URGENT_CONNECTIONS = 2
"""For work that must not wait behind slow reads: turn logs, charges and what is reserved for calls."""
CONNECTIONS_APART = 1
"""For leases alone: urgent work can wait for a row, and a node that fails to renew them loses its turns."""
MOST_MIGRATION_TRIES = 20
MIGRATION_PAUSE_S = 0.5
MIGRATION_LOCK = 0x7468_7265_6164  # "thread": one process migrates, the others wait for it


# Overrides the server's, the role's and the environment's: people write in every script.
_ENCODING = "UTF8"
_TIMEOUTS: dict[str, Any] = {
    "connect_timeout": int(WAIT_FOR_CONNECTION_S),
    "keepalives": 1,
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
"""So that a connection whose other end vanished is noticed. The database's URL can set others."""
_UNREACHABLE = "Couldn't connect to the database. Try again in a moment."


class ConnectionBroke(DatabaseAway):
    """A statement found its connection dead, or the server refused it; a new connection may work."""


def _cancelled_once(
    work: Callable[P, Coroutine[Any, Any, T]],
) -> "Callable[P, CoroutineType[Any, Any, T]]":
    """Passes on only the first cancellation of a call, and waits for what it does.

    A second one would interrupt psycopg while it cancels the statement: that would go on in the server, in a
    transaction that stays open with its locks.
    """

    @wraps(work)
    async def call(*args: P.args, **kwargs: P.kwargs) -> T:
        running = asyncio.create_task(work(*args, **kwargs))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            running.cancel()
            while not running.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.wait([running])
            if not running.cancelled():
                running.exception()  # nobody asks for it any more
            raise

    return call


class PostgresDatabase:
    """A PostgreSQL database. Dead connections are replaced; reads are retried once."""

    dialect: Literal["postgres"] = "postgres"

    def __init__(self, url: str, pool: _Pool, urgent_pool: _Pool, pool_apart: _Pool) -> None:
        self._url = url
        self._pool = pool
        self._urgent_pool = urgent_pool
        self._pool_apart = pool_apart
        self._pools = (pool, urgent_pool, pool_apart)
        self._checking = False

    @staticmethod
    async def open(
        url: str, *, schema: str | None, pool_size: int, user_table: str | None = None
    ) -> "PostgresDatabase":
        """Connects, and migrates the database while other nodes wait."""
        _check_url(url)

        sizes = (pool_size, URGENT_CONNECTIONS, CONNECTIONS_APART)
        database = PostgresDatabase(url, *(_new_pool(url, schema, size) for size in sizes))
        try:
            await _migrate(url, schema, user_table)
            for pool in database._pools:
                await pool.open(wait=True, timeout=WAIT_FOR_CONNECTION_S)
        except psycopg.Error as exc:
            await database.close()
            raise StorageRefused(f"Can't use the PostgreSQL database: {_for_operators(exc)}") from exc
        return database

    @staticmethod
    async def snapshot(url: str, *, schema: str | None) -> Snapshot:
        """The database as of this moment, on its own connection."""
        _check_url(url)
        try:
            connection = await _connect(url)
        except psycopg.Error as exc:
            raise StorageRefused(f"Can't use the PostgreSQL database: {_for_operators(exc)}") from exc

        async def drive(plan: Plan[T]) -> T:
            try:
                return await _drive(connection, plan)
            except psycopg.Error as exc:
                raise StorageRefused(f"Couldn't read the database: {_for_operators(exc)}") from exc

        try:
            await _configure(connection, None)
            await connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            if schema:
                await connection.execute(_search_path("SET LOCAL", schema))
        except BaseException:
            await connection.close()
            raise
        return Snapshot("postgres", drive, connection.close)

    @staticmethod
    async def delivers_notifications(url: str) -> bool:
        """Whether LISTEN works; not through a pooler that gives each transaction another session."""
        _check_url(url)
        channel = f"threadkeep_{new_uuid()}"
        try:
            async with await _connect(url) as listener, await _connect(url) as notifier:
                await listener.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)).as_bytes())
                await notifier.execute("SELECT pg_notify($1, '')", [channel])
                async for _ in listener.notifies(timeout=DELIVERED_WITHIN_S, stop_after=1):
                    return True
        except psycopg.Error as exc:
            raise StorageRefused(f"Can't use the PostgreSQL database: {_for_operators(exc)}") from exc
        return False

    @_cancelled_once
    async def fetch(self, query: Query) -> Rows:
        """Runs one reading statement; retries once if the connection was dead."""
        try:
            async with self._reading() as connection:
                return await _run(connection, query)
        except ConnectionBroke:
            async with self._reading() as connection:
                return await _run(connection, query)

    @_cancelled_once
    async def read(self, plan: Callable[[], Plan[T]]) -> T:
        """Runs a plan of reading statements on one connection; retries once if it was dead."""
        try:
            async with self._reading() as connection, _in_one_session(connection):
                return await _drive(connection, plan())
        except ConnectionBroke:
            async with self._reading() as connection, _in_one_session(connection):
                return await _drive(connection, plan())

    @_cancelled_once
    async def execute(self, query: Query, *, urgent: bool = False, apart: bool = False) -> Rows:
        """Runs one statement as its own transaction: one round trip."""
        pool = self._pool_apart if apart else self._pool_for(urgent=urgent)
        async with self._connection(pool) as connection:
            return await _run(connection, query)

    @_cancelled_once
    async def write(self, plan: Callable[[], Plan[T]], *, urgent: bool = False, heavy: bool = False) -> T:
        """Runs a plan in one transaction."""
        drive = _drive_in_thread if heavy else _drive
        pool = self._pool_for(urgent=urgent)
        async with self._connection(pool) as connection, connection.transaction():
            return await drive(connection, plan())

    async def listen(self, channel: str) -> AsyncGenerator[str]:
        """What other nodes send, on its own connection, until that breaks.

        Yields an empty text when it starts to listen: earlier messages may have been missed.
        """
        try:
            async with await _connect(self._url) as connection:
                name = sql.Identifier(channel)
                with _hanging_up_after(connection, WAIT_FOR_CONNECTION_S):
                    await connection.execute(sql.SQL("LISTEN {}").format(name).as_bytes(connection))
                yield ""
                while True:
                    async for notify in connection.notifies(timeout=LISTEN_CHECK_S):
                        yield notify.payload
                    with _hanging_up_after(connection, WAIT_FOR_CONNECTION_S):
                        await connection.execute("SELECT 1")
        except psycopg.Error as exc:
            raise StorageUnavailable(f"The LISTEN connection broke: {_for_operators(exc)}") from exc

    async def close(self) -> None:
        """Lets running statements end and closes the connections."""
        for pool in self._pools:
            await pool.close()

    def _pool_for(self, *, urgent: bool) -> _Pool:
        return self._urgent_pool if urgent else self._pool

    @asynccontextmanager
    async def _connection(self, pool: _Pool) -> AsyncGenerator[PostgresConnection]:
        try:
            async with pool.connection() as connection:
                yield connection
        except (psycopg.IntegrityError, psycopg.DataError, psycopg.errors.DeadlockDetected) as exc:
            raise StorageConflict(
                f"The database rejected the row: {exc.diag.message_primary or exc}."
            ) from exc
        except UnicodeEncodeError as exc:
            raise StorageConflict(f"The database rejected the row: {exc}.") from exc
        except PoolTimeout as exc:
            raise DatabaseAway(_UNREACHABLE) from exc
        except psycopg.Error as exc:
            if isinstance(exc, psycopg.OperationalError):
                await self._replace_dead_connections()
            raise ConnectionBroke(_for_clients(exc)) from exc

    @asynccontextmanager
    async def _reading(self) -> AsyncGenerator[PostgresConnection]:
        async with self._connection(self._pool) as connection:
            with _hanging_up_after(connection, MOST_READ_S):
                yield connection

    async def _replace_dead_connections(self) -> None:
        """After a server restart all idle connections are dead, not only the one that failed."""
        if self._checking:
            return
        self._checking = True
        try:
            for pool in self._pools:
                await pool.check()
        finally:
            self._checking = False


def _new_pool(url: str, schema: str | None, size: int) -> _Pool:
    async def configure(connection: PostgresConnection) -> None:
        await _configure(connection, schema)

    return AsyncConnectionPool(
        url,
        min_size=1,
        max_size=size,
        open=False,
        timeout=WAIT_FOR_CONNECTION_S,
        # Otherwise retries back off for minutes, long after the server is back.
        reconnect_timeout=WAIT_FOR_CONNECTION_S,
        configure=configure,
        kwargs=_options(url),
    )


def _options(url: str) -> dict[str, Any]:
    """How every connection is made."""
    set_by_operator = conninfo_to_dict(url)
    return {
        "autocommit": True,
        "cursor_factory": psycopg.AsyncRawCursor,
        "application_name": "threadkeep",
        "client_encoding": _ENCODING,
        **{name: value for name, value in _TIMEOUTS.items() if name not in set_by_operator},
    }


async def _connect(url: str) -> PostgresConnection:
    """A connection outside the pools."""
    return await psycopg.AsyncConnection[tuple[Any, ...]].connect(url, **_options(url))


async def _configure(connection: PostgresConnection, schema: str | None) -> None:
    """Prepares a connection for our statements."""
    # Ids are text inside Threadkeep; numbers always have one type, so that each statement is prepared once,
    # not once per size of number.
    connection.adapters.register_loader("uuid", TextLoader)
    connection.adapters.register_dumper(int, Int8Dumper)
    connection.adapters.register_dumper(_Encoded, _EncodedDumper)
    if await _is_pooled(connection):
        connection.prepare_threshold = None  # the next transaction may run in another session
    elif schema:
        await connection.execute(_search_path("SET", schema))


async def _is_pooled(connection: PostgresConnection) -> bool:
    """Whether a pooler such as PgBouncer answers, which may give each transaction another session."""
    ((pid,),) = await (await connection.execute("SELECT pg_backend_pid()")).fetchall()
    return pid != connection.info.backend_pid


@asynccontextmanager
async def _in_one_session(connection: PostgresConnection) -> AsyncGenerator[None]:
    """Keeps a pooler from giving the next statement another session."""
    async with nullcontext() if connection.prepare_threshold is not None else connection.transaction():
        yield


async def _check_search_path(connection: PostgresConnection, schema: str) -> None:
    ((found,),) = await (await connection.execute("SELECT current_schema()")).fetchall()
    if found != schema:
        raise SettingsError(
            "Behind a connection pooler, THREADKEEP_DATABASE_SCHEMA must also be the role's own search path. "
            f"Run: ALTER ROLE {connection.info.user} IN DATABASE {connection.info.dbname} "
            f"SET search_path TO {schema}; then let the pooler reconnect."
        )


def _search_path(how: Literal["SET", "SET LOCAL"], schema: str) -> bytes:
    return sql.SQL(how + " search_path TO {}").format(sql.Identifier(schema)).as_bytes()


@contextmanager
def _hanging_up_after(connection: PostgresConnection, seconds: float) -> Generator[None]:
    """Stops waiting for a server that doesn't answer in time."""
    loop = asyncio.get_running_loop()
    timer = loop.call_later(seconds, _hang_up, connection)
    try:
        yield
    except psycopg.OperationalError as exc:
        if timer.when() > loop.time():
            raise
        raise DatabaseAway(_UNREACHABLE) from exc
    finally:
        timer.cancel()


def _hang_up(connection: PostgresConnection) -> None:
    """Ends a connection from our side. Cancelling isn't enough: psycopg then waits for the server."""
    with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(connection.fileno())) as wire:
        wire.shutdown(socket.SHUT_RDWR)


async def _run(connection: PostgresConnection, query: Query) -> Rows:
    statement, values = query
    try:
        cursor = await connection.execute(
            cast("LiteralString", statement.postgres), [values[name] for name in statement.postgres_names]
        )
    except (psycopg.IntegrityError, psycopg.DataError) as exc:
        if statement.refusal is not None:
            raise Forbidden(statement.refusal) from exc
        raise
    return await cursor.fetchall() if cursor.rownumber is not None else [()] * cursor.rowcount


async def _drive(connection: PostgresConnection, plan: Plan[T]) -> T:
    query, result = _advance(plan, None)
    while query is not None:
        rows = await _run(connection, query)
        if "most_bytes" in query.values and _are_large(rows):
            query, result = await asyncio.to_thread(_advance, plan, rows)
        else:
            query, result = _advance(plan, rows)
    return cast("T", result)


def _are_large(rows: Rows) -> bool:
    """Whether what a plan makes of rows would delay others."""
    return sum(len(it) for row in rows for it in row if isinstance(it, str)) > MOST_TAKEN_AT_ONCE


async def _drive_in_thread(connection: PostgresConnection, plan: Plan[T]) -> T:
    """The same, with a thread for what the plan does between its statements."""
    rows: Rows | None = None
    while True:
        query, result = await asyncio.to_thread(_advance_encoded, plan, rows)
        if query is None:
            return cast("T", result)
        rows = await _run(connection, query)


def _advance_encoded(plan: Plan[T], rows: Rows | None) -> tuple[Query | None, T | None]:
    """The same as `_advance`, with texts as they are sent."""
    query, result = _advance(plan, rows)
    if query is not None:
        sent = {
            name: _Encoded(it, _ENCODING) if isinstance(it, str) else it for name, it in query.values.items()
        }
        query = Query(query.statement, sent)
    return query, result


class _Encoded(bytes):
    """A text as it is sent."""


class _EncodedDumper(Dumper):
    """Sends it without another copy."""

    def dump(self, obj: _Encoded) -> _Encoded:
        """Itself."""
        return obj


def _advance(plan: Plan[T], rows: Rows | None) -> tuple[Query | None, T | None]:
    """A plan's next query, or None and its result."""
    try:
        return (next(plan) if rows is None else plan.send(rows)), None
    except StopIteration as stop:
        return None, cast("T", stop.value)


async def _migrate(url: str, schema: str | None, user_table: str | None) -> None:
    """Migrates the database, again if it and the turns of older nodes waited for each other's locks."""
    for tries_left in reversed(range(MOST_MIGRATION_TRIES)):
        try:
            await _migrate_once(url, schema, user_table)
        except psycopg.errors.DeadlockDetected:
            if not tries_left:
                raise
            log.warning("the migration and other nodes waited for each other; nothing was changed, retrying")
            await asyncio.sleep(MIGRATION_PAUSE_S)
        else:
            return


async def _migrate_once(url: str, schema: str | None, user_table: str | None) -> None:
    async with await _connect(url) as connection:
        encoding = connection.info.parameter_status("server_encoding")
        if encoding != _ENCODING:
            raise SettingsError(
                f"The database uses the encoding {encoding}. Create one that uses UTF-8: createdb -E UTF8."
            )
        await _configure(connection, None)
        async with _alone(connection):
            # Before switching to our own schema: the host's table is resolved as the host resolves it.
            host_column = await _drive(connection, find_host_column(user_table)) if user_table else None
            if schema:
                await _enter(connection, schema)
            await _drive(connection, migrate(migrations("postgres")))
            if host_column is not None:
                await _tie_users(connection, host_column)
        if schema and await _is_pooled(connection):
            await _check_search_path(connection, schema)


@asynccontextmanager
async def _alone(connection: PostgresConnection) -> AsyncGenerator[None]:
    """A transaction during which no other node migrates."""
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock($1)", [MIGRATION_LOCK])
        yield


async def _enter(connection: PostgresConnection, schema: str) -> None:
    """Switches to our own schema, which it creates if needed, until the transaction ends."""
    name = sql.Identifier(schema)
    await connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(name).as_bytes(connection))
    await connection.execute(_search_path("SET LOCAL", schema))


async def _tie_users(connection: PostgresConnection, host_column: Row) -> None:
    try:
        await _drive(connection, tie_users(host_column))
    except (psycopg.IntegrityError, psycopg.DataError) as exc:
        raise SettingsError(
            "THREADKEEP_USER_TABLE: tk_users contains users that the table doesn't. Delete them or move "
            "their conversations first. Nothing was changed."
        ) from exc


def _check_url(url: str) -> None:
    """Refuses a malformed address, in our own words: libpq's would repeat the password."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        parts = None
    # An unescaped @ or / ends the password early, and the rest is parsed as the host or the database.
    if parts is None or any("@" in str(parts.get(name)) for name in ("host", "dbname")):
        raise SettingsError(
            "The database URL is invalid. Use sqlite:///folder/file.db or "
            "postgresql://user:password@host/database, and percent-encode special characters in the "
            "password (@ as %40)."
        )


def _for_clients(error: psycopg.Error) -> str:
    """The server's own message. libpq's connection errors name hosts and users, so they stay inside."""
    message = error.diag.message_primary
    return f"The database is unavailable: {message}." if message else _UNREACHABLE


def _for_operators(error: psycopg.Error) -> str:
    """The first line of an error, without the row's values, which may be a user's words."""
    return error.diag.message_primary or str(error).split("\n", maxsplit=1)[0]
