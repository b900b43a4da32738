"""The floor of the streaming group: no framework, nothing read and nothing stored; frames sent at a pace."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from functools import cache
from typing import Any

from threadkeep.domain.events import (
    Done,
    EventBody,
    IterationStart,
    Text,
    TurnEvent,
    TurnStart,
    UsageReported,
)
from threadkeep.domain.ids import AgentId, ConversationId, MessageId, TurnId, new_uuid
from threadkeep.domain.message import Usage
from threadkeep.protocols.dialect import TurnContext
from threadkeep.protocols.threadkeep.encode import EVENTS

Message = MutableMapping[str, Any]


class BareStream:
    """Answers `/PIECES/RATE` with the frames of one turn, as an ASGI application."""

    def __init__(self) -> None:
        self._frames = cache(_frames)

    async def __call__(
        self,
        scope: Message,
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        if scope["type"] != "http":
            return
        await send(
            {
                "type": "http.response.start",
                "status": 200,
                "headers": [(b"content-type", b"text/event-stream")],
            }
        )
        pieces, rate = map(int, scope["path"].split("/")[1:])
        clock = asyncio.get_running_loop().time
        due = clock()
        for frame in self._frames(pieces):
            await send({"type": "http.response.body", "body": frame, "more_body": True})
            due += 1 / rate
            await asyncio.sleep(max(0, due - clock()))
        await send({"type": "http.response.body", "body": b""})


def _frames(pieces: int) -> list[bytes]:
    """What Threadkeep sends for so many pieces, as the model of the measurement writes them."""
    turn, conversation, user_message, message = (new_uuid() for _ in range(4))
    said: list[EventBody] = [Text(f"{100_000 + number / 20:.6f} ") for number in range(pieces)]
    usage = Usage(500, pieces)
    bodies: list[EventBody] = [
        TurnStart(conversation, user_message, message, "scripted"),
        IterationStart(1),
        *said,
        UsageReported(usage.input_tokens, usage.output_tokens),
        Done("COMPLETED", message, usage, "end_turn"),
    ]
    context = TurnContext(TurnId(turn), MessageId(message), ConversationId(conversation), AgentId(new_uuid()))
    encoder = EVENTS.start(context)
    return [
        encoder.encode(TurnEvent(turn, seq, 1_800_000_000_000, body)) for seq, body in enumerate(bodies, 1)
    ]


def create_app() -> BareStream:
    """For uvicorn."""
    return BareStream()
