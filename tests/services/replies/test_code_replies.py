"""What a program keeps between turns, on a whole server: however a turn ends, the next one finds it."""

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from tests.conftest import TEMPLATE
from tests.postgres import Postgres
from threadkeep.agents import Turn, agent
from threadkeep.client import Client, TurnWaiting
from threadkeep.domain.turn import TurnStatus
from threadkeep.engine.code import run
from threadkeep.testing import running_app
from threadkeep.testing.waiting import until


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
async def client(database: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Client]:
    monkeypatch.setattr(run, "PAUSE_AFTER_S", 0.05)
    async with running_app(agents=[counts], **database) as app:
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
