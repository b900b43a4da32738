"""The real PromptX behind our three names, as an operator sets it up."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.mcp.npm import PROMPTX, install
from tests.mcp.roles import DOMAIN, LAWYER, write
from tests.mcp.running import descriptors, until_none
from tests.mcp.turning import obey
from tests.talking import JSON
from threadkeep import User, create_app
from threadkeep.domain.ids import UserId
from threadkeep.http.app import Threadkeep
from threadkeep.mcp.personal import FOLDER
from threadkeep.testing import ScriptedModel, scripted_settings


@dataclass(frozen=True)
class Office:
    """One agent that several people talk to, and whose PromptX is the real one."""

    app: Threadkeep
    client: httpx.AsyncClient
    agent_id: str
    workspace: Path

    async def use(self, user: str, tool: str, **arguments: str) -> dict[str, Any]:
        """The record of a call that the model makes for a user."""
        headers = {**JSON, "x-user": user}
        chat = await self.client.put(f"/api/agents/{self.agent_id}/conversation", headers=headers)
        response = await self.client.post(
            f"{chat.headers['location']}/messages?wait=true",
            json={"content": f"use {tool} {json.dumps(arguments)}"},
            headers=headers,
        )
        reply = response.json()
        assert reply["status"] == "COMPLETED"
        (call,) = reply["toolCalls"]
        assert (call["server"], call["toolName"]) == ("promptx", tool)
        return call

    def folders(self) -> list[Path]:
        """Those of the users."""
        return [*(self.workspace / FOLDER).iterdir()]


def files(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
async def office(
    tmp_path: Path, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Office]:
    node = await asyncio.to_thread(install, PROMPTX)
    monkeypatch.setenv("PATH", f"{node / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    model.otherwise = obey
    settings = scripted_settings(
        model,
        data=tmp_path / "data",
        promptx_command=f"node {node}/node_modules/dpml-prompt/src/bin/promptx.js mcp-server",
        mcp_readable=(str(node),),
        mcp_connect_budget_s=60,
    )
    app = create_app(settings, current_user=lambda request: User(UserId(request.headers["x-user"])))
    before = descriptors()
    transport = httpx.ASGITransport(app)
    async with app.lifespan(), httpx.AsyncClient(transport=transport, base_url="http://host") as client:
        body = {"name": "Office", "visibility": "public", "primaryRoleId": "lawyer"}
        made = await client.post("/api/agents", json=body, headers={"x-user": "carol"})
        agent_id = made.json()["id"]
        yield Office(app, client, agent_id, write(tmp_path / "data" / "agents" / agent_id, {}))
    await until_none(lambda: [it for it in descriptors() - before if "pipe" in it])


async def test_role_of_the_agent_is_taken_on_and_one_that_is_unknown_is_an_error(office: Office):
    write(office.workspace, LAWYER, f"{DOMAIN}/lawyer")
    action = await office.use("alice", "promptx_action", role="lawyer")
    assert action["status"] == "ok"
    for written in ("Doubt first.", "Read every clause.", "合同法"):
        assert written in action["result"]
    unknown = await office.use("alice", "promptx_action", role="jester")
    assert unknown["status"] == "error"
    assert '角色 "jester" 不存在' in unknown["error"]


async def test_memory_is_the_users_own_and_goes_with_them(office: Office, tmp_path: Path):
    write(office.workspace, LAWYER, f"{DOMAIN}/lawyer")
    before = files(tmp_path)
    for user in ("alice", "bob"):
        assert (await office.use(user, "promptx_action", role="lawyer"))["status"] == "ok"
    assert (await office.use("alice", "promptx_remember", content="Alice drinks tea."))["status"] == "ok"
    assert "Alice drinks tea." in (await office.use("alice", "promptx_recall", query="tea"))["result"]
    assert "tea" not in (await office.use("bob", "promptx_recall"))["result"]
    # It wrote into the two users' folders and nowhere else, not even beside the roles.
    written = {file for file in files(tmp_path) - before if "threadkeep.db" not in file.name}
    assert {file.relative_to(office.workspace / FOLDER).parts[0] for file in written} == {
        folder.name for folder in office.folders()
    }
    assert any("Alice drinks tea." in file.read_text() for file in written)
    await office.app.delete_user("alice")
    assert not any("Alice drinks tea." in file.read_text() for file in files(office.workspace))
    assert len(office.folders()) == 1
    assert "tea" not in (await office.use("bob", "promptx_recall"))["result"]
    assert "tea" not in (await office.use("alice", "promptx_recall"))["result"]
