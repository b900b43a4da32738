"""A real server process, as a user runs it: its start and end, crashes, a full disk, a database away."""

import asyncio
import errno
import resource
import secrets
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing
from pathlib import Path
from unittest.mock import ANY

import httpx
import pytest

from tests.http.calls import Json, items, new_agent, new_conversation, refusal
from tests.postgres import PostgresServer
from tests.serving import Server, run
from threadkeep.http.server import server as http_server
from threadkeep.testing.waiting import PATIENCE_S, until

CLIENTS = 8


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Starts servers on one data folder; those that still run in the end are ended."""
    servers: list[Server] = []

    def start(*arguments: str, **settings: str) -> Server:
        servers.append(Server(tmp_path, *arguments, **settings))
        return servers[-1]

    yield start
    for server in servers:
        with server:
            pass


def conversed(client: httpx.Client, title: str = "t") -> str:
    """The id of a new conversation with a new agent."""
    agent = client.post("/api/agents", json={"name": "a"}).json()["id"]
    response = client.post(f"/api/agents/{agent}/conversations", json={"title": title})
    assert response.status_code == 201, response.text
    return response.json()["id"]


def connect(server: Server) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S)


def begin_request(connection: socket.socket, length: int) -> None:
    """Sends the head of a request, and returns when the server works on it: it asks for the body."""
    head = f"POST /api/agents HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n"
    connection.sendall(f"{head}Expect: 100-continue\r\n\r\n".encode())
    assert connection.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"


def said(connection: socket.socket) -> bytes:
    """All that comes until the other side closes."""
    parts: list[bytes] = []
    while part := connection.recv(65536):
        parts.append(part)
    return b"".join(parts)


# Starting and stopping


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_server_starts_responds_and_ends_in_good_order(
    serve: Callable[..., Server], tmp_path: Path, number: signal.Signals
):
    server = serve()
    with server.client() as client:
        assert client.get("/healthz").json()["status"] == "ok"
        assert client.get("/readyz").json()["status"] == "ready"
        assert client.get("/api/me").json() == {"id": "local", "role": "admin", "installation": ANY}
        id_ = conversed(client)
        assert server.stop(number) == 0
    assert "Traceback" not in server.output
    assert "this account is the user `local`" in server.output
    files = sorted(path.name for path in (tmp_path / "data").iterdir())
    assert files == [".gitignore", "secret.key", "threadkeep.db", "threadkeep.lock", "token"]
    again = serve()
    with again.client() as client:
        assert client.get(f"/api/conversations/{id_}").json()["title"] == "t"
        assert [it["name"] for it in client.get("/api/agents").json()["items"]] == ["Guide", "Assistant", "a"]


def test_request_under_way_is_finished_before_the_end(serve: Callable[..., Server]):
    server = serve()
    with connect(server) as idle, connect(server) as busy:
        body = b'{"name": "half sent"}'
        begin_request(busy, len(body))
        busy.sendall(body[:7])
        server.process.send_signal(signal.SIGTERM)
        assert said(idle) == b""
        assert server.process.poll() is None
        busy.sendall(body[7:])
        assert said(busy).startswith(b"HTTP/1.1 201 ")
    assert server.stop() == 0
    with serve().client() as client:
        assert "half sent" in client.get("/api/agents").text


def test_request_that_never_ends_does_not_keep_the_server_from_ending(serve: Callable[..., Server]):
    server = serve()
    with connect(server) as hanging:
        begin_request(hanging, 99)
        hanging.sendall(b"{")
        assert server.stop() == 0
    assert "Traceback" not in server.output


def test_second_process_on_the_same_data_folder_is_refused(serve: Callable[..., Server], tmp_path: Path):
    server = serve()
    second = run("serve", "--port", "0", "--data", "data", folder=tmp_path)
    assert second.returncode == 1
    assert second.stdout == ""
    (line,) = second.stderr.splitlines()
    assert line.startswith("threadkeep: The data folder data is in use by another Threadkeep")
    assert f"(process {server.process.pid})" in line
    with server.client() as client:
        assert client.get("/readyz").status_code == 200
    server.kill()
    assert serve().process.poll() is None


def test_what_cannot_be_started_is_told_in_one_line(serve: Callable[..., Server], tmp_path: Path):
    taken = str(serve().port)
    (tmp_path / "file").write_text("not a folder")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "threadkeep.db").write_bytes(b"not a database, but long enough to look at" * 100)
    cases: list[tuple[list[str], dict[str, str], str]] = [
        (["--port", taken, "--data", "other"], {}, f"port {taken}"),
        (["--data", "file/data"], {}, "Can't write to the data folder file/data"),
        (["--data", "broken"], {}, "open the database broken/threadkeep.db"),
        ([], {"database_url": "postgresql://u:the-password@127.0.0.1:1/x"}, "the PostgreSQL database"),
    ]
    for arguments, settings, told in cases:
        failed = run("serve", "--port", "0", *arguments, folder=tmp_path, **settings)
        assert (failed.returncode, failed.stdout) == (1, ""), failed
        (line,) = failed.stderr.splitlines()
        assert line.startswith("threadkeep: ")
        assert told in line
        assert "the-password" not in line


def test_token_of_the_command_line_opens_the_server(serve: Callable[..., Server], tmp_path: Path):
    secret = secrets.token_hex(32)
    server = serve(jwt_secret=secret)
    made = [
        run("token", "--user", "alice", *more, folder=tmp_path, jwt_secret=secret).stdout.strip()
        for more in ([], ["--admin"])
    ]
    for token, role in zip(made, ("user", "admin"), strict=True):
        with server.client(token) as client:
            assert client.get("/api/me").json() == {"id": "alice", "role": role, "installation": ANY}
    with server.client() as client:
        refusal(client.get("/api/me"), 401, "UNAUTHENTICATED")
        assert client.get("/healthz").status_code == 200


# What comes over a wire


def test_head_has_no_body_and_strange_hosts_are_refused_on_the_wire(serve: Callable[..., Server]):
    server = serve()
    for request, expected in (
        (b"HEAD /api/agents HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", b"HTTP/1.1 200 "),
        (b"GET /api/agents HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", b"HTTP/1.1 403 "),
        (b"GET /api/agents HTTP/1.0\r\n\r\n", b"HTTP/1.1 403 "),
    ):
        with connect(server) as connection:
            connection.sendall(request)
            response = said(connection)
        assert response.startswith(expected)
        assert b"threadkeep-version: " in response.lower()
        assert b"\r\nserver:" not in response.lower()
        if request.startswith(b"HEAD"):
            assert response.endswith(b"\r\n\r\n")


def test_garbage_and_broken_connections_leave_the_server_well(serve: Callable[..., Server]):
    server = serve()
    for garbage in (
        b"\x16\x03\x01\x02\x00",
        b"GET\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"POST /api/agents HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"POST /api/agents HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nhalf a body",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 500_000,
    ):
        with closing(connect(server)) as connection:
            connection.sendall(garbage)
            connection.shutdown(socket.SHUT_WR)
            try:
                assert b" 500 " not in said(connection)[:50]
            except ConnectionResetError:
                continue
    with server.client() as client:
        assert [it["name"] for it in client.get("/api/agents").json()["items"]] == ["Guide", "Assistant"]
    assert server.stop() == 0
    assert "Traceback" not in server.output
    assert "ERROR" not in server.output


async def test_body_over_the_limit_gets_its_response_on_the_wire(serve: Callable[..., Server]):
    async def drip() -> AsyncIterator[bytes]:
        for _ in range(11 * 16):
            yield b" " * 65536

    server = serve()
    async with server.async_client() as client:
        for path in ("/api/agents", "/api/chat"):
            for body in (b" " * 11 * 1024 * 1024, drip()):
                refusal(await client.post(path, content=body), 413, "PAYLOAD_TOO_LARGE")
        exact = b"{}".ljust(10 * 1024 * 1024)
        refusal(await client.post("/api/chat", content=exact), 400, "MESSAGE_CONTENT_REQUIRED", "content")


# Crashes


async def test_everything_acknowledged_is_there_after_a_kill_under_load(serve: Callable[..., Server]):
    acknowledged: dict[str, str] = {}
    rounds = 2
    for number in range(rounds):
        server = serve()
        async with server.async_client() as client:
            agent = await new_agent(client)

            async def write(client: httpx.AsyncClient, agent: Json, name: str) -> None:
                count = 0
                while True:
                    title = f"{name} {count}"
                    conversation = await new_conversation(client, agent["id"], title=title)
                    acknowledged[conversation["id"]] = title
                    count += 1

            writers = [asyncio.create_task(write(client, agent, f"{number} {n}")) for n in range(CLIENTS)]
            before = len(acknowledged)
            await until(lambda enough=before + 100: len(acknowledged) >= enough)
            server.kill()
            results = await asyncio.gather(*writers, return_exceptions=True)
        assert all(isinstance(result, httpx.TransportError) for result in results), results
    assert len(acknowledged) >= rounds * 100
    async with serve().async_client() as client:
        kept = {it["id"]: it["title"] for it in await items(client, "/api/conversations", limit=200)}
    assert acknowledged.items() <= kept.items()
    # What was under way may be there or not, but nothing else.
    assert len(kept) - len(acknowledged) <= rounds * CLIENTS


# A full disk


@pytest.mark.skipif(sys.platform != "linux", reason="limits of another process are set on Linux only")
def test_full_disk_refuses_writes_clearly_and_reads_go_on(serve: Callable[..., Server], tmp_path: Path):
    server = serve()
    with server.client() as client:
        agent = client.post("/api/agents", json={"name": "a"}).json()["id"]
        path = f"/api/agents/{agent}/conversations"
        body = {"metadata": {"padding": "x" * 8_000}}
        kept = [client.post(path, json=body).json()["id"] for _ in range(3)]
        log = tmp_path / "data" / "threadkeep.db-wal"
        hard = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)[1]
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (log.stat().st_size, hard))
        for _ in range(5):
            response = client.post(path, json=body)
            refusal(response, 503, "STORAGE_UNAVAILABLE")
            assert response.headers["retry-after"]
            refusal(client.patch(f"/api/conversations/{kept[0]}", json=body), 503, "STORAGE_UNAVAILABLE")
            assert [it["id"] for it in client.get(path).json()["items"]] == kept[::-1]
            assert client.get(f"/api/conversations/{kept[0]}").json()["metadata"] == body["metadata"]
            assert client.get("/healthz").status_code == 200
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (hard, hard))
        kept.append(client.post(path, json=body).json()["id"])
        assert [it["id"] for it in client.get(path).json()["items"]] == kept[::-1]
    assert server.stop() == 0
    assert "Traceback" not in server.output
    with serve().client() as client:
        assert [it["id"] for it in client.get(path).json()["items"]] == kept[::-1]


# A database that goes away


@pytest.fixture
def database() -> Iterator[PostgresServer]:
    """A PostgreSQL of this test's own, which keeps what it has acknowledged even through a crash."""
    with PostgresServer(durable=True) as server:
        yield server


async def test_restarts_and_absence_of_postgresql_are_survived_without_telling_a_secret(
    serve: Callable[..., Server], database: PostgresServer, tmp_path: Path
):
    url = database.create_database("load")
    secret = secrets.token_hex(32)
    server = serve(database_url=url, jwt_secret=secret, log_level="debug", database_pool_size="4")
    token = run("token", "--user", "alice", folder=tmp_path, jwt_secret=secret).stdout.strip()
    acknowledged: set[str] = set()
    statuses: dict[int, int] = {}
    successes = [0] * CLIENTS
    running = True

    async def load(client: httpx.AsyncClient, agent: Json, number: int) -> None:
        while running:
            wrote = await client.post(f"/api/agents/{agent['id']}/conversations", json={"title": "t"})
            read = await client.get("/api/conversations", params={"limit": 5})
            for response in (wrote, read):
                statuses[response.status_code] = statuses.get(response.status_code, 0) + 1
                if response.status_code == 503:
                    refusal(response, 503, "STORAGE_UNAVAILABLE")
                    assert response.headers["retry-after"]
            if wrote.status_code == 201:
                acknowledged.add(wrote.json()["id"])
            successes[number] += wrote.status_code == 201 and read.status_code == 200

    async def everyone_succeeds_again() -> None:
        before = list(successes)

        def all_have_succeeded() -> bool:
            assert not any(client.done() for client in clients)
            return all(now >= then + 3 for now, then in zip(successes, before, strict=True))

        await until(all_have_succeeded)

    async with server.async_client(token) as client:
        agent = await new_agent(client)
        clients = [asyncio.create_task(load(client, agent, number)) for number in range(CLIENTS)]
        await everyone_succeeds_again()
        await asyncio.to_thread(database.restart, "fast")
        await everyone_succeeds_again()
        await asyncio.to_thread(database.restart, "immediate")
        await everyone_succeeds_again()
        running = False
        await asyncio.gather(*clients)
        assert statuses.keys() <= {200, 201, 503}, statuses
        kept = {it["id"] for it in await items(client, "/api/conversations", limit=200)}
        assert acknowledged <= kept
        # A commit whose acknowledgement was lost with the connection may be there, nothing else.
        assert len(kept - acknowledged) <= statuses.get(503, 0)

        await asyncio.to_thread(database.stop, "immediate")
        responses = await asyncio.gather(
            client.get("/readyz"),
            client.get("/api/conversations"),
            client.put(f"/api/agents/{agent['id']}/conversation"),
            client.delete("/api/users/alice"),
        )
        for response in responses:
            refusal(response, 503, "STORAGE_UNAVAILABLE")
        assert (await client.get("/healthz")).status_code == 200
        assert (await client.get("/api/me")).status_code == 200
        await asyncio.to_thread(database.start)
        main = await client.put(f"/api/agents/{agent['id']}/conversation")
        for _ in range(100):
            if main.status_code != 503:
                break
            main = await client.put(f"/api/agents/{agent['id']}/conversation")
        assert main.status_code == 201
        assert {it["id"] for it in await items(client, "/api/conversations", limit=200)} >= kept
    assert server.stop() == 0
    assert "Traceback" not in server.output
    password = url.partition("://")[2].partition("@")[0].partition(":")[2]
    for hidden in (secret, token, token.rpartition(".")[2], password):
        assert len(hidden) > 20
        assert hidden not in server.output


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="only Linux ends such connections")
async def test_connection_of_a_reader_who_takes_nothing_is_ended(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(http_server, "MOST_STUCK_S", 1)
    loop = asyncio.get_running_loop()
    with closing(http_server.listen("127.0.0.1", 0)) as listener, closing(socket.socket()) as reader:
        listener.setblocking(False)
        reader.setblocking(False)
        await loop.sock_connect(reader, listener.getsockname())
        connection, _ = await loop.sock_accept(listener)
        with closing(connection), pytest.raises(OSError) as ended:
            async with asyncio.timeout(PATIENCE_S):
                await loop.sock_sendall(connection, b"x" * 50_000_000)
    assert ended.value.errno == errno.ETIMEDOUT
