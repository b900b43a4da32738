"""Whether one user notices another who attacks: P99 of a user's requests, quiet and during each attack.

    python -m bench.hostile [--quick] [--database sqlite|postgres] [--only NAME]

A server as an operator runs it, attackers in processes of their own, and a user who reads a page of messages
again and again. Each attack is measured right after a quiet stretch, so that both see the same machine; what
counts is the ratio of the two.
"""

import argparse
import http.client
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import quantiles
from tempfile import TemporaryDirectory
from typing import Any

from tests.postgres import PostgresServer
from tests.serving import Server

from bench import results
from bench.hostile_files import docx_bomb
from bench.table import Aim, render
from threadkeep.domain.ids import UserId
from threadkeep.domain.user import User
from threadkeep.http.sign_in.access_tokens import issue_token

SECRET = "the-benchmarks-own-secret-used-nowhere-else"
TOKEN_S = 3600
AIM = Aim("≤", 2)
HEADINGS = ("during", "P50 ms", "P99 ms", "quiet P99 ms", "ratio", "aim", "")
MESSAGES = 40
PAUSE_S = 0.005
WARM_S = 3
CONNECTIONS = 300
HUGE_WORD = "zebra " + "a" * 200_000 + "ational"
EMPTY_ARRAYS = b"[" + b"[]," * 3_400_000 + b"[]]"
AT = 1_800_000_000_000


def token(user: str) -> str:
    """Signs a user in."""
    return issue_token(SECRET, User(UserId(user)), TOKEN_S)


class Caller:
    """A user's one connection."""

    def __init__(self, port: int, user: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        self._headers = {"Authorization": f"Bearer {token(user)}", "Content-Type": "application/json"}

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, bytes]:
        """Asks, and reads the answer to its end."""
        sent = body if isinstance(body, bytes) else None if body is None else json.dumps(body)
        self._connection.request(method, path, sent, {**self._headers, **headers})
        answer = self._connection.getresponse()
        return answer.status, answer.read()

    def make(self, method: str, path: str, body: Any = None) -> Any:
        """Asks for what must work."""
        status, answer = self.call(method, path, body)
        if status >= 300:
            raise RuntimeError(f"{method} {path}: {status} {answer[:500]!r}")
        return json.loads(answer)

    def conversation(self, texts: Sequence[str]) -> str:
        """A new conversation in which this was said, recorded as another engine's runs."""
        agent = self.make("POST", "/api/agents", {"name": "Measured"})["id"]
        conversation: str = self.make("POST", f"/api/agents/{agent}/conversations", {})["id"]
        for number, text in enumerate(texts):
            run = {"runId": f"run-{number}", "at": AT + number}
            events = [
                {**run, "id": f"{number}-a", "type": "ExecutionStarted", "input": text},
                {**run, "id": f"{number}-b", "type": "ExecutionCompleted", "output": "Understood."},
            ]
            self.make("POST", f"/api/conversations/{conversation}/executions", {"events": events})
        return conversation


# The attacks: each is done again and again until the process is ended.


def search(port: int) -> None:
    """Finding 1: highlighting one huge word."""
    mallory = Caller(port, "mallory")
    mallory.conversation([HUGE_WORD])
    while True:
        mallory.call("GET", "/api/search?q=zebra")


def headers(port: int) -> None:
    """Finding 4: headers of 10 and of 60 MB, without a sign-in."""
    for size in _again(10_000_000, 60_000_000):
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: " + b"a" * size + b"\r\n\r\n")
            connection.recv(65536)


def bodies(port: int) -> None:
    """Finding 5: 10 MB of empty arrays, and of nesting."""
    for body in _again(EMPTY_ARRAYS, b"[" * 10_000_000):
        with suppress(OSError, http.client.HTTPException):
            Caller(port, "mallory").call("POST", "/api/chat", body)


def documents(port: int) -> None:
    """Finding 7: two files of 149 KB that unpack to gigabytes."""
    mallory = Caller(port, "mallory")
    path = f"/api/agents/{mallory.make('POST', '/api/agents', {'name': 'Measured'})['id']}/documents"
    file = docx_bomb()
    part = b'--b\r\nContent-Disposition: form-data; name="files"; filename="%d.docx"\r\n\r\n%b\r\n'
    body = part % (1, file) + part % (2, file) + b"--b--\r\n"
    while True:
        mallory.call("POST", path, body, **{"Content-Type": "multipart/form-data; boundary=b"})
        _wait_until_read(mallory, path)


def slow(port: int) -> None:
    """Finding 10: hundreds of connections with slow headers, slow bodies, or nothing at all."""
    beginnings = (
        b"GET /healthz HTTP/1.1\r\nHost: ",
        b"POST /api/chat HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n",
        b"",
    )
    sent_by = [beginnings[number % len(beginnings)] for number in range(CONNECTIONS)]
    connections = [_dial(port, beginning) for beginning in sent_by]
    while True:
        for number, beginning in enumerate(sent_by):
            if _is_closed(connections[number], beginning):
                connections[number].close()
                connections[number] = _dial(port, beginning)
        time.sleep(0.05)


ATTACKS: dict[str, Callable[[int], None]] = {
    "1 search": search,
    "4 headers": headers,
    "5 bodies": bodies,
    "7 documents": documents,
    "10 slow": slow,
}


def _again(*values: Any) -> Iterator[Any]:
    while True:
        yield from values


def _dial(port: int, beginning: bytes) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=60)
    with suppress(OSError):
        connection.sendall(beginning)
    return connection


def _is_closed(connection: socket.socket, beginning: bytes) -> bool:
    """Sends a byte where something was begun; whether the server has closed it."""
    try:
        if beginning:
            connection.send(b"a")
        return connection.recv(65536, socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def _wait_until_read(caller: Caller, path: str) -> None:
    while b'"processing"' in caller.call("GET", path)[1]:
        time.sleep(0.2)


# The measurement


def measure(port: int, path: str, seconds: float) -> list[float]:
    """Milliseconds of each request that a user makes in this time."""
    bob = Caller(port, "bob")
    times: list[float] = []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        begun = time.perf_counter()
        status, _ = bob.call("GET", path)
        times.append((time.perf_counter() - begun) * 1000)
        assert status == 200, status
        time.sleep(PAUSE_S)
    return times


@contextmanager
def attacking(name: str, port: int, count: int) -> Generator[None]:
    """So many attackers while the block runs; whoever is measured comes first on the processors."""
    command = [sys.executable, "-m", "bench.hostile", "attack", name, str(port)]
    processes = [subprocess.Popen(command, preexec_fn=lambda: os.nice(5)) for _ in range(count)]
    try:
        time.sleep(WARM_S)
        yield
        if any(process.poll() is not None for process in processes):
            raise RuntimeError(f"an attacker of {name!r} has ended by itself")
    finally:
        for process in processes:
            process.kill()
            process.wait()


def compare(name: str, port: int, path: str, seconds: float) -> tuple[str, ...]:
    """One line: an attack, and the quiet before it."""
    quiet = quantiles(measure(port, path, seconds), n=100, method="inclusive")
    with attacking(name, port, count=2):
        during = quantiles(measure(port, path, seconds), n=100, method="inclusive")
    ratio = during[98] / quiet[98]
    verdict = "ok" if AIM.is_met(ratio) else "miss"
    figures = (f"{during[49]:.1f}", f"{during[98]:.1f}", f"{quiet[98]:.1f}", f"{ratio:.2f}")
    return (name, *figures, str(AIM), verdict)


@contextmanager
def served(database: str) -> Generator[Server]:
    """`threadkeep serve` with sign-in on an empty database."""
    settings = {"jwt_secret": SECRET, "embedding_url": "off", "log_level": "error", "gateway": "openai"}
    with TemporaryDirectory(prefix="threadkeep-bench-") as folder:
        if database == "sqlite":
            with Server(Path(folder), **settings) as server:
                yield server
            return
        key = {"secret_key": SECRET}
        with (
            PostgresServer(durable=True) as postgres,
            Server(
                Path(folder), database_url=postgres.create_database("hostile"), **settings, **key
            ) as server,
        ):
            yield server


def main(given: argparse.Namespace) -> None:
    """All attacks on each database."""
    seconds = 4.0 if given.quick else 20.0
    names = [name for name in ATTACKS if given.only in (None, name.split()[0], name.split()[1])]
    for database in (given.database,) if given.database else ("sqlite", "postgres"):
        run = results.Run.now(is_quick=given.quick)  # a machine that does something else as well says little
        with served(database) as server:
            conversation = Caller(server.port, "bob").conversation(
                [f"question {it}" for it in range(MESSAGES)]
            )
            path = f"/api/conversations/{conversation}/messages?limit=20"
            measure(server.port, path, 1)  # warm
            lines = [compare(name, server.port, path, seconds) for name in names]
            status = server.process.poll()
        print(f"\n{database} ({run})\n\n{render(lines, HEADINGS, markdown=False)}", flush=True)
        if given.save:
            results.save_texts("hostile", database, HEADINGS, lines, run)
        assert status is None, f"the server ended with {status}"


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        "python -m bench.hostile", description="A user's requests while another attacks."
    )
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes")
    parser.add_argument("--database", choices=("sqlite", "postgres"))
    parser.add_argument("--only", help="one attack, by its number or name")
    parser.add_argument("--save", action="store_true", help="keep the figures for docs/performance.md")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    if sys.argv[1:2] == ["attack"]:
        ATTACKS[sys.argv[2]](int(sys.argv[3]))
    else:
        main(parse(sys.argv[1:]))
