"""What operators see of agents in code while these run."""

import asyncio
import re
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import httpx
import pytest

from threadkeep.agents import Turn, agent
from threadkeep.domain.user import User, UserRole, user_id
from threadkeep.http.sign_in.access_tokens import issue_token
from threadkeep.runtime import programs
from threadkeep.testing import running_app
from threadkeep.testing.app import SECRET, RunningApp
from threadkeep.testing.waiting import until

DOCUMENTED = Path(__file__).parents[2] / "docs/operating.md"

let_go = threading.Event()


async def look_up(order: int) -> int:
    """A step that goes well."""
    return order


async def fail() -> None:
    """One that doesn't."""
    raise ValueError("a secret")


async def stand_still() -> None:
    """Keeps everything else on the loop waiting."""
    let_go.wait(60)


@agent(name="Orders", visibility="public")
async def orders(turn: Turn) -> str:
    """Does as it is told."""
    await turn.step(look_up, 7, effect="read")
    with suppress(ValueError):
        await turn.step(fail)
    if turn.text == "Block.":
        await turn.step(stand_still, effect="read")
    return "Done."


@asynccontextmanager
async def admin_of(app: RunningApp) -> AsyncGenerator[httpx.AsyncClient]:
    token = issue_token(SECRET, User(user_id("root"), UserRole.ADMIN), 600)
    transport = httpx.ASGITransport(app=app.app, client=("127.0.0.1", 1))
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=headers) as client:
        yield client


async def begin(app: RunningApp, text: str) -> str:
    (agent_id,) = [it.id async for it in app.client.agents() if it.name == "Orders"]
    conversation = await app.client.create_conversation(agent_id, title="Test")
    started = await app.client.start(conversation.id, text)
    return started.turn_id


async def test_steps_are_counted_by_agent_name_status_and_effect():
    async with running_app(agents=[orders]) as app, admin_of(app) as admin:
        await app.client.reply(await begin(app, "Go."))
        text = (await admin.get("/metrics")).text
        labels = 'agent="orders",name="look_up",status="ok",effect="read"'
        assert f"threadkeep_program_steps_total{{{labels}}} 1\n" in text
        labels = 'agent="orders",name="fail",status="error",effect="write"'
        assert f"threadkeep_program_steps_total{{{labels}}} 1\n" in text
        assert 'threadkeep_program_turns_running{agent="orders"} 0\n' in text
        assert 'threadkeep_program_places{kind="step"} 16\n' in text
        assert "threadkeep_program_blocked_seconds_total 0.0\n" in text
        assert "secret" not in text
        families = set(re.findall(r"^# TYPE (threadkeep_program_\w+)", text, re.MULTILINE))
        explained = set(re.findall(r"threadkeep_program_\w+", DOCUMENTED.read_text()))
        assert families == explained


async def test_agent_that_blocks_the_loop_is_reported_and_other_nodes_get_new_turns(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(programs, "STUCK_AFTER_MS", 1_000)
    async with running_app(agents=[orders]) as app, admin_of(app) as admin:
        turn_id = await begin(app, "Block.")

        async def readiness() -> dict[str, object]:
            return (await admin.get("/readyz")).json()

        async def is_blocked() -> bool:
            return "blocked" in await readiness()

        async def worker() -> dict[str, object]:
            (found,) = (await admin.get("/api/admin/workers")).json()["items"]
            return found

        try:
            await until(is_blocked)
            ready = await readiness()
            blocked = ready["blocked"]
            assert isinstance(blocked, dict)
            assert (ready["status"], blocked["agent"]) == ("degraded", "orders")
            assert "test_watched_agents.py:" in blocked["place"] and "in stand_still" in blocked["place"]
            stranger = httpx.ASGITransport(app=app.app, client=("10.0.0.1", 1))
            async with httpx.AsyncClient(transport=stranger, base_url="http://127.0.0.1") as anybody:
                seen = (await anybody.get("/readyz")).json()
                assert seen["status"] == "degraded" and "blocked" not in seen

            async def tells() -> bool:
                return bool((await worker())["blockedMs"])

            await until(tells)
            assert (await worker())["isDraining"] is False
            # A turn that begins now waits for a worker: other nodes may run it, and this one once it can.
            waiting = await begin(app, "Go.")

            async def waits() -> bool:
                return (await admin.get("/api/admin/turns?waitsFor=worker")).json()["items"] != []

            await until(waits)
            assert (await app.client.turn(waiting)).waits_for == "worker"
        finally:
            let_go.set()
        replies = await asyncio.gather(app.client.reply(turn_id), app.client.reply(waiting))
        assert [it.content for it in replies] == ["Done.", "Done."]
        assert "blocked" not in await readiness()
        assert (await worker())["agents"] == [{"key": "orders", "version": 1}]
        text = (await admin.get("/metrics")).text
        assert "threadkeep_program_blocked_seconds_total 0.0\n" not in text
