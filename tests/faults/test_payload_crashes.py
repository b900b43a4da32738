"""`kill -9` while a payload is kept: nothing refers to what is not there, and what is left is collected."""

import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.faults import stalling
from tests.serving import Server
from threadkeep.storage.payloads.folder import HOUR_S
from threadkeep.testing import Say, ScriptedModel, UseTool
from threadkeep.testing.waiting import PATIENCE_S

CHART = UseTool(
    "make_chart", {"kind": "bar", "rows": [{"month": "May", "sales": 12}], "x": "month", "y": ["sales"]}
)


def until(condition: Callable[[], bool]) -> None:
    patience = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < patience
        time.sleep(0.02)


def count_rows(folder: Path) -> int:
    with closing(sqlite3.connect(folder / "data" / "threadkeep.db")) as database:
        return database.execute("SELECT COUNT(*) FROM tk_payloads").fetchone()[0]


def files(folder: Path) -> list[Path]:
    return [file for file in (folder / "data" / "payloads").rglob("*") if file.is_file()]


def ask(client: httpx.Client, conversation: str) -> dict[str, Any]:
    """Sends a message; tells of the turn that has begun."""
    path = f"/api/conversations/{conversation}/messages"
    return client.post(path, json={"content": "Draw!"}, headers={"Accept": "application/json"}).json()


def messages(client: httpx.Client, conversation: str) -> list[dict[str, Any]]:
    return client.get(f"/api/conversations/{conversation}/messages").json()["items"]


@pytest.mark.parametrize("on_crash", ["interrupt", "continue"])
@pytest.mark.parametrize("point", ["file", "row"])
def test_killed_between_a_payload_and_what_refers_to_it(tmp_path: Path, point: str, on_crash: str):
    with ScriptedModel() as model:
        model.script([CHART])
        settings = {
            "gateway": "openai",
            "gateway_url": model.url,
            "gateway_api_key": "sk",
            "model": "scripted",
        }
        advisor = {"name": "Advisor", "settings": {"onCrash": on_crash}}
        # Given a server that is killed when the chart's payload is written, and perhaps its row, but no more
        program = (stalling.__file__, point)
        with Server(tmp_path, program=program, **settings) as server, server.client() as client:
            agent = client.post("/api/agents", json=advisor).json()["id"]
            path = f"/api/agents/{agent}/conversations"
            conversation = client.post(path, json={"title": "Crash"}).json()["id"]
            turn = ask(client, conversation)["turnId"]
            until(lambda: stalling.STOPPED in server.output)
            server.kill()
        (orphan,) = files(tmp_path)
        assert count_rows(tmp_path) == (0 if point == "file" else 1)
        os.utime(orphan, (0, time.time() - HOUR_S - 1))
        # When it starts again
        model.script(*[[Say("Drawn.")]] * (on_crash == "continue"), [CHART], [Say("Drawn again.")])
        with Server(tmp_path, **settings) as server, server.client() as client:
            until(lambda: client.get(f"/api/turns/{turn}").json()["status"] in {"COMPLETED", "FAILED"})
            shown = messages(client, conversation)
            (call,) = shown[-1]["toolCalls"]
            if on_crash == "interrupt":
                # Then the call has ended without a result, and nothing refers to what is not there
                assert (call["status"], call["result"]) == ("interrupted", None)
                assert "chartData" not in call
            else:
                # Then the chart is drawn again
                assert (call["status"], shown[-1]["content"]) == ("ok", "Drawn.")
                assert call["chartData"]["series"][0]["data"] == [12]
            replay = client.get(f"/api/turns/{turn}/events").text
            assert "unavailable" not in replay + str(shown)
            # And a content that no row names goes with the first clean-up; one that is named stays
            until(lambda: orphan.exists() == (point == "row" or on_crash == "continue"))
            # And the conversation goes on
            ask(client, conversation)
            until(lambda: messages(client, conversation)[-1]["status"] == "COMPLETED")
            (call,) = messages(client, conversation)[-1]["toolCalls"]
            assert call["chartData"]["series"][0]["data"] == [12]
