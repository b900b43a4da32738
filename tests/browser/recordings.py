"""Logs of turns with the messages that the server makes of them, for the tests of the page's own fold.

python -m tests.browser.recordings    # writes web/tests/recorded.json
"""

from pathlib import Path
from typing import Any

import msgspec

from tests.protocols.recorded import AT, BEGINNING, CANCELLED, COMPLETED, CONTEXT, TIMED_OUT, turn
from threadkeep.domain.events import (
    Done,
    EventBody,
    Failed,
    Retrieval,
    RetrievalHit,
    Text,
    Thought,
    ToolCalled,
    ToolResulted,
    TurnStart,
    UsageReported,
)
from threadkeep.domain.message import Message, MessageRole, MessageStatus, Usage
from threadkeep.engine.fold import fold
from threadkeep.log.format import encode_event
from threadkeep.wire.messages import message_view

FILE = Path(__file__).parents[2] / "web/tests/recorded.json"

START = TurnStart("c1", "m1", "m2", "scripted")
INTERRUPTED = Failed("INTERRUPTED", "The server was interrupted.", retryable=True)
LOGS: dict[str, tuple[EventBody, ...]] = {
    "everything, completed": (*BEGINNING, COMPLETED),
    "everything, stopped": (*BEGINNING, CANCELLED),
    "everything, timed out": (*BEGINNING, TIMED_OUT),
    "plain text": (
        START,
        Text("你"),
        Text("好"),
        UsageReported(3, 2),
        Done("COMPLETED", "m2", Usage(3, 2), "end_turn"),
    ),
    "thoughts in two runs": (
        START,
        Thought("First, "),
        Thought("this."),
        Text("So: "),
        Thought("Then that."),
        Text("done."),
        COMPLETED,
    ),
    "documents": (
        START,
        Retrieval(
            "gravity",
            (
                RetrievalHit("newton.pdf", "长" * 400, 0.91, "k1", "d1", 12),
                RetrievalHit("memory", "An apple 🍎 fell.", 0.4),
            ),
        ),
        Text("It falls [1]."),
        COMPLETED,
    ),
    "tools that fail, draw and give files": (
        START,
        Text("Wait."),
        ToolCalled("t1", "sales", "shop", {"year": 2026}),
        ToolCalled("t2", "mail", "post", {}),
        ToolResulted("t2", "mail", "timeout", error="No answer in 30 s.", duration_ms=30_000),
        ToolResulted("t1", "sales", "ok", [1, 2], None, 8, {"series": [{"data": [1, 2]}]}, ("f1", "f2")),
        ToolCalled("t3", "sum", "shop", {}),
        ToolResulted("t3", "sum", "interrupted", error="The server was interrupted."),
        INTERRUPTED,
    ),
}


def recordings() -> str:
    """The file's text."""
    return (
        msgspec.json.format(msgspec.json.encode([_recorded(name) for name in LOGS]), indent=1).decode() + "\n"
    )


def _recorded(name: str) -> dict[str, Any]:
    events = turn(*LOGS[name])
    begun = Message(
        CONTEXT.message_id,
        CONTEXT.conversation_id,
        2,
        CONTEXT.turn_id,
        MessageRole.ASSISTANT,
        (),
        MessageStatus.PENDING,
        AT,
    )
    return {
        "name": name,
        "events": [msgspec.Raw(encode_event(event)) for event in events],
        "message": message_view(fold(begun, events)),
    }


if __name__ == "__main__":
    FILE.write_text(recordings(), encoding="utf-8")
