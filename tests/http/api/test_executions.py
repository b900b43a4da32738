"""How large runs of other engines may be, and what is refused."""

from typing import Any

import httpx
import pytest

from tests.conftest import ONLY_SQLITE, Api
from tests.http.calls import Json, items, new_conversation, refusal
from threadkeep.storage import executions as stored

MOST = 20


def event(id_: str, type_: str, run: str = "r", **fields: Any) -> Json:
    return {"id": id_, "type": type_, "runId": run, "at": 1_000, **fields}


def node(id_: str, run: str = "r", **fields: Any) -> Json:
    return event(id_, "NodeCompleted", run, node="n", **fields)


START = event("start", "ExecutionStarted", input="When?")
END = event("end", "ExecutionCompleted", output="Noon.", citations=[{"title": "Timetable"}] * (MOST - 2))
TOOLS = [{"toolName": "t"}] * 4
FULL = [node(f"{number}", tools=TOOLS) for number in range(MOST // 5)]
MORE: dict[str, Json] = {
    "an event": node("more"),
    "a tool": node("0b", tools=TOOLS),
    "citations": node("more", citations=[{"title": "t"}]),
    "artifacts": node("more", artifactIds=["a"]),
    "a tool with a large value": node("more", tools=[{"toolName": "t", "result": "x" * 20_000}]),
}


@pytest.fixture
def small_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "MOST_PARTS", MOST)


async def tell(client: httpx.AsyncClient, path: str, *events: Json) -> httpx.Response:
    return await client.post(f"{path}/executions", json={"events": events})


@pytest.mark.usefixtures("small_runs")
@pytest.mark.parametrize("more", MORE.values(), ids=MORE)
async def test_run_that_is_too_large_is_refused_as_events_arrive_and_can_still_end(
    api: Api, alice: httpx.AsyncClient, more: Json
):
    id_ = (await new_conversation(alice))["id"]
    path = f"/api/conversations/{id_}"
    for it in FULL:
        assert (await tell(alice, path, it)).status_code == 200
    size = await api.store.stored_bytes.of_conversation(id_)
    refused = await tell(alice, path, node("other", run="another"), more)
    details = refusal(refused, 413, "PAYLOAD_TOO_LARGE", "events")["details"]
    assert details == {"limit": "runParts", "most": MOST, "runId": "r"}
    assert await api.store.stored_bytes.of_conversation(id_) == size, "a refusal changes nothing"
    assert (await tell(alice, path, *FULL)).status_code == 200, "a repeated event counts once"
    ended = await tell(alice, path, START, END)
    assert ended.json()["items"][0]["turnId"], ended.text
    (_, reply) = await items(alice, f"{path}/messages")
    assert (reply["content"], len(reply["toolCalls"])) == ("Noon.", 4 * len(FULL))
    assert (await tell(alice, path, more)).status_code == 200, "events of a complete run are ignored"


@ONLY_SQLITE
async def test_run_with_too_many_bytes_is_refused_as_events_arrive(
    api: Api, alice: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(stored, "MOST_BYTES", 10_000)
    path = f"/api/conversations/{(await new_conversation(alice))['id']}"
    assert (await tell(alice, path, node("1", detail="x" * 5_000))).status_code == 200
    refused = await tell(alice, path, node("2", detail="x" * 5_000))
    details = refusal(refused, 413, "PAYLOAD_TOO_LARGE", "events")["details"]
    assert details == {"limit": "runBytes", "most": 10_000, "runId": "r"}
    ended = await tell(alice, path, START, event("end", "ExecutionFailed", error="x" * 5_000))
    assert ended.json()["items"][0]["turnId"], ended.text


async def test_starts_without_an_end_are_limited_too(
    api: Api, alice: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(stored, "MOST_PARTS", MOST)
    path = f"/api/conversations/{(await new_conversation(alice))['id']}"
    starts = [{**START, "id": f"{number}"} for number in range(2 * MOST + 1)]
    assert (await tell(alice, path, *starts[:-1])).status_code == 200
    refusal(await tell(alice, path, starts[-1]), 413, "PAYLOAD_TOO_LARGE", "events")
