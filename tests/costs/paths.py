"""The hot paths, each driven as a client drives it: through the ASGI interface, without a socket."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jwt

from threadkeep import create_app
from threadkeep.testing import Reply, Say, ScriptedModel, Think, UseTool, scripted_settings

SECRET = "signs the user of the measured server in"
RUNS = 100
"""Each is a question and an answer."""
PIECES = 500
TOOL_CALLS = 10
CONVERSATIONS = 40

Json = Any
Run = Callable[[], Awaitable[None]]
"""One pass along a path."""
Prepare = Callable[[], Awaitable[Run]]
"""Makes what a pass needs, which is not measured."""


class Server:
    """Threadkeep in this process, and its one user."""

    def __init__(self, app: Any, model: ScriptedModel) -> None:
        self._app = app
        self._model = model
        claims = {"sub": "alice", "iat": int(time.time()), "exp": int(time.time()) + 86_400}
        token = jwt.encode(claims, SECRET, "HS256").encode()
        self._headers = [(b"host", b"localhost"), (b"authorization", b"Bearer " + token)]

    async def call(self, method: str, path: str, body: Json = None, *, expect: int = 200) -> bytes:
        """Calls the app and reads the whole response."""
        path, _, query = path.partition("?")
        content = b"" if body is None else json.dumps(body).encode()
        length = (b"content-length", str(len(content)).encode())
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "scheme": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "root_path": "",
            "query_string": query.encode(),
            "headers": [*self._headers, length] if content else self._headers,
            "client": ("127.0.0.1", 50_000),
            "server": ("localhost", 80),
        }
        incoming = [{"type": "http.request", "body": content, "more_body": False}]
        status, received = 0, bytearray()
        is_over = asyncio.Event()

        async def receive() -> Json:
            if incoming:
                return incoming.pop()
            await is_over.wait()
            return {"type": "http.disconnect"}

        async def send(message: Json) -> None:
            nonlocal status
            status = message.get("status", status)
            received.extend(message.get("body", b""))

        await self._app(scope, receive, send)
        is_over.set()
        assert status == expect, bytes(received)
        return bytes(received)

    async def ask(self, method: str, path: str, body: Json = None, *, expect: int = 200) -> Json:
        """The response as JSON."""
        return json.loads(await self.call(method, path, body, expect=expect))

    async def conversation(self) -> str:
        """A new conversation of an agent that gives its model the whole conversation."""
        settings = {"contextMessages": 0, "maxIterations": 0}
        agent = await self.ask("POST", "/api/agents", {"name": "Advisor", "settings": settings}, expect=201)
        path = f"/api/agents/{agent['id']}/conversations"
        return (await self.ask("POST", path, {"title": "Costs"}, expect=201))["id"]

    async def turn(self, conversation: str, *replies: Reply) -> str:
        """A whole turn; its id."""
        self._model.script(*replies)
        path = f"/api/conversations/{conversation}/messages?wait=true"
        return (await self.ask("POST", path, {"content": "Why?"}))["turnId"]

    async def stream(self, conversation: str, *replies: Reply) -> None:
        """A whole turn, streamed."""
        self._model.script(*replies)
        path = f"/api/conversations/{conversation}/messages"
        streamed = await self.call("POST", path, {"content": "Why?"})
        assert streamed.count(b"\nevent: done\n") == 1, streamed[-500:]


@asynccontextmanager
async def server() -> AsyncGenerator[Server]:
    """Threadkeep on an empty SQLite database."""
    with ScriptedModel(records=False) as model, TemporaryDirectory(prefix="costs-") as folder:
        usual = {"jwt_secret": SECRET, "embedding_url": "off"}
        app = create_app(scripted_settings(model, data=Path(folder), **usual))
        async with app.lifespan():
            yield Server(app, model)


# Two kinds of pieces in turn: those of one kind that arrive together would be stored as one.
MANY_PIECES: Reply = [Say("word "), Think("thought ")] * (PIECES // 2)
CHART = {"kind": "bar", "rows": [{"month": "May", "sales": 12}], "x": "month", "y": ["sales"]}


def _run_events(number: int) -> list[Json]:
    """A question and an answer, as another engine reports them."""
    run = {"runId": f"run-{number}", "at": 1_000 + number}
    return [
        {
            **run,
            "id": f"{number}-1",
            "type": "ExecutionStarted",
            "input": f"Question {number} of law?",
        },
        {**run, "id": f"{number}-2", "type": "ExecutionCompleted", "output": f"Answer {number}. " * 20},
    ]


async def hot_paths(server: Server) -> Mapping[str, Prepare]:
    """The paths by name, on data that they share."""
    long = await server.conversation()
    events = [event for number in range(RUNS) for event in _run_events(number)]
    await server.call("POST", f"/api/conversations/{long}/executions", {"events": events})
    for _ in range(CONVERSATIONS):
        await server.conversation()
    streamed = await server.turn(await server.conversation(), MANY_PIECES)
    rules = {f"server.tool-{number}": {"access": "ask"} for number in range(200)}
    refused = {"name": "Advisor", "settings": {"tools": rules, "colour": "blue"}}

    def get(path: str) -> Prepare:
        return _always(lambda: server.call("GET", path))

    async def turn_of_one_piece() -> Run:
        conversation = await server.conversation()
        return lambda: _only(server.turn(conversation, [Say("Because.")]))

    async def turn_of_many_pieces() -> Run:
        conversation = await server.conversation()
        return lambda: server.stream(conversation, MANY_PIECES)

    async def turn_of_tool_calls() -> Run:
        conversation = await server.conversation()
        calls: list[Reply] = [[UseTool("make_chart", CHART)]] * TOOL_CALLS
        return lambda: server.stream(conversation, *calls, [Say("Drawn.")])

    async def recording_runs() -> Run:
        path = f"/api/conversations/{await server.conversation()}/executions"
        return lambda: _only(server.call("POST", path, {"events": events[:20]}))

    return {
        "reading a conversation": get(f"/api/conversations/{long}"),
        "a page of conversations": get("/api/conversations?limit=20"),
        "the latest 20 messages": get(f"/api/conversations/{long}/messages?order=desc&limit=20"),
        "the context of 200 messages": get(f"/api/conversations/{long}/context?limit=200"),
        "searching messages": get("/api/search?q=law"),
        "checking a large body": _always(lambda: server.call("POST", "/api/agents", refused, expect=422)),
        "recording 10 runs of another engine": recording_runs,
        "a turn of one piece": turn_of_one_piece,
        "a turn of 500 pieces, streamed": turn_of_many_pieces,
        "a turn of 10 tool calls, streamed": turn_of_tool_calls,
        "replaying 500 pieces as events": get(f"/api/turns/{streamed}/events"),
        "replaying 500 pieces for AgentX": get(f"/api/turns/{streamed}/events?dialect=agentx"),
    }


def _always(call: Callable[[], Awaitable[object]]) -> Prepare:
    async def prepare() -> Run:
        return lambda: _only(call())

    return prepare


async def _only(call: Awaitable[object]) -> None:
    await call
