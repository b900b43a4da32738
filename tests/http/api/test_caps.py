"""What the operator allows at most holds whatever an agent's owner sets, on all nodes together."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conftest import ONLY_SQLITE, SECRET, Api, secret_key_for
from tests.http.calls import refusal
from tests.retrieval.sending import send
from tests.talking import JSON, Talk, talking
from threadkeep import Settings, create_app
from threadkeep.domain.caps import CAPPED_SETTINGS
from threadkeep.domain.user import LOCAL
from threadkeep.testing import Gate, Recorded, Reply, Say, ScriptedModel, UseTool, Wait, scripted_settings
from threadkeep.testing.waiting import until

Capped = Callable[..., AbstractAsyncContextManager[Talk]]


@pytest.fixture
def capped(database_url: str, model: ScriptedModel, tmp_path: Path) -> Capped:
    """Starts a Threadkeep with these caps on the same data as the one before."""

    @asynccontextmanager
    async def start(**caps: Any) -> AsyncGenerator[Talk]:
        settings = scripted_settings(
            model, data=tmp_path / "data", database_url=database_url, embedding_url="off", **caps
        )
        async with talking(settings) as talk:
            yield talk

    return start


async def make(talk: Talk, **agent: Any) -> httpx.Response:
    return await talk.client.post("/api/agents", json={"name": "Advisor", **agent})


async def send_message(talk: Talk, conversation: str, content: str = "Why?") -> httpx.Response:
    path = f"/api/conversations/{conversation}/messages"
    return await talk.client.post(path, json={"content": content}, headers=JSON)


def summaries_or(reply: Reply) -> Callable[[Recorded], Reply]:
    return lambda request: [Say("Sum.")] if b"Write one new summary" in request.content else reply


@ONLY_SQLITE
async def test_only_listed_models_and_the_default_one_can_be_chosen(capped: Capped):
    async with capped(allowed_models="small,medium") as talk:
        error = refusal(await make(talk, model="large"), 422, "MODEL_NOT_ALLOWED", "model")
        assert error["details"] == {"models": ["default/scripted", "small", "medium"]}
        for model in ("small", "medium", "scripted", "default/scripted", None):
            assert (await make(talk, model=model)).status_code == 201
        agent = (await make(talk)).json()
        patched = await talk.client.patch(f"/api/agents/{agent['id']}", json={"model": "large"})
        refusal(patched, 422, "MODEL_NOT_ALLOWED", "model")


@ONLY_SQLITE
async def test_model_that_is_no_longer_allowed_is_asked_nothing(capped: Capped, model: ScriptedModel):
    model.otherwise = summaries_or([Say("Because.")])
    async with capped() as talk:
        agent = (await make(talk, model="large", settings={"compactionThreshold": 2})).json()["id"]
        path = f"/api/agents/{agent}/conversations"
        conversation = (await talk.client.post(path, json={"title": "T"})).json()["id"]
        for _ in range(3):
            await talk.ask(conversation)
    asked = len(model.requests)
    async with capped(allowed_models="small") as talk:
        refusal(await send_message(talk, conversation), 422, "MODEL_NOT_ALLOWED", "model")
        for path in ("regenerate", "compact"):
            response = await talk.client.post(
                f"/api/conversations/{conversation}/{path}", json={}, headers=JSON
            )
            refusal(response, 422, "MODEL_NOT_ALLOWED", "model")
        assert len(model.requests) == asked
        # Its owner can change everything else of it, and choose another model.
        path = f"/api/agents/{agent}"
        assert (await talk.client.patch(path, json={"description": "New"})).status_code == 200
        assert (await talk.client.patch(path, json={"model": "small"})).status_code == 200
        await talk.ask(conversation)
        assert model.requests[-1].body["model"] == "small"


CAPPED = {
    "maxTokens": "max_reply_tokens",
    "maxIterations": "max_iterations",
    "maxMessageChars": "max_message_chars",
}
"""Each capped setting of an agent, with the operator's setting for it."""


def test_every_cap_on_a_setting_is_tested():
    assert {_camel(name) for name in CAPPED_SETTINGS} == set(CAPPED)


def _camel(name: str) -> str:
    return name.title().replace("_", "")[0].lower() + name.title().replace("_", "")[1:]


@ONLY_SQLITE
@pytest.mark.parametrize(("name", "cap"), CAPPED.items())
async def test_only_a_limit_that_somebody_sends_is_refused(capped: Capped, name: str, cap: str):
    async with capped() as talk:
        earlier = (await make(talk)).json()["id"]  # with the default
    async with capped(**{cap: 4}) as talk:
        param, client = f"settings.{name}", talk.client

        async def shown(agent: httpx.Response) -> object:
            assert agent.status_code in {200, 201}, agent.text
            read = await client.get(f"/api/agents/{agent.json()['id']}")
            listed = (await client.get("/api/agents?limit=200")).json()["items"]
            (same,) = (it for it in listed if it["id"] == agent.json()["id"])
            views = (it["settings"][name] for it in (agent.json(), same))
            assert all(it == read.json()["settings"][name] for it in views)
            return read.json()["settings"][name]

        for sent in (5, 12, 10_000):
            error = refusal(await make(talk, settings={name: sent}), 422, "LIMIT_NOT_ALLOWED", param)
            assert error["details"] == {"limit": name, "most": 4}
        assert await shown(await make(talk)) == 4
        assert await shown(await make(talk, settings={name: 3})) == 3
        path = f"/api/agents/{(await make(talk, settings={name: 3})).json()['id']}"
        patched = await client.patch(path, json={"settings": {name: 5}})
        refusal(patched, 422, "LIMIT_NOT_ALLOWED", param)
        assert await shown(await client.patch(path, json={"description": "New"})) == 3
        assert await shown(await client.patch(path, json={"settings": {name: None}})) == 4
        assert await shown(await client.patch(path, json={"settings": None})) == 4
        # One from before the cap, and its copy.
        path = f"/api/agents/{earlier}"
        assert await shown(await client.patch(path, json={"description": "New"})) == 4
        assert await shown(await client.post(f"{path}/duplicate")) == 4


async def test_settings_from_before_the_cap_stay_and_do_not_prevail(capped: Capped, model: ScriptedModel):
    before = {"maxTokens": 10_000_000, "maxIterations": 0, "maxMessageChars": 0}
    async with capped() as talk:
        agent = (await make(talk, settings=before)).json()["id"]
        unlimited = (await make(talk)).json()["id"]
    async with capped(max_reply_tokens=70, max_iterations=3, max_message_chars=20) as talk:
        path = f"/api/agents/{agent}"
        assert (await talk.client.patch(path, json={"description": "New"})).status_code == 200
        for name in (agent, unlimited):
            model.otherwise = [UseTool("nothing_like_it", {})]
            made = await talk.client.post(f"/api/agents/{name}/conversations", json={"title": "T"})
            conversation, asked = made.json()["id"], len(model.requests)
            await talk.ask(conversation)
            requests = model.requests[asked:]
            assert [request.body["max_tokens"] for request in requests[:3]] == [70, 70, 70]
            if name == agent:
                assert len(requests) == 3
            refusal(await send_message(talk, conversation, "x" * 21), 400, "MESSAGE_TOO_LONG", "content")


@ONLY_SQLITE
async def test_iterations_are_finite_without_any_setting(capped: Capped):
    async with capped() as talk:
        refused = await make(talk, settings={"maxIterations": 101})
        refusal(refused, 422, "LIMIT_NOT_ALLOWED", "settings.maxIterations")


async def test_caps_that_are_on_by_default():
    settings = Settings.load({})
    assert (settings.user_turns_per_minute, settings.max_iterations) == (60, 100)
    assert (settings.max_message_chars, settings.max_reply_tokens, settings.allowed_models) == (0, 0, ())
    assert 0 < settings.user_running_turns < 1000
    assert settings.user_documents
    assert settings.user_bytes


@ONLY_SQLITE
async def test_user_in_a_hurry_is_told_when_to_try_again(capped: Capped, model: ScriptedModel):
    model.otherwise = summaries_or([Say("Because.")])
    async with capped(user_turns_per_minute=2) as talk:
        conversation = await talk.titled_conversation()
        for _ in range(2):
            assert (await talk.ask(conversation))["status"] == "COMPLETED"
        for response in (
            await send_message(talk, conversation),
            await talk.client.post(f"/api/conversations/{conversation}/regenerate", headers=JSON),
            await talk.client.post(f"/api/conversations/{conversation}/compact", json={}),
        ):
            error = refusal(response, 429, "RATE_LIMITED")
            assert error["details"] == {"limit": "turnsPerMinute", "most": 2}
            assert 0 < int(response.headers["Retry-After"]) <= 60
        assert len(model.requests) == 2


async def test_two_nodes_begin_no_more_of_a_users_turns_than_one(
    postgres: Any, model: ScriptedModel, tmp_path: Path, crowded: None
):
    gate = Gate()
    model.otherwise = [Wait(gate), Say("Because.")]
    url = postgres.create_database(template="tk_test_template")
    settings = scripted_settings(model, data=tmp_path, database_url=url, user_running_turns=2)
    async with AsyncExitStack() as stack:
        nodes = [await stack.enter_async_context(talking(settings)) for _ in range(2)]
        conversations = [await nodes[0].titled_conversation() for _ in range(8)]
        responses = await asyncio.gather(
            *(send_message(nodes[at % 2], conversation) for at, conversation in enumerate(conversations))
        )
        statuses = [it.status_code for it in responses]
        assert sorted(statuses) == [202, 202, *[429] * 6]
        free = conversations[statuses.index(429)]
        refusal(await send_message(nodes[0], free), 429, "RATE_LIMITED")
        gate.open()
        for response in responses:
            if response.status_code == 202:
                await nodes[0].events(response.json()["turnId"])
        assert (await send_message(nodes[1], conversations[0])).status_code == 202


async def test_replies_outside_conversations_count_on_all_nodes(
    postgres: Any, model: ScriptedModel, tmp_path: Path, crowded: None
):
    gate = Gate()
    model.script([Say("Because.")], [Wait(gate), Say("Yes.")])
    url = postgres.create_database(template="tk_test_template")
    settings = scripted_settings(model, data=tmp_path, database_url=url, user_running_turns=1)
    asked = {"model": "Advisor", "messages": [{"role": "user", "content": "Why?"}]}
    async with AsyncExitStack() as stack:
        one, two = [await stack.enter_async_context(talking(settings)) for _ in range(2)]
        conversation = await one.titled_conversation()
        turn = await one.begin(conversation)
        await one.events(turn)
        running = asyncio.create_task(one.client.post("/v1/chat/completions", json=asked))

        async def has_begun() -> bool:
            return len(model.requests) == 2

        await until(has_begun)
        for node in (one, two):
            assert (await node.client.post("/v1/chat/completions", json=asked)).status_code == 429
            refusal(await send_message(node, conversation), 429, "RATE_LIMITED")
            rerun = await node.client.post(f"/api/turns/{turn}/rerun", json={}, headers=JSON)
            refusal(rerun, 429, "RATE_LIMITED")
        assert len(model.requests) == 2
        gate.open()
        assert (await running).status_code == 200
        model.otherwise = [Say("Again.")]
        for node in (two, one):  # the place is free again at once
            rerun = await node.client.post(f"/api/turns/{turn}/rerun", json={}, headers=JSON)
            assert rerun.status_code == 200, rerun.text


async def test_owner_keeps_no_more_documents_than_allowed_over_all_agents(capped: Capped):
    async with capped(user_documents=3) as talk:
        agents = [(await make(talk)).json()["id"] for _ in range(2)]
        sent = [
            talk.client.post(
                f"/api/agents/{agents[at % 2]}/documents", files={"files": (f"{at}.txt", f"text {at}")}
            )
            for at in range(6)
        ]
        responses = await asyncio.gather(*sent)
        assert sorted(it.status_code for it in responses) == [202, 202, 202, 422, 422, 422]
        refused = next(it for it in responses if it.status_code == 422)
        error = refusal(refused, 422, "LIMIT_NOT_ALLOWED")
        assert error["details"] == {"limit": "documents", "most": 3}
        kept = next(it for it in responses if it.status_code == 202).json()["items"][0]
        gone = await talk.client.delete(f"/api/agents/{kept['agentId']}/documents/{kept['id']}")
        assert gone.status_code == 204
        assert len(await send(talk.client, agents[0], new__txt="A new one.")) == 1


@pytest.mark.parametrize(
    "last",
    [("third.txt", "The third."), ("third.txt", "z" * 700), ("third.exe", b"MZ\0\0"), ("x" * 300, "Named.")],
)
async def test_documents_of_one_upload_are_all_taken_or_none(
    last: tuple[str, str | bytes], capped: Capped, tmp_path: Path
):
    async with capped() as talk:
        path = f"/api/agents/{(await make(talk)).json()['id']}/documents"
        size = await talk.store.stored_bytes.of_user(LOCAL)
    async with capped(user_documents=2, user_bytes=size + 700) as talk:
        sent = [("files", ("first.txt", "The first.")), ("files", ("second.txt", "The second."))]
        refused = await talk.client.post(path, files=[*sent, ("files", last)])
        assert refused.status_code == 422, refused.text
        assert (await talk.client.get(path)).json()["items"] == []
        assert not [it for it in (tmp_path / "data").rglob("documents/*") if it.is_file()]
        twice = [*sent, ("files", ("again.txt", "The second."))]
        kept = (await talk.client.post(path, files=twice)).json()["items"]
        assert [it["fileName"] for it in kept] == ["first.txt", "second.txt", "second.txt"]
        assert len((await talk.client.get(path)).json()["items"]) == 2


async def test_owner_keeps_no_more_bytes_than_allowed(capped: Capped, tmp_path: Path):
    async with capped() as talk:
        agent = (await make(talk)).json()["id"]
        size = await talk.store.stored_bytes.of_user(LOCAL)
    path = f"/api/agents/{agent}/documents"
    async with capped(user_bytes=size + 1000) as talk:
        assert len(await send(talk.client, agent, first__txt="x" * 600)) == 1
        refused = await talk.client.post(path, files={"files": ("second.txt", "y" * 401)})
        refusal(refused, 422, "LIMIT_NOT_ALLOWED")
        assert len([it for it in (tmp_path / "data").rglob("documents/*") if it.is_file()]) == 1
        assert len(await send(talk.client, agent, again__txt="x" * 600)) == 1  # the same file is kept once
        assert len(await send(talk.client, agent, second__txt="y" * 400)) == 1


async def test_documents_of_a_deleted_agent_make_room_again(capped: Capped):
    async with capped(user_documents=1) as talk:
        agents = [(await make(talk)).json()["id"] for _ in range(2)]
        (document,) = await send(talk.client, agents[0], first__txt="The first.")
        await talk.client.delete(f"/api/agents/{agents[0]}")
        path = f"/api/agents/{agents[1]}/documents"
        refused = await talk.client.post(path, files={"files": ("second.txt", "The second.")})
        refusal(refused, 422, "LIMIT_NOT_ALLOWED")
    async with capped(user_documents=1) as talk:  # what is done every hour is done at the start
        agent_id = document["agentId"]

        async def is_gone() -> bool:
            return not await talk.store.documents.ids_of(agent_id)

        await until(is_gone)
        assert len(await send(talk.client, agents[1], second__txt="The second.")) == 1


@ONLY_SQLITE
async def test_only_admins_publish_where_the_operator_says_so(database_url: str, tmp_path: Path):
    settings = Settings.load(
        {},
        data=tmp_path / "data",
        database_url=database_url,
        secret_key=secret_key_for(database_url),
        jwt_secret=SECRET,
        gateway="openai",
        embedding_url="off",
        publish="admin",
    )
    app = create_app(settings)
    async with app.lifespan():
        api = Api(app, (await app.services()).store, [])
        alice, root = api.as_user("alice"), api.as_user("root", admin=True)
        public = {"name": "Advisor", "visibility": "public"}
        refusal(await alice.post("/api/agents", json=public), 403, "FORBIDDEN", "visibility")
        agent = (await alice.post("/api/agents", json={"name": "Advisor"})).json()["id"]
        path = f"/api/agents/{agent}"
        refusal(await alice.patch(path, json={"visibility": "public"}), 403, "FORBIDDEN", "visibility")
        assert (await root.patch(path, json={"visibility": "public"})).status_code == 200
        assert (await alice.patch(path, json={"description": "Still mine."})).status_code == 200
