"""The `text` dialect, for the simplest client: the reply's pieces, then `[DONE]`.

| event | frames |
|---|---|
| text | `data: <text>`; begins with a blank line after a tool call, another model call or a |
| | repeated one |
| error | `event: error`, `data: {"code", "message"}` |
| all others | none |
| the end, however the turn ended | `data: [DONE]` |
"""

from collections.abc import Sequence
from typing import assert_never

import msgspec

from threadkeep.domain.events import (
    ApprovalRequest,
    ApprovalResponse,
    Done,
    Failed,
    IterationRestart,
    IterationStart,
    Notice,
    Retrieval,
    Text,
    Thought,
    ToolCalled,
    ToolProgress,
    ToolResultStored,
    TurnEvent,
    TurnResumed,
    TurnStart,
    UsageReported,
    UserMessage,
)
from threadkeep.domain.parts import TextJoin
from threadkeep.protocols.dialect import Dialect, Frames, TurnContext
from threadkeep.sse import frame

DONE = "[DONE]"


class _TextFrames:
    """The frames of one turn; takes its events from the first, in order."""

    def __init__(self) -> None:
        self._join = TextJoin()

    def of(self, event: TurnEvent) -> Sequence[bytes]:
        match event.body:
            case Text(text):
                text = self._join.add(text)
                # A model may well write the word that ends the stream; split in two, it doesn't end it.
                return [frame(piece) for piece in ((text[:4], text[4:]) if text == DONE else (text,))]
            case Failed(code, message):
                return [frame(msgspec.json.encode({"code": code, "message": message}), event="error")]
            case IterationStart() | IterationRestart() | ToolCalled() | UserMessage():
                self._join.interrupt()
                return ()
            case TurnStart() | Retrieval() | Thought() | Notice() | UsageReported() | Done():
                return ()
            case ToolProgress() | ToolResultStored() | TurnResumed() | ApprovalRequest() | ApprovalResponse():
                return ()
            case _ as never:
                assert_never(never)


def _start(turn: TurnContext) -> Frames:
    return _TextFrames().of


TEXT = Dialect("text", _start, closing=frame(DONE), remembers=True)
