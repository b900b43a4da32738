"""The frames of the real AgentX 1.9.0 client against `/ws`, and what its hooks then show a person."""

import asyncio
import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SECRET
from tests.engine.in_memory import InMemoryTools, gives
from tests.files.making import encode, photograph, png_bomb
from tests.protocols.agentx.client import AgentHook, AgentXClient, Entry, ImagesHook, Tool, agentx
from tests.talking import JSON, Talk, talking
from threadkeep import User, UserRole
from threadkeep.domain.ids import UserId, new_uuid
from threadkeep.http.sign_in.access_tokens import issue_token
from threadkeep.ports.tools import Returned
from threadkeep.protocols.agentx import socket as ws
from threadkeep.protocols.agentx.requests import REQUESTS
from threadkeep.services.sending import Sending
from threadkeep.testing import Gate, Say, ScriptedModel, Status, UseTool, Wait, scripted_settings

Data = dict[str, Any]

pytestmark = pytest.mark.usefixtures("piece_by_piece")


@pytest.fixture
def database_url(tmp_path: Path) -> str:
    """SQLite only: what a database has to do with it, `test_routes.py` tests on both."""
    return f"sqlite:///{tmp_path}/data/threadkeep.db"


@pytest.fixture
async def guarded(database_url: str, model: ScriptedModel) -> AsyncIterator[Talk]:
    """Threadkeep with sign-in."""
    async with talking(scripted_settings(model, database_url=database_url, jwt_secret=SECRET)) as talk:
        yield talk


def bearer(user: str, ttl_s: int = 600) -> str:
    return f"Bearer {issue_token(SECRET, User(UserId(user), UserRole.USER), ttl_s)}"


def signed(user: str) -> dict[str, Any]:
    return {"additional_headers": {"Authorization": bearer(user)}}


async def create(client: AgentXClient, container_id: str = "default", name: str = "Talk") -> Data:
    """A conversation with a title: the model is asked for none."""
    made = await client.request("image_create", containerId=container_id, config={"name": name})
    return made["record"]


async def test_list_shows_what_was_made_renamed_run_stopped_and_deleted(talk: Talk, model: ScriptedModel):
    async with agentx(talk) as client:
        hook = ImagesHook(client)
        await hook.refresh()
        assert hook.images == []
        first, second = await hook.create(name="One"), await hook.create(name="Two")
        assert set(first) == {
            *("imageId", "containerId", "sessionId", "name", "description", "systemPrompt"),
            *("createdAt", "updatedAt", "online"),
        }
        assert (first["online"], second["containerId"]) == (False, first["containerId"])
        await hook.update(first["imageId"], name="One, renamed")
        ran = await hook.run(first["imageId"])
        assert (ran["imageId"], ran["reused"]) == (first["imageId"], False)
        assert hook.images[1]["agentId"] == ran["agentId"]
        await hook.stop(first["imageId"])
        await hook.delete(second["imageId"])
        shown = [(it["imageId"], it["name"], it["online"]) for it in hook.images]
        assert shown == [(first["imageId"], "One, renamed", False)]
        fresh = ImagesHook(client)
        await fresh.refresh()
        assert [(it["imageId"], it["name"], it["online"]) for it in fresh.images] == shown
    page = (await talk.client.get("/api/conversations")).json()["items"]
    assert [(it["id"], it["title"]) for it in page] == [(first["imageId"], "One, renamed")]


async def test_list_is_that_of_the_named_agent(talk: Talk, model: ScriptedModel):
    agent_id = (await talk.client.post("/api/agents", json={"name": "Advisor"})).json()["id"]
    async with agentx(talk) as client:
        by_default, own = await create(client), await create(client, agent_id)
        assert by_default["containerId"] != agent_id
        for container_id, record in (("default", by_default), (agent_id, own), (agent_id.upper(), own)):
            hook = ImagesHook(client, container_id)
            await hook.refresh()
            assert hook.images == [record]


async def test_containers_are_agents(talk: Talk):
    agent_id = (await talk.client.post("/api/agents", json={"name": "Advisor"})).json()["id"]
    async with agentx(talk) as client:
        listed = (await client.request("container_list"))["containerIds"]
        (default_id,) = {*listed} - {agent_id}
        for named, meant in ((agent_id, agent_id), ("default", default_id)):
            assert await client.request("container_create", containerId=named) == {"containerId": meant}
            assert await client.request("container_get", containerId=named) == {
                "containerId": meant,
                "exists": True,
            }
        assert await client.request("container_get", containerId="none") == {"exists": False}
        refused = await client.request("container_create", containerId="from-nothing")
        assert refused["errorCode"] == "AGENT_NOT_FOUND"


async def test_tool_is_shown_planned_executing_and_completed(
    tools: InMemoryTools, talk: Talk, model: ScriptedModel
):
    may_end = asyncio.Event()
    tools.add(search=gives(may_end, Returned("ok", result={"found": 1})))
    model.script([Say("Looking."), UseTool("search", {"query": "x"}, "t1")], [Say("Found "), Say("one.")])
    async with agentx(talk) as client:
        image_id = (await create(client))["imageId"]
        hook = AgentHook(client, image_id)
        states: list[str] = []
        client.on_event(lambda event: states.extend(shown(hook, states)))
        await hook.send("Find it")
        await client.came("tool_call_message")
        may_end.set()
        await hook.ended()
        tool = Tool("t1", "search", "success", {"query": "x"}, {"type": "json", "value": {"found": 1}})
        said = [Entry("user", "success", "Find it")]
        live = Entry("assistant", "completed", blocks=["Looking.", tool, "\n\nFound one."])
        assert hook.entries == [*said, live]
        assert states == ["planning", "executing", "success"]
        assert hook.statuses == [
            *("idle", "thinking", "responding", "planning_tool", "responding", "idle"),
        ]
        history = await AgentHook(client, image_id).load()
        kept = Entry("assistant", "completed", blocks=["Looking.\n\nFound one.", tool])
        assert history.entries == [*said, kept]


def shown(hook: AgentHook, states: list[str]) -> list[str]:
    """The state of the only tool, where it is another than the last."""
    tools = [block for entry in hook.entries for block in entry.blocks if isinstance(block, Tool)]
    return [tool.status for tool in tools if states[-1:] != [tool.status]]


@pytest.mark.parametrize("status", ["error", "denied"])
async def test_failed_tool_is_shown_failed_at_once_and_later(
    tools: InMemoryTools, talk: Talk, model: ScriptedModel, status: Any
):
    tools.add(search=gives(Returned(status, error="It is away.")))
    model.script([UseTool("search", {}, "t1")], [Say("Sorry.")])
    async with agentx(talk) as client:
        image_id = (await create(client))["imageId"]
        hook = AgentHook(client, image_id)
        await hook.send("Find it")
        await hook.ended()
        (tool,) = [it for it in hook.entries[1].blocks if isinstance(it, Tool)]
        assert tool.status == "error"
        assert tool.output["type"] == "error-text"
        assert "It is away." in tool.output["value"]
        history = await AgentHook(client, image_id).load()
        assert tool in history.entries[1].blocks


async def test_error_of_a_failed_turn_is_shown_at_once_and_later(talk: Talk, model: ScriptedModel):
    model.script([Status(400, "no")])
    async with agentx(talk) as client:
        image_id = (await create(client))["imageId"]
        hook = AgentHook(client, image_id)
        await hook.send("Well?")
        await client.came("error_message")
        assert hook.status == "error"
        (error,) = hook.errors
        assert (error["code"], error["recoverable"]) == ("AGENTX_ERROR", False)
        shown_error = Entry("error", text=error["message"], code="AGENTX_ERROR")
        assert hook.entries[-1] == shown_error
        history = await AgentHook(client, image_id).load()
        assert history.entries == [Entry("user", "success", "Well?"), shown_error]
        assert client.frames[-4:-1] == ["conversation_end", "error_occurred", "error_message"]


async def test_history_is_the_active_path(talk: Talk, model: ScriptedModel):
    model.script([Say("one")], [Say("two")])
    async with agentx(talk) as client:
        image_id = (await create(client))["imageId"]
        path = f"/api/conversations/{image_id}"
        await talk.ask(image_id, "Say a number")
        await talk.client.post(f"{path}/regenerate?wait=true", headers=JSON)
        asked = Entry("user", "success", "Say a number")
        hook = await AgentHook(client, image_id).load()
        assert hook.entries == [asked, Entry("assistant", "completed", blocks=["two"])]
        first = next(it for it in await talk.messages(image_id) if it["content"] == "one")
        await talk.client.post(f"{path}/path", json={"messageId": first["id"]})
        await hook.load()
        assert hook.entries == [asked, Entry("assistant", "completed", blocks=["one"])]


async def test_long_history_is_whole_and_in_order(
    talk: Talk, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("threadkeep.protocols.agentx.requests.ROWS_AT_ONCE", 2)
    model.script(*([Say(f"answer {n}")] for n in range(3)))
    async with agentx(talk) as client:
        image_id = (await create(client))["imageId"]
        for n in range(3):
            await talk.ask(image_id, f"question {n}")
        hook = await AgentHook(client, image_id).load()
        assert [it.text or it.blocks[0] for it in hook.entries] == [
            f"{kind} {n}" for n in range(3) for kind in ("question", "answer")
        ]
        monkeypatch.setattr("threadkeep.protocols.agentx.requests.MOST_HISTORY_MESSAGES", 4)
        await hook.load()
        assert [it.text for it in hook.entries if it.text] == ["question 1", "question 2"]
        monkeypatch.setattr("threadkeep.protocols.agentx.requests.MOST_HISTORY_BYTES", 200)
        await hook.load()
        assert [it.blocks for it in hook.entries] == [["answer 2"]]


async def test_conversation_of_agentx_is_the_same_on_the_page(talk: Talk, model: ScriptedModel):
    model.script([Say("Because.")], [Say("Still.")])
    async with agentx(talk) as client:
        image_id = (await create(client, name="Why"))["imageId"]
        hook = AgentHook(client, image_id)
        await hook.send([{"type": "text", "text": "Why?"}, {"type": "text", "text": "Say."}])
        await hook.ended()
        messages = await talk.messages(image_id)
        assert [(it["role"], it["content"]) for it in messages] == [
            ("user", "Why?\nSay."),
            ("assistant", "Because."),
        ]
        await talk.ask(image_id, "And now?")
        await client.came("conversation_end", 2)
        assert [it.text or it.blocks for it in (await hook.load()).entries] == [
            *("Why?\nSay.", ["Because."], "And now?", ["Still."]),
        ]


async def test_running_agents_are_listed_and_destroyed_and_nothing_is_lost(talk: Talk, model: ScriptedModel):
    gates = [Gate(), Gate(), Gate()]
    model.script(*([Say("half"), Wait(gate)] for gate in gates))
    async with agentx(talk) as client:
        records = [await create(client) for _ in range(3)]
        container_id = records[0]["containerId"]
        agents: list[str] = []
        for record, gate in zip(records, gates, strict=True):
            agents.append(
                (await client.request("message_send", imageId=record["imageId"], content="Go"))["agentId"]
            )
            await gate.reached()
        listed = (await client.request("agent_list", containerId="default"))["agents"]
        assert sorted(it["agentId"] for it in listed) == sorted(agents)
        assert {(it["containerId"], it["imageId"]) for it in listed} == {
            (container_id, record["imageId"]) for record in records
        }
        got = await client.request("image_get", imageId=records[0]["imageId"])
        assert (got["record"]["online"], got["record"]["agentId"]) == (True, agents[0])
        assert (await client.request("image_run", imageId=records[0]["imageId"]))["reused"] is True
        assert await client.request("agent_get", agentId=agents[0]) == {
            "agentId": agents[0],
            "containerId": container_id,
            "exists": True,
        }
        destroyed = await client.request("agent_destroy", agentId=agents[0])
        assert destroyed == {"agentId": agents[0], "success": True}
        assert len((await client.request("agent_list", containerId=container_id))["agents"]) == 2
        all_destroyed = await client.request("agent_destroy_all", containerId=container_id)
        assert all_destroyed == {"containerId": container_id}
        assert await client.request("agent_list", containerId=container_id) == {"agents": []}
        await client.came("conversation_end", 3)
        history = await AgentHook(client, records[0]["imageId"]).load()
        assert [it.text or it.blocks for it in history.entries] == ["Go", ["half"]]


async def test_agent_that_was_started_is_listed_and_destroyed_by_the_id_of_the_list(
    talk: Talk, model: ScriptedModel
):
    model.script([Say("Hello.")])
    async with agentx(talk) as client:
        run, sent, idle = [await create(client) for _ in range(3)]
        container = {"containerId": run["containerId"]}
        await client.request("image_run", imageId=run["imageId"])
        hook = AgentHook(client, sent["imageId"])
        await hook.send("Hi")
        await hook.ended()
        listed = (await client.request("agent_list", **container))["agents"]
        assert [it["imageId"] for it in listed] == [run["imageId"], sent["imageId"]]
        assert await client.request("agent_get", agentId=idle["imageId"]) == {"exists": False}
        for number, it in enumerate(listed, 1):
            found = {"agentId": it["agentId"], **container, "exists": True}
            assert await client.request("agent_get", agentId=it["agentId"]) == found
            destroyed = await client.request("agent_destroy", agentId=it["agentId"])
            assert destroyed == {"agentId": it["agentId"], "success": True}
            assert await client.request("agent_get", agentId=it["agentId"]) == {"exists": False}
            assert (await client.request("agent_list", **container))["agents"] == listed[number:]
        await client.request("image_run", imageId=idle["imageId"])
        await client.request("agent_destroy_all", **container)
        assert (await client.request("agent_list", **container))["agents"] == []


async def test_agents_are_the_same_for_all_clients_of_their_user_and_for_nobody_else(guarded: Talk):
    alice, bob = signed("alice"), signed("bob")
    async with agentx(guarded, **bob) as other, agentx(guarded, **alice) as second:
        async with agentx(guarded, **alice) as first:
            records = [await create(first) for _ in range(2)]
            for record in records:
                await first.request("image_run", imageId=record["imageId"])
            listed = (await second.request("agent_list", containerId="default"))["agents"]
            assert [it["imageId"] for it in listed] == [it["imageId"] for it in records]
            assert (await other.request("agent_list", containerId="default"))["agents"] == []
            await second.request("agent_destroy", agentId=listed[0]["agentId"])
            assert (await first.request("agent_list", containerId="default"))["agents"] == listed[1:]
        assert (await second.request("agent_list", containerId="default"))["agents"] == listed[1:]


async def test_older_client_speaks_to_an_agent_and_interrupts_it(talk: Talk, model: ScriptedModel):
    gate = Gate()
    model.script([Say("half"), Wait(gate)])
    async with agentx(talk) as client:
        other, record = await create(client), await create(client)
        agent_id = (await client.request("image_run", imageId=record["imageId"]))["agentId"]
        contexts: list[Data] = []
        client.on_event(lambda event: contexts.append(event["context"]))
        sent = await client.request("message_send", agentId=agent_id, content="Go")
        assert (sent["imageId"], sent["agentId"]) == (record["imageId"], agent_id)
        await gate.reached()
        assert "error" not in await client.request("agent_interrupt", agentId=agent_id)
        await client.came("conversation_end")
        # By this the older client tells its agents' events apart.
        assert {it["agentId"] for it in contexts} == {agent_id}
        assert await talk.messages(other["imageId"]) == []


async def test_response_comes_before_the_first_event_of_its_turn(
    talk: Talk, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
):
    send = Sending.send

    async def send_slowly(*args: Any, **more: Any) -> Any:
        begun = await send(*args, **more)
        await asyncio.sleep(0.3)  # the turn runs by now, and is told to whoever follows it
        return begun

    monkeypatch.setattr(Sending, "send", send_slowly)
    model.script([Say("now")])
    async with agentx(talk) as client:
        hook = AgentHook(client, (await create(client))["imageId"])
        await hook.send("Go")
        await hook.ended()
        assert hook.entries[-1].blocks == ["now"]
        order = [it for it in client.frames if it in {"message_send_response", "conversation_start"}]
        assert order == ["message_send_response", "conversation_start"]


async def test_image_that_is_not_there_is_no_record(talk: Talk):
    async with agentx(talk) as client:
        record = await create(client)
        assert await client.request("image_get", imageId=record["imageId"]) == {
            "record": record,
            "__subscriptions": [record["sessionId"]],
        }
        for image_id in (new_uuid(), "nonsense"):
            assert await client.request("image_get", imageId=image_id) == {
                "record": None,
                "__subscriptions": [],
            }


# What is refused


NOBODYS_IDS = ["", "nonsense", "../..", "x" * 5000, new_uuid()]


async def test_request_about_what_does_not_exist_gets_a_response_at_once(talk: Talk):
    async with agentx(talk) as client:
        for image_id in NOBODYS_IDS:
            await ask_about(client, image_id)


async def ask_about(client: AgentXClient, image_id: str) -> None:
    """Every request that names something, about what does not exist."""
    for name in ("image_update", "image_delete", "image_messages", "image_run", "image_stop"):
        response = await client.request(name, imageId=image_id, updates={"name": "x"})
        assert (name, response["errorCode"]) == (name, "CONVERSATION_NOT_FOUND")
        assert response["error"]
    for name in ("agent_destroy", "message_send", "agent_interrupt"):
        response = await client.request(name, agentId=image_id, content="x")
        assert (name, response["errorCode"]) == (name, "CONVERSATION_NOT_FOUND")
    for name in ("agent_list", "agent_destroy_all", "image_list", "image_create", "container_create"):
        response = await client.request(name, containerId=image_id)
        assert (name, response["errorCode"]) == (name, "AGENT_NOT_FOUND")
    for name, key in (("container_get", "containerId"), ("agent_get", "agentId")):
        assert await client.request(name, **{key: image_id}) == {"exists": False}


async def test_malformed_request_gets_a_response_at_once(talk: Talk):
    async with agentx(talk) as client:
        for name in REQUESTS:
            if name not in {"container_list", "image_list"}:
                assert (await client.request(name))["errorCode"] == "INVALID_REQUEST"
                wrong: Data = {"imageId": 7, "agentId": [], "containerId": {}, "content": 1}
                assert (await client.request(name, **wrong))["errorCode"] == "INVALID_REQUEST"


async def test_request_whose_data_cannot_be_taken_gets_a_response_at_once(talk: Talk):
    nested: list[Any] = []
    for _ in range(150):
        nested = [nested]
    async with agentx(talk) as client:
        record = await create(client)
        for content in ("NUL: \x00", nested, [0] * 60_000):
            response = await client.request("message_send", imageId=record["imageId"], content=content)
            assert response["errorCode"] in {"INVALID_REQUEST", "PAYLOAD_TOO_LARGE"}
        assert "error" not in client.frames
        history = await client.request("image_messages", imageId=record["imageId"])
        assert history["messages"] == []


async def test_unknown_request_gets_a_response_at_once(talk: Talk):
    async with agentx(talk) as client:
        for name in ("image_snapshot", "runtime_rewind", "x", "os_exec2", "imageGet", "runtime.image-get"):
            response = await client.request(name, imageId="x")
            assert response["errorCode"] == "INVALID_REQUEST"
            assert name in response["error"]
        await client.send({"type": "not a name_request", "data": {"requestId": "1"}})
        await client.came("error")


async def test_images_and_files_are_parts_of_a_message_and_of_the_history(talk: Talk, model: ScriptedModel):
    model.script([Say("A diagram.")], [Say("Title")])
    diagram, notes = encode(photograph(64, 48), "PNG"), b"# Rent"
    async with agentx(talk) as client:
        image_id = (await create(client))["imageId"]
        picture = {"type": "image", "data": in_base64(diagram), "mediaType": "image/png", "name": "a/cat.png"}
        text = {"type": "text", "text": "Look"}
        file = {"type": "file", "data": in_base64(notes), "mediaType": "text/plain", "filename": "notes.md"}
        large = {"type": "file", "data": in_base64(b"x" * 1_100_000), "mediaType": "text/plain"}
        sent = await client.request("message_send", imageId=image_id, content=[text, picture, file, large])
        assert "error" not in sent
        await client.came("conversation_end")
        asked, _ = await talk.messages(image_id)
        assert [it.get("fileName") for it in asked["parts"]] == ["cat.png", "notes.md", "file", None]
        history = (await client.request("image_messages", imageId=image_id))["messages"]
    said, image, *files = history[0]["content"]
    assert said == text
    assert (image["type"], image["mediaType"], image["name"]) == ("image", "image/png", "cat.png")
    assert base64.b64decode(image["data"]).startswith(b"\x89PNG")
    assert files == [
        {**file, "mediaType": "text/markdown"},
        {"type": "text", "text": "[file file · 1.1 MB]"},
    ]


async def test_file_that_is_refused_is_named_and_nothing_is_said(talk: Talk):
    async with agentx(talk) as client:
        image_id = (await create(client))["imageId"]
        for data, code, why in (
            (in_base64(png_bomb()), "UNSUPPORTED_FILE", "pixels"),
            ("data:image/png;base64," + in_base64(b"<html>"), "UNSUPPORTED_FILE", "HTML"),
            ("https://example.com/cat.png", "INVALID_REQUEST", "Threadkeep doesn't fetch addresses"),
            ("", "UNSUPPORTED_FILE", "cat.png is empty"),
        ):
            picture = {"type": "image", "data": data, "mediaType": "image/png", "name": "cat.png"}
            parts = [{"type": "text", "text": "Look"}, picture]
            response = await client.request("message_send", imageId=image_id, content=parts)
            assert response["errorCode"] == code
            assert why in response["error"]
            assert "cat.png" in response["error"]
        many = [{"type": "file", "data": in_base64(b"x"), "mediaType": "text/plain"}] * 21
        response = await client.request("message_send", imageId=image_id, content=many)
        assert response["error"] == "A message can have at most 20 files."
        response = await client.request("message_send", imageId=image_id, content=[{"type": "thinking"}])
        assert "`thinking`" in response["error"]
        assert await talk.messages(image_id) == []


def in_base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


async def test_message_over_64_kb_is_taken_and_one_over_the_agents_limit_refused(
    talk: Talk, model: ScriptedModel
):
    model.script([Say("Long.")])
    agent_id = (await talk.client.post("/api/agents", json={"name": "Advisor"})).json()["id"]
    async with agentx(talk) as client:
        large, image_id = "長" * 100_000, (await create(client))["imageId"]
        sent = await client.request("message_send", imageId=image_id, content=large)
        assert "error" not in sent
        await client.came("conversation_end")
        assert (await talk.messages(image_id))[0]["content"] == large
        limited = (await create(client, agent_id))["imageId"]
        refused = await client.request("message_send", imageId=limited, content=large)
        assert refused["errorCode"] == "MESSAGE_TOO_LONG"
        assert "error" not in await client.request("container_list")


async def test_other_peoples_things_do_not_exist(guarded: Talk):
    async with agentx(guarded, **signed("alice")) as alice, agentx(guarded, **signed("bob")) as bob:
        hers = await create(alice)
        image_id = hers["imageId"]
        for name in ("image_update", "image_delete", "image_messages", "image_run", "image_stop"):
            response = await bob.request(name, imageId=image_id, updates={"name": "x"})
            assert response["errorCode"] == "CONVERSATION_NOT_FOUND"
        for name in ("agent_destroy", "message_send", "agent_interrupt"):
            response = await bob.request(name, agentId=image_id, content="x")
            assert response["errorCode"] == "CONVERSATION_NOT_FOUND"
        assert (await bob.request("image_get", imageId=image_id))["record"] is None
        assert await bob.request("agent_get", agentId=image_id) == {"exists": False}
        assert (await bob.request("image_list"))["records"] == []
        assert (await alice.request("image_list"))["records"] == [hers]


# Signing in by a message


async def test_browser_client_signs_in_by_a_message(guarded: Talk, model: ScriptedModel):
    model.script([Say("Hello.")])
    async with agentx(guarded) as client:
        assert (await client.request("container_list"))["errorCode"] == "UNAUTHENTICATED"
        await client.sign_in(bearer("alice"))
        image_id = (await create(client))["imageId"]
        hook = AgentHook(client, image_id)
        await hook.send("Hi")
        await hook.ended()
        assert hook.entries[-1].blocks == ["Hello."]
        assert "error" not in client.frames


async def test_every_request_before_sign_in_gets_a_response_at_once(guarded: Talk):
    async with agentx(guarded) as client:
        for name in [*REQUESTS, "no_such"]:
            assert (await client.request(name, imageId="x"))["errorCode"] == "UNAUTHENTICATED"


async def test_second_sign_in_renews_the_token_and_changes_no_user(guarded: Talk):
    async with agentx(guarded) as client:
        for _ in range(2):
            await client.sign_in(bearer("alice"))
        record = await create(client)
        await client.sign_in(bearer("bob"))
        await client.came("error")
        assert (await client.request("image_list"))["records"] == [record]
        await client.sign_in("Bearer nonsense")
        await client.came("error", 2)
        assert (await client.request("image_list"))["records"] == [record]


@pytest.mark.parametrize("wrong", ["Bearer nonsense", "Basic YTpi", "", "expired"])
async def test_wrong_token_signs_nobody_in_and_the_third_ends_the_socket(guarded: Talk, wrong: str):
    authorization = bearer("alice", -60) if wrong == "expired" else wrong
    async with agentx(guarded) as client:
        for number in (1, 2):
            await client.sign_in(authorization)
            await client.came("error", number)
            assert (await client.request("container_list"))["errorCode"] == "UNAUTHENTICATED"
        await client.sign_in(authorization)
        await client.until(lambda: client.close_code == 1008)


async def test_sign_in_after_subscribing_keeps_what_is_followed(guarded: Talk, model: ScriptedModel):
    model.script([Say("Hello.")])
    async with agentx(guarded, **signed("alice")) as other:
        record = await create(other)
    async with agentx(guarded) as client:
        await client.follow(record["sessionId"])
        await client.sign_in(bearer("alice"))
        await client.request("message_send", imageId=record["imageId"], content="Hi")
        await client.came("conversation_end")
        assert client.frames.count("conversation_start") == 1


MALFORMED_HEADERS: list[Any] = [{}, [], {"Authorization": 7}, {"Authorization": "é"}, {"Cookie": "a=b"}]


async def test_malformed_sign_in_is_refused_and_the_socket_stays(guarded: Talk):
    async with agentx(guarded) as client:
        for number, headers in enumerate(MALFORMED_HEADERS, 1):
            await client.send({"type": "auth", "headers": headers})
            await client.came("error", number)
        assert (await client.request("container_list"))["errorCode"] == "UNAUTHENTICATED"


async def test_stranger_who_does_not_sign_in_is_let_go(guarded: Talk, monkeypatch: pytest.MonkeyPatch):
    async with agentx(guarded, **signed("alice")) as owner:
        record = await create(owner)
        monkeypatch.setattr(ws, "SIGN_IN_S", 2.0)  # enough for the others on a busy machine
        async with (
            agentx(guarded) as reader,
            agentx(guarded) as by_message,
            agentx(guarded, **signed("alice")) as by_header,
            agentx(guarded) as stranger,  # the last one, so the others' time is up as well
        ):
            await reader.follow(record["sessionId"])
            await by_message.sign_in(bearer("alice"))
            await stranger.until(lambda: stranger.close_code == 1008)
            for client in (by_message, by_header):
                assert "error" not in await client.request("container_list")
            assert reader.close_code is None


async def test_strangers_take_no_signed_in_clients_place(model: ScriptedModel, tmp_path: Path):
    settings = scripted_settings(model, data=tmp_path / "data", jwt_secret=SECRET, max_idle_sockets=1)
    async with talking(settings) as talk, agentx(talk) as by_message:
        await by_message.sign_in(bearer("alice"))
        assert "error" not in await by_message.request("container_list")
        async with agentx(talk, **signed("alice")) as by_header:
            assert "error" not in await by_header.request("container_list")
            async with agentx(talk) as first, agentx(talk):
                await first.until(lambda: first.close_code == 1013)
            for client in (by_message, by_header):
                assert "error" not in await client.request("container_list")


# Many sessions, lost sessions, no acknowledgement


async def test_deleted_conversations_lock_nobody_out(talk: Talk, model: ScriptedModel):
    model.script([Say("Still here.")])
    async with agentx(talk) as client:
        gone = [await create(client) for _ in range(5)]
        for record in gone:
            await client.request("image_delete", imageId=record["imageId"])
    async with agentx(talk) as client:  # the client never forgets a session, and comes back with all
        for record in gone:
            await client.follow(record["sessionId"])
        hook = AgentHook(client, (await create(client))["imageId"])
        await hook.send("Hi")
        await hook.ended()
        assert hook.entries[-1].blocks == ["Still here."]
        assert client.frames.count("error") == len(gone)


async def test_last_of_a_thousand_conversations_is_heard(talk: Talk, model: ScriptedModel):
    model.script([Say("first")], [Say("last")])
    services = await talk.app.services()
    user = User(UserId("local"), UserRole.ADMIN)
    agent = await services.agents.default()
    made = [
        (await services.conversations.create(user, agent.id, title="Talk", metadata=None))[0].id
        for _ in range(1000)
    ]
    async with agentx(talk) as client:
        assert len((await client.request("image_list"))["records"]) == 1000
        for image_id, said in ((made[0], "first"), (made[-1], "last")):
            hook = AgentHook(client, image_id)
            await hook.send("Hi")
            await hook.ended()
            assert hook.entries[-1].blocks == [said]
        assert "error" not in client.frames


async def test_client_that_never_acknowledges_misses_nothing(talk: Talk, model: ScriptedModel):
    pieces = [str(n) for n in range(2 * ws.MOST_WAITING)]
    model.script([Say(piece) for piece in pieces], [Say("more")])
    async with agentx(talk, acknowledges=False) as client:
        hook = AgentHook(client, (await create(client))["imageId"])
        await hook.send("Count")
        await hook.ended()
        assert hook.entries[-1].blocks == ["".join(pieces)]
        await hook.send("More")
        await client.came("conversation_end", 2)
        assert hook.entries[-1].blocks == ["more"]
