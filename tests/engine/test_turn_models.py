"""Models that fail: another replies instead, or a broken reply starts anew."""

from collections.abc import Sequence
from contextlib import aclosing

import pytest

from tests.engine.in_memory import InMemoryGateway, InMemoryTools, NobodyAsked, large_values, single
from tests.engine.test_loop import REQUEST, TURN, UNLIMITED, build, check, reply, use
from threadkeep.domain.events import (
    Done,
    EventBody,
    Failed,
    IterationRestart,
    Notice,
    Text,
    ToolResultStored,
    UsageReported,
)
from threadkeep.domain.receipt import TurnReceipt
from threadkeep.engine.journal import JournalEntry, ModelChosen
from threadkeep.engine.loop import Surroundings, run_turn
from threadkeep.engine.replay import TurnState
from threadkeep.engine.tools import Toolbox
from threadkeep.engine.turn_models import TurnModels
from threadkeep.engine.turn_tools import TurnTools
from threadkeep.ports.gateway import (
    GatewayError,
    GatewayUnavailable,
    ReplyBrokeOff,
    TextDelta,
    ToolUse,
)
from threadkeep.schemas.checker import SchemaChecker

BUSY = GatewayUnavailable("The model provider is busy (529).")
BROKEN = ReplyBrokeOff("The model's response ended early.")


async def steps_of(
    models: TurnModels, tools: InMemoryTools | None = None, state: TurnState | None = None
) -> list[EventBody | JournalEntry]:
    turn_tools = TurnTools(Toolbox(tools, large_values(), SchemaChecker()), NobodyAsked())
    around = Surroundings(models=models, tools=turn_tools, limits=UNLIMITED)
    run = single(run_turn(TURN, build, around, state=state or TurnState()))
    async with aclosing(run) as steps:
        return [step async for step in steps if not isinstance(step, TurnReceipt)]  # type: ignore[misc]


def notices(steps: Sequence[object]) -> list[str]:
    return [it.code for it in steps if isinstance(it, Notice)]


def said(steps: Sequence[object]) -> str:
    return "".join(it.text for it in steps if isinstance(it, Text))


async def adds(arguments: object):
    raise AssertionError("It isn't called: its reply broke off.")
    yield


async def test_model_that_is_unavailable_is_replaced_by_the_next_that_takes_the_request():
    first = InMemoryGateway([BUSY])
    small = InMemoryGateway(context_tokens=10)
    second = InMemoryGateway([BUSY])
    third = InMemoryGateway(reply(TextDelta("Three.")))
    models = TurnModels(first.model, [small.model, second.model, third.model])
    steps = await steps_of(models)
    assert said(steps) == "Three."
    assert isinstance(steps[-1], Done)
    assert notices(steps) == ["MODEL_SKIPPED", "MODEL_FALLBACK", "MODEL_FALLBACK"]
    assert [it for it in steps if isinstance(it, ModelChosen)] == [ModelChosen("in-memory/scripted")] * 2
    assert small.requests == []
    # Nobody billed the calls that nobody replied to.
    assert len([it for it in steps if isinstance(it, UsageReported)]) == 1


async def test_turn_stays_with_the_model_that_it_fell_back_to():
    first, second = (
        InMemoryGateway([BUSY]),
        InMemoryGateway(use(ToolUse("1", "none", {})), reply(TextDelta("2."))),
    )
    steps = await steps_of(TurnModels(first.model, [second.model]), InMemoryTools())
    assert said(steps) == "2."
    assert (len(first.requests), len(second.requests)) == (1, 2)


@pytest.mark.parametrize("failure", [BUSY, GatewayError("The model provider rejected the API key.")])
async def test_turn_fails_with_the_reason_where_no_model_is_left(failure: GatewayError):
    gateway = InMemoryGateway([failure])
    events = await steps_of(TurnModels(gateway.model))
    end = events[-1]
    assert isinstance(end, Failed)
    assert (end.message, end.retryable) == (failure.message, failure.retryable)


async def test_refusal_does_not_try_another_model():
    other = InMemoryGateway(reply(TextDelta("Never.")))
    refused = InMemoryGateway([GatewayError("The model provider rejected the request (400).")])
    events = await steps_of(TurnModels(refused.model, [other.model]))
    assert isinstance(events[-1], Failed)
    assert other.requests == []


async def test_reply_that_breaks_off_starts_anew_once_and_is_charged():
    gateway = InMemoryGateway([TextDelta("Half"), BROKEN], reply(TextDelta("Whole.")))
    events = await steps_of(TurnModels(gateway.model))
    restart = next(at for at, it in enumerate(events) if isinstance(it, IterationRestart))
    assert isinstance(events[restart - 1], UsageReported)
    assert said(events[restart:]) == "Whole."
    assert isinstance(events[-1], Done)
    assert events[-1].usage.estimated
    assert len([it for it in events if isinstance(it, UsageReported)]) == 2


async def test_reply_that_breaks_off_twice_fails_with_everything_that_came():
    gateway = InMemoryGateway([TextDelta("Half"), BROKEN], [TextDelta("Again"), BROKEN], reply())
    other = InMemoryGateway(reply(TextDelta("Never.")))
    events = await steps_of(TurnModels(gateway.model, [other.model]))
    assert said(events) == "HalfAgain"
    assert isinstance(events[-1], Failed)
    assert other.requests == []
    assert len([it for it in events if isinstance(it, UsageReported)]) == 2


async def test_tool_call_of_a_reply_that_broke_off_gets_its_result_and_is_not_made():
    gateway = InMemoryGateway([ToolUse("1", "adds", {}), BROKEN], reply(TextDelta("No need.")))
    events = await steps_of(TurnModels(gateway.model), InMemoryTools(adds=adds))
    check([it for it in events if isinstance(it, EventBody)], gateway, None)
    (result,) = (it for it in events if isinstance(it, ToolResultStored))
    assert result.status == "interrupted"
    assert gateway.requests[1].messages == REQUEST.messages


async def test_model_without_a_price_is_skipped_under_a_budget():
    models = TurnModels(InMemoryGateway().model, [InMemoryGateway().model])
    with pytest.raises(GatewayUnavailable):
        list(models.fall_back(BUSY, REQUEST, needs_price=True))
    models = TurnModels(InMemoryGateway().model, [InMemoryGateway().model])
    (skipped, *_) = models.fall_back(BUSY, REQUEST, needs_price=False)
    assert isinstance(skipped, ModelChosen)
