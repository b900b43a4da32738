"""Payloads that cannot be written or read: the call says so, the turn goes on, the rest of the page loads."""

import errno
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.engine.in_memory import InMemoryTools, gives
from tests.talking import Talk, talking
from threadkeep.clock import system_clock
from threadkeep.ports.tools import Returned, ReturnedFile
from threadkeep.services.conversations import DAY_MS
from threadkeep.storage.payloads import folder as payload_folder
from threadkeep.testing import Say, ScriptedModel, UseTool, scripted_settings

LARGE = "x" * 20_000
CHART = {"series": [{"type": "bar", "data": [1, 2]}]}


@pytest.fixture
def payloads(tmp_path: Path) -> Path:
    """Where the payloads of `shared` lie."""
    return tmp_path / "data" / "payloads"


@pytest.fixture
async def shared(
    tools: InMemoryTools, database_url: str, model: ScriptedModel, tmp_path: Path
) -> AsyncIterator[Talk]:
    """Threadkeep whose payloads are files, whatever its database."""
    settings = scripted_settings(
        model,
        data=tmp_path / "data",
        database_url=database_url,
        payload_store="folder",
    )
    async with talking(settings) as talk:
        yield talk


def files(folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file()]


def folders(folder: Path) -> list[Path]:
    return [*folder.iterdir()]


def occupy(folder: Path) -> None:
    folder.parent.mkdir(exist_ok=True)
    folder.write_text("somebody's file")


async def use_tools(talk: Talk, model: ScriptedModel, *uses: UseTool) -> tuple[str, dict[str, Any]]:
    """A turn that uses tools; gives the conversation and the finished reply."""
    model.script(list(uses), [Say("So.")])
    made = await talk.client.post("/api/agents", json={"name": "Advisor"})
    path = f"/api/agents/{made.json()['id']}/conversations"
    conversation = (await talk.client.post(path, json={"title": "Tools"})).json()["id"]
    return conversation, await talk.ask(conversation)


@pytest.mark.requirement("001-R6-S2")
@pytest.mark.parametrize("damage", ["missing", "truncated", "changed"])
async def test_lost_payload_is_told_in_its_place_and_the_rest_loads(
    tools: InMemoryTools, shared: Talk, model: ScriptedModel, payloads: Path, damage: str
):
    # Given calls whose chart and result lie in the payload store, and one that is small
    tools.add(charts=gives(Returned("ok", LARGE, chart_data=CHART)), small=gives(Returned("ok", "fine")))
    conversation, before = await use_tools(shared, model, UseTool("charts"), UseTool("small"))
    assert [it["result"] for it in before["toolCalls"]] == [LARGE, "fine"]
    assert before["toolCalls"][0]["chartData"] == CHART
    # When the files are lost
    assert len(files(payloads)) == 2
    for file in files(payloads):
        if damage == "missing":
            file.unlink()
        else:
            file.write_bytes(file.read_bytes()[:-1] + (b"" if damage == "truncated" else b"!"))
    # Then what took their places is recognisable, and everything else is there, on every route
    word = "missing" if damage == "missing" else "damaged"
    lost = {"unavailable": True, "reason": f"The content is {word}."}
    messages = await shared.messages(conversation)
    assert [it["content"] for it in messages] == ["Why?", "So."]
    charts, small = messages[1]["toolCalls"]
    assert (charts["result"], charts["chartData"], small["result"]) == (lost, lost, "fine")
    events = await shared.events(messages[1]["turnId"])
    results = {it["tool_name"]: it for it in events if it["type"] == "tool_result"}
    assert (results["charts"]["result"], results["small"]["result"]) == (lost, "fine")
    assert results["charts"]["chart_data"] == lost


@pytest.mark.parametrize(
    ("use", "statuses", "calls"),
    [
        (UseTool("large"), ["interrupted"], 1),
        (UseTool("file"), ["interrupted"], 1),
        (UseTool("small", {"text": LARGE}), [], 0),
    ],
    ids=["result", "file", "arguments"],
)
async def test_full_disk_is_our_failure_and_not_the_tools(
    tools: InMemoryTools,
    shared: Talk,
    model: ScriptedModel,
    payloads: Path,
    monkeypatch: pytest.MonkeyPatch,
    use: UseTool,
    statuses: list[str],
    calls: int,
):
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(payload_folder.os, "fsync", full)
    tools.add(
        large=gives(Returned("ok", LARGE)),
        file=gives(Returned("ok", "saved", files=(ReturnedFile("a.txt", "text/plain", b"a"),))),
        small=gives(Returned("ok", "fine")),
    )
    conversation, _ = await use_tools(shared, model, use)
    reply = (await shared.messages(conversation))[-1]
    assert (reply["status"], reply["error"]["code"]) == ("FAILED", "STORAGE_UNAVAILABLE")
    assert reply["error"]["message"] == "Can't write to the payload folder: No space left on device."
    assert [it["status"] for it in reply["toolCalls"] or ()] == statuses
    assert len(tools.calls) == calls, "a call that cannot be recorded is not made"
    assert len(model.requests) == 1, "the model is told nothing about our disk"
    assert files(payloads) == []
    monkeypatch.undo()


async def test_payload_folder_that_is_no_folder_fails_the_turn(
    tools: InMemoryTools, shared: Talk, model: ScriptedModel, payloads: Path
):
    occupy(payloads)
    tools.add(large=gives(Returned("ok", LARGE)))
    conversation, _ = await use_tools(shared, model, UseTool("large"))
    reply = (await shared.messages(conversation))[-1]
    assert (reply["status"], reply["error"]["code"]) == ("FAILED", "STORAGE_UNAVAILABLE")


@pytest.mark.parametrize("what", ["value", "file"])
async def test_result_that_is_far_too_large_is_an_error_that_is_told(
    tools: InMemoryTools, shared: Talk, model: ScriptedModel, payloads: Path, what: str
):
    flood = b"x" * (33 * 1024 * 1024)
    outcome = (
        Returned("ok", flood.decode())
        if what == "value"
        else Returned("ok", files=(ReturnedFile("", "", flood),))
    )
    tools.add(flood=gives(outcome))
    _, reply = await use_tools(shared, model, UseTool("flood"))
    (call,) = reply["toolCalls"]
    assert (call["status"], call["result"]) == ("error", None)
    assert call["error"].startswith("The result can't be stored. A ")
    assert files(payloads) == []


async def test_purge_and_the_end_of_a_user_take_the_files_along(
    tools: InMemoryTools, shared: Talk, model: ScriptedModel, payloads: Path
):
    tools.add(large=gives(Returned("ok", LARGE)))
    conversations = [(await use_tools(shared, model, UseTool("large")))[0] for _ in range(3)]
    assert len(files(payloads)) == 3
    await shared.client.delete(f"/api/conversations/{conversations[0]}?purge=true")
    assert len(files(payloads)) == 2
    await shared.client.delete(f"/api/conversations/{conversations[1]}")
    assert len(files(payloads)) == 2
    services = await shared.app.services()
    assert await services.conversations.purge_expired(system_clock() + 31 * DAY_MS) == 1
    assert len(files(payloads)) == 1
    assert (await shared.client.delete("/api/users/local")).status_code == 204
    assert folders(payloads) == []
