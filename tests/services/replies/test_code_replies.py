"""Turns of programs on a whole server: what they keep however they end, what they cost, what they name."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from tests.conftest import TEMPLATE
from tests.postgres import Postgres
from threadkeep.agents import Agent, Turn, Usage, agent
from threadkeep.client import Client, TurnWaiting
from threadkeep.domain.ids import SessionId, UserId
from threadkeep.domain.sign_in.session import Session, SignedIn
from threadkeep.domain.turn import TurnStatus
from threadkeep.domain.user import UserRole
from threadkeep.services.replies import code_replies
from threadkeep.testing import RunningApp, Say, ScriptedModel, run_agent, running_app
from threadkeep.testing.waiting import until
from threadkeep.wire.messages import MessageView


@agent(visibility="public")
async def counts(turn: Turn) -> str:
    """Says how often it was asked before; how it saves that depends on what it is asked."""
    before = turn.state.get("asked", 0)
    if turn.saved is None:
        turn.state["asked"] = before + 1
        if "large" in turn.text:
            turn.state["large"] = "x" * 100_000
        await turn.save(before)
    else:
        before = turn.saved
    if "Ask" in turn.text:
        await turn.ask("Shall I go on?")
    if "Fail" in turn.text:
        raise ValueError("a failure of the program")
    return f"{before} before."


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The settings of a database."""
    if request.param == "sqlite":
        return {}
    postgres: Postgres = request.getfixturevalue("postgres")
    return {"database_url": postgres.create_database(template=TEMPLATE), "secret_key": "x" * 40}


@pytest.fixture
async def client(database: dict[str, Any]) -> AsyncGenerator[Client]:
    async with running_app(agents=[counts], agents_pause_after_s=0.05, **database) as app:
        yield app.client


async def answered(client: Client, turn_id: str) -> None:
    with pytest.raises(TurnWaiting) as waiting:
        await client.reply(turn_id)
    (asked,) = waiting.value.approvals
    await client.answer(turn_id, asked.request_id, "answer", content="yes")


async def left_open(client: Client, turn_id: str) -> None:
    with pytest.raises(TurnWaiting):
        await client.reply(turn_id)

    async def is_paused() -> bool:
        return (await client.turn(turn_id)).status is TurnStatus.WAITING

    await until(is_paused)


async def aborted(client: Client, turn_id: str) -> None:
    await left_open(client, turn_id)
    await client.abort((await client.turn(turn_id)).conversation_id)


@pytest.mark.parametrize(
    ("text", "then"),
    [
        ("Ask.", answered),
        ("Ask, large.", left_open),
        ("Ask.", aborted),
        ("Fail, large.", None),
    ],
    ids=["its question is answered", "its user writes on", "it is stopped", "its code fails"],
)
async def test_saved_state_outlives_its_turn_when(client: Client, text: str, then: Any):
    found = [it async for it in client.agents() if it.engine.kind == "code"]
    conversation = (await client.create_conversation(found[0].id, title="Test")).id
    first = await client.start(conversation, text)
    if then is not None:
        await then(client, first.turn_id)
    if then is not left_open:
        await client.reply(first.turn_id)
    second = await client.start(conversation, "And now?")
    assert (await client.reply(second.turn_id)).content == "1 before."


@agent(visibility="public")
async def knows(turn: Turn) -> str:
    """Uses all that it is told, and waits for its user."""
    told = [turn.user.id, turn.user.name, turn.user.role, turn.user.groups, turn.conversation.title]
    await turn.step(repr, [*told, turn.conversation.metadata], effect="read")
    await turn.ask("Shall I go on?")
    return f"{turn.user.name} of {', '.join(turn.user.groups)} in {turn.conversation.title}"


async def test_program_is_told_the_same_of_its_user_and_conversation_however_these_change(
    database: dict[str, Any],
):
    async with running_app(agents=[knows], agents_pause_after_s=0.05, **database) as app:
        store, ada = (await app.app.services()).store, app.as_user("ada")

        async def sign_in(number: int, name: str, *groups: str) -> None:
            id_ = SessionId(str(UUID(int=number)))
            session = Session(
                id=id_,
                user_id=UserId("ada"),
                way="oidc:test",
                device="",
                created_at=0,
                last_used_at=0,
                ends_at=1,
            )
            described = SignedIn(id=UserId("ada"), role=UserRole.USER, name=name, groups=groups)
            await store.sessions.start(session, f"hash {number}", described)

        await sign_in(1, "Ada", "sales", "returns")
        (id_,) = [it.id async for it in ada.agents() if it.engine.kind == "code"]
        conversation = (await ada.create_conversation(id_, title="Before")).id
        turn_id = (await ada.start(conversation, "Who am I?")).turn_id
        await left_open(ada, turn_id)
        await sign_in(2, "Ada King", "returns")
        await ada.update_conversation(conversation, {"title": "After", "metadata": {"order": 7}})
        await answered(ada, turn_id)
        assert (await ada.reply(turn_id)).content == "Ada of sales, returns in Before"


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


async def test_an_agent_takes_as_many_steps_as_it_declares(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(code_replies, "MOST_STEPS", 2)

    async def sums(turn: Turn) -> str:
        return str(sum([await turn.step(abs, it, effect="read") for it in range(4)]))

    run = await run_agent(agent(max_steps=5)(sums), "Count")
    assert (run.status, run.text) == ("COMPLETED", "6")
    run = await run_agent(agent(max_steps=3)(sums), "Count")
    assert run.error is not None
    assert run.error.code == "STEP_LIMIT"
