"""Where a scenario plays: a server on a port, a scripted model, users; notes whatever leaves on each wire.

A model's pieces that arrive together are stored as one event. So that every run is the same, the model waits
after each piece until that piece can be read (`Stage.script`, `Stage.pace`).
"""

import asyncio
import base64
import json
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import jwt
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from tests.corpus.masking import mask
from tests.talking import Talk, talking
from threadkeep.testing import (
    Gate,
    Say,
    ScriptedModel,
    Step,
    Think,
    ToolServer,
    Wait,
    scripted_settings,
    until,
)

PATIENCE_S = 60
LEAST_SHARED = 100
MOST_SHOWN = 1000
SECRET = "signs the users of the corpus in, and nobody else"
ADMIN = "root"
UNKNOWN = "01900000-0000-7000-8000-000000000000"
# A PNG with a single gray pixel.
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5ErkJggg=="
)
JSON = {"Accept": "application/json"}
# They say when, how long or by what, not what we promise.
_UNSTABLE_HEADERS = {"date", "content-length", "server"}
_TEXTS = ("text/", "application/json", "application/problem+json")

Json = Any


def token_of(user: str) -> str:
    """A token that signs a user in; `root` is an admin."""
    now = int(time.time())
    role = {"role": "admin"} if user == ADMIN else {}
    return jwt.encode({"sub": user, "iat": now, "exp": now + 3600, **role}, SECRET, "HS256")


class Stage:
    """One scenario's server, and what has left it so far."""

    def __init__(self, talk: Talk, model: ScriptedModel, servers: ExitStack) -> None:
        self._talk = talk
        self._servers = servers
        self.model = model
        self._wires: dict[str, list[str]] = {}
        self._gates: list[Gate] = []
        self._tokens: dict[str, str] = {}
        self._pacing: set[asyncio.Task[None]] = set()

    def tools(self, *tools: Callable[..., Any], name: str) -> Json:
        """Starts a tool server that outlives the app; its entry in an agent's `mcpServers`."""
        return {name: self._servers.enter_context(ToolServer(*tools, name=name)).settings}

    # What the model does

    def script(self, *replies: Sequence[Step]) -> None:
        """The model's next replies; it waits between two pieces until the first can be read."""
        for reply in replies:
            steps: list[Step] = []
            for step in reply:
                if steps and isinstance(step, Say | Think) and isinstance(steps[-1], Say | Think):
                    self._gates.append(Gate())
                    steps.append(Wait(self._gates[-1]))
                steps.append(step)
            self.model.script(steps)

    def pace(self, turn_id: str, user: str = "alice") -> None:
        """Lets the model go on whenever a piece of this turn can be read."""
        gates, self._gates = self._gates, []
        if gates:
            self._pacing.add(asyncio.create_task(self._pace(turn_id, user, gates)))

    async def _pace(self, turn_id: str, user: str, gates: list[Gate]) -> None:
        url, signed = f"/api/turns/{turn_id}/events", self._signed(user)
        async with self._talk.client.stream("GET", url, headers=signed) as response:
            async for line in response.aiter_lines():
                if line in {"event: text", "event: thought"} and gates:
                    gates.pop(0).open()

    async def said(self, turn_id: str, user: str = "alice") -> None:
        """Waits until a piece of a turn's reply can be read."""
        url, signed = f"/api/turns/{turn_id}/events", self._signed(user)
        async with self._talk.client.stream("GET", url, headers=signed) as response:
            async for line in response.aiter_lines():
                if line == "event: text":
                    return

    # HTTP

    async def call(
        self,
        operation: str,
        *,
        user: str | None = "alice",
        wire: str = "http",
        query: Mapping[str, Any] | None = None,
        body: Json = None,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
        files: Sequence[tuple[str, bytes]] = (),
        **ids: str,
    ) -> httpx.Response:
        """Calls an operation of the OpenAPI document to its end, and notes request and response."""
        method, template = operation.split(" ")
        path = template.format(**ids)
        await _next_millisecond()
        request = self._talk.client.build_request(
            method,
            path,
            params=query,
            content=content if body is None else json.dumps(body, ensure_ascii=False).encode(),
            files=[("files", (name, data)) for name, data in files] or None,
            headers={
                **({"Content-Type": "application/json"} if body is not None else {}),
                **self._signed(user),
                **(headers or {}),
            },
        )
        response = await self._talk.client.send(request, stream=True)
        if user is not None and (turn_id := _turn_of(response)):
            self.pace(turn_id, user)
        await response.aread()
        sent = "" if files or not request.content else f" {_shown(request.content.decode(errors='replace'))}"
        sent += "".join(f" {name} ({len(data)} bytes)" for name, data in files)
        sent += "".join(f" [{name}: {value}]" for name, value in (headers or {}).items())
        self.note(wire, f"> {user or 'nobody'}: {method} {request.url.raw_path.decode()}{sent}")
        self.note(wire, _response_text(response))
        return response

    @asynccontextmanager
    async def following(
        self, path: str, wire: str, headers: Mapping[str, str] | None = None, user: str = "alice"
    ) -> AsyncGenerator["Following"]:
        """A stream that is read aside while the scenario goes on, and noted at the end."""
        signed = {**self._signed(user), **(headers or {})}
        async with self._talk.client.stream("GET", path, headers=signed) as response:
            following = Following(response)
            reading = asyncio.create_task(following.read())
            yield following
            reading.cancel()
            await asyncio.wait([reading])
        given = "".join(f" [{name}: {value}]" for name, value in (headers or {}).items())
        self.note(wire, f"> {user}: GET {path}{given}")
        self.note(wire, "\n".join([*_head_lines(response), "", following.text]))

    async def ask(self, operation: str, **call: Any) -> Json:
        """Calls an operation with success; its response as JSON."""
        response = await self.call(operation, **call)
        assert response.is_success, response.text
        return response.json()

    async def quietly(self, method: str, path: str, user: str = "alice", body: Json = None) -> Json:
        """Calls the server without a note: to wait for something, or to prepare."""
        await _next_millisecond()
        response = await self._talk.client.request(method, path, json=body, headers=self._signed(user) | JSON)
        assert response.is_success, response.text
        return response.json() if response.content else None

    async def conversation(self, user: str = "alice", title: str = "About that", **agent: Any) -> str:
        """A conversation with a new agent; it has a title, so that the model is not asked for one."""
        made = await self.quietly("POST", "/api/agents", user, {"name": "Advisor", **agent})
        path = f"/api/agents/{made['id']}/conversations"
        return (await self.quietly("POST", path, user, {"title": title}))["id"]

    async def begin(self, conversation_id: str, content: str = "Why?", user: str = "alice") -> str:
        """Sends a message without a note; the turn's id."""
        path = f"/api/conversations/{conversation_id}/messages"
        turn_id = (await self.quietly("POST", path, user, {"content": content}))["turnId"]
        self.pace(turn_id, user)
        return turn_id

    async def approval(self, user: str = "alice") -> Json:
        """What a user is asked, once something is."""
        asked: list[Json] = []

        async def is_asked() -> bool:
            asked[:] = (await self.quietly("GET", "/api/approvals", user))["items"]
            return bool(asked)

        await until(is_asked)
        return asked[0]

    async def ended(self, turn_id: str, user: str = "alice") -> None:
        """Waits until a turn has ended."""

        async def has_ended() -> bool:
            turn = await self.quietly("GET", f"/api/turns/{turn_id}", user)
            return turn["status"] not in {"QUEUED", "RUNNING", "WAITING"}

        await until(has_ended)

    def _signed(self, user: str | None) -> dict[str, str]:
        if user is None:
            return {}
        if user not in self._tokens:
            self._tokens[user] = token_of(user)
        return {"Authorization": f"Bearer {self._tokens[user]}"}

    # WebSockets

    @asynccontextmanager
    async def socket(self, user: str | None = "alice", wire: str = "agentx") -> AsyncGenerator["Socket"]:
        """A WebSocket to `/ws`, as this user or as nobody."""
        url = f"ws{self._talk.url.removeprefix('http')}/ws"
        self.note(wire, f"> {user or 'nobody'}: connects")
        async with connect(url, additional_headers=self._signed(user), max_size=None) as connection:
            socket = Socket(self, connection, wire, user)
            yield socket
            await socket.settle()

    # Notes

    def note(self, wire: str, text: str) -> None:
        """Adds lines to a wire's recording."""
        self._wires.setdefault(wire, []).append(text)

    def recordings(self) -> dict[str, str]:
        """All that has left, by wire, without what changes from run to run."""
        for request in self.model.requests:
            self.note("model", f"> POST {request.path}")
            for name in sorted(set(request.headers) - {"host", "content-length"}):
                self.note("model", f"{name}: {request.headers[name]}")
            self.note("model", f"\n{request.content.decode()}\n")
        recordings = {wire: mask("\n".join(notes)) + "\n" for wire, notes in self._wires.items()}
        return recordings | {wire: _shortened(text) for wire, text in recordings.items() if wire == "model"}


class Socket:
    """One connection: notes what it sends and what it gets."""

    def __init__(self, stage: Stage, connection: ClientConnection, wire: str, user: str | None) -> None:
        self._stage = stage
        self._user = user or "alice"
        self._connection = connection
        self._wire = wire
        self._count = 0
        self.cursor = ""
        """That of the last event."""

    async def send(self, frame: Json) -> None:
        """Sends a frame; text is sent as it is."""
        text = frame if isinstance(frame, str) else json.dumps(frame, ensure_ascii=False)
        self._stage.note(self._wire, f"> {_shown(text)}")
        await _next_millisecond()
        await self._connection.send(text)

    async def request(self, name: str, **data: Any) -> Json:
        """Sends a request and reads up to its response: what that says."""
        self._count += 1
        await self.send({"type": f"{name}_request", "data": {"requestId": f"{self._count}", **data}})
        return (await self.read(f"{name}_response"))["data"]

    async def message(self, **data: Any) -> str:
        """Sends a user's message and reads up to the response: the turn's id."""
        turn_id = (await self.request("message_send", **data))["turnId"]
        self._stage.pace(turn_id, self._user)
        return turn_id

    async def read(self, *kinds: str) -> Json:
        """Reads up to a frame of each kind, in this order; the last one."""
        frame: Json = None
        for kind in kinds:
            while (frame := await self._next())["type"] != kind:
                pass
        return frame

    async def settle(self) -> None:
        """Reads whatever the server has sent until now."""
        try:
            await self._connection.send('{"type":"settle_request","data":{"requestId":"settle"}}')
            while '"settle_response"' not in (text := await self._receive()):
                self._stage.note(self._wire, f"< {text}")
        except ConnectionClosed:
            pass

    async def closed(self) -> None:
        """Reads until the server closes."""
        try:
            while True:
                await self._next()
        except ConnectionClosed:
            code, reason = self._connection.close_code, self._connection.close_reason
            self._stage.note(self._wire, f"< closes: {code} {reason}")

    async def _next(self) -> Json:
        text = await self._receive()
        self._stage.note(self._wire, f"< {text}")
        frame = json.loads(text)
        if "__payload" in frame:
            self.cursor = frame["__msgId"]
            return json.loads(frame["__payload"])
        return frame

    async def _receive(self) -> str:
        async with asyncio.timeout(PATIENCE_S):
            text = await self._connection.recv()
        return text if isinstance(text, str) else text.decode()


class Following:
    """What has come on a stream so far."""

    def __init__(self, response: httpx.Response) -> None:
        self._response = response
        self.text = ""

    async def read(self) -> None:
        """Reads to the end."""
        async for text in self._response.aiter_text():
            self.text += text

    async def has(self, *lines: str) -> None:
        """Waits until these lines have come, in this order."""

        def have_come() -> bool:
            came = iter(self.text.split("\n"))
            return all(line in came for line in lines)

        await until(have_come)


def _shown(sent: str) -> str:
    return sent if len(sent) <= MOST_SHOWN else f"({len(sent)} characters)"


def _turn_of(response: httpx.Response) -> str | None:
    """The turn that a response streams or names."""
    location = response.headers.get("location", "")
    return location.rsplit("/", 1)[1] if "/api/turns/" in location else None


def _response_text(response: httpx.Response) -> str:
    return "\n".join([*_head_lines(response), *_body_lines(response), ""])


def _head_lines(response: httpx.Response) -> list[str]:
    named = [(name.decode().lower(), value.decode("latin-1")) for name, value in response.headers.raw]
    kept = [f"{name}: {value}" for name, value in named if name not in _UNSTABLE_HEADERS]
    return [f"< {response.status_code}", *kept]


def _body_lines(response: httpx.Response) -> list[str]:
    if not response.content:
        return []
    kind = response.headers.get("content-type", "")
    return ["", response.text if kind.startswith(_TEXTS) else f"({len(response.content)} bytes)"]


def _shortened(text: str) -> str:
    """The requests to a model, each without the beginning that it shares with the one before."""
    lines: list[str] = []
    before = ""
    for line in text.split("\n"):
        same = next(
            (at for at, (one, other) in enumerate(zip(before, line, strict=False)) if one != other), 0
        )
        lines.append(line if same < LEAST_SHARED else f"(the same {same} characters){line[same:]}")
        before = line if line.startswith("{") else before
    return "\n".join(lines)


async def _next_millisecond() -> None:
    """Lists are in order of their times, which count milliseconds: nothing happens in the same one."""
    await asyncio.sleep(0.002)


@asynccontextmanager
async def stage(folder: Path, **settings: Any) -> AsyncGenerator[Stage]:
    """A server with an empty SQLite database and a scripted model."""
    async with AsyncExitStack() as stack:
        model = stack.enter_context(ScriptedModel())
        servers = stack.enter_context(ExitStack())
        usual = {"jwt_secret": SECRET, "embedding_url": "off", "mcp_allow_private": True, "timezone": "UTC"}
        talk = await stack.enter_async_context(
            talking(scripted_settings(model, data=folder / "data", **{**usual, **settings}))
        )
        yield Stage(talk, model, servers)
