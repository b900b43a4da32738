"""A Threadkeep in a process of its own, started as a user starts it."""

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Self

import httpx

import threadkeep
from tests.machine import NO_SERVER
from tests.postgres import free_port
from threadkeep.http.sign_in.local_token import make_token
from threadkeep.testing.waiting import PATIENCE_S

START_S = END_S = PATIENCE_S


def run(*arguments: str, folder: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """Runs a command of Threadkeep to its end."""
    return subprocess.run(
        [sys.executable, "-m", "threadkeep", *arguments],
        cwd=folder,
        env=environment(settings),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=START_S,
        check=False,
    )


SOURCE = Path(threadkeep.__file__).parents[1]


def environment(settings: dict[str, str], source: Path | str = SOURCE) -> dict[str, str]:
    """These settings, the package under test, and nothing of the machine's own but where programs are."""
    named = {f"THREADKEEP_{name.upper()}": value for name, value in settings.items()}
    # Programs that a server may start are found beside the Python that runs it.
    path = os.pathsep.join((str(Path(sys.executable).parent), os.defpath))
    return {
        "PATH": path,
        "HOME": os.environ["HOME"],
        "PYTHONPATH": str(source),
        **NO_SERVER,
        "THREADKEEP_SHUTDOWN_GRACE_S": "0",
        "THREADKEEP_USER_TURNS_PER_MINUTE": "0",
        "THREADKEEP_USER_UPLOADS_PER_MINUTE": "0",
        "THREADKEEP_MCP_READABLE": str(Path(__file__).parents[1]),  # programs of the tests, be it in a home
        **named,
    }


def lasting_port() -> tuple[str, str]:
    """For a server that starts again at its address: while it is away, nobody is handed this port."""
    return "--port", str(free_port())


def inviting() -> tuple[tuple[str, ...], dict[str, str]]:
    """For a server whose people sign in with invitations: its arguments and settings."""
    port = free_port()
    return ("--port", str(port)), {"invitations": "on", "public_url": f"http://127.0.0.1:{port}"}


class Server:
    """`threadkeep serve` on a free port, with its data in `folder/data`."""

    def __init__(
        self,
        folder: Path,
        *arguments: str,
        program: Sequence[str] = ("-m", "threadkeep"),
        source: Path | str = SOURCE,
        **settings: str,
    ) -> None:
        self.lines: list[str] = []
        self.data = folder / "data"
        self._signs_in = not settings.keys().isdisjoint({"jwt_secret", "jwks_url", "invitations"})
        self._announced = threading.Event()
        self.process = subprocess.Popen(
            [sys.executable, *program, "serve", "--port", "0", "--data", "data", *arguments],
            cwd=folder,
            env=environment(settings, source),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout and self.process.stderr
        self._readers = [
            threading.Thread(target=self._read, args=(stream,))
            for stream in (self.process.stdout, self.process.stderr)
        ]
        for reader in self._readers:
            reader.start()
        if not self._announced.wait(START_S) or self.process.poll() is not None:
            self.kill()
            raise AssertionError(f"The server did not start:\n{self.output}")

    @property
    def output(self) -> str:
        """All that the process has printed, on both streams."""
        return "".join(self.lines)

    @property
    def url(self) -> str:
        """Where it listens."""
        found = re.search(r"listening on (http://\S+)", self.output)
        assert found, self.output
        return found[1]

    @property
    def port(self) -> int:
        """The port of `url`."""
        return int(self.url.rpartition(":")[2])

    @property
    def headers(self) -> dict[str, str]:
        """What a request of the local user has: the token, without which no program can be added."""
        return {} if self._signs_in else {"Authorization": f"Bearer {make_token(self.data)}"}

    def client(self, token: str | None = None) -> httpx.Client:
        """A client that speaks to it over a socket, as somebody or as the local user."""
        headers = {"Authorization": f"Bearer {token}"} if token else self.headers
        return httpx.Client(
            base_url=self.url, headers=headers, trust_env=False, timeout=START_S, verify=False
        )

    def async_client(self, token: str | None = None) -> httpx.AsyncClient:
        """The same, for many requests at once."""
        headers = {"Authorization": f"Bearer {token}"} if token else self.headers
        return httpx.AsyncClient(
            base_url=self.url, headers=headers, trust_env=False, timeout=START_S, verify=False
        )

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Asks it to end; the exit code."""
        self.process.send_signal(number)
        return self.wait()

    def kill(self) -> int:
        """Ends it as a crash does."""
        self.process.kill()
        return self.wait()

    def wait(self) -> int:
        """Until it has ended; the exit code."""
        code = self.process.wait(END_S)
        for reader in self._readers:
            reader.join(END_S)
        return code

    def _read(self, stream: IO[str]) -> None:
        with stream:
            for line in stream:
                self.lines.append(line)
                if "/docs" in line:  # the last line of the announcement
                    self._announced.set()
        self._announced.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.kill()


@contextmanager
def serving(folder: Path, **settings: str) -> Generator[Server]:
    """A server while the block runs, ended in good order."""
    with Server(folder, **settings) as server:
        yield server
        server.stop()
