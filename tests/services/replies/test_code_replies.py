"""Turns of programs, as their users and the ledger see them."""

import asyncio
from collections.abc import AsyncIterator
from decimal import Decimal

import pytest

from threadkeep.agents import Agent, Turn, Usage, agent
from threadkeep.testing import RunningApp, Say, ScriptedModel, run_agent, running_app
from threadkeep.wire.messages import MessageView


async def replied(app: RunningApp) -> MessageView:
    """What the program replies to a message."""
    (id_,) = [it.id async for it in app.client.agents() if it.engine.kind == "code"]
    conversation = await app.client.create_conversation(id_, title="Test")
    return await app.client.ask(conversation.id, "Hello")


def of(function: object) -> Agent:
    """An agent of a function of a test."""
    return agent(key="program")(function)  # type: ignore[arg-type]


async def test_what_a_program_pays_itself_is_in_the_ledger_as_it_reports_it():
    async def asks(question: str) -> AsyncIterator[str | Usage]:
        yield "Well."
        yield Usage("own/small", 3, 4, cost="0.0100")

    async def pays(turn: Turn) -> str:
        turn.usage("own/large", 10, 20, cost=Decimal("0.25"))
        await turn.step(asks, "Why?", effect="idempotent")
        await turn.usage("own/large", 1, 2)
        return "Done."

    async with running_app(agents=[of(pays)]) as app:
        reply = await replied(app)
        report = await app.client.usage(by="model")
    known = {
        it.model: (it.calls, it.input_tokens, it.reported_calls, it.reported_cost) for it in report.items
    }
    large, small = known["own/large"], known["own/small"]
    assert large[:3] == (2, 11, 2) and small[:3] == (1, 3, 1)
    assert [it and (it.amount, it.currency) for it in (large[3], small[3])] == [
        ("0.25", "USD"),
        ("0.01", "USD"),
    ]
    assert all(it.cost is None for it in report.items)
    assert reply.model == "own/large"


async def test_usage_that_nobody_awaits_is_charged_even_if_it_is_the_last_thing():
    async def pays(turn: Turn) -> str:
        turn.usage("own/large", 10, 20)
        return "Done."

    async with running_app(agents=[of(pays)]) as app:
        await replied(app)
        (sum_,) = (await app.client.usage(by="model")).items
    assert (sum_.model, sum_.calls, sum_.reported_calls) == ("own/large", 1, 1)


@pytest.mark.parametrize("cost", ["-1", "much", "NaN", "0.0000000000001"])
async def test_cost_that_is_no_amount_is_refused(cost: str):
    async def pays(turn: Turn) -> str:
        with pytest.raises(ValueError, match="`cost` can't be"):
            turn.usage("own/large", 10, 20, cost=cost)
        with pytest.raises(ValueError, match="`input_tokens` is a whole number from 0; not -1"):
            turn.usage("own/large", -1, 20)
        return "Done."

    async with running_app(agents=[of(pays)]) as app:
        assert (await replied(app)).content == "Done."
        assert not (await app.client.usage()).items


async def test_reply_names_the_model_that_was_asked_and_none_if_none_was():
    async def says(turn: Turn) -> str:
        return "Done."

    async def asks(turn: Turn) -> None:
        await turn.model("Say it.")

    async with running_app(agents=[of(says)]) as app:
        assert (await replied(app)).model is None
    async with running_app(ScriptedModel([Say("Done.")]), agents=[of(asks)]) as app:
        assert (await replied(app)).model == "default/scripted"


async def test_program_that_says_nothing_fails_with_a_sentence_of_its_own():
    async def thinks(turn: Turn) -> None:
        await turn.think("Hm.")
        await asyncio.sleep(0)

    run = await run_agent(of(thinks), "Hello")
    assert run.error is not None
    assert (run.error.code, run.error.message) == ("AGENT_FAILED", "The agent's code ended without a reply.")
