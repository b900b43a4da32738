"""Several messages that stop the running turn at once: each begins its own, and the last one is answered."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import pytest

from tests.postgres import Postgres
from tests.talking import JSON, Talk, talking
from threadkeep.testing import Gate, Recorded, Reply, Say, ScriptedModel, Wait, scripted_settings

MANY = 12


async def stop_with(talk: Talk, conversation: str, content: str) -> httpx.Response:
    body = {"content": content, "whenBusy": "stop"}
    return await talk.client.post(f"/api/conversations/{conversation}/messages", json=body, headers=JSON)


async def check_all_stop(nodes: list[Talk], model: ScriptedModel) -> None:
    """All stop one turn at once: nobody is refused, nothing said is lost, and exactly one is answered."""
    gate = Gate()

    def reply(request: Recorded) -> Reply:
        asked = request.body["messages"][-1]["content"].split()[-1]  # with those that got no answer before
        return [Say("Once upon"), Wait(gate)] if asked == "First?" else [Say(f"Re: {asked}")]

    model.otherwise = reply
    conversation = await nodes[0].titled_conversation()
    first = await nodes[0].begin(conversation, "First?")
    await gate.reached()
    said = [f"{number}?" for number in range(MANY)]
    sent = await asyncio.gather(
        *(stop_with(nodes[at % len(nodes)], conversation, it) for at, it in enumerate(said))
    )
    assert [it.status_code for it in sent] == [202] * MANY, [it.text for it in sent]
    turns = [it.json()["turnId"] for it in sent]
    assert len({first, *turns}) == MANY + 1
    for turn in turns:
        await nodes[0].events(turn)
    messages = await nodes[0].messages(conversation)
    asked = [it for it in messages if it["role"] == "user"]
    replies = [it for it in messages if it["role"] == "assistant"]
    assert sorted(it["content"] for it in asked[1:]) == sorted(said)
    # Only the last one is certain to be answered: others may have been quick enough.
    assert replies[-1]["status"] == "COMPLETED"
    assert replies[-1]["content"] == f"Re: {asked[-1]['content']}"
    assert {it["status"] for it in replies} <= {"CANCELLED", "COMPLETED"}


async def test_each_of_several_messages_that_stop_a_turn_begins_its_own(talk: Talk, model: ScriptedModel):
    await check_all_stop([talk], model)


async def test_the_same_on_two_nodes(postgres: Postgres, model: ScriptedModel, tmp_path: Path, crowded: None):
    url = postgres.create_database(template="tk_test_template")
    settings = scripted_settings(model, data=tmp_path, database_url=url, embedding_url="off")
    async with AsyncExitStack() as stack:
        nodes = [await stack.enter_async_context(talking(settings)) for _ in range(2)]
        await check_all_stop(nodes, model)


async def test_of_several_regenerations_that_stop_each_other_the_last_is_completed(
    talk: Talk, model: ScriptedModel
):
    gate = Gate()
    model.script([Say("one"), Wait(gate)])
    model.otherwise = [Say("again")]
    conversation = await talk.titled_conversation()
    await talk.begin(conversation)
    await gate.reached()
    path = f"/api/conversations/{conversation}/regenerate"
    asked = [talk.client.post(path, json={"whenBusy": "stop"}, headers=JSON) for _ in range(MANY // 2)]
    sent = await asyncio.gather(*asked)
    assert [it.status_code for it in sent] == [202] * (MANY // 2), [it.text for it in sent]
    for response in sent:
        await talk.events(response.json()["turnId"])
    (_, shown) = (await talk.client.get(f"/api/conversations/{conversation}")).json()["messages"]
    assert (shown["content"], shown["status"]) == ("again", "COMPLETED")


@pytest.mark.parametrize("limit", [{"user_running_turns": 1}, {"user_turns_per_minute": 1 + MANY}])
async def test_stopping_takes_no_more_of_the_allowance_than_the_turns_that_begin(
    limit: dict[str, int], model: ScriptedModel, tmp_path: Path
):
    settings = scripted_settings(model, data=tmp_path / "data", embedding_url="off", **limit)
    async with talking(settings) as talk:
        await check_all_stop([talk], model)
