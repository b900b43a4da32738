"""A turn's request, run again: recorded results, steered texts, and the ends that it can have."""

import asyncio
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from tests.engine.in_memory import InMemoryGateway
from tests.making import NOW
from threadkeep.domain.events import (
    Done,
    EventBody,
    Failed,
    IterationStart,
    Notice,
    Text,
    ToolCalled,
    ToolResultStored,
    TurnStart,
    UsageReported,
    UserMessage,
)
from threadkeep.domain.ids import ConversationId, MessageId, TurnId
from threadkeep.domain.message import Usage
from threadkeep.domain.parts import UserTextPart
from threadkeep.domain.tool_call import ToolCall, ToolCallStatus
from threadkeep.domain.turn import Turn, TurnStatus
from threadkeep.engine.loop import TurnLimits
from threadkeep.engine.recorded_calls import RecordedCall
from threadkeep.engine.spending import FreeSpending
from threadkeep.ports.gateway import (
    GatewayError,
    ModelEvent,
    ModelMessage,
    ModelRequest,
    ModelStopped,
    ModelUsage,
    ReplyBrokeOff,
    TextBlock,
    TextDelta,
    ToolResultBlock,
    ToolSpec,
    ToolUse,
    ToolUseBlock,
)
from threadkeep.services.reruns import Original, Rerun, Run

TURN = Turn(
    TurnId("t"), ConversationId("c"), MessageId("q"), MessageId("a"), TurnStatus.COMPLETED, NOW, model="old"
)
REQUEST = ModelRequest(
    "old", "Be brief.", (ModelMessage("user", (TextBlock("Why?"),)),), (ToolSpec("search", "", {}),)
)
NEW = "in-memory/scripted"


def recorded(query: str, result: str, **changes: Any) -> RecordedCall:
    values: dict[str, Any] = {"status": ToolCallStatus.OK, "duration_ms": 7, **changes}
    call = ToolCall(
        TURN.id,
        f"old-{query}",
        TURN.assistant_message_id,
        "find",
        "web",
        {"q": query},
        created_at=NOW,
        **values,
    )
    reads = (ToolResultBlock(call.tool_call_id, result, call.error is not None),)
    return RecordedCall(call, "search", call.arguments, reads)


def search(id_: str, query: str) -> list[ModelEvent]:
    return [ToolUse(id_, "search", {"q": query}), ModelUsage(10, 2), ModelStopped("tool_use")]


def say(text: str) -> list[ModelEvent]:
    return [TextDelta(text), ModelUsage(20, 3), ModelStopped("end_turn")]


def made(
    model: InMemoryGateway,
    *calls: RecordedCall,
    steered: Sequence[UserTextPart] = (),
    max_iterations: int = 0,
) -> Rerun:
    original = Original(
        turn=TURN,
        question="Why?",
        request=REQUEST,
        calls=calls,
        steered=steered,
        contents={},
        run=Run(model="old", text="", calls=[], usage=Usage(0, 0), duration_ms=0),
    )
    limits = TurnLimits(max_iterations, 0, hands_off=False)
    return Rerun(original, model.model, limits, FreeSpending(), lambda: NOW, nullcontext())


async def run(model: InMemoryGateway, *calls: RecordedCall, **how: Any) -> list[EventBody]:
    async with made(model, *calls, **how) as rerun:
        return [event.body async for events in rerun for event in events]


def steer(text: str, iteration: int) -> UserTextPart:
    return UserTextPart(message_id=f"m-{text}", text=text, at=NOW, iteration=iteration)


async def test_rerun_without_a_reader_calls_no_model():
    model = InMemoryGateway(say("So."))
    made(model)
    await asyncio.sleep(0.01)
    assert model.requests == []


async def test_recorded_results_stand_in_for_tools():
    model = InMemoryGateway(search("n1", "a"), say("So."))
    events = await run(model, recorded("a", "A is so."))
    assert events == [
        TurnStart("c", "q", "a", NEW),
        IterationStart(1),
        ToolCalled("n1", "find", "web", {"q": "a"}, model_name="search"),
        UsageReported(10, 2, model=NEW),
        ToolResultStored("n1", "find", "ok", result="A is so.", duration_ms=7),
        IterationStart(2),
        Text("So."),
        UsageReported(20, 3, model=NEW),
        Done("COMPLETED", "a", Usage(30, 5), "end_turn"),
    ]
    assert model.requests[0] == replace(REQUEST, model="scripted")
    assert model.requests[1].messages[1:] == (
        ModelMessage("assistant", (ToolUseBlock("n1", "search", {"q": "a"}),)),
        ModelMessage("user", (ToolResultBlock("n1", "A is so.", False),)),
    )


async def test_other_call_ends_the_rerun_with_all_that_was_said():
    model = InMemoryGateway([TextDelta("Let me look."), *search("n1", "b")])
    events = await run(model, recorded("a", "A"))
    assert events[-2:] == [
        ToolResultStored("n1", "find", "interrupted", error="The original turn has no result for this call."),
        Failed(
            "NEEDS_TOOL", "The model calls web.find with arguments that the original turn has no result for."
        ),
    ]
    assert Text("Let me look.") in events
    assert UsageReported(10, 2, model=NEW) in events


async def test_failed_call_fails_again():
    error = recorded("a", "Too slow.", status=ToolCallStatus.TIMEOUT, error="Too slow.")
    events = await run(InMemoryGateway(search("n1", "a"), say("Sorry.")), error)
    assert ToolResultStored("n1", "find", "timeout", error="Too slow.", duration_ms=7) in events


async def test_steered_text_comes_after_the_call_that_it_came_after():
    model = InMemoryGateway(search("n1", "a"), search("n2", "b"), say("So."))
    events = await run(model, recorded("a", "A"), recorded("b", "B"), steered=[steer("Shorter!", 1)])
    assert [type(it) for it in events].index(UserMessage) < events.index(IterationStart(2))
    last = model.requests[1].messages[-1]
    assert last == ModelMessage("user", (ToolResultBlock("n1", "A", False), TextBlock("Shorter!")))
    assert isinstance(events[-1], Done)


async def test_steered_text_is_heard_even_by_a_model_that_has_already_replied():
    model = InMemoryGateway(say("Long."), say("Short."))
    events = await run(model, steered=[steer("Shorter!", 2), steer("Please!", 2)])
    assert model.requests[1].messages[1:] == (
        ModelMessage("assistant", (TextBlock("Long."),)),
        ModelMessage("user", (TextBlock("Shorter!"), TextBlock("Please!"))),
    )
    assert [it.text for it in events if isinstance(it, Text)] == ["Long.", "Short."]


async def test_model_that_breaks_off_leaves_what_it_said_and_what_it_cost():
    events = await run(InMemoryGateway([TextDelta("Be"), GatewayError("The model is away.")]))
    assert events[-1] == Failed("AGENTX_ERROR", "The model is away.")
    assert Text("Be") in events
    (usage,) = (it for it in events if isinstance(it, UsageReported))
    assert usage.estimated


async def test_rerun_has_the_agents_limit_of_rounds():
    model = InMemoryGateway(search("n1", "a"), search("n2", "a"))
    events = await run(model, recorded("a", "A"), recorded("a", "B"), max_iterations=1)
    assert len(model.requests) == 1
    assert any(isinstance(it, Notice) and it.code == "MAX_ITERATIONS" for it in events)  # as in a turn
    assert "no result" not in str(events)
    assert isinstance(events[-1], Failed)


async def test_reply_that_breaks_off_is_not_asked_for_again():
    model = InMemoryGateway([TextDelta("Be"), ReplyBrokeOff("The model's response ended early.")])
    events = await run(model)
    assert events[-1] == Failed("AGENTX_ERROR", "The model's response ended early.", retryable=True)
    assert len(model.requests) == 1
