"""The real Python client against a running server, in both protocol eras."""

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.server.mcpserver import Context
from mcp.shared.exceptions import MCPError
from mcp_types import (
    BlobResourceContents,
    CallToolResult,
    ElicitRequestFormParams,
    ElicitResult,
    EmbeddedResource,
    InputRequiredResult,
    TextResourceContents,
)
from pydantic import BaseModel

from tests.clients.conftest import new_agent, signed_in
from tests.clients.mcp.client import ERAS, connected, new_key
from tests.conftest import ONLY_SQLITE, secret_key_for
from tests.serving import Server
from tests.talking import Talk
from threadkeep.testing import Fail, Gate, Say, ScriptedModel, Think, ToolServer, UseTool, Wait

Json = dict[str, Any]
EACH_ERA = pytest.mark.parametrize("era", list(ERAS))


async def call(client: Client, tool: str, **arguments: Any) -> Json:
    """What a tool returns; its text says the same."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, text_of(result)
    assert json.loads(text_of(result)) == result.structured_content
    return result.structured_content


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    """Why a tool doesn't do it."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    return text_of(result)


async def read_when_ended(client: Client, conversation_id: str) -> Json:
    """A conversation in which nothing runs any more."""
    while True:
        read = await call(client, "read_conversation", conversationId=conversation_id)
        if read["runningTurnId"] is None:
            return read
        await asyncio.sleep(0.05)


async def search(client: Client, query: str) -> list[Json]:
    """What is found once it has been indexed, after its turn."""
    while True:
        if found := (await call(client, "search_conversations", query=query))["items"]:
            return found
        await asyncio.sleep(0.05)


def text_of(result: CallToolResult) -> str:
    (content,) = result.content
    assert content.type == "text"
    return content.text


def note(text: str) -> str:
    "Notes."
    return f"noted {text}"


@EACH_ERA
async def test_conversation(talk: Talk, model: ScriptedModel, era: str):
    agent_id = await new_agent(talk)
    async with connected(talk.url, signed_in("alice"), era) as client:
        assert client.server_info is None or client.server_info.name == "threadkeep"
        tools = (await client.list_tools()).tools
        assert [it.name for it in tools] == [
            "list_agents",
            "send_message",
            "answer_approval",
            "read_conversation",
            "search_conversations",
        ]
        agents = (await call(client, "list_agents"))["agents"]
        assert {"id": agent_id, "name": "Advisor", "description": "", "isDefault": False} in agents
        model.script([Think("Hm."), Say("Hello.")], [Say("Again.")])
        first = await call(client, "send_message", content="Good morning", agentId=agent_id)
        assert (first["status"], first["content"]) == ("COMPLETED", "Hello.")
        second = await call(client, "send_message", content="And?", conversationId=first["conversationId"])
        assert second["content"] == "Again."
        assert second["conversationId"] == first["conversationId"]
        asked = [it["content"] for it in model.requests[-1].body["messages"][-3:]]
        assert asked == ["Good morning", "Hello.", "And?"]
        read = await call(client, "read_conversation", conversationId=first["conversationId"], limit=3)
        assert [it["content"] for it in read["messages"]] == ["Hello.", "And?", "Again."]
        assert read["hasOlder"]
        assert read["runningTurnId"] is None
        older = {"conversationId": first["conversationId"], "beforeSeq": read["messages"][0]["seq"]}
        assert len((await call(client, "read_conversation", **older))["messages"]) == 1
        found = await search(client, "morning")
        assert found[0]["conversationId"] == first["conversationId"]


@EACH_ERA
async def test_resources(talk: Talk, model: ScriptedModel, era: str):
    agent_id = await new_agent(talk)
    model.script([Say("Hello.")])
    async with connected(talk.url, signed_in("alice"), era) as client:
        sent = await call(client, "send_message", content="Hi", agentId=agent_id)
        assert sent["artifacts"] == []
        (listed,) = (await client.list_resources()).resources
        assert listed.uri == f"threadkeep://conversations/{sent['conversationId']}"
        (content,) = (await client.read_resource(listed.uri)).contents
        assert isinstance(content, TextResourceContents)
        shown = json.loads(content.text)
        assert [it["content"] for it in shown["messages"]] == ["Hi", "Hello."]
        templates = (await client.list_resource_templates()).resource_templates
        assert [it.uri_template for it in templates] == [
            "threadkeep://conversations/{id}",
            "threadkeep://artifacts/{id}",
        ]
        for unknown in ("threadkeep://artifacts/none", "threadkeep://conversations/x", "file:///etc/passwd"):
            with pytest.raises(MCPError) as caught:
                await client.read_resource(unknown)
            assert caught.value.error.code == -32602
    async with connected(talk.url, signed_in("bob"), era) as stranger:
        assert (await stranger.list_resources()).resources == []
        with pytest.raises(MCPError, match="not found"):
            await stranger.read_resource(listed.uri)


def paint() -> EmbeddedResource:
    "Paints."
    blob = base64.b64encode(b"\x89PNG").decode()
    return EmbeddedResource(
        resource=BlobResourceContents(uri="file:///dot.png", mime_type="image/x-dot", blob=blob)
    )


def table() -> EmbeddedResource:
    "Writes a table."
    text = "a,b\n1,2\n"
    return EmbeddedResource(
        resource=TextResourceContents(uri="file:///t.csv", mime_type="text/csv", text=text)
    )


@EACH_ERA
async def test_files_that_tools_made_are_resources(talk: Talk, model: ScriptedModel, era: str):
    with ToolServer(paint, table) as server:
        agent_id = await new_agent(talk, mcpServers={"desk": server.settings})
        model.script([UseTool("desk__paint", {}, "c1"), UseTool("desk__table", {}, "c2")], [Say("Done.")])
        async with connected(talk.url, signed_in("alice"), era) as client:
            sent = await call(client, "send_message", content="Do it", agentId=agent_id)
            read = [(await client.read_resource(uri)).contents[0] for uri in sorted(sent["artifacts"])]
            shown = await call(client, "read_conversation", conversationId=sent["conversationId"])
            assert shown["messages"][-1]["artifacts"] == sent["artifacts"]
    contents = {(it.mime_type, it.text if isinstance(it, TextResourceContents) else it.blob) for it in read}
    assert contents == {
        ("image/x-dot", base64.b64encode(b"\x89PNG").decode()),
        ("text/csv", "a,b\n1,2\n"),
    }
    async with connected(talk.url, signed_in("bob"), era) as stranger:
        with pytest.raises(MCPError, match="not found"):
            await stranger.read_resource(sent["artifacts"][0])


@EACH_ERA
async def test_progress_while_it_streams(talk: Talk, model: ScriptedModel, era: str):
    agent_id, gate = await new_agent(talk), Gate()
    heard: list[tuple[float, str]] = []
    first = asyncio.Event()

    async def report(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, message or ""))
        first.set()

    model.script([Say("One "), Wait(gate), Say("two.")])
    async with connected(talk.url, signed_in("alice"), era) as client:
        arguments = {"content": "Count", "agentId": agent_id}
        calling = asyncio.create_task(client.call_tool("send_message", arguments, progress_callback=report))
        await first.wait()
        assert not calling.done()
        gate.open()
        result = await calling
    assert result.structured_content["content"] == "One two."
    assert "".join(message for _, message in heard) == "One two."
    assert [progress for progress, _ in heard] == sorted({progress for progress, _ in heard})


@EACH_ERA
async def test_error_of_the_model(talk: Talk, model: ScriptedModel, era: str):
    agent_id = await new_agent(talk)
    model.script([Say("One "), Fail("Overloaded.", "invalid_request_error")])
    async with connected(talk.url, signed_in("alice"), era) as client:
        result = await client.call_tool("send_message", {"content": "Hi", "agentId": agent_id})
        assert result.is_error
        assert result.structured_content["status"] == "FAILED"
        assert result.structured_content["content"] == "One "
        assert "Overloaded" in result.structured_content["error"]
        assert "MESSAGE_CONTENT_REQUIRED" in await refused(client, "send_message", content=" ")
        assert "INVALID_REQUEST" in await refused(client, "send_message", content=3)
        assert "INVALID_REQUEST" in await refused(client, "send_message", content="Hi", colour="blue")
        with pytest.raises(MCPError, match="no tool"):
            await client.call_tool("make_coffee", {})
    assert len((await talk.client.get("/api/conversations")).json()["items"]) == 1


@pytest.mark.parametrize(
    ("decision", "outcome"), [("Allow once", "ok"), ("Deny", "denied"), (None, "denied")]
)
async def test_approval_by_input_request(
    talk: Talk, model: ScriptedModel, decision: str | None, outcome: str
):
    questions: list[str] = []

    async def ask(context: object, params: ElicitRequestFormParams) -> ElicitResult:
        questions.append(params.message)
        if decision is None:
            return ElicitResult(action="decline")
        return ElicitResult(action="accept", content={"decision": decision})

    with ToolServer(note) as server:
        settings = {"mcpServers": {"desk": server.settings}, "tools": {"desk.note": {"access": "ask"}}}
        agent_id = await new_agent(talk, **settings)
        model.script([Say("Let me."), UseTool("desk__note", {"text": "tea"}, "c1")], [Say("Well.")])
        async with connected(talk.url, signed_in("alice"), elicitation_callback=ask) as client:
            done = await call(client, "send_message", content="Note tea", agentId=agent_id)
        assert done["status"] == "COMPLETED"
        assert done["content"].endswith("Well.")
        assert len(questions) == 1
        assert '"text": "tea"' in questions[0]
        (_, reply) = await talk.messages(done["conversationId"])
        assert [it["status"] for it in reply["toolCalls"]] == [outcome]


class Size(BaseModel):
    """What a tool's server wants to know."""

    size: int


async def order(context: Context) -> str:
    """Orders a shirt."""
    answered = await context.elicit("Which size?", Size)
    return f"ordered {answered.data.size}" if answered.action == "accept" else answered.action


async def test_questions_of_the_model_and_forms_of_its_tools(talk: Talk, model: ScriptedModel):
    asked: list[tuple[str, list[str]]] = []

    async def answer(context: object, params: ElicitRequestFormParams) -> ElicitResult:
        asked.append((params.message, list(params.requested_schema["properties"])))
        return ElicitResult(
            action="accept", content={"size": 7} if "size" in asked[-1][1] else {"answer": "Blue"}
        )

    with ToolServer(order) as server:
        agent_id = await new_agent(talk, askUser=True, mcpServers={"shop": server.settings})
        model.script(
            [UseTool("ask_user", {"question": "Which colour?"}, "c1")],
            [UseTool("shop__order", {}, "c2")],
            [Say("Ordered.")],
        )
        async with connected(talk.url, signed_in("alice"), elicitation_callback=answer) as client:
            done = await call(client, "send_message", content="A shirt", agentId=agent_id)
    assert (done["status"], done["content"]) == ("COMPLETED", "Ordered.")
    assert asked == [("Which colour?", ["answer"]), ("Which size?", ["size"])]
    sent = str(model.requests[-1].body["messages"])
    assert "Blue" in sent
    assert "ordered 7" in sent


async def test_dismissed_question_leaves_the_request_open(talk: Talk, model: ScriptedModel):
    async def dismiss(context: object, params: ElicitRequestFormParams) -> ElicitResult:
        return ElicitResult(action="cancel")

    with ToolServer(note) as server:
        settings = {"mcpServers": {"desk": server.settings}, "tools": {"desk.note": {"access": "ask"}}}
        agent_id = await new_agent(talk, **settings)
        model.script([UseTool("desk__note", {"text": "tea"}, "c1")], [Say("Well.")])
        async with connected(talk.url, signed_in("alice"), elicitation_callback=dismiss) as client:
            asked = await call(client, "send_message", content="Note tea", agentId=agent_id)
            assert asked["status"] == "WAITING"
            (request,) = asked["approvals"]
            answer = {"turnId": asked["turnId"], "requestId": request["requestId"], "action": "allow"}
            assert (await call(client, "answer_approval", **answer))["content"] == "Well."


@EACH_ERA
async def test_approval_by_tool_for_clients_that_cannot_ask(talk: Talk, model: ScriptedModel, era: str):
    with ToolServer(note) as server:
        settings = {"mcpServers": {"desk": server.settings}, "tools": {"desk.note": {"access": "ask"}}}
        agent_id = await new_agent(talk, **settings)
        model.script(
            [Say("Let me."), UseTool("desk__note", {"text": "tea"}, "c1")],
            [UseTool("desk__note", {"text": "milk"}, "c2")],
            [Say("Well.")],
        )
        async with connected(talk.url, signed_in("alice"), era) as client:
            asked = await call(client, "send_message", content="Note tea", agentId=agent_id)
            assert (asked["status"], asked["content"]) == ("WAITING", "Let me.")
            (request,) = asked["approvals"]
            assert request["arguments"] == {"text": "tea"}
            read = await call(client, "read_conversation", conversationId=asked["conversationId"])
            assert read["approvals"] == [request]
            assert read["runningTurnId"] == asked["turnId"]
            answer = {"turnId": asked["turnId"], "requestId": request["requestId"], "action": "allow"}
            again = await call(client, "answer_approval", **answer)
            assert again["status"] == "WAITING"
            (request,) = again["approvals"]
            assert request["arguments"] == {"text": "milk"}
            answer |= {"requestId": request["requestId"], "action": "deny"}
            heard: list[str] = []

            async def report(progress: float, total: float | None, message: str | None) -> None:
                heard.append(message or "")

            done = await client.call_tool("answer_approval", answer, progress_callback=report)
            assert done.structured_content["status"] == "COMPLETED"
            assert "".join(heard) == "Well."  # without what came before the answer
            changed = await refused(client, "answer_approval", **{**answer, "action": "allow"})
            assert "APPROVAL_ANSWERED" in changed
            wrong = {**answer, "requestId": asked["turnId"]}
            assert "APPROVAL_NOT_FOUND" in await refused(client, "answer_approval", **wrong)
        assert [it.arguments for it in server.uses] == [{"text": "tea"}]


async def test_client_that_never_answers_holds_nothing(talk: Talk, model: ScriptedModel):
    with ToolServer(note) as server:
        settings = {"mcpServers": {"desk": server.settings}, "tools": {"desk.note": {"access": "ask"}}}
        agent_id = await new_agent(talk, **settings)
        model.script([UseTool("desk__note", {"text": "tea"}, "c1")], [Say("Hello.")])

        async def never(context: object, params: ElicitRequestFormParams) -> ElicitResult:
            raise AssertionError("nobody asks")

        async with connected(talk.url, signed_in("alice"), elicitation_callback=never) as client:
            arguments = {"content": "Note tea", "agentId": agent_id}
            asked = await client.session.call_tool("send_message", arguments, allow_input_required=True)
            assert isinstance(asked, InputRequiredResult)
            turn_id = asked.request_state
            assert (await talk.client.get(f"/api/turns/{turn_id}")).json()["status"] == "WAITING"
            # The state alone asks again; another user's client can't use it.
            again = await client.session.call_tool(
                "send_message", arguments, request_state=turn_id, allow_input_required=True
            )
            assert isinstance(again, InputRequiredResult)
            assert again.input_requests == asked.input_requests
        async with connected(talk.url, signed_in("bob"), elicitation_callback=never) as stranger:
            stolen = await stranger.session.call_tool("send_message", arguments, request_state=turn_id)
            assert "TURN_NOT_FOUND" in text_of(stolen)
        conversation_id = (await talk.client.get(f"/api/turns/{turn_id}")).json()["conversationId"]
        async with connected(talk.url, signed_in("alice")) as client:
            # Another message ends the turn that nobody decides.
            next_ = await call(client, "send_message", content="Hi", conversationId=conversation_id)
            assert next_["content"] == "Hello."


@EACH_ERA
async def test_client_that_leaves_does_not_stop_the_turn(talk: Talk, model: ScriptedModel, era: str):
    agent_id, gate = await new_agent(talk), Gate()
    started = asyncio.Event()

    async def report(progress: float, total: float | None, message: str | None) -> None:
        started.set()

    model.script([Say("One "), Wait(gate), Say("two.")])
    async with connected(talk.url, signed_in("alice"), era) as client:
        arguments = {"content": "Count", "agentId": agent_id}
        calling = asyncio.create_task(client.call_tool("send_message", arguments, progress_callback=report))
        await started.wait()
        calling.cancel()
        await asyncio.wait([calling])
    gate.open()
    async with connected(talk.url, signed_in("alice"), era) as client:
        (listed,) = (await client.list_resources()).resources
        conversation_id = listed.uri.rpartition("/")[2]
        read = await read_when_ended(client, conversation_id)
        assert read["messages"][-1]["content"] == "One two."


@EACH_ERA
async def test_repeated_message_follows_the_running_turn(talk: Talk, model: ScriptedModel, era: str):
    agent_id, gate = await new_agent(talk), Gate()
    model.script([Say("Hello.")], [Say("One "), Wait(gate), Say("two.")])
    async with connected(talk.url, signed_in("alice"), era) as client:
        conversation_id = (await call(client, "send_message", content="Hi", agentId=agent_id))[
            "conversationId"
        ]
        arguments = {"content": "Count", "conversationId": conversation_id}
        calls: list[asyncio.Task[CallToolResult]] = []
        for _ in range(2):
            following = asyncio.Event()

            async def report(progress: float, total: float | None, message: str | None) -> None:
                following.set()  # noqa: B023 - each waits for its own before the next begins

            sending = client.call_tool("send_message", arguments, progress_callback=report)
            calls.append(asyncio.create_task(sending))
            await following.wait()
        gate.open()
        results = [(await it).structured_content for it in calls]
        assert results[0] == results[1]
    assert len(await talk.messages(conversation_id)) == 4


@EACH_ERA
async def test_another_users_ids(talk: Talk, model: ScriptedModel, era: str):
    private = (await talk.client.post("/api/agents", json={"name": "Mine"})).json()["id"]
    model.script([Say("Hello.")])
    async with connected(talk.url, signed_in("alice"), era) as client:
        sent = await call(client, "send_message", content="My secret", agentId=private)
    async with connected(talk.url, signed_in("bob"), era) as stranger:
        ours = {"conversationId": sent["conversationId"]}
        assert "CONVERSATION_NOT_FOUND" in await refused(stranger, "read_conversation", **ours)
        assert "CONVERSATION_NOT_FOUND" in await refused(stranger, "send_message", content="Hi", **ours)
        assert "AGENT_NOT_FOUND" in await refused(stranger, "send_message", content="Hi", agentId=private)
        answer = {"turnId": sent["turnId"], "requestId": sent["turnId"], "action": "allow"}
        assert "TURN_NOT_FOUND" in await refused(stranger, "answer_approval", **answer)
        assert (await call(stranger, "search_conversations", query="secret"))["items"] == []


@EACH_ERA
@ONLY_SQLITE
async def test_key_with_too_little_scope(talk: Talk, model: ScriptedModel, era: str):
    agent_id, other_id = await new_agent(talk), await new_agent(talk)
    reading = {"x-api-key": (await new_key(talk, "read"))["key"]}
    async with connected(talk.url, reading, era) as client:
        names = [it.name for it in (await client.list_tools()).tools]
        assert names == ["list_agents", "read_conversation", "search_conversations"]
        assert "scope `chat`" in await refused(client, "send_message", content="Hi", agentId=agent_id)
    limited = {"authorization": f"Bearer {(await new_key(talk, 'chat', agents=[agent_id]))['key']}"}
    model.script([Say("Hello.")], [Say("Hello.")])
    async with connected(talk.url, signed_in("alice"), era) as client:
        elsewhere = await call(client, "send_message", content="Hi", agentId=other_id)
    async with connected(talk.url, limited, era) as client:
        assert [it["id"] for it in (await call(client, "list_agents"))["agents"]] == [agent_id]
        assert "AGENT_NOT_FOUND" in await refused(client, "send_message", content="Hi", agentId=other_id)
        there = {"conversationId": elsewhere["conversationId"]}
        assert "CONVERSATION_NOT_FOUND" in await refused(client, "read_conversation", **there)
        assert "CONVERSATION_NOT_FOUND" in await refused(client, "send_message", content="Hi", **there)
        sent = await call(client, "send_message", content="Hi", agentId=agent_id)
        (listed,) = (await client.list_resources()).resources
        assert listed.uri.endswith(sent["conversationId"])
        with pytest.raises(MCPError):
            await client.read_resource(f"threadkeep://conversations/{elsewhere['conversationId']}")


@EACH_ERA
@ONLY_SQLITE
async def test_revoked_key_ends_what_it_has_open(talk: Talk, model: ScriptedModel, era: str):
    agent_id, gate = await new_agent(talk), Gate()
    key = await new_key(talk, "chat")
    started = asyncio.Event()

    async def report(progress: float, total: float | None, message: str | None) -> None:
        started.set()

    model.script([Say("One "), Wait(gate), Say("two.")])
    async with connected(talk.url, {"x-api-key": key["key"]}, era) as client:
        arguments = {"content": "Count", "agentId": agent_id}
        calling = asyncio.create_task(client.call_tool("send_message", arguments, progress_callback=report))
        await started.wait()
        await talk.client.delete(f"/api/keys/{key['id']}")
        with pytest.raises(MCPError):
            await calling
        with pytest.raises(MCPError):
            await client.list_tools(cache_mode="bypass")
    gate.open()


async def test_killed_server(model: ScriptedModel, database_url: str, tmp_path: Path):
    settings = {
        "gateway": "openai",
        "gateway_url": model.url,
        "model": "scripted",
        "database_url": database_url,
    }
    if key := secret_key_for(database_url):
        settings["secret_key"] = key
    gate, started = Gate(), asyncio.Event()

    async def report(progress: float, total: float | None, message: str | None) -> None:
        started.set()

    model.script([Say("One "), Wait(gate), Say("lost")], [Say("One two three.")])
    with Server(tmp_path, **settings) as server:
        headers = {"authorization": server.headers["Authorization"]}
        async with connected(server.url, headers) as client:
            calling = asyncio.create_task(
                client.call_tool("send_message", {"content": "Count"}, progress_callback=report)
            )
            await started.wait()
            await asyncio.to_thread(server.kill)
            with pytest.raises(MCPError):
                await calling
    with Server(tmp_path, **settings) as server:
        async with connected(server.url, headers) as client:
            (listed,) = (await client.list_resources()).resources
            read = await read_when_ended(client, listed.uri.rpartition("/")[2])
            assert [it["content"] for it in read["messages"]] == ["Count", "One two three."]
    gate.open()
