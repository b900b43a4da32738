"""The `text` dialect, for the simplest client: the reply's pieces, then `[DONE]`.

| event | frames |
|---|---|
| text | `data: <text>` |
| error | `event: error`, `data: {"code", "message"}` |
| all others | none |
| the end, however the turn ended | `data: [DONE]` |
"""

from collections.abc import Sequence
from typing import assert_never

import msgspec

from threadkeep.domain.events import (
    Done,
    Failed,
    IterationStart,
    Notice,
    Retrieval,
    Text,
    Thought,
    ToolCalled,
    ToolProgress,
    ToolResulted,
    TurnEvent,
    TurnStart,
    UsageReported,
)
from threadkeep.protocols.sse import Dialect, Frames, TurnContext, frame

DONE = "[DONE]"


def _frames(event: TurnEvent) -> Sequence[bytes]:
    match event.body:
        case Text(text):
            # A model may well write the word that ends the stream; in two pieces it does not.
            return [frame(piece) for piece in ((text[:4], text[4:]) if text == DONE else (text,))]
        case Failed(code, message):
            return [frame(msgspec.json.encode({"code": code, "message": message}), event="error")]
        case TurnStart() | Retrieval() | IterationStart() | Thought() | Notice() | UsageReported() | Done():
            return ()
        case ToolCalled() | ToolProgress() | ToolResulted():
            return ()
        case _ as never:
            assert_never(never)


def _start(turn: TurnContext) -> Frames:
    return _frames


TEXT = Dialect("text", _start, closing=frame(DONE))
