"""PromptX in this process: the three tools, for the agent and the user of a turn."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ONLY_SQLITE
from tests.making import ALICE, BOB, NOW, keep_agent
from tests.mcp.roles import DOMAIN, LAWYER, ROLE, write
from threadkeep.domain.agent import Agent
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.ids import UserId
from threadkeep.domain.retrieval import RetrievalHit
from threadkeep.domain.user import User
from threadkeep.domain.workspace import Workspaces
from threadkeep.ports.tools import Caller, Returned
from threadkeep.search import terms as tokens
from threadkeep.storage.store import Store
from threadkeep.tools.promptx import MOST_RECALLED, TOOLS, PromptXServer
from threadkeep.tools.roles import WorkspaceRoles, read_role


class Calling:
    """Calls the tools as a turn does."""

    def __init__(self, store: Store, folder: Path, agent: Agent) -> None:
        self.workspaces = Workspaces(folder)
        self.agent = agent
        self.server = PromptXServer(WorkspaceRoles(self.workspaces), store.memories, tokens, lambda: NOW)

    def caller(self, user: UserId = ALICE, agent: Agent | None = None) -> Caller:
        agent = agent or self.agent
        return Caller(agent, User(user), Conversation.start(user, agent.id, NOW))

    async def __call__(
        self, name: str, arguments: Mapping[str, Any], user: UserId = ALICE, agent: Agent | None = None
    ) -> Returned:
        (returned,) = [step async for step in self.server.call(self.caller(user, agent), name, arguments)]
        assert isinstance(returned, Returned)
        return returned

    async def recalled(self, query: str, user: UserId = ALICE, agent: Agent | None = None) -> list[str]:
        returned = await self("promptx_recall", {"query": query}, user, agent)
        return [memory["content"] for memory in returned.result["memories"]]


@pytest.fixture
async def call(store: Store, tmp_path: Path) -> Calling:
    return Calling(store, tmp_path, await keep_agent(store))


@ONLY_SQLITE
async def test_everyone_has_the_three_tools_by_their_bare_names(call: Calling):
    offered = await call.server.tools(call.caller())
    assert [tool.name for tool in offered] == ["promptx_action", "promptx_recall", "promptx_remember"]
    assert all(tool.server == call.server.name == "promptx" and tool.is_own for tool in offered)
    assert offered is TOOLS


@ONLY_SQLITE
async def test_action_gives_the_role_of_the_agents_workspace(call: Calling):
    write(call.workspaces.of(call.agent.id), LAWYER, f"{DOMAIN}/lawyer")
    returned = await call("promptx_action", {"role": "lawyer"})
    assert returned.status == "ok"
    assert returned.result.startswith(
        "You are now in the role lawyer (律师).\n\n<role><personality><thought>Doubt"
    )


@ONLY_SQLITE
async def test_own_role_comes_before_the_shared_and_the_shipped_one(call: Calling):
    files = {"assistant.role.md": "<role>@!thought://recall @!thought://who</role>"}
    own, shared = call.workspaces.of(call.agent.id), call.workspaces.shared
    assert "even-tempered" in (await call("promptx_action", {"role": "assistant"})).result
    write(shared, {**files, "thought/who.thought.md": "SHARED"}, f"{ROLE}/assistant")
    assert "SHARED" in (await call("promptx_action", {"role": "assistant"})).result
    write(own, {**files, "thought/who.thought.md": "OWN"}, f"{ROLE}/assistant")
    mine = (await call("promptx_action", {"role": "assistant"})).result
    assert "OWN" in mine
    assert "SHARED" not in mine
    assert "promptx_recall" in mine  # @!thought://recall is one of ours


@ONLY_SQLITE
async def test_action_of_an_unknown_role_is_an_error_with_the_known_ones(call: Calling):
    returned = await call("promptx_action", {"role": "jester"})
    assert (returned.status, returned.result) == ("error", None)
    assert returned.error == (
        "Role 'jester' not found. Available roles: assistant (Assistant), legal-adviser (法律顾问), "
        "researcher (Researcher)."
    )


@ONLY_SQLITE
async def test_action_names_what_a_role_is_missing(call: Calling):
    write(call.workspaces.of(call.agent.id), {"r.role.md": "<role>@!thought://gone</role>"}, f"{ROLE}/r")
    returned = await call("promptx_action", {"role": "r"})
    assert returned.result.endswith("Missing in this role: thought://gone.")


async def test_what_is_remembered_is_recalled_in_english_and_chinese(call: Calling):
    for content in ("Prefers answers in bullet points", "在杭州开茶叶店"):
        assert (
            await call("promptx_remember", {"content": f" {content} ", "tags": "style a a"})
        ).status == "ok"
    assert await call.recalled("bullet point") == ["Prefers answers in bullet points"]
    returned = await call("promptx_recall", {"query": "茶叶"})
    assert returned.result == {
        "memories": [{"content": "在杭州开茶叶店", "tags": ["style", "a"], "at": "2027-01-15"}]
    }
    # And it becomes a `retrieval` event
    assert returned.query == "茶叶"
    (hit,) = returned.hits
    assert hit == RetrievalHit("memory", "在杭州开茶叶店", 1.0, hit.chunk_id)


async def test_recall_without_a_query_gives_the_newest(call: Calling):
    for number in range(MOST_RECALLED + 2):
        await call("promptx_remember", {"content": f"fact {number}"})
    returned = await call("promptx_recall", {})
    expected = [f"fact {number}" for number in reversed(range(2, MOST_RECALLED + 2))]
    assert [memory["content"] for memory in returned.result["memories"]] == expected


async def test_recall_of_nothing_has_no_hits(call: Calling):
    returned = await call("promptx_recall", {"query": "tea"})
    assert (returned.status, returned.result, returned.hits) == ("ok", {"memories": []}, ())


async def test_nobody_recalls_what_is_another_users_or_agents(call: Calling, store: Store):
    other = await keep_agent(store)
    await call("promptx_remember", {"content": "Alice likes tea"})
    assert await call.recalled("tea", BOB) == []
    assert await call.recalled("tea", ALICE, other) == []
    assert await call.recalled("tea", ALICE) == ["Alice likes tea"]


@ONLY_SQLITE
@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("promptx_action", {}, "`role` must be a string."),
        ("promptx_action", {"role": 7}, "`role` must be a string."),
        ("promptx_recall", {"query": ["tea"]}, "`query` must be a string."),
        ("promptx_remember", {"content": None}, "`content` must be a string."),
        ("promptx_remember", {"content": " \n"}, "`content` can't be blank."),
        ("promptx_remember", {"content": "x" * 4001}, "`content` can have at most 4000 characters."),
        ("promptx_remember", {"content": "x", "tags": " ".join(map(str, range(21)))}, "at most 20 `tags`"),
        ("promptx_dance", {}, "Tool 'promptx_dance' not found."),
    ],
)
async def test_bad_call_is_a_result_that_says_what_is_wrong(
    call: Calling, name: str, arguments: dict[str, Any], said: str
):
    returned = await call(name, arguments)
    assert returned.status == "error"
    assert returned.error and said in returned.error


async def test_what_no_database_keeps_is_replaced(call: Calling):
    await call("promptx_remember", {"content": "tea\x00 \ud800!"})
    assert await call.recalled("tea") == ["tea\ufffd ?!"]


@pytest.mark.parametrize("role_id", ["assistant", "legal-adviser", "法律顾问", "researcher"])
async def test_shipped_role_is_whole(role_id: str):
    role = await read_role(role_id)
    assert role.missing == ()
    assert role.text.startswith("<role>")
    assert role.text.endswith("</role>")


async def test_shipped_default_role_is_short():
    assert (
        len((await read_role("assistant")).text) < 1000
    )  # small models without tools read it with every turn
