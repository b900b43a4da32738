"""What a contender's file says, so that one harness measures all of them.

These files are imported twice: by the harness, to learn how a contender is started and asked, and in the
contender's own environment, where it runs. So at their top they import the standard library only.
"""

import http.client
import json
import re
import socket
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

MOST_SILENCE_S = 60

_PACE = re.compile(rb"(\d+) pieces, (\d+) a second")


class Pace(NamedTuple):
    """How a model speaks. The question says it, so that one model serves every measurement."""

    pieces: int
    rate: int
    """Pieces a second."""

    @property
    def question(self) -> str:
        """What to ask for such a reply."""
        return f"Say {self.pieces} pieces, {self.rate} a second."


def asked_pace(body: bytes) -> Pace:
    """What the last question in a request asks for."""
    pieces, rate = _PACE.findall(body)[-1]
    return Pace(int(pieces), int(rate))


@dataclass(frozen=True, slots=True)
class Place:
    """Where a server is to run, and what it may use."""

    python: Path
    """Of the contender's environment."""
    folder: Path
    """Its data; it is the working folder, too."""
    port: int
    model_url: str


@dataclass(frozen=True, slots=True)
class Launch:
    """How a server is started."""

    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(slots=True)
class Conversation:
    """A conversation in which turns can begin."""

    id: str
    connection: socket.socket | None = None
    """Over which all its turns stream; without it each turn has a connection of its own."""


class Said(NamedTuple):
    """A message as a server's history shows it."""

    by_user: bool
    text: str


class Api:
    """A server's HTTP API, one request at a time."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.headers: dict[str, str] = {}

    def get(self, path: str) -> Any:
        """What is there."""
        return self._ask("GET", path, None)

    def post(self, path: str, body: object) -> Any:
        """Sends JSON."""
        return self._ask("POST", path, json.dumps(body).encode())

    def _ask(self, method: str, path: str, body: bytes | None) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = self.headers | ({} if body is None else {"Content-Type": "application/json"})
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            content = response.read()
        finally:
            connection.close()
        for cookie in response.headers.get_all("Set-Cookie", []):
            kept = self.headers.get("Cookie")
            self.headers["Cookie"] = "; ".join(filter(None, (kept, cookie.partition(";")[0])))
        if response.status >= 300:
            raise RuntimeError(f"{method} {path}: {response.status} {content[:300]!r}")
        return json.loads(content)


def connect(port: int) -> socket.socket:
    """A connection that sends at once."""
    opened = socket.create_connection(("127.0.0.1", port), timeout=MOST_SILENCE_S)
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return opened


def post(path: str, content: bytes, kind: str = "application/json") -> bytes:
    """A request as bytes."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\nContent-Type: {kind}\r\n"
        f"Content-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


class ServerContender(ABC):
    """A server that takes a user's message and streams the model's reply."""

    title: ClassVar[str]
    lock: ClassVar[str | None] = None
    """The lock file of its environment; without one it runs in this repository's."""
    packages: ClassVar[Sequence[str]] = ()
    """Whose versions are reported."""
    turn_ends: ClassVar[bytes] = b"\r\n0\r\n\r\n"
    """The last bytes of a turn on its connection: those of a chunked response, unless it says otherwise."""
    keeps: ClassVar[bool] = True
    """Whether it has a history at all."""

    @abstractmethod
    def launch(self, place: Place) -> Launch:
        """How to start it. Called again before a restart in the same folder."""

    @abstractmethod
    def converse(self, api: Api) -> Conversation:
        """Makes a conversation, and connects to it where that is apart from asking."""

    @abstractmethod
    def question(self, conversation: Conversation, text: str) -> bytes:
        """The bytes that begin a turn."""

    def answer(self, data: bytes) -> bytes:
        """What a client must reply to what it received, such as to a ping."""
        return b""

    @abstractmethod
    def history(self, api: Api, conversation_id: str) -> Sequence[Said]:
        """What its own API shows of a conversation; empty where it knows none."""


UVICORN = (
    "-m", "uvicorn", "--factory", "--loop", "uvloop", "--http", "httptools", "--log-level", "warning",
    "--no-access-log", "--no-server-header",
)  # fmt: skip


class StoreContender(ABC):
    """A library that keeps conversations. Its methods run in its own environment, in one event loop."""

    title: ClassVar[str]
    lock: ClassVar[str | None] = None
    packages: ClassVar[Sequence[str]] = ()
    database: ClassVar[Literal["sqlite", "postgres"]] = "sqlite"
    lists: ClassVar[bool] = True
    """Whether it can list conversations."""

    @abstractmethod
    async def open(self, place: str) -> None:
        """Opens an empty database: in a folder, or at the URL of a PostgreSQL database."""

    @abstractmethod
    async def fill(self, lengths: Mapping[str, int]) -> None:
        """Makes conversations of so many messages, questions and answers in turn, by any quick way."""

    @abstractmethod
    async def append(self, conversation_id: str) -> None:
        """Keeps a turn as the library would while a model replies, without the model."""

    @abstractmethod
    async def latest(self, conversation_id: str, limit: int) -> Sequence[object]:
        """The newest messages, each with its text, in whatever order."""

    async def list_conversations(self, limit: int) -> Sequence[object]:
        """The conversations touched last."""
        raise NotImplementedError

    @abstractmethod
    async def close(self) -> None:
        """Lets go of the database."""


QUESTION = "合同第七条的违约金是否过高？ Please answer in one paragraph, and say which clause you mean."
ANSWER = "The clause sets the damages at thirty percent of the contract's value. " * 10 + "根据合同法，" * 20
