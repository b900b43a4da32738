"""Logs of turns with the messages that the server makes of them, for the tests of the page's own fold.

python -m tests.browser.recordings    # writes web/packages/client/tests/recorded.json
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from tests.protocols.recorded import AT, BEGINNING, CANCELLED, COMPLETED, REPLY, TIMED_OUT, turn
from threadkeep.domain.approval import ApprovalAction, ApprovalKind, ApprovalScope
from threadkeep.domain.events import (
    ApprovalRequest,
    ApprovalResponse,
    Done,
    Failed,
    IterationRestart,
    IterationStart,
    Notice,
    Retrieval,
    ReturnedImage,
    StepChanged,
    Text,
    Thought,
    ToolCalled,
    ToolResultStored,
    TurnEvent,
    TurnResumed,
    TurnStart,
    UsageReported,
    UserMessage,
)
from threadkeep.domain.ids import PayloadId
from threadkeep.domain.message import Usage
from threadkeep.domain.money import Cost
from threadkeep.domain.parts import StepStatus
from threadkeep.domain.retrieval import RetrievalHit
from threadkeep.engine.fold import fold
from threadkeep.wire.events import encode_event
from threadkeep.wire.messages import message_view

FILE = Path(__file__).parents[2] / "web/packages/client/tests/recorded.json"

START = TurnStart("c1", "m1", "m2", "scripted")
INTERRUPTED = Failed("INTERRUPTED", "The server was interrupted.", retryable=True)
CHART = {"series": [{"data": [1, 2]}]}
EXPIRES = AT + 604_800_000
IMAGE = ReturnedImage(
    file_id=PayloadId("f1"), file_name="chart.png", media_type="image/png", size=900, width=320, height=200
)
FORM = {"type": "object", "properties": {"seats": {"type": "integer", "minimum": 1}}, "required": ["seats"]}


def asked(request_id: str, tool_call_id: str) -> ApprovalRequest:
    """The turn asks whether it may call a tool."""
    return ApprovalRequest(request_id, ApprovalKind.TOOL, "May I?", EXPIRES, tool_call_id)


def client_asked(request_id: str, tool_call_id: str) -> ApprovalRequest:
    """The turn waits for the client to run a tool."""
    return ApprovalRequest(request_id, ApprovalKind.CLIENT_TOOL, "Waiting.", EXPIRES, tool_call_id)


def began(step_id: str, name: str, **more: Any) -> StepChanged:
    """A step of a program begins."""
    return StepChanged(step_id, name, "step", "running", **more)


def ended(step_id: str, name: str, status: StepStatus = "ok", **more: Any) -> StepChanged:
    """A step of a program ends."""
    return StepChanged(step_id, name, "step", status, duration_ms=700, **more)


def clock_set_back(events: Sequence[TurnEvent]) -> list[TurnEvent]:
    """The same events, each earlier than the one before."""
    return [replace(event, at=AT - event.seq) for event in events]


LOGS: dict[str, list[TurnEvent]] = {
    "everything, completed": turn(*BEGINNING, COMPLETED),
    "everything, stopped": turn(*BEGINNING, CANCELLED),
    "everything, timed out": turn(*BEGINNING, TIMED_OUT),
    "plain text": turn(
        START,
        Text("你"),
        Text("好"),
        UsageReported(3, 2),
        Done("COMPLETED", "m2", Usage(3, 2), "end_turn"),
    ),
    "thoughts in two runs": turn(
        START,
        Thought("First, "),
        Thought("this."),
        Text("So: "),
        Thought("Then that."),
        Text("done."),
        COMPLETED,
    ),
    "images of a tool": turn(
        START,
        IterationStart(1),
        ToolCalled("t1", "draw", "easel", {}),
        ToolResultStored("t1", "draw", "ok", "[chart.png]", artifact_ids=("f1",), images=(IMAGE,)),
        IterationStart(2),
        Text("A line."),
        COMPLETED,
    ),
    "documents": turn(
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
    "tools that fail, draw and give files": turn(
        START,
        Text("Wait."),
        ToolCalled("t1", "sales", "shop", {"year": 2026}),
        ToolCalled("t2", "mail", "post", {}),
        ToolResultStored("t2", "mail", "timeout", error="No answer in 30 s.", duration_ms=30_000),
        ToolResultStored("t1", "sales", "ok", [1, 2], None, 8, CHART, ("f1", "f2")),
        ToolCalled("t3", "sum", "shop", {}),
        ToolResultStored("t3", "sum", "interrupted", error="The server was interrupted."),
        INTERRUPTED,
    ),
    "text, tool, thought, tool, text": turn(
        START,
        IterationStart(1),
        Text("I look at the "),
        Text("numbers first."),
        UsageReported(10, 5, cache_write_tokens=8, model="scripted", cost=Cost("0.000105", "USD")),
        ToolCalled("t1", "sales", "shop", {"year": 2026}),
        ToolResultStored("t1", "sales", "ok", {"total": 635}, duration_ms=8, chart_data=CHART),
        IterationStart(2),
        Thought("Now the "),
        Thought("handbook."),
        UsageReported(
            20, 3, cache_read_tokens=8, cache_write_tokens=9, model="other", cost=Cost("9.9999", "USD")
        ),
        ToolCalled("t2", "read", "docs", {"name": "handbook"}),
        ToolResultStored("t2", "read", "ok", "Growth is …", duration_ms=3),
        IterationStart(3),
        Text("Revenue grew."),
        UsageReported(30, 4, cache_read_tokens=17, model="other", cost=Cost("1.00", "USD")),
        COMPLETED,
    ),
    "parallel calls that end in another order": turn(
        START,
        IterationStart(1),
        Text("All three."),
        UsageReported(10, 5),
        ToolCalled("a", "sales", "shop", {"year": 2025}),
        ToolCalled("b", "search_documents", "retriever", {"query": "growth"}),
        ToolCalled("c", "sales", "shop", {"year": 2026}),
        ToolResultStored("c", "sales", "ok", 635, duration_ms=2),
        Retrieval("growth", (RetrievalHit("handbook.md", "Growth is …", 0.7, "k1", "d1"),), "b"),
        ToolResultStored("a", "sales", "ok", 527, duration_ms=4, chart_data=CHART),
        ToolResultStored("b", "search_documents", "error", error="The index is broken.", duration_ms=5),
        IterationStart(2),
        Text("It grew [1]."),
        UsageReported(30, 4),
        COMPLETED,
    ),
    "thoughts between texts and tools": turn(
        START,
        Retrieval("growth", (RetrievalHit("memory", "They ask every year.", 0.6),)),
        IterationStart(1),
        Thought("They mean both years."),
        Text("Both years. "),
        Thought("Newest first."),
        Text("Newest first."),
        Thought("Now the tool."),
        UsageReported(10, 5),
        ToolCalled("t1", "sales", "shop", {"year": 2026}),
        ToolResultStored("t1", "sales", "ok", 635, duration_ms=2),
        IterationStart(2),
        Thought("Good."),
        UsageReported(12, 1),
        IterationStart(3),
        Thought("Enough."),
        Text("635."),
        UsageReported(30, 4),
        COMPLETED,
    ),
    "tools that were interrupted": turn(
        START,
        IterationStart(1),
        Text("I order it."),
        UsageReported(10, 5),
        ToolCalled("a", "stock", "shop", {}),
        ToolCalled("b", "order", "shop", {}),
        ToolCalled("c", "mail", "post", {}),
        ToolResultStored("a", "stock", "ok", 3, duration_ms=2),
        ToolResultStored("b", "order", "unknown", error="It may have taken effect.", duration_ms=9),
        ToolResultStored("c", "mail", "interrupted", error="The turn ended first."),
        INTERRUPTED,
    ),
    "texts that show nothing": turn(
        START,
        IterationStart(1),
        Text("\n\u200b\u00ad\u3000"),
        UsageReported(10, 1),
        ToolCalled("t1", "sales", "shop", {}),
        ToolResultStored("t1", "sales", "ok", "", duration_ms=2),
        IterationStart(2),
        Text("Done"),
        Notice("MCP_SERVER_UNAVAILABLE", "mail cannot be reached"),
        Text(" here."),
        ToolCalled("t2", "sales", "shop", {}),
        ToolResultStored("t2", "sales", "denied", error="Not allowed."),
        IterationStart(3),
        Text("\n"),
        Thought(" "),
        Text("Really."),
        COMPLETED,
    ),
    "cut off and continued": turn(
        START,
        IterationStart(1),
        Thought("First, "),
        Text("I look"),
        TurnResumed(1),
        IterationRestart(1, 3),
        Text("I look at both."),
        UsageReported(10, 5),
        ToolCalled("t1", "sales", "shop", {"year": 2026}),
        TurnResumed(2),
        ToolResultStored("t1", "sales", "unknown", error="It may have taken effect.", duration_ms=9),
        IterationStart(2),
        Text("So"),
        Thought("Hm."),
        TurnResumed(3),
        IterationRestart(2, 13),
        Text("It grew."),
        UsageReported(30, 4),
        COMPLETED,
    ),
    "calls that need leave": turn(
        START,
        IterationStart(1),
        Text("I order it."),
        UsageReported(10, 5),
        ToolCalled("a", "stock", "shop", {}),
        ToolCalled("b", "order", "shop", {"count": 3}),
        ToolCalled("c", "mail", "post", {"to": "bob@example.org"}),
        ToolCalled("d", "order", "shop", {"count": 9}),
        asked("r1", "b"),
        asked("r2", "c"),
        asked("r3", "d"),
        ToolResultStored("a", "stock", "ok", 3, duration_ms=2),
        ApprovalResponse("r2", ApprovalAction.DENY),
        ToolResultStored("c", "mail", "denied", error="The user said no."),
        ApprovalResponse("r1", ApprovalAction.ALLOW, ApprovalScope.CONVERSATION),
        ToolResultStored("b", "order", "ok", "ordered", duration_ms=2),
        TurnResumed(0),
        ApprovalResponse("r3", ApprovalAction.EDIT, ApprovalScope.ONCE, {"count": 1}),
        ToolResultStored("d", "order", "ok", "ordered", duration_ms=2),
        IterationStart(2),
        Text("Done."),
        UsageReported(30, 4),
        COMPLETED,
    ),
    "calls that the client runs": turn(
        START,
        IterationStart(1),
        UsageReported(10, 5),
        ToolCalled("a", "set_color", "client", {"color": "red"}),
        ToolCalled("b", "scroll", "client", {"to": "end"}, asks=True),
        ToolCalled("c", "print", "client", {}),
        client_asked("k1", "a"),
        asked("r1", "b"),
        client_asked("k3", "c"),
        ApprovalResponse("k1", ApprovalAction.RESULT, ApprovalScope.ONCE),
        ToolResultStored("a", "set_color", "ok", {"was": "blue"}),
        ApprovalResponse("r1", ApprovalAction.EDIT, ApprovalScope.ONCE, {"to": "top"}),
        client_asked("k2", "b"),
        TurnResumed(0),
        ApprovalResponse("k2", ApprovalAction.RESULT, ApprovalScope.ONCE),
        ToolResultStored("b", "scroll", "error", error="There is no page."),
        ApprovalResponse("k3", ApprovalAction.DENY, ApprovalScope.ONCE),
        ToolResultStored("c", "print", "denied", error="The client didn't run this tool."),
        IterationStart(2),
        Text("Done."),
        UsageReported(30, 4),
        COMPLETED,
    ),
    "questions": turn(
        START,
        IterationStart(1),
        UsageReported(10, 5),
        ToolCalled("a", "ask_user", "user", {"question": "Which?"}),
        ApprovalRequest("q1", ApprovalKind.QUESTION, "Which?", EXPIRES, "a", {"enum": ["Red", "Blue"]}),
        ApprovalResponse("q1", ApprovalAction.ANSWER, content="Blue"),
        ToolResultStored("a", "ask_user", "ok", "Blue"),
        IterationStart(2),
        UsageReported(10, 5),
        ToolCalled("b", "book", "trips", {}),
        ApprovalRequest("q2", ApprovalKind.ELICITATION, "How many?", EXPIRES, "b", FORM),
        ApprovalResponse("q2", ApprovalAction.ANSWER, content={"seats": 2}),
        ApprovalRequest(
            "q3", ApprovalKind.ELICITATION, "Pay.", EXPIRES, "b", url="https://pay.example.org/1"
        ),
        ApprovalResponse("q3", ApprovalAction.EXPIRE),
        ToolResultStored("b", "book", "denied", error="Nobody answered."),
        CANCELLED,
    ),
    "steered": turn(
        START,
        IterationStart(1),
        Text("I look at 2025."),
        UsageReported(10, 5),
        ToolCalled("a", "sales", "shop", {"year": 2025}),
        ToolResultStored("a", "sales", "ok", 527, duration_ms=2),
        UserMessage("m3", "No, 2026!"),
        IterationStart(2),
        Text("Then 2026."),
        UserMessage("m4", "Thanks."),
        Text("Gladly."),
        UsageReported(30, 4),
        COMPLETED,
    ),
    "steps of a program": turn(
        START,
        began("1", "find_order", title="Looked up the order"),
        ended("1", "find_order", title="Looked up the order"),
        IterationStart(1, ""),
        Text("Order 7 costs 120 €. "),
        ApprovalRequest("q1", ApprovalKind.QUESTION, "Refund it?", EXPIRES, schema={"enum": ["yes", "no"]}),
        TurnResumed(0),
        ApprovalResponse("q1", ApprovalAction.ANSWER, content="yes"),
        began("2", "refund", title="Refunded 120 €"),
        ended("2", "refund", title="Refunded 120 €"),
        IterationStart(2, "3"),
        Text("It is on "),
        Text("its way."),
        UsageReported(10, 5),
        COMPLETED,
    ),
    "steps while another one speaks": turn(
        START,
        began("1", "write"),
        IterationStart(1, "1"),
        Text("A first "),
        began("2", "look"),
        began("3", "look"),
        Text("sentence."),
        ended("3", "look"),
        ended("1", "write"),
        IterationStart(2, ""),
        Text("Mine"),
        ended("2", "look", "error"),
        TurnResumed(1),
        Text("."),
        COMPLETED,
    ),
    "steps that were cut off": turn(
        START,
        IterationStart(1, ""),
        Text("Wait. "),
        began("1", "write"),
        began("2", "refund"),
        IterationStart(2, "1"),
        Text("Half a "),
        ToolCalled("t1", "sales", "agent", {}),
        ToolResultStored("t1", "sales", "ok", 635, duration_ms=2),
        Notice("AGENT_NOTICE", "Slow today."),
        TurnResumed(1),
        ended("2", "refund", "unknown"),
        IterationRestart(2, 6, "1"),
        IterationStart(3, "1"),
        Text("A whole sentence."),
        ended("1", "write"),
        began("3", "billing", agent="billing"),
        began("4", "charge", parent_id="3", agent="billing"),
        INTERRUPTED,
    ),
    "a clock that is set back": clock_set_back(
        turn(START, IterationStart(1), Thought("First, "), Thought("this."), Text("Done."), COMPLETED)
    ),
}


def recordings() -> str:
    """The file's text."""
    recorded = [_recorded(name, events) for name, events in LOGS.items()]
    return msgspec.json.format(msgspec.json.encode(recorded), indent=1).decode() + "\n"


def _recorded(name: str, events: Sequence[TurnEvent]) -> dict[str, Any]:
    return {
        "name": name,
        "events": [msgspec.Raw(encode_event(event)) for event in events],
        "message": message_view(fold(REPLY, events)),
    }


if __name__ == "__main__":
    FILE.write_text(recordings(), encoding="utf-8")
