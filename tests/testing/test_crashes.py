"""Agents in code, crashed everywhere by the harness that their authors use."""

import itertools

import pytest

from tests.testing.test_agents import find_order, orders, paid, refund
from threadkeep.agents import OutcomeUnknown, Turn, agent
from threadkeep.testing import NotDeterministic, Say, ScriptedModel, crash_everywhere
from threadkeep.testing.places import NotImportable


def gone() -> ScriptedModel:
    """A model for one run."""
    return ScriptedModel([Say("Gone.")])


async def echo(text: str) -> str:
    """Finds a text."""
    return text


async def test_refund_survives_every_crash():
    every_third = range(3, 100, 3)
    report = await crash_everywhere(
        orders, "Refund order 7", answers=["yes"], model=gone, steps={"refund": paid}, only=every_third
    )
    report.check()
    assert report.whole.text.endswith("Gone.")
    assert len(report.crashes) >= 9
    assert "alike" in {it.outcome for it in report.crashes}
    assert {it.run.steps["refund"].count for it in report.crashes if it.run} <= {0, 1}
    extra_calls = {name for it in report.crashes for name in it.extra_calls}
    assert extra_calls == {"find_order"}
    assert str(report).count("\n") == len(report.crashes)


async def test_agent_that_expects_unknown_outcomes_ends_well_everywhere():
    @agent()
    async def careful(turn: Turn) -> str:
        order = await turn.step(find_order, turn.text, effect="read")
        try:
            return await turn.step(refund, order)
        except OutcomeUnknown:
            return "Somebody will look at that."

    report = await crash_everywhere(careful, "Refund order 7", model=None, steps={"refund": paid})
    report.check()
    assert {it.run.status for it in report.crashes if it.run} == {"COMPLETED"}
    unknown = [it.run for it in report.crashes if it.run and it.outcome == "unknown"]
    assert {it.text for it in unknown} <= {"Somebody will look at that."}


async def test_text_that_a_crash_cuts_in_two_is_one_text():
    @agent()
    async def speaks(turn: Turn) -> str:
        await turn.say("One, ")
        return "two."

    report = await crash_everywhere(speaks, "Go", only=["text", "text (2)"])
    report.check()
    assert len(report.crashes) == 4


async def test_agent_that_is_not_deterministic_is_found():
    numbers = itertools.count()

    @agent()
    async def fickle(turn: Turn) -> str:
        await turn.step(echo, "something", effect="read")
        return f"This is run {next(numbers)}."

    with pytest.raises(NotDeterministic, match="after echo, the first run said something else than this one"):
        await crash_everywhere(fickle, "Go")
    report = await crash_everywhere(fickle, "Go", check=False, only=["step_end echo", "before the end"])
    with pytest.raises(AssertionError, match=r"crashes were felt") as found:
        report.check()
    assert "instead of" in str(found.value)
    assert {it.outcome for it in report.crashes if it.run} == {"DIFFERENT"}


async def test_function_ends_at_every_question_and_runs_again():
    runs = 0

    @agent()
    async def asking(turn: Turn) -> str:
        nonlocal runs
        runs += 1
        return f"You said {await turn.ask('What?')}."

    async def crash_once(*, pause_everywhere: bool) -> int:
        nonlocal runs
        runs = 0
        report = await crash_everywhere(
            asking, "Go", answers=["that"], only="after code", pause_everywhere=pause_everywhere
        )
        report.check()
        assert [str(it.position) for it in report.crashes] == ["after code"]
        return runs

    # Without a crash, until the crash, and with it: each question is one run more.
    assert await crash_once(pause_everywhere=True) - await crash_once(pause_everywhere=False) == 2


async def test_process_is_killed_and_another_one_continues():
    report = await crash_everywhere(
        orders,
        "Refund order 7",
        answers=["yes"],
        model=gone,
        steps={"refund": paid},
        kill=True,
        only=["after answer", "after step refund", "before the end"],
    )
    report.check()
    assert {str(it.position): it.outcome for it in report.crashes} == {
        "after answer": "alike",
        "after step refund": "unknown",
        "before the end": "alike",
    }
    (unknown,) = (it.run for it in report.crashes if it.outcome == "unknown")
    assert unknown is not None
    assert (unknown.steps["refund"].count, unknown.error and unknown.error.code) == (0, "OUTCOME_UNKNOWN")


async def test_agents_and_fakes_that_no_other_process_can_load_are_refused():
    @agent()
    async def inside(turn: Turn) -> str:
        return "Hi."

    with pytest.raises(NotImportable, match=r"agent `inside` can't be loaded by another process"):
        await crash_everywhere(inside, "Hi", kill=True)

    async def paid_inside(order: int) -> str:
        return f"paid {order}"

    with pytest.raises(NotImportable, match=r"fake of `refund` can't be loaded"):
        await crash_everywhere(orders, "Hi", kill=True, steps={"refund": paid_inside})


async def test_other_code_continues_alike_or_is_found_to_differ():
    def speaking(step: str, end: str):
        @agent(key="speaker", version=2)
        async def it(turn: Turn) -> str:
            await turn.step(echo, "before", effect="idempotent")
            await turn.step(echo, step, effect="idempotent")
            return end

        return it

    first = speaking("after", "Done.")
    some = ["step_end echo", "step_end echo (2)", "before the end"]
    alike = await crash_everywhere(first, "Go", on=[speaking("after", "Done.")], only=some)
    alike.check()
    assert {it.outcome for it in alike.crashes if it.run} == {"alike"}
    other = [speaking("elsewhere", "Done.")]
    changed = await crash_everywhere(first, "Go", on=other, only="before the end", agents_patience_s=0.5)
    changed.check()
    assert [it.outcome for it in changed.crashes] == ["diverged"]
    with pytest.raises(AssertionError, match="crashes were felt"):
        (await crash_everywhere(first, "Go", on=[speaking("after", "Other.")], only="before the end")).check()


async def test_only_some_commits_are_tried():
    report = await crash_everywhere(orders, "Refund order 7", answers=["no"], only=range(2, 3))
    assert [(it.commit, it.moment) for it in report.crashes] == [(2, "before"), (2, "after")]
    report.check()
    wanted = ["step_end find_order", "after answer"]
    named = await crash_everywhere(orders, "Refund order 7", answers=["no"], only=wanted)
    assert [str(it.position) for it in named.crashes] == [
        "before step_end find_order",
        "after step_end find_order",
        "after answer",
    ]
    named.check()
    assert "before step_end find_order" in str(named)
    with pytest.raises(AssertionError, match="Nothing was tried"):
        (await crash_everywhere(orders, "Refund order 7", answers=["no"], only=[500])).check()


async def test_files_that_an_agent_attaches_are_alike_after_a_crash():
    @agent()
    async def reports(turn: Turn) -> str:
        await turn.attach("report.txt", b"All is well.", media_type="text/plain")
        await turn.step(find_order, "7", effect="read")
        return "Here it is."

    report = await crash_everywhere(reports, "Report", only=["after step find_order"])
    report.check()
