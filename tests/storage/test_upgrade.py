"""Data of a released server that was killed in the middle of its work: this version continues it."""

import asyncio
import io
import sqlite3
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.postgres import Postgres
from tests.storage.released import RELEASED, copy_to_postgres, restore_release
from tests.talking import JSON, Talk, talking
from threadkeep.bootstrap import adapters
from threadkeep.domain.ledger import UsageFilter
from threadkeep.http.api import approvals as approvals_module
from threadkeep.testing import Say, ScriptedModel, ToolServer, scripted_settings

KEPT = ("id", "seq", "role", "status", "content", "parentId")
CONTINUED = "So I go on."
MINUTE_MS = 60_000


async def send(to: str) -> str:
    """Sends a letter."""
    return f"sent to {to}"


async def look(at: str = "") -> str:
    """Looks."""
    return "seen"


@pytest.fixture
def server() -> Iterator[ToolServer]:
    with ToolServer(send, reading=[look]) as server:
        yield server


@pytest.fixture(params=RELEASED, ids=[it.name for it in RELEASED])
def facts(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """What is in the data folder."""
    return restore_release(request.param, tmp_path / "data")


@pytest.fixture(params=["sqlite", "postgres"])
def opened(
    request: pytest.FixtureRequest, facts: dict[str, Any], tmp_path: Path, server: ToolServer
) -> dict[str, Any]:
    """The settings that open the data, once in each database, with the same tools at another address."""
    file, settings = tmp_path / "data" / "threadkeep.db", dict[str, Any](data=tmp_path / "data")
    with closing(sqlite3.connect(file)) as database:
        moved = [facts["toolUrl"], server.url]
        database.execute("UPDATE tk_agents SET settings = REPLACE(settings, ?, ?)", moved)
        database.commit()
        ((facts["killedAt"],),) = database.execute("SELECT MAX(started_at) FROM tk_turns").fetchall()
        ended = "SELECT COUNT(*), SUM(input_tokens) FROM tk_turns WHERE status NOT IN ('RUNNING', 'WAITING')"
        (facts["used"],) = database.execute(ended).fetchall()
    if request.param == "postgres":
        postgres: Postgres = request.getfixturevalue("postgres")
        url = postgres.create_database()
        copy_to_postgres(tmp_path / "data", url)
        key = (tmp_path / "data" / "secret.key").read_text().strip()
        settings |= {"database_url": url, "payload_store": "folder", "secret_key": key}
    return settings


@pytest.fixture
async def talk(
    opened: dict[str, Any], facts: dict[str, Any], model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> AsyncGenerator[Talk]:
    """This version on that data, a minute after the kill."""
    behind = int(time.time() * 1000) - facts["killedAt"] - MINUTE_MS
    for module in (adapters, approvals_module):
        monkeypatch.setattr(module, "system_clock", lambda: int(time.time() * 1000) - behind)
    model.script(*([Say(CONTINUED)] for _ in range(20)))
    settings = {"mcp_allow_private": True, "embedding_url": "off", "resume_within_hours": 10**6}
    async with talking(scripted_settings(model, **opened, **settings)) as talk:
        yield talk


def color_of(content: bytes) -> Any:
    with Image.open(io.BytesIO(content)) as image:
        return image.getpixel((0, 0))


async def until_over(talk: Talk, turn_id: str) -> dict[str, Any]:
    """A turn once it has ended, and everything that came of it is stored."""
    await talk.events(turn_id)
    return (await talk.client.get(f"/api/turns/{turn_id}")).json()


async def until_idle(talk: Talk, conversation_id: str) -> list[dict[str, Any]]:
    """The messages of a conversation once nothing runs in it and nothing waits."""
    while True:
        found = (await talk.client.get(f"/api/conversations/{conversation_id}")).json()
        if not found["activeTurnId"] and not found["queued"]:
            return await talk.messages(conversation_id)
        await asyncio.sleep(0.02)


async def post(talk: Talk, path: str, body: Any, **headers: str) -> dict[str, Any]:
    response = await talk.client.post(path, json=body, headers=JSON | headers)
    assert response.status_code < 300, response.text
    return response.json()


async def test_data_of_a_killed_server_is_read_whole_and_continues(
    talk: Talk, facts: dict[str, Any], server: ToolServer
):
    conversations, turns, files = facts["conversations"], facts["turns"], facts["files"]
    # Everything that was said is there, on every branch.
    for name, before in facts["messages"].items():
        now = await talk.messages(conversations[name])
        shown = [{key: it[key] for key in KEPT if key in it} for it in now]
        assert shown == [{key: it[key] for key in KEPT if key in it} for it in before], name
    # Every file can be downloaded.
    contents = {it: (await talk.client.get(f"/api/files/{id_}")).content for it, id_ in files.items()}
    assert contents.pop("text").decode() == "Words. 押金"
    assert {it: color_of(content) for it, content in contents.items()} == {
        "sent": (100, 0, 0), "unsent": (200, 0, 0), "held": (50, 0, 0),
    }  # fmt: skip
    # The turns that were killed go on; the call that may be repeated is, the other one isn't.
    looked, sent = [await until_over(talk, turns[it]) for it in ("looking", "sending")]
    assert [looked["status"], sent["status"]] == ["COMPLETED", "COMPLETED"]
    assert [use.tool_name for use in server.uses] == ["look"]
    # The message that was queued behind one of them is sent after it.
    *_, asked, reply = await until_idle(talk, conversations["Killed looking"])
    assert (asked["content"], reply["content"]) == ("And after that?", CONTINUED)
    # Only the turn that waits asks, not the one that was aborted; it takes its answer.
    ((waiting,)) = (await talk.client.get("/api/approvals")).json()["items"]
    assert waiting["turnId"] == turns["asking"]
    await post(talk, f"/api/turns/{turns['asking']}/approvals/{waiting['requestId']}", {"action": "allow"})
    assert (await until_over(talk, turns["asking"]))["status"] == "COMPLETED"
    assert [use.arguments for use in server.uses][1:] == [{"to": "Ada"}]
    # The message that was held is sent when its user wants it, with its file; the unsent file can be sent.
    held = (await talk.client.get(f"/api/conversations/{conversations['Held']}")).json()["queued"]
    await post(
        talk, f"/api/conversations/{conversations['Held']}/queued/{held[0]['messageId']}/send?wait=true", {}
    )
    *_, asked, _ = await until_idle(talk, conversations["Held"])
    assert {it["type"] for it in asked["parts"]} == {"text", "file"}
    plain = f"/api/conversations/{conversations['Plain']}/messages?wait=true"
    reply = await post(talk, plain, {"content": "And this?", "files": [files["unsent"]]})
    assert reply["content"] == CONTINUED
    # A retry of what was answered before isn't answered twice.
    again = await post(talk, plain, {"content": "Only once?"}, **{"Idempotency-Key": facts["key"]})
    assert again["content"] == "Once."
    # What was deleted can be restored.
    await post(talk, f"/api/conversations/{conversations['Deleted']}/restore", {})
    assert [it["content"] for it in await talk.messages(conversations["Deleted"])] == ["Keep this?", "Yes."]


async def test_usage_from_before_the_ledger_is_still_there(talk: Talk, facts: dict[str, Any]):
    every_day = UsageFilter("0001-01-01", "9999-12-31", None)
    (used,) = await talk.store.ledger.usage(every_day, ())
    turns, input_tokens = facts["used"]
    assert turns and used.turns >= turns and used.input_tokens >= input_tokens > 0
