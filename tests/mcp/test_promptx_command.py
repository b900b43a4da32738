"""Another PromptX in place of ours: the same three tools, done by a program, apart for each user."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.making import ALICE, BOB, NOW, make_agent
from tests.mcp import other_promptx
from tests.mcp.roles import DOMAIN, write
from tests.mcp.running import ENVIRONMENT
from threadkeep.domain.agent import Agent
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.ids import UserId
from threadkeep.domain.tool_rules import ToolEffect
from threadkeep.domain.user import User
from threadkeep.domain.workspace import Workspaces
from threadkeep.loops import Loops
from threadkeep.mcp.limits import Limits
from threadkeep.mcp.personal import FOLDER
from threadkeep.mcp.pool import Pool
from threadkeep.mcp.processes.programs import ServerEnvironment
from threadkeep.mcp.promptx_command import PromptXCommand
from threadkeep.ports.tools import Caller, Returned
from threadkeep.tools.promptx import TOOLS

COMMAND = (sys.executable, other_promptx.__file__)


class Other:
    """Calls a PromptX that is a program."""

    def __init__(self, folder: Path) -> None:
        self.workspaces = Workspaces(folder)
        self.pool = Pool(ServerEnvironment(self.workspaces, ENVIRONMENT), Limits(budget_s=60), Loops())
        self.agent = make_agent()

    async def __call__(
        self,
        name: str,
        user: UserId = ALICE,
        agent: Agent | None = None,
        command: tuple[str, ...] = COMMAND,
        **arguments: str,
    ) -> Returned:
        agent = agent or self.agent
        caller = Caller(agent, User(user), Conversation.start(user, agent.id, NOW))
        server = PromptXCommand(command, TOOLS, self.workspaces, self.pool)
        assert [tool.name for tool in await server.tools(caller)] == [tool.name for tool in TOOLS]
        *_, returned = [step async for step in server.call(caller, name, arguments)]
        assert isinstance(returned, Returned)
        return returned


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.fixture
async def other(tmp_path: Path) -> AsyncIterator[Other]:
    other = Other(tmp_path)
    yield other
    await other.pool.close()


async def test_role_of_the_workspace_is_taken_on_in_an_initialised_project(other: Other):
    write(other.workspaces.of(other.agent.id), {"lawyer.role.md": "<role>Doubt.</role>"}, f"{DOMAIN}/lawyer")
    assert (await other("promptx_action", role="lawyer")).result == "<role>Doubt.</role>"


async def test_unknown_role_becomes_a_real_error(other: Other):
    returned = await other("promptx_action", role="jester")
    assert (returned.status, returned.error) == ("error", '❌ 角色 "jester" 不存在！')


async def test_each_user_of_each_agent_has_a_memory_of_their_own(other: Other):
    assert (await other("promptx_remember", content="tea")).status == "ok"
    assert (await other("promptx_recall")).result == "tea\n"
    assert (await other("promptx_recall", BOB)).result == "nothing"
    assert (await other("promptx_recall", ALICE, make_agent())).result == "nothing"


async def test_nothing_is_written_outside_the_users_folder(other: Other, tmp_path: Path):
    await other("promptx_remember", content="tea")
    workspace = other.workspaces.of(other.agent.id)
    (folder,) = (workspace / FOLDER).iterdir()
    assert {str(path.relative_to(folder)) for path in files(tmp_path)} == {
        ".promptx/memory.txt",
        "home/.promptx",
    }


async def test_program_that_is_away_is_a_result_that_says_so(other: Other):
    returned = await other("promptx_recall", command=("no-such-promptx",))
    assert returned.status == "error"
    assert (
        returned.error
        == "Couldn't connect to PromptX: The program `no-such-promptx` isn't installed on this machine."
    )


async def test_folder_that_cannot_be_made_is_a_result_that_says_so(other: Other, tmp_path: Path):
    (tmp_path / "agents").touch()
    returned = await other("promptx_recall")
    assert (returned.status, returned.error) == (
        "error",
        "Couldn't connect to PromptX: Couldn't create its folder: Not a directory.",
    )


async def test_memory_that_a_program_keeps_is_not_given_to_it_twice(other: Other):
    server = PromptXCommand(COMMAND, TOOLS, other.workspaces, other.pool)
    caller = Caller(other.agent, User(ALICE), Conversation.start(ALICE, other.agent.id, NOW))
    assert [(tool.name, tool.effect) for tool in await server.tools(caller)] == [
        ("promptx_action", ToolEffect.READ),
        ("promptx_recall", ToolEffect.READ),
        ("promptx_remember", ToolEffect.WRITE),
    ]
