"""A model over loopback that speaks its providers' real wires, at the pace that the question asks for.

An ASGI application. Each piece of its replies says when it was sent (`time.monotonic()`, which all processes
of a machine share), so that a client knows how long it was on its way.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import msgspec

from bench.peers.contender import asked_pace
from threadkeep.testing.script import Say, Step
from threadkeep.testing.wires import OpenAIWire, Wire

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class GeminiWire:
    """The stream of `streamGenerateContent?alt=sse`."""

    def begin(self) -> bytes:
        """Nothing comes before the first piece."""
        return b""

    def write(self, step: Step) -> bytes:
        """One piece of text."""
        assert isinstance(step, Say)
        return self._chunk({"content": {"parts": [{"text": step.text}], "role": "model"}, "index": 0})

    def end(self) -> bytes:
        """The reason to stop, with an empty piece."""
        content = {"parts": [{"text": ""}], "role": "model"}
        return self._chunk({"content": content, "finishReason": "STOP", "index": 0})

    def _chunk(self, candidate: dict[str, Any]) -> bytes:
        usage = {"promptTokenCount": 12, "candidatesTokenCount": 1, "totalTokenCount": 13}
        chunk = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "scripted"}
        return b"data: %s\r\n\r\n" % msgspec.json.encode(chunk)


def create_app() -> Callable[[Message, Receive, Send], Awaitable[None]]:
    """For uvicorn."""
    return _respond


async def _respond(scope: Message, receive: Receive, send: Send) -> None:
    if scope["type"] != "http":
        return
    body = b""
    while (message := await receive())["type"] == "http.request":
        body += message["body"]
        if not message.get("more_body"):
            break
    await send(
        {
            "type": "http.response.start",
            "status": 200,
            "headers": [(b"content-type", b"text/event-stream; charset=utf-8")],
        }
    )
    await _reply(_wire(scope["path"], body), body, send)
    await send({"type": "http.response.body", "body": b""})


def _wire(path: str, body: bytes) -> Wire:
    if "streamGenerateContent" in path:
        return GeminiWire()
    assert path.endswith("/chat/completions"), path
    asked = msgspec.json.decode(body)
    assert asked["stream"], "every contender streams"
    return OpenAIWire("scripted", 1, (), with_usage=bool(asked.get("stream_options")))


async def _reply(wire: Wire, body: bytes, send: Send) -> None:
    pace = asked_pace(body)
    clock = asyncio.get_running_loop().time
    due = clock()
    data = wire.begin()
    for number in range(pace.pieces):
        await asyncio.sleep(max(0, due - clock()))
        data += wire.write(Say(f"{time.monotonic():.6f} "))
        if number == pace.pieces - 1:
            data += wire.end()
        await send({"type": "http.response.body", "body": data, "more_body": True})
        data = b""
        due += 1 / pace.rate
