"""Which agents a turn may run besides its own, and who pays for them: against a real server."""

from typing import Any

import pytest
from msgspec import UNSET

from tests.testing.others import compass, is_after_tools, make_compass, system_of
from threadkeep.agents import Turn, agent
from threadkeep.client import Client, ClientError
from threadkeep.domain.ids import UserId
from threadkeep.domain.ledger import UsageFilter
from threadkeep.domain.user import User
from threadkeep.testing import Reply, Say, ScriptedModel, UseTool, running_app
from threadkeep.testing.script import Usage
from threadkeep.testing.scripted_model import Recorded


@agent(key="poet", visibility="public")
async def poet(turn: Turn) -> str:
    """Makes verses."""
    return f"A verse on {turn.text}."


async def test_model_of_an_agent_without_code_asks_the_agents_of_its_settings():
    with compass() as model:
        async with running_app(model) as app:
            asked = await make_compass(app.client)
            conversation = await app.client.create_conversation(asked)
            message = await app.client.ask(conversation.id, "How is the weather?")
            assert message.content == "Cold and warm."
            assert [getattr(it, "agent", None) for it in message.parts] == ["North", "South", None]
            first, *_, last = model.requests
            described = {it["function"]["name"]: it["function"] for it in first.body["tools"]}
            assert described["ask_north"]["description"] == "Asks the agent North."
            assert "You know both." in system_of(first)
            assert [it["content"] for it in last.body["messages"][-2:]] == ["It is cold.", "It is warm."]
            # What the agents did is no part of what models receive later.
            await app.client.ask(conversation.id, "And now?")
            texts = [it["content"] for it in model.requests[-1].body["messages"] if it["role"] != "system"]
            assert "It is cold." not in str(texts[:2])


async def test_agent_in_code_is_asked_by_its_key():
    def replies(request: Recorded) -> Reply:
        return [Say("There.")] if is_after_tools(request) else [UseTool("ask_poet", {"text": "rain"})]

    with ScriptedModel(otherwise=replies) as model:
        async with running_app(model, agents=[poet]) as app:
            conversation = await app.conversation("Editor", settings={"agents": ["poet"]})
            message = await app.client.ask(conversation.id, "Go")
            assert message.content == "There."
            assert model.requests[-1].body["messages"][-1]["content"] == "A verse on rain."


WEATHER = {"type": "object", "properties": {"degrees": {"type": "integer"}}, "required": ["degrees"]}


@agent(key="clerk", visibility="public")
async def clerk(turn: Turn) -> dict[str, Any]:
    """Returns what it was asked as a value."""
    return {"asked": turn.text}


@agent(key="reader", visibility="public")
async def reader(turn: Turn) -> str:
    """Reads the values that other agents reply with."""
    name, _, text = turn.text.partition(" ")
    reply = await turn.agent(name).run(text)
    return f"{reply.output} from {reply.text}"


async def test_replies_of_agents_that_ask_others_fit_the_schema_of_their_settings():
    def replies(request: Recorded) -> Reply:
        if "doesn't match the JSON schema" in str(request.body["messages"][-1]):
            return [Say('{"degrees": 7}')]
        if is_after_tools(request):
            return [Say("Seven degrees.")]
        return [UseTool("ask_poet", {"text": "rain"})]

    with ScriptedModel(otherwise=replies) as model:
        async with running_app(model, agents=[poet]) as app:
            settings = {"agents": ["poet"], "output": WEATHER}
            conversation = await app.conversation("Editor", settings=settings)
            message = await app.client.ask(conversation.id, "Go")
            assert (message.content, message.output) == ('{"degrees": 7}', {"degrees": 7})
            assert system_of(model.requests[0]).count("integer") == 1


async def test_agents_inside_a_turn_reply_with_values():
    with ScriptedModel(otherwise=lambda _: [Say('{"degrees": 7}')]) as model:
        async with running_app(model, agents=[clerk, reader]) as app:
            weather = await app.client.create_agent("Weather", settings={"output": WEATHER})
            ids = {it.name.lower(): it.id async for it in app.client.agents()}
            conversation = await app.client.create_conversation(ids["reader"])
            message = await app.client.ask(conversation.id, f"{weather.id} How warm is it?")
            assert message.content == """{'degrees': 7} from {"degrees": 7}"""
            message = await app.client.ask(conversation.id, "clerk Who?")
            assert str(message.content).startswith("{'asked': 'Who?'} from {")


async def test_only_agents_that_the_turns_user_may_use_are_offered_and_named():
    async with running_app(agents=[poet]) as app:
        hidden = await app.client.create_agent("Hidden")
        shown = await app.client.create_agent("Shown", visibility="public")
        settings = {"agents": [hidden.id, shown.id, "poet"]}
        team = await app.client.create_agent("Team", visibility="public", settings=settings)
        ada = app.as_user("ada")
        conversation = await ada.create_conversation(team.id)
        await ada.ask(conversation.id, "Hi")
        names = {it["function"]["name"] for it in app.model.requests[-1].body["tools"]}
        assert {it for it in names if it.startswith("ask_")} == {"ask_shown", "ask_poet"}
        for refused in (hidden.id, "nobody", "01a1f57e-7c00-7869-80f9-03a1f9df2770"):
            with pytest.raises(ClientError, match=rf"There is no agent '{refused}'") as found:
                await ada.create_agent("Mine", settings={"agents": [refused]})
            assert found.value.status == 422
        mine = await ada.create_agent("Mine")
        with pytest.raises(ClientError, match="An agent can't call itself"):
            await ada.update_agent(mine.id, {"settings": {"agents": [mine.id]}})
        many: Any = [f"agent-{it}" for it in range(21)]
        with pytest.raises(ClientError, match="names at most 20 agents"):
            await ada.update_agent(mine.id, {"settings": {"agents": many}})


async def test_agents_of_a_key_are_those_that_it_is_limited_to():
    async with running_app(agents=[poet]) as app:
        other = await app.client.create_agent("Other")
        team = await app.client.create_agent("Team", settings={"agents": [other.id, "poet"]})
        limited = await app.client.create_key("One", ["chat"], agents=[team.id, other.id])
        async with Client("http://localhost", token=limited.key, app=app.app) as client:
            conversation = await client.create_conversation(team.id)
            await client.ask(conversation.id, "Hi")
        names = {it["function"]["name"] for it in app.model.requests[-1].body["tools"]}
        assert {it for it in names if it.startswith("ask_")} == {"ask_other"}


async def test_calls_are_charged_to_the_agent_that_makes_them():
    def replies(request: Recorded) -> Reply:
        if "You are cheap." in system_of(request):
            return [Say("Cheap."), Usage(1_000, 0)]
        if is_after_tools(request):
            return [Say("Done."), Usage(20, 0)]
        return [UseTool("ask_cheap", {"text": "Hi"}), Usage(10, 0)]

    with ScriptedModel(otherwise=replies) as model:
        async with running_app(model) as app:
            cheap = await app.client.create_agent("Cheap", system_prompt="You are cheap.")
            team = await app.client.create_agent("Team", settings={"agents": [cheap.id]})
            conversation = await app.client.create_conversation(team.id)
            assert (await app.client.ask(conversation.id, "Hi")).content == "Done."
            store = (await app.app.services()).store
            sums = await store.ledger.usage(
                UsageFilter("0001-01-01", "9999-12-31", None), ("agent", "purpose")
            )
            used = {it.group["agent"]: it.input_tokens for it in sums if it.group["purpose"] == "turn"}
            assert used == {cheap.id: 1_000, team.id: 30}


async def test_prompt_of_an_agent_that_another_one_asks_stays_its_owners():
    def replies(request: Recorded) -> Reply:
        if is_after_tools(request) or "private prompt" in system_of(request):
            return [Say("Done.")]
        return [UseTool("ask_prompted", {"text": "Hi"})]

    with ScriptedModel(otherwise=replies) as model:
        async with running_app(model) as app:
            made = await app.client.create_agent(
                "Prompted", system_prompt="A private prompt.", visibility="public"
            )
            ada = app.as_user("ada")
            team = await ada.create_agent("Team", system_prompt="My own.", settings={"agents": [made.id]})
            message = await ada.ask((await ada.create_conversation(team.id)).id, "Hi")
            receipts = (await app.app.services()).receipts
            user = User(UserId("ada"))
            contexts = [await receipts.get(user, str(message.turn_id), number) for number in (1, 2, 3)]
            own, others, _ = (
                str([it.texts.get(one.sha256) for one in it.receipt.components]) for it in contexts
            )
            assert "My own." in own
            assert others == "[None]"


async def test_insides_of_an_agent_are_for_those_who_may_see_them():
    @agent(visibility="public")
    async def notes(turn: Turn) -> str:
        await turn.step(secret, effect="read")
        await turn.step(secret, 2, effect="read", hidden=True)
        return "Noted."

    async def secret(number: int = 1) -> str:
        """What only its owner may see."""
        return f"secret {number}"

    def replies(request: Recorded) -> Reply:
        return [Say("Done.")] if is_after_tools(request) else [UseTool("ask_notes", {"text": "Hi"})]

    with ScriptedModel(otherwise=replies) as model:
        async with running_app(model, agents=[notes]) as app:
            for client, is_open in ((app.as_user("ada"), False), (app.client, True)):
                team = await client.create_agent("Team", settings={"agents": ["notes"]})
                conversation = await client.create_conversation(team.id)
                message = await client.ask(conversation.id, "Hi")
                steps = [it async for it in client.steps(str(message.turn_id), values=True)]
                shown = [it.value for it in steps if it.name.endswith("secret")]
                assert shown == (["secret 1", "secret 2"] if is_open else [UNSET])
                (ran,) = (it for it in steps if it.kind == "agent")
                assert (ran.name, ran.agent, ran.value) == (
                    "notes",
                    "Notes",
                    {"text": "Noted.", "model": "Notes"},
                )
