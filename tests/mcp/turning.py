"""Threadkeep whose agents have servers of tools, talking to a model that obeys."""

import json
import os
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.mcp.running import CHAOS, descriptors, is_alive, until_none
from tests.talking import Talk, talking
from threadkeep.confined.landlock import landlock_version
from threadkeep.mcp.processes import sandbox
from threadkeep.testing import Recorded, Reply, Say, ScriptedModel, UseTool, scripted_settings


def obey(request: Recorded) -> Reply:
    """Does what the last line says: `use TOOL {ARGUMENTS}`, else nothing much."""
    latest = request.body["messages"][-1]
    said = latest["content"].splitlines()[-1]
    if latest["role"] == "user" and said.startswith("use "):
        _, name, arguments = said.split(" ", 2)
        return (UseTool(name, json.loads(arguments)),)
    return (Say("Done."),)


@dataclass(frozen=True)
class Chaos:
    """A running Threadkeep whose agents have servers that misbehave."""

    talk: Talk
    pids_file: Path

    def server(self, mode: str, **settings: Any) -> dict[str, Any]:
        """A server that misbehaves like this, as an owner configures it."""
        env = {"CHAOS_PIDS": str(self.pids_file), "API_KEY": "top-secret"}
        args = ["-I", "-S", str(CHAOS), mode]
        return {"command": "python", "args": args, "env": env, "timeoutS": 60, **settings}

    async def agent(self, **servers: dict[str, Any]) -> str:
        """An agent with these servers."""
        body = {"name": "Advisor", "settings": {"mcpServers": servers}}
        made = await self.talk.client.post("/api/agents", json=body)
        assert made.status_code == 201, made.text
        return made.json()["id"]

    async def conversation(self, agent_id: str) -> str:
        """A conversation with an agent."""
        return (await self.talk.client.post(f"/api/agents/{agent_id}/conversations")).json()["id"]

    async def detail(self, agent_id: str, name: str = "chaos") -> dict[str, Any]:
        """How a server is, as the owner sees it."""
        servers = (await self.talk.client.get(f"/api/agents/{agent_id}")).json()["mcpServers"]
        return next(server for server in servers if server["name"] == name)

    async def use(self, conversation_id: str, tool: str, **arguments: Any) -> dict[str, Any]:
        """A turn in which the model uses a tool; the finished reply."""
        return await self.talk.ask(conversation_id, f"use chaos__{tool} {json.dumps(arguments)}")

    async def notices(self, turn_id: str) -> list[str]:
        """What a turn had to do without."""
        events = await self.talk.events(turn_id)
        return [event["message"] for event in events if event["type"] == "notice"]

    def pids(self) -> list[int]:
        """Every process of a server that was started."""
        return [int(line) for line in self.pids_file.read_text().split()] if self.pids_file.exists() else []


@asynccontextmanager
async def running_chaos(
    database_url: str,
    model: ScriptedModel,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    budget_s: float = 60,
    allowed: Sequence[str] = ("python", "npx"),
) -> AsyncGenerator[Chaos]:
    """Threadkeep with a model that obeys; nothing of its servers may be left at the end."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    # In bubblewrap's sandbox, programs don't know their real ids, by which we see that none is left.
    monkeypatch.setattr(sandbox, "sandbox_kinds", lambda: ("landlock",) if landlock_version() else ())
    noted = folder / "noted"
    noted.mkdir(exist_ok=True)
    model.otherwise = obey
    settings = scripted_settings(
        model,
        data=folder / "data",
        database_url=database_url,
        secret_key="a-key-for-tests-that-is-long-enough",
        mcp_allowed_commands=tuple(allowed),
        mcp_pass_environment=("PATH", "HOME", "npm_config_registry"),
        mcp_connect_budget_s=budget_s,
        mcp_readable=(str(CHAOS.parent),),
        mcp_writable=(str(noted),),
        mcp_allow_private=True,
    )
    before = descriptors()
    async with talking(settings) as talk:
        chaos = Chaos(talk, noted / "pids")
        yield chaos
    assert not [pid for pid in chaos.pids() if is_alive(pid)]
    await until_none(lambda: [it for it in descriptors() - before if "pipe" in it])
