"""Agents in code, crashed everywhere by the harness that their authors use."""

import itertools

import pytest

from tests.testing.test_agents import find_order, orders, paid, refund
from threadkeep.agents import OutcomeUnknown, Turn, agent
from threadkeep.testing import Say, ScriptedModel, crash_everywhere


def gone() -> ScriptedModel:
    """A model for one run."""
    return ScriptedModel([Say("Gone.")])


async def echo(text: str) -> str:
    """Finds a text."""
    return text


async def test_refund_survives_every_crash():
    report = await crash_everywhere(
        orders, "Refund order 7", answers=["yes"], model=gone, steps={"refund": paid}
    )
    report.check()
    assert report.whole.text.endswith("Gone.")
    assert len(report.crashes) >= 9
    assert "alike" in {it.outcome for it in report.crashes}
    assert {it.run.steps["refund"].count for it in report.crashes if it.run} <= {0, 1}
    ran_again = {name for it in report.crashes for name in it.again}
    assert ran_again == {"find_order"}
    assert str(report).count("\n") == len(report.crashes)


async def test_agent_that_expects_unknown_outcomes_ends_well_everywhere():
    @agent()
    async def careful(turn: Turn) -> str:
        order = await turn.step(find_order, turn.text, effect="read")
        try:
            return await turn.step(refund, order)
        except OutcomeUnknown:
            return "Somebody will look at that."

    report = await crash_everywhere(careful, "Refund order 7", steps={"refund": paid})
    report.check()
    assert {it.run.status for it in report.crashes if it.run} == {"COMPLETED"}
    unknown = [it.run for it in report.crashes if it.run and it.outcome == "unknown"]
    assert {it.text for it in unknown} <= {"Somebody will look at that."}


async def test_agent_that_is_not_deterministic_is_found():
    numbers = itertools.count()

    @agent()
    async def fickle(turn: Turn) -> str:
        await turn.step(echo, "something", effect="read")
        return f"This is run {next(numbers)}."

    report = await crash_everywhere(fickle, "Go")
    with pytest.raises(AssertionError, match=r"crashes were felt") as found:
        report.check()
    assert "instead of" in str(found.value)
    assert {it.outcome for it in report.crashes if it.run} == {"DIFFERENT"}


async def test_other_code_continues_alike_or_is_found_to_differ():
    def speaking(step: str, end: str):
        @agent(key="speaker", version=2)
        async def it(turn: Turn) -> str:
            await turn.step(echo, "before", effect="idempotent")
            await turn.step(echo, step, effect="idempotent")
            return end

        return it

    first = speaking("after", "Done.")
    alike = await crash_everywhere(first, "Go", on=[speaking("after", "Done.")])
    alike.check()
    assert {it.outcome for it in alike.crashes if it.run} == {"alike"}
    commit = alike.crashes[-1].commit  # only one: a difference is found only after some seconds
    while alike.crashes[-1].run is None:
        commit -= 1
        alike = await crash_everywhere(first, "Go", on=[first], only=[commit])
    changed = await crash_everywhere(first, "Go", on=[speaking("elsewhere", "Done.")], only=[commit])
    changed.check()
    assert "diverged" in {it.outcome for it in changed.crashes}
    with pytest.raises(AssertionError, match="crashes were felt"):
        (await crash_everywhere(first, "Go", on=[speaking("after", "Other.")])).check()


async def test_only_some_commits_are_tried():
    report = await crash_everywhere(orders, "Refund order 7", answers=["no"], only=range(2, 3))
    assert [(it.commit, it.moment) for it in report.crashes] == [(2, "before"), (2, "after")]
    report.check()
    with pytest.raises(AssertionError, match="Nothing was tried"):
        (await crash_everywhere(orders, "Refund order 7", answers=["no"], only=[500])).check()
