"""What the programs of a node's turns do, as operators see it."""

import asyncio
from collections.abc import AsyncGenerator

from tests.runtime.nodes import Nodes
from tests.runtime.test_programs import FakePrograms, has_ended, make_begun
from threadkeep.domain.agent import Code
from threadkeep.domain.events import Text, TurnEvent
from threadkeep.domain.ids import TurnId, new_uuid
from threadkeep.domain.turn import OpenStep
from threadkeep.engine.journal import ReplayDiverged, StepBegun, StepEnded
from threadkeep.engine.loop import HandOff, Together, TurnStep
from threadkeep.metrics import MOST_STEP_NAMES, Metrics, StepCount
from threadkeep.runtime.control import TurnControl
from threadkeep.runtime.open_steps import OpenSteps
from threadkeep.runtime.turn_course import TurnCourse
from threadkeep.storage.store import Store
from threadkeep.storage.turn_log import HeldTurn
from threadkeep.testing.waiting import until

FIND = StepBegun("/find/1/1", "1", "find", "step", "read")
REFUND = StepBegun("/refund/2/1", "2", "refund", "step", "write")
ASK = StepBegun("/ask/3/1", "3", "ask", "question", "read")
TAKEN = StepBegun("/now/4/1", "4", "now", "take", "read")


def ended(begun: StepBegun, status: str = "ok") -> StepEnded:
    return StepEnded(begun.key, status, 1)  # type: ignore[arg-type]


async def test_turn_is_listed_with_its_oldest_open_step_and_steps_are_counted(nodes: Nodes, store: Store):
    go_on = asyncio.Event()
    steps: list[list[TurnStep]] = [
        [Together((FIND,)), TAKEN, Together((REFUND,), is_before_effect=True)],
        [Together((ended(FIND), ended(TAKEN)))],
        [Together((ended(REFUND, "unknown"),)), ended(REFUND, "cancelled"), ReplayDiverged("a", "b")],
    ]

    async def course(held: HeldTurn, control: TurnControl) -> AsyncGenerator[TurnStep]:
        for some in steps:
            for step in some:
                yield step
            await go_on.wait()
            go_on.clear()
        yield HandOff()

    metrics = Metrics()
    node = nodes.start(programs=FakePrograms(Code("orders", 2)), metrics=metrics)
    begun = await make_begun(store, 2)
    await node.runner.begin(begun, TurnCourse(course))

    async def shows(name: str | None) -> bool:
        active = await store.active.get(begun.turn.id)
        return active is not None and (active.step and active.step.name) == name

    for name in ("find", "refund", None):
        await until(lambda name=name: shows(name))
        (count,) = node.programs.running.values()
        assert count == 1
        go_on.set()
    await until(lambda: has_ended(store, begun))
    assert metrics.steps == {
        StepCount("orders", "find", "ok", "read"): 1,
        StepCount("orders", "refund", "unknown", "write"): 1,
    }
    assert (metrics.unknown_outcomes["orders"], metrics.divergences["orders"]) == (1, 1)


def test_question_stays_open_and_what_an_earlier_run_began_is_known_when_it_ends():
    steps = OpenSteps()
    for entry in (FIND, ended(FIND), REFUND, event_at(7), ASK):
        steps.recall(entry)
    assert steps.oldest == OpenStep("ask", 7)
    assert steps.end(ended(REFUND, "unknown")) == REFUND
    assert steps.end(ended(REFUND, "cancelled")) is None
    assert steps.end(ended(ASK)) == ASK
    assert steps.oldest is None


def event_at(at: int) -> TurnEvent:
    return TurnEvent(TurnId(new_uuid()), 1, at, Text("x"))


def test_names_that_code_makes_up_are_counted_together():
    metrics = Metrics()
    for number in range(MOST_STEP_NAMES + 5):
        metrics.step_ended(StepCount("orders", f"step {number}", "ok", "read"))
    metrics.step_ended(StepCount("orders", "step 0", "error", "read"))
    assert len(metrics.steps) == MOST_STEP_NAMES + 2
    assert metrics.steps[StepCount("orders", "other", "ok", "read")] == 5
    assert metrics.steps[StepCount("orders", "step 0", "error", "read")] == 1
