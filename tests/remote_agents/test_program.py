"""Turns of agents that another server runs: what is shown, kept and sent next time."""

import asyncio

import pytest

from tests.remote_agents.ag_ui_server import AgUiServer, Json, Request, ag_ui_server
from threadkeep.wire.views import ConversationView
from threadkeep.testing import RunningApp, running_app

SECRET_HEADER = "Bearer value-of-a-header-4711"


async def talk_to(app: RunningApp, server: AgUiServer, **engine: object) -> ConversationView:
    """A conversation with an agent that the server runs."""
    given = {"kind": "ag-ui", "url": server.url, "headers": {"Authorization": SECRET_HEADER}, **engine}
    return await app.conversation("Remote", engine=given)


async def hello(request: Request) -> None:
    await request.begin()
    await request.say("Hello from afar.")
    await request.finish()


async def test_reply_is_shown_and_the_thread_is_sent_with_its_ids():
    async with ag_ui_server(hello) as server, running_app() as app:
        conversation = await talk_to(app, server)
        assert (await app.client.ask(conversation.id, "Hi")).content == "Hello from afar."
        await app.client.ask(conversation.id, "Again")
        first, second = server.bodies
        assert first["threadId"] == second["threadId"] == conversation.id
        assert first["runId"] != second["runId"]
        messages = [(it["role"], it["content"]) for it in second["messages"]]
        assert messages == [("user", "Hi"), ("assistant", "Hello from afar."), ("user", "Again")]
        assert second["messages"][1]["id"] == "m1"
        ids = [it.id async for it in app.client.messages(conversation.id)]
        assert first["messages"][0]["id"] in ids
        assert server.requests[0].headers["authorization"] == SECRET_HEADER.lower()
