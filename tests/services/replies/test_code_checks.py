"""Check mode: after a turn of an agent in code, the server lets its program run again and compares."""

import asyncio
from collections.abc import Iterator

import pytest

from threadkeep.agents import Agent, Turn, agent
from threadkeep.client import Client
from threadkeep.testing import running_app, until


async def find(order: int) -> str:
    """Looks an order up."""
    return f"order {order}"


@pytest.fixture
def counting() -> tuple[Agent, list[int]]:
    """An agent that counts its runs, which is nothing that it may do outside a step; and its count."""
    runs: list[int] = []

    @agent(key="orders")
    async def orders(turn: Turn) -> str:
        runs.append(len(runs))
        turn.usage("my-model", 10, 20)
        await turn.say("Looking. ")
        return await turn.step(find, len(runs), effect="read")

    return orders, runs


async def told(client: Client) -> list[str]:
    """Sends a message to the agent, and returns what the turn's events are."""
    (id_,) = [it.id async for it in client.agents() if it.engine.kind == "code"]
    conversation = await client.create_conversation(id_, title="Test")
    return [it.body.type async for it in client.send(conversation.id, "Hello")]


def lines(caplog: pytest.LogCaptureFixture) -> Iterator[str]:
    """What the log says of agents."""
    return (it.message for it in caplog.records if it.name == "threadkeep.agents")


async def test_server_says_what_an_agent_does_otherwise_and_nobody_sees_anything_of_it(
    counting: tuple[Agent, list[int]], caplog: pytest.LogCaptureFixture
):
    agent_, runs = counting
    async with running_app(agents=[agent_], check_agents=True) as app:
        events = await told(app.client)
        await until(lambda: any("isn't deterministic" in it for it in lines(caplog)))
        (conversation,) = [it async for it in app.client.conversations()]
        turn_id = [it async for it in app.client.messages(conversation.id)][-1].turn_id
        assert turn_id is not None
        usage = await app.client.usage()
        again = [it.body.type async for it in app.client.follow(turn_id)]
    assert len(runs) == 2
    assert again == events
    assert [it.calls for it in usage.items] == [1]
    (line,) = lines(caplog)
    assert line == (
        f"turn {turn_id}: orders isn't deterministic: after turn.usage, the first run asked for find, "
        "this one for find with other arguments"
    )


async def test_server_runs_nothing_twice_without_being_asked(counting: tuple[Agent, list[int]]):
    agent_, runs = counting
    async with running_app(agents=[agent_]) as app:
        await told(app.client)
        await told(app.client)
    assert len(runs) == 2


async def test_check_that_takes_too_long_is_a_line_of_the_log(caplog: pytest.LogCaptureFixture):
    runs: list[int] = []

    @agent(key="orders", timeout_s=0.5)
    async def orders(turn: Turn) -> str:
        runs.append(len(runs))
        if len(runs) > 1:
            await asyncio.Event().wait()
        return "Done."

    async with running_app(agents=[orders], check_agents=True) as app:
        assert (await told(app.client))[-1] == "done"
        await until(lambda: any("took too long to run again" in it for it in lines(caplog)))


async def test_server_stops_in_the_middle_of_a_check():
    began = asyncio.Event()
    runs: list[int] = []

    @agent(key="orders")
    async def orders(turn: Turn) -> str:
        runs.append(len(runs))
        if len(runs) > 1:
            began.set()
            await asyncio.Event().wait()
        return "Done."

    async with running_app(agents=[orders], check_agents=True) as app:
        await told(app.client)
        await until(began.is_set)
