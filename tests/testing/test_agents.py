"""Agents in code, run by the Threadkeep that their authors use in tests."""

import asyncio

import pytest

from threadkeep.agents import StepInsideStep, Turn, agent, tool
from threadkeep.testing import NotDeterministic, Say, ScriptedModel, StepNotFaked, UseTool, run_agent


async def find_order(text: str) -> int:
    """Which order a message is about."""
    return int(text.rpartition(" ")[2])


async def refund(order: int) -> str:
    """Pays the money back, really."""
    raise AssertionError(f"order {order} was refunded for real")


async def paid(order: int) -> str:
    """Pretends to."""
    return f"paid {order}"


@agent()
async def orders(turn: Turn) -> str | None:
    """Looks up an order and refunds it."""
    order = await turn.step(find_order, turn.text, effect="read")
    await turn.say(f"Order {order}. ")
    if await turn.ask("Refund it?", choices=["yes", "no"]) != "yes":
        return "Then it stays."
    await turn.step(refund, order)
    await turn.model("Say that it is gone.")
    return None


async def test_run_has_what_the_agent_said_and_did_and_asked():
    model = ScriptedModel([Say("Gone.")])
    run = await run_agent(orders, "Refund order 7", answers=["yes"], model=model, steps={"refund": paid})
    assert run.text.startswith("Order 7. ")
    assert run.text.endswith("Gone.")
    assert (run.status, run.error, run.questions) == ("COMPLETED", None, ["Refund it?"])
    assert {name: (it.count, it.status) for name, it in run.steps.items()} == {
        "find_order": (1, "ok"),
        "refund": (1, "ok"),
    }
    assert [it["type"] for it in run.parts].count("step") == 2


async def test_answer_decides_what_the_agent_does():
    run = await run_agent(orders, "Refund order 7", answers=["no"])
    assert run.text.endswith("Then it stays.")
    assert "refund" not in run.steps


async def test_write_without_a_fake_is_refused_even_if_the_agent_catches_that():
    @agent()
    async def careless(turn: Turn) -> str:
        try:
            return await turn.step(refund, 7)
        except Exception:
            return "Never mind."

    with pytest.raises(StepNotFaked, match=r"`refund` is a write and has no fake"):
        await run_agent(careless, "Refund")


async def test_misspelt_fake_is_named_although_the_step_may_run_for_real():
    @agent()
    async def looks(turn: Turn) -> str:
        return f"Order {await turn.step(find_order, turn.text, effect='read')}."

    async def fake(text: str) -> int:
        return 8

    with pytest.raises(StepNotFaked, match=r"a fake `find_ordr`, which no step used, and `find_order` ran"):
        await run_agent(looks, "Find 7", steps={"find_ordr": fake})
    run = await run_agent(looks, "Find 7", steps={"find_order": fake, "refund": fake})
    assert run.text == "Order 8."


async def test_questions_that_are_asked_at_once_are_answered_in_their_order():
    @agent()
    async def asks(turn: Turn) -> str:
        return " ".join(await asyncio.gather(*(turn.ask(f"{it}?") for it in "ABCDE")))

    run = await run_agent(asks, "Go", answers=["a", "b", "c", "d", "e"])
    assert (run.text, run.questions) == ("a b c d e", ["A?", "B?", "C?", "D?", "E?"])


async def test_question_without_an_answer_is_named():
    with pytest.raises(AssertionError, match=r"'Refund it\?', and `answers` has no answer left"):
        await run_agent(orders, "Refund order 7")


async def test_run_that_does_not_end_names_what_it_waits_for():
    async def waits(order: int) -> str:
        await asyncio.sleep(60)
        return ""

    with pytest.raises(TimeoutError, match="waits for `refund`"):
        await run_agent(orders, "Refund order 7", answers=["yes"], steps={"refund": waits}, timeout_s=3)


async def test_calls_of_tools_are_approved_faked_and_counted():
    @tool(access="ask")
    async def pay(order: int) -> str:
        """Pays an order back."""
        raise AssertionError(order)

    @agent(tools=[pay])
    async def asks(turn: Turn) -> None:
        await turn.run()

    def script() -> ScriptedModel:
        return ScriptedModel([UseTool("pay", {"order": 7})], [Say("Done.")])

    allowed = await run_agent(asks, "Pay", answers=["allow"], model=script(), steps={"pay": paid})
    assert (allowed.text, allowed.steps["pay"].count) == ("Done.", 1)
    denied = await run_agent(asks, "Pay", answers=["deny"], model=script(), steps={"pay": paid})
    assert denied.text == "Done."
    assert "pay" not in denied.steps or denied.steps["pay"].count == 0


async def test_failed_agent_has_an_error_and_its_test_the_exception(caplog: pytest.LogCaptureFixture):
    @agent()
    async def broken(turn: Turn) -> None:
        raise RuntimeError("secret")

    run = await run_agent(broken, "Hi")
    assert run.status == "FAILED"
    assert run.error is not None
    assert (run.error.code, "secret" in run.error.message) == ("AGENT_FAILED", False)
    assert isinstance(run.exception, RuntimeError) and "secret" in repr(run)
    assert "RuntimeError: secret" in caplog.text


async def test_agent_that_does_something_else_when_it_runs_again_fails_its_test():
    runs: list[int] = []

    @agent()
    async def counts(turn: Turn) -> str:
        runs.append(len(runs))
        return await turn.step(paid, len(runs), effect="read")

    with pytest.raises(NotDeterministic) as refused:
        await run_agent(counts, "Hi")
    assert str(refused.value) == (
        "counts isn't deterministic: at its start, the first run asked for paid, this one for paid with "
        "other arguments"
    )
    assert len(runs) == 2
    run = await run_agent(counts, "Hi", check=False)
    assert (run.text, len(runs)) == ("paid 3", 3)


async def test_mistake_in_the_agent_is_told_in_full():
    @agent()
    async def nested(turn: Turn) -> None:
        async def outer() -> None:
            await turn.step(find_order, "7", effect="read")

        await turn.step(outer, effect="read")

    run = await run_agent(nested, "Hi")
    assert isinstance(run.exception, StepInsideStep) and "Call the function directly" in str(run.exception)


async def test_answers_that_nobody_asked_for_fail_the_test():
    with pytest.raises(
        AssertionError, match=r"without asking for \['maybe'\] of `answers`. It asked: \['Refund"
    ):
        await run_agent(orders, "Refund order 7", answers=["no", "maybe"])


async def test_answer_that_does_not_fit_names_its_question():
    with pytest.raises(AssertionError, match=r"asks 'Refund it\?', which 'maybe' doesn't answer: "):
        await run_agent(orders, "Refund order 7", answers=["maybe"])


async def test_question_for_a_number_takes_the_number():
    @agent()
    async def counts(turn: Turn) -> str:
        return f"{await turn.ask('How many?', type=int)}, {await turn.ask('And?', type=int)}"

    run = await run_agent(counts, "Hi", answers=[5, {"answer": 6}])
    assert run.text == "5, 6"
