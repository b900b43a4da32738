"""Steps of an agent in code, one of them cut off while it spoke: what each encoder writes."""

from collections.abc import Mapping

from tests.corpus.scenarios.tools import add
from tests.corpus.stage import Stage
from tests.protocols.recorded import AT, CONTEXT, turn
from threadkeep.domain.approval import ApprovalAction, ApprovalKind
from threadkeep.domain.events import (
    ApprovalRequest,
    ApprovalResponse,
    Done,
    EventBody,
    IterationRestart,
    IterationStart,
    StepChanged,
    Text,
    TurnEvent,
    TurnResumed,
    TurnStart,
)
from threadkeep.domain.message import Usage
from threadkeep.handling.stream import StreamEnd
from threadkeep.protocols.ag_ui.encode import Run, RunEncoder
from threadkeep.protocols.ai_sdk.encode import UIMessageStream
from threadkeep.protocols.ai_sdk.frames import Version
from threadkeep.protocols.ai_sdk.parts import Reader
from threadkeep.protocols.dialect import START
from threadkeep.protocols.dialects import DIALECTS
from threadkeep.protocols.mcp.turns import news
from threadkeep.protocols.openai.completions_encode import CompletionEncoder, CompletionHead
from threadkeep.protocols.openai.encode import ResponseEncoder, ResponseHead
from threadkeep.testing import Say, UseTool

BEFORE: tuple[EventBody, ...] = (
    TurnStart("c1", "m1", "m2", None),
    StepChanged("1", "find_order", "step", "running", title="Looked up the order"),
    StepChanged("1", "find_order", "step", "ok", title="Looked up the order", duration_ms=1400),
    IterationStart(1, ""),
    Text("Order 7 costs 120 €. "),
    StepChanged("2", "billing", "step", "running", agent="billing"),
    StepChanged("3", "check", "step", "running", parent_id="2", agent="billing"),
    StepChanged("4", "check", "step", "running", parent_id="2", agent="billing"),
    StepChanged("3", "check", "step", "error", parent_id="2", agent="billing", duration_ms=3),
    StepChanged("4", "check", "step", "ok", parent_id="2", agent="billing", duration_ms=4),
    ApprovalRequest("r1", ApprovalKind.QUESTION, "Refund it?", AT, schema={"enum": ["yes", "no"]}),
)
AFTER: tuple[EventBody, ...] = (
    TurnResumed(0),
    ApprovalResponse("r1", ApprovalAction.ANSWER, content="yes"),
    StepChanged("5", "refund", "step", "running"),
    StepChanged("6", "write", "stream", "running"),
    IterationStart(2, "6"),
    Text("It is "),
    TurnResumed(1),
    StepChanged("5", "refund", "step", "unknown", duration_ms=20),
    IterationRestart(2, 16, "6"),
    IterationStart(3, "6"),
    Text("Somebody will look."),
    StepChanged("6", "write", "stream", "ok", duration_ms=30),
    StepChanged("2", "billing", "step", "ok", agent="billing", duration_ms=90),
    Done("COMPLETED", "m2", Usage(0, 0), "end_turn"),
)
EVENTS = turn(*BEFORE, *AFTER)
PAUSED = EVENTS[: len(BEFORE)]
VERSIONS: Mapping[Version, str] = {5: "ai-sdk-5", 6: "ai-sdk-6", 7: "ai-sdk-7"}


async def steps(stage: Stage) -> None:
    """A lookup, an agent within the agent, a question, and a crash within a step that speaks."""
    for name, dialect in DIALECTS.items():
        encoder = dialect.start(CONTEXT, START)
        _note(stage, name, b"".join(map(encoder.encode, EVENTS)) + encoder.end(StreamEnd.OVER))
    for version, wire in VERSIONS.items():
        _note(stage, wire, _ai_sdk(version, PAUSED, StreamEnd.PAUSED))
        _note(stage, wire, _ai_sdk(version, EVENTS, StreamEnd.OVER, len(PAUSED)))
    _note(stage, "ag-ui", _ag_ui("run-1", PAUSED, StreamEnd.PAUSED))
    _note(stage, "ag-ui", _ag_ui("run-2", EVENTS, StreamEnd.OVER, len(PAUSED)))
    head = ResponseHead(turn_id=CONTEXT.turn_id, part=1, created_at=0, model="orders", metadata={})
    response = ResponseEncoder(head)
    _note(stage, "openai", b"".join(map(response.encode, PAUSED)) + response.end(StreamEnd.PAUSED))
    completion = CompletionEncoder(CompletionHead("chatcmpl-1", 0, "orders", len(PAUSED)), with_usage=True)
    _note(stage, "openai", b"".join(map(completion.encode, EVENTS)) + completion.end(StreamEnd.OVER))
    progress = news()
    _note(stage, "mcp", "".join(it for event in EVENTS for it in progress.narrate(event.body)).encode())
    await _listed(stage)


async def _listed(stage: Stage) -> None:
    """The steps of a turn, here of a configured agent: its tool call."""
    conversation = await stage.conversation(settings={"mcpServers": stage.tools(add, name="sums")})
    stage.script([UseTool("sums__add", {"a": 1, "b": 2}, id="c1")], [Say("Three.")])
    turn_id = await stage.begin(conversation)
    await stage.ended(turn_id)
    await stage.call("GET /api/turns/{turn_id}/steps", turn_id=turn_id)
    await stage.call("GET /api/turns/{turn_id}/steps", query={"values": "true", "limit": 1}, turn_id=turn_id)
    await stage.call("GET /api/turns/{turn_id}/steps", user="bob", turn_id=turn_id)
    await stage.call("GET /api/admin/turns/{turn_id}/steps", user="root", turn_id=turn_id)
    await stage.call("GET /api/admin/turns/{turn_id}/steps", turn_id=turn_id)
    await stage.call("GET /api/admin/workers", user="root")
    await stage.call("GET /api/admin/workers")


def _note(stage: Stage, wire: str, stream: bytes) -> None:
    stage.note(wire, stream.decode())


def _ai_sdk(version: Version, events: list[TurnEvent], how: StreamEnd, after: int = 0) -> bytes:
    stream = UIMessageStream(CONTEXT, Reader(version, "http://127.0.0.1:8710"), after)
    return b"".join(map(stream.encode, events)) + stream.end(how)


def _ag_ui(run_id: str, events: list[TurnEvent], how: StreamEnd, after: int = 0) -> bytes:
    run = Run(thread_id="thread", run_id=run_id, is_1_0=True)
    encoder = RunEncoder(run, CONTEXT.turn_id, CONTEXT.message_id, after)
    return b"".join(map(encoder.encode, events)) + encoder.end(how)


SCENARIOS = (steps,)
