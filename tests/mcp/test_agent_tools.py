"""The tools of a turn: what they do when they run, and what their servers learn of a call."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mcp.server.mcpserver import Context

from tests.making import ALICE, NOW, make_agent
from tests.mcp.running import LIMITS, Pooled, chaos, pooled
from threadkeep.domain.agent import Agent, AgentSettings
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.ids import AgentId, is_uuid
from threadkeep.domain.mcp import McpServer, RemoteServer, ServerScope
from threadkeep.domain.tool_rules import ToolEffect, ToolRule
from threadkeep.domain.user import User
from threadkeep.mcp.agent_tools import AgentTools, TurnToolSession
from threadkeep.mcp.catalog import Catalog
from threadkeep.ports.tools import Caller, Returned, Tool
from threadkeep.testing import ToolServer
from threadkeep.tools.charts import ChartServer
from threadkeep.tools.questions import QuestionServer

RULES = {
    "shop.*": ToolRule(effect=ToolEffect.IDEMPOTENT),
    "shop.look": ToolRule(effect=ToolEffect.WRITE),
    "charts.*": ToolRule(effect=ToolEffect.WRITE),
}


class NothingSeen:
    """Takes no note of tools."""

    async def record(self, agent_id: AgentId, server: str, fingerprint: str) -> None:
        """Nothing."""

    async def changed(self, agent_id: AgentId) -> frozenset[str]:
        """Nothing."""
        return frozenset()


def buy(what: str) -> str:
    """Buys something."""
    return f"bought {what}"


def look() -> str:
    """Looks around."""
    return "nice"


def put() -> str:
    """Puts something in its place."""
    return "there"


def where(context: Context) -> str:
    """Says where it is called."""
    headers = context.headers or {}
    return f"{headers.get('threadkeep-user-id')} {headers.get('threadkeep-conversation-id')}"


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Pooled]:
    """A pool that must leave nothing behind."""
    async with pooled(tmp_path, LIMITS, allow_private=True) as here:
        yield here


def shop() -> ToolServer:
    """A server with a tool of each kind."""
    return ToolServer(buy, name="shop", reading=[look], idempotent=[put])


def tools_of_turn(
    here: Pooled, server: McpServer, *, agent: Agent | None = None, used: Sequence[str] = (), **settings: Any
) -> TurnToolSession:
    """The tools of a turn, in a new conversation, of an agent with this one server, `shop`."""
    agent = agent or make_agent(settings=AgentSettings(mcp_servers={"shop": server}, **settings))
    catalog = Catalog(("python",), stdio_needs_admin=False, allow_private=True)
    tools = AgentTools((ChartServer(), QuestionServer()), catalog, here.pool, NothingSeen())
    return tools.session(Caller(agent, User(ALICE), Conversation.start(ALICE, agent.id, NOW)), used)


async def effects(session: TurnToolSession) -> dict[str, ToolEffect]:
    """The effects of a turn's tools, by their names."""
    tools, away = await session.list()
    assert not away
    return {tool.name: tool.effect for tool in tools}


async def call(session: TurnToolSession, name: str, key: str = "a-key", **arguments: Any) -> Returned:
    """How a call of a tool ends."""
    tool = named(name, (await session.list())[0])
    async with aclosing(session.call(tool, arguments, key=key)) as steps:
        *_, returned = [step async for step in steps]
    assert isinstance(returned, Returned)
    return returned


def named(name: str, tools: Sequence[Tool]) -> Tool:
    """The tool of a name."""
    return next(tool for tool in tools if tool.name == name)


async def test_annotations_count_only_where_the_owner_trusts_them(here: Pooled):
    with shop() as running:
        server = RemoteServer(running.url)
        found = await effects(tools_of_turn(here, server))
        assert {found[name] for name in ("buy", "look", "put")} == {ToolEffect.WRITE}
        assert found["make_chart"] is ToolEffect.READ
        assert "ask_user" not in found
        trusted = await effects(tools_of_turn(here, replace(server, trust_annotations=True), ask_user=True))
        assert trusted == {
            "make_chart": ToolEffect.READ,
            "ask_user": ToolEffect.READ,
            "buy": ToolEffect.WRITE,
            "look": ToolEffect.READ,
            "put": ToolEffect.IDEMPOTENT,
        }


async def test_rules_of_the_owner_count_more_than_annotations(here: Pooled):
    with shop() as running:
        server = RemoteServer(running.url, trust_annotations=True)
        assert await effects(tools_of_turn(here, server, tools=RULES)) == {
            "make_chart": ToolEffect.WRITE,
            "buy": ToolEffect.IDEMPOTENT,
            "look": ToolEffect.WRITE,
            "put": ToolEffect.IDEMPOTENT,
        }


async def test_server_is_told_the_key_by_which_it_recognises_a_call(here: Pooled):
    with shop() as running:
        session = tools_of_turn(here, RemoteServer(running.url))
        for key in ("one", "one", "two"):
            returned = await call(session, "buy", key, what="tea")
            assert returned.result == {"result": "bought tea"}
        assert [use.key for use in running.uses] == ["one", "one", "two"]


async def test_each_conversation_has_a_process_where_the_scope_says_so(here: Pooled):
    server = chaos(scope=ServerScope.CONVERSATION)
    agent = make_agent(settings=AgentSettings(mcp_servers={"shop": server}))
    sessions = [tools_of_turn(here, server, agent=agent) for _ in range(2)]
    environments = [json.loads((await call(session, "environment")).result) for session in sessions]
    assert {environment["THREADKEEP_USER_ID"] for environment in environments} == {ALICE}
    conversations = {environment["THREADKEEP_CONVERSATION_ID"] for environment in environments}
    assert len(conversations) == 2
    # The process of a conversation is that of its next call, too.
    assert (await call(sessions[0], "count")).result == "2"
    assert len(set(here.pids())) == 2


async def test_remote_server_is_told_in_which_conversation_it_is_called(here: Pooled):
    with ToolServer(where) as running:
        session = tools_of_turn(here, RemoteServer(running.url, scope=ServerScope.CONVERSATION))
        found = (await call(session, "where")).result["result"]
        assert found.startswith(f"{ALICE} ")
        assert is_uuid(found.removeprefix(f"{ALICE} "))
        shared = tools_of_turn(here, RemoteServer(running.url))
        assert (await call(shared, "where")).result == {"result": "None None"}


async def test_first_result_of_a_restarted_program_says_so(here: Pooled):
    session = tools_of_turn(here, chaos())
    assert not (await call(session, "count")).restarted
    assert (await call(session, "crash")).status == "error"
    again = await call(session, "count")
    assert (again.result, again.restarted) == ("1", True)
    assert not (await call(session, "count")).restarted


async def test_program_that_another_turn_used_before_was_not_restarted_for_this_one(here: Pooled):
    server = chaos()
    agent = make_agent(settings=AgentSettings(mcp_servers={"shop": server}))
    first, second = (tools_of_turn(here, server, agent=agent) for _ in range(2))
    await call(first, "crash")
    assert not (await call(second, "count")).restarted
    assert (await call(first, "count")).restarted


async def test_turn_that_was_taken_over_finds_its_programs_restarted(here: Pooled):
    session = tools_of_turn(here, chaos(), used=["shop", "other"])
    assert (await call(session, "count")).restarted
    assert not (await call(session, "count")).restarted


async def test_remote_server_is_not_restarted_with_us(here: Pooled):
    with shop() as running:
        session = tools_of_turn(here, RemoteServer(running.url), used=["shop"])
        assert not (await call(session, "look")).restarted
