import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest

from tests.postgres import Postgres, PostgresServer


def test_data_survives_restart_and_crash() -> None:
    with PostgresServer(durable=True) as server:
        url = server.create_database("first")
        with psycopg.connect(url) as connection:
            connection.execute("CREATE TABLE kept (value text)")
            connection.execute("INSERT INTO kept VALUES ('你好')")
        server.restart()
        server.restart("immediate")
        with psycopg.connect(server.create_database(template="first")) as connection:
            assert connection.execute("SELECT value FROM kept").fetchone() == ("你好",)


def test_server_ends_with_the_process_that_started_it() -> None:
    program = """if True:
        from tests.postgres import PostgresServer
        server = PostgresServer().start()
        print(server.url("postgres"), server._folder, flush=True)
        input()
    """
    owner = subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parents[1],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with owner:
        assert owner.stdout
        url, folder = owner.stdout.readline().split(maxsplit=1)
        psycopg.connect(url).close()
        owner.kill()
    deadline = time.monotonic() + 20
    while Path(folder.strip()).exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(folder.strip()).exists()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url)


def test_url_replaces_only_the_database() -> None:
    assert Postgres("postgresql://me:secret@host:5432/old?sslmode=disable").url("new") == (
        "postgresql://me:secret@host:5432/new?sslmode=disable"
    )
    assert Postgres("postgresql:///old?host=/run/pg").url("new") == "postgresql:///new?host=/run/pg"
    assert Postgres("postgresql://host").url("new") == "postgresql://host/new"
