"""The floor: an ASGI application under uvicorn with uvloop and httptools that asks no model and keeps
nothing.

Best case by construction: it makes each frame itself, at the pace that the question asks for, and sends it.
No server that reads a model and stores a reply can cost less.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any

from bench.peers.contender import (
    UVICORN,
    Api,
    Conversation,
    Launch,
    Place,
    Said,
    ServerContender,
    asked_pace,
    post,
)

Message = MutableMapping[str, Any]


class Bare(ServerContender):
    """Frames at a pace."""

    title = "bare ASGI"
    packages = ("uvicorn", "uvloop")
    keeps = False

    def launch(self, place: Place) -> Launch:
        factory = f"{__name__}:create_app"
        return Launch([str(place.python), *UVICORN, "--port", str(place.port), factory])

    def converse(self, api: Api) -> Conversation:
        return Conversation("none")

    def question(self, conversation: Conversation, text: str) -> bytes:
        return post("/", text.encode())

    def history(self, api: Api, conversation_id: str) -> Sequence[Said]:
        return ()


def create_app() -> Callable[..., Awaitable[None]]:
    """For uvicorn."""
    return _stream


async def _stream(
    scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
) -> None:
    if scope["type"] != "http":
        return
    pace = asked_pace((await receive())["body"])
    await send(
        {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]}
    )
    clock = asyncio.get_running_loop().time
    due = clock()
    for seq in range(pace.pieces):
        await asyncio.sleep(max(0, due - clock()))
        text = f"{time.monotonic():.6f} "
        frame = f'id: {seq}\nevent: text\ndata: {{"seq":{seq},"type":"text","text":"{text}"}}\n\n'
        await send({"type": "http.response.body", "body": frame.encode(), "more_body": True})
        due += 1 / pace.rate
    await send({"type": "http.response.body", "body": b""})


CONTENDER = Bare()
