"""The server of tools that hosts use in their tests."""

import httpx
import pytest

from threadkeep.testing import Say, ScriptedModel, ToolServer, ToolUse, UseTool, running_app


def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


async def refuse() -> str:
    """Never helps."""
    raise ValueError("not today")


async def test_model_uses_the_functions_of_the_test():
    asked = [UseTool("sums__add", {"a": 1, "b": 2}), UseTool("sums__refuse")]
    with ScriptedModel(asked, [Say("3")]) as model, ToolServer(add, refuse) as server:
        async with running_app(model) as app:
            conversation = await app.conversation(settings={"mcpServers": {"sums": server.settings}})
            reply = await app.client.ask(conversation.id, "1 + 2?")
    added, refused = reply.tool_calls
    assert (added.status, added.result) == ("ok", {"result": 3})
    assert refused.status == "error" and "not today" in str(refused.error)
    assert server.uses == [ToolUse("add", {"a": 1, "b": 2}), ToolUse("refuse", {})]
    (described,) = [it for it in model.requests[0].body["tools"] if it["function"]["name"] == "sums__add"]
    assert described["function"]["description"] == "Adds two numbers."
    assert set(described["function"]["parameters"]["properties"]) == {"a", "b"}


async def test_server_that_goes_first_leaves_the_app_running(caplog: pytest.LogCaptureFixture):
    with ScriptedModel([UseTool("sums__add", {"a": 1, "b": 2})]) as model:
        async with running_app(model) as app:
            with ToolServer(add) as server:
                conversation = await app.conversation(settings={"mcpServers": {"sums": server.settings}})
                await app.client.ask(conversation.id, "1 + 2?")
            assert (await app.client.ask(conversation.id, "And now?")).content == "OK."
    assert not [record for record in caplog.records if record.exc_info]


def test_server_is_there_only_while_the_block_runs():
    with ToolServer(add) as server:
        assert httpx.get(server.url, trust_env=False).is_client_error  # it speaks MCP and nothing else
    with pytest.raises(httpx.ConnectError):
        httpx.get(server.url, trust_env=False)
