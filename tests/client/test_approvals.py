"""The Python client and turns that wait for their user, or whose server restarts."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.serving import Server
from threadkeep.client import BlockingClient, Client, ClientError, NotReached, TurnWaiting
from threadkeep.domain.approval import ApprovalKind, ApprovalScope
from threadkeep.domain.events import ApprovalRequest, ApprovalResponse, Done, Text, TurnEvent, TurnResumed
from threadkeep.testing import Gate, RunningApp, Say, ScriptedModel, ToolServer, UseTool, Wait, running_app


def note(text: str) -> str:
    """Writes a text down."""
    return f"noted: {text}"


ASK = {"tools": {"tools.note": {"access": "ask"}}}
NOTE = UseTool("tools__note", {"text": "tea"})


@pytest.fixture
async def app(model: ScriptedModel) -> AsyncGenerator[RunningApp]:
    async with running_app(model) as app:
        yield app


async def careful(app: RunningApp, server: ToolServer) -> str:
    """A conversation with an agent that asks before it writes something down."""
    settings = {"mcpServers": {"tools": server.settings}, "askUser": True, **ASK}
    return (await app.conversation("Clerk", settings=settings)).id


def said(events: list[TurnEvent]) -> str:
    return "".join(event.body.text for event in events if isinstance(event.body, Text))


async def test_waiting_turn_is_an_exception_with_what_it_asks(app: RunningApp, model: ScriptedModel):
    client = app.client
    with ToolServer(note) as server:
        conversation = await careful(app, server)
        model.script([NOTE], [UseTool("ask_user", {"question": "Which?"})], [Say("Done.")])
        with pytest.raises(TurnWaiting) as waiting:
            await client.ask(conversation, "Note it")
        (asked,) = waiting.value.approvals
        assert (asked.kind, asked.server, asked.tool_name) == (ApprovalKind.TOOL, "tools", "note")
        assert asked.arguments == {"text": "tea"}
        assert asked.turn_id == waiting.value.turn_id
        assert list(await client.approvals()) == [asked]
        assert asked.message in waiting.value.message
        with pytest.raises(TurnWaiting):
            await client.reply(asked.turn_id)
        edited = {"text": "coffee"}
        await client.answer(asked.turn_id, asked.request_id, "edit", arguments=edited)
        with pytest.raises(TurnWaiting) as again:
            await client.reply(asked.turn_id)
        (question,) = again.value.approvals
        assert (question.kind, question.message) == (ApprovalKind.QUESTION, "Which?")
        await client.answer(question.turn_id, question.request_id, "answer", content="The blue one.")
        reply = await client.reply(asked.turn_id)
        assert (reply.content, reply.status) == ("Done.", "COMPLETED")
        assert [use.arguments for use in server.uses] == [edited]
    assert "The blue one." in str(model.requests[-1].body["messages"][-1])
    assert list(await client.approvals()) == []


async def test_program_runs_the_tools_that_it_brings(app: RunningApp, model: ScriptedModel):
    client, tool = app.client, {"name": "paint", "description": "Paints.", "parameters": {"type": "object"}}
    calls = [UseTool("paint", {"color": "red"})]
    model.script(calls, [Say("Red.")], calls, [Say("Not red.")])
    conversation = (await app.conversation("Painter")).id
    with pytest.raises(TurnWaiting) as waiting:
        await client.ask(conversation, "Paint it.", tools=[tool])
    (asked,) = waiting.value.approvals
    assert (asked.kind, asked.arguments) == (ApprovalKind.CLIENT_TOOL, {"color": "red"})
    await client.answer(asked.turn_id, asked.request_id, "result", content={"was": None})
    assert (await client.reply(asked.turn_id)).content == "Red."
    events = list[TurnEvent]()
    async for event in client.regenerate(conversation, tools=[tool]):
        events.append(event)
        if event.body.type == "approval_request":
            (again,) = await client.approvals()
            await client.answer(again.turn_id, again.request_id, "result", error="No paint left.")
    assert said(events) == "Not red."
    assert "No paint left." in str(model.requests[-1].body["messages"][-1])


async def test_stream_stays_open_while_its_turn_waits(app: RunningApp, model: ScriptedModel):
    client = app.client
    with ToolServer(note) as server:
        conversation = await careful(app, server)
        model.script([NOTE], [NOTE], [Say("Done.")])
        seen: list[TurnEvent] = []
        async for event in client.send(conversation, "Note it"):
            seen.append(event)
            if isinstance(event.body, ApprovalRequest):
                await client.answer(event.turn_id, event.body.request_id, "allow", scope="conversation")
        assert [type(it.body) for it in seen].count(ApprovalRequest) == 1  # the second call is allowed
        assert len(server.uses) == 2
    assert said(seen) == "Done."
    assert [event.seq for event in seen] == list(range(1, len(seen) + 1))


async def test_leave_for_the_conversation_is_in_the_log_too(app: RunningApp, model: ScriptedModel):
    client = app.client
    with ToolServer(note) as server:
        conversation = await careful(app, server)
        model.script([NOTE], [Say("Done.")])
        with pytest.raises(TurnWaiting) as waiting:
            await client.ask(conversation, "Note it")
        (asked,) = waiting.value.approvals
        await client.answer(asked.turn_id, asked.request_id, "allow", scope="conversation")
        events = [event.body async for event in client.follow(asked.turn_id)]
    (response,) = [body for body in events if isinstance(body, ApprovalResponse)]
    assert (response.request_id, response.scope) == (asked.request_id, ApprovalScope.CONVERSATION)


async def test_second_decision_is_refused_unless_it_is_the_same(app: RunningApp, model: ScriptedModel):
    client = app.client
    with ToolServer(note) as server:
        conversation = await careful(app, server)
        model.script([NOTE], [Say("Not done.")])
        with pytest.raises(TurnWaiting) as waiting:
            await client.ask(conversation, "Note it")
        (asked,) = waiting.value.approvals
        for _ in range(2):
            await client.answer(asked.turn_id, asked.request_id, "deny")
        with pytest.raises(ClientError) as refused:
            await client.answer(asked.turn_id, asked.request_id, "allow")
        assert refused.value.code == "APPROVAL_ANSWERED"
        assert (await client.reply(asked.turn_id)).content == "Not done."
        assert server.uses == []


def free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return str(listener.getsockname()[1])


def start(folder: Path, model: ScriptedModel, port: str) -> Server:
    settings = {"gateway": "openai", "gateway_url": model.url, "model": "scripted"}
    return Server(folder, "--port", port, **settings)


def default_conversation(url: str) -> str:
    with BlockingClient(url) as client:
        agent = next(agent for agent in client.agents() if agent.is_default)
        return client.create_conversation(agent.id, title="Test").id


@pytest.mark.parametrize("ends", ["stop", "kill"])
async def test_stream_goes_on_when_the_server_restarts(tmp_path: Path, model: ScriptedModel, ends: str):
    gate, port = Gate(), free_port()
    model.script([Say("One, "), Wait(gate)], [Say("One, two.")])
    with start(tmp_path, model, port) as first:
        conversation = await asyncio.to_thread(default_conversation, first.url)
        async with Client(first.url) as client:
            seen: list[TurnEvent] = []
            starting: asyncio.Future[Server] | None = None
            async for event in client.send(conversation, "Count"):
                seen.append(event)
                if isinstance(event.body, Text) and starting is None:
                    await asyncio.to_thread(getattr(first, ends))
                    starting = asyncio.ensure_future(asyncio.to_thread(start, tmp_path, model, port))
            assert starting is not None
            with await starting:
                reply = await client.reply(seen[0].turn_id)
    assert [event.seq for event in seen] == list(range(1, len(seen) + 1))
    assert any(isinstance(event.body, TurnResumed) for event in seen)
    assert isinstance(seen[-1].body, Done)
    assert (reply.content, reply.status) == ("One, two.", "COMPLETED")


@pytest.mark.parametrize("ends", ["stop", "kill"])
async def test_reply_is_waited_for_while_the_server_restarts(tmp_path: Path, model: ScriptedModel, ends: str):
    gate, port = Gate(), free_port()
    model.script([Wait(gate)], [Say("One, two.")])
    with start(tmp_path, model, port) as first:
        conversation = await asyncio.to_thread(default_conversation, first.url)
        async with Client(first.url) as client:
            asking = asyncio.create_task(client.ask(conversation, "Count"))
            await gate.reached()
            await asyncio.to_thread(getattr(first, ends))
            with await asyncio.to_thread(start, tmp_path, model, port):
                reply = await asking
                messages = [it async for it in client.messages(conversation)]
    assert (reply.content, reply.status) == ("One, two.", "COMPLETED")
    assert len(messages) == 2


async def test_server_that_does_not_come_back_is_given_up(
    tmp_path: Path, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("threadkeep.client.connection.PATIENCE_S", 0.5)
    monkeypatch.setattr("threadkeep.client.connection.PAUSE_S", 0.1)
    model.script([Say("One, "), Wait(Gate())])
    with start(tmp_path, model, free_port()) as server:
        conversation = await asyncio.to_thread(default_conversation, server.url)
        async with Client(server.url) as client:
            with pytest.raises(NotReached, match="No response from Threadkeep"):
                async for event in client.send(conversation, "Count"):
                    if isinstance(event.body, Text):
                        await asyncio.to_thread(server.kill)


def test_program_without_asyncio_answers_too(tmp_path: Path, model: ScriptedModel):
    model.script([UseTool("ask_user", {"question": "Which?"})], [Say("Done.")])
    with start(tmp_path, model, free_port()) as server, BlockingClient(server.url) as client:
        agent = client.create_agent("Clerk", settings={"askUser": True})
        conversation = client.create_conversation(agent.id, title="Test")
        answered = False
        for event in client.send(conversation.id, "Choose"):
            match event.body:
                case ApprovalRequest(request_id=request_id):
                    client.answer(event.turn_id, request_id, "answer", content="This one.")
                case ApprovalResponse(content=content):
                    answered = content == "This one."
                case _:
                    pass
        assert answered
        assert client.approvals() == []
