"""Agents of pydantic-ai, LangGraph, Agno and another Threadkeep, each behind its own AG-UI server."""

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.clients.python import install
from threadkeep.client import TurnWaiting
from threadkeep.testing import RunningApp, Say, ScriptedModel, UseTool, running_app
from threadkeep.wire.messages import MessageView

HERE = Path(__file__).parent


@asynccontextmanager
async def servers(model: ScriptedModel) -> AsyncGenerator[str]:
    """The address of all of them, with a scripted model that speaks OpenAI's protocol."""
    python = await asyncio.to_thread(install, HERE / "packages.lock")
    process = await asyncio.create_subprocess_exec(
        str(python),
        "-I",
        str(HERE / "servers.py"),
        f"{model.url}/v1",
        stdout=asyncio.subprocess.PIPE,
        env={"PATH": os.environ["PATH"], "NO_PROXY": "127.0.0.1,localhost"},
    )
    assert process.stdout
    try:
        port = (await process.stdout.readline()).decode().strip()
        yield f"http://127.0.0.1:{port}"
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def conversation_with(app: RunningApp, url: str, **engine: Any) -> str:
    """A conversation with an agent that a server runs."""
    return (await app.conversation("Remote", engine={"kind": "ag-ui", "url": url, **engine})).id


async def answered(app: RunningApp, conversation_id: str, text: str, content: Any) -> MessageView:
    """The reply to a message after which the agent asks one thing."""
    with pytest.raises(TurnWaiting) as waiting:
        await app.client.ask(conversation_id, text)
    (asked,) = waiting.value.approvals
    await app.client.answer(asked.turn_id, asked.request_id, "answer", content=content)
    return await app.client.reply(asked.turn_id)


async def test_pydantic_ai_agent_calls_tools_asks_and_knows_the_thread():
    script = [
        [UseTool("price", {"order_id": 7})],
        [Say("It costs 21 EUR.")],
        [UseTool("refund", {"order_id": 7})],
        [Say("It is refunded.")],
    ]
    with ScriptedModel(*script) as remote:
        async with servers(remote) as url, running_app() as app:
            id_ = await conversation_with(app, f"{url}/pydantic-ai")
            first = await app.client.ask(id_, "What does order 7 cost?")
            assert first.content == "It costs 21 EUR."
            assert [(it.tool_name, it.result) for it in first.tool_calls] == [("price", "21 EUR")]
            second = await answered(app, id_, "Refund it", {"approved": True})
            assert second.content == "It is refunded."
            assert [(it.tool_name, it.status, it.result) for it in second.tool_calls] == [
                ("refund", "ok", "refunded 7")
            ]
            roles = [it["role"] for it in remote.requests[-1].body["messages"]]
            assert roles == ["user", "assistant", "tool", "assistant", "user", "assistant", "tool"]


@pytest.mark.parametrize("path", ["langgraph", "langgraph-1.0"])
async def test_langgraph_asks_by_its_old_and_its_new_way(path: str):
    with ScriptedModel() as remote:
        async with servers(remote) as url, running_app() as app:
            id_ = await conversation_with(app, f"{url}/{path}")
            for word in ("yes", "no"):
                reply = await answered(app, id_, "Refund it", word)
                assert reply.content == f"You said {word}."


async def test_agno_agent_calls_its_tool():
    with ScriptedModel(
        [Say("I look. "), UseTool("price", {"order_id": 7})], [Say("It costs 21 EUR.")]
    ) as remote:
        async with servers(remote) as url, running_app() as app:
            id_ = await conversation_with(app, f"{url}/agno/agui")
            reply = await app.client.ask(id_, "What does order 7 cost?")
            assert str(reply.content).endswith("It costs 21 EUR.")
            assert [(it.tool_name, it.result) for it in reply.tool_calls] == [("price", "21 EUR")]


async def test_another_threadkeep_is_an_agent_of_this_one():
    with ScriptedModel([Say("Hello from the other one.")], [Say("A title")], [Say("Again.")]) as model:
        async with running_app(model, listens=True) as other, running_app() as app:
            made = await other.client.create_agent("Other")
            key = await other.client.create_key("remote", ["chat"])
            url = f"{other.url}/api/ag-ui/{made.id}"
            headers = {"Authorization": f"Bearer {key.key}"}
            id_ = await conversation_with(app, url, headers=headers)
            assert (await app.client.ask(id_, "Hi")).content == "Hello from the other one."
            assert (await app.client.ask(id_, "And?")).content == "Again."
            roles = [it["role"] for it in model.requests[-1].body["messages"]]
            assert roles[-3:] == ["user", "assistant", "user"]
