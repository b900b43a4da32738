"""A model, a client or a disk that fails in mid-turn: the turn ends once, readably, and the talk goes on."""

import asyncio
import resource
import socket
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import TEMPLATE
from tests.postgres import Postgres
from tests.talking import JSON, Talk, parse
from threadkeep.domain.ids import new_uuid
from threadkeep.gateways import http as gateway_http
from threadkeep.log import writer as log_writer
from threadkeep.runtime import leases
from threadkeep.testing import (
    BrokenJson,
    CutOff,
    Fail,
    Gate,
    Hang,
    Pause,
    Reply,
    Reset,
    Say,
    ScriptedModel,
    Status,
    Think,
    UnknownEvent,
    Usage,
    UseTool,
    Wait,
)
from threadkeep.testing.waiting import until

KEY = "sk-scripted"
on_both = pytest.mark.parametrize("database_url", ["sqlite", "postgres"], indirect=True)


@pytest.fixture
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """SQLite, unless a test asks for the other."""
    if getattr(request, "param", "sqlite") == "sqlite":
        return f"sqlite:///{tmp_path}/data/threadkeep.db"
    server: Postgres = request.getfixturevalue("postgres")
    return server.create_database(template=TEMPLATE)


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway_http, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(gateway_http, "RETRIES_S", 0.1)


async def untitled(talk: Talk, **settings: Any) -> str:
    """A conversation for which no title is asked, so that the model's replies are the turns'."""
    conversation = await talk.conversation(settings=settings)
    await talk.client.patch(f"/api/conversations/{conversation}", json={"title": "Faults"})
    return conversation


def texts(events: list[dict[str, Any]]) -> str:
    """What the model has said, without what a restarted call had said before."""
    said: dict[int, str] = {}
    for event in events:
        if event["type"] == "iteration_restart":
            said = {seq: text for seq, text in said.items() if seq < event["from_seq"]}
        elif event["type"] == "text":
            said[event["seq"]] = event["text"]
    return "".join(said.values())


async def check_ended(talk: Talk, conversation: str, events: list[dict[str, Any]]) -> dict[str, Any]:
    """The reply of a turn that has ended, once, and as its events say."""
    assert [event["seq"] for event in events] == [*range(1, len(events) + 1)]
    assert [event["type"] in {"done", "error"} for event in events] == [False] * (len(events) - 1) + [True]
    assert KEY not in str(events)
    reply = (await talk.messages(conversation))[-1]
    assert reply["content"].replace("\n\n", "") == texts(events)
    assert reply["status"] == events[-1].get("status", "FAILED")
    assert await talk.events(events[0]["turn_id"]) == events
    return reply


async def fail(talk: Talk, conversation: str) -> dict[str, Any]:
    """Asks, and gives the error in which the turn ends; then the talk goes on."""
    events = await talk.events(await talk.begin(conversation))
    reply = await check_ended(talk, conversation, events)
    assert events[-1]["type"] == "error"
    assert reply["error"]["message"] == events[-1]["message"]
    return events[-1]


async def check_goes_on(talk: Talk, model: ScriptedModel, conversation: str) -> None:
    model.otherwise = [Say("All is well.")]
    assert (await talk.ask(conversation))["content"] == "All is well."
    again = await talk.client.post(f"/api/conversations/{conversation}/regenerate?wait=true", headers=JSON)
    assert again.json()["content"] == "All is well."
    assert not model.refused


@on_both
@pytest.mark.parametrize(
    "reply",
    [
        [Say("Said."), Usage(2**64, 1)],
        [Say("Said."), Usage(1, -(2**64))],
        [Say("Said."), Usage(2**64, 1), UseTool("absent", {})],
    ],
    ids=["too-many", "less-than-none", "too-many-before-a-tool"],
)
async def test_model_that_counts_tokens_as_no_database_does(talk: Talk, model: ScriptedModel, reply: Reply):
    model.script(reply)
    model.otherwise = [Say(" Done.")]
    conversation = await untitled(talk)
    events = await talk.events(await talk.begin(conversation))
    assert (await check_ended(talk, conversation, events))["status"] == "COMPLETED"
    assert all(0 < event["output_tokens"] < 100 for event in events if event["type"] == "usage")
    await check_goes_on(talk, model, conversation)


@on_both
@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ([Status(500, f"Oops, {KEY}", retry_after="3600")], "500"),
        ([Say("half"), Reset()], ""),
    ],
    ids=["500", "reset"],
)
async def test_model_that_fails_on_either_database(
    talk: Talk, model: ScriptedModel, reply: Reply, message: str
):
    model.otherwise = reply
    conversation = await untitled(talk)
    error = await fail(talk, conversation)
    assert error["code"] == "AGENTX_ERROR"
    assert message in error["message"]
    await check_goes_on(talk, model, conversation)


@pytest.mark.parametrize(
    "reply",
    [
        [Status(429, "Slow down", retry_after="3600")],
        [Status(400, f"bad key {KEY}")],
        [BrokenJson()],
        [Say("half"), BrokenJson()],
        [Say("half"), CutOff()],
        [Say("half"), Fail(f"overloaded {KEY}")],
        [Reset()],
        [],
        [Say("")],
        [Think("Only a thought.")],
    ],
    ids=["429", "400", "broken json", "broken json later", "cut off", "error event", "reset at once",
         "nothing", "empty", "thought only"],
)  # fmt: skip
async def test_model_that_fails(talk: Talk, model: ScriptedModel, reply: Reply):
    model.otherwise = reply
    conversation = await untitled(talk)
    error = await fail(talk, conversation)
    assert error["code"] == "AGENTX_ERROR"
    assert error["message"]
    await check_goes_on(talk, model, conversation)


async def test_model_that_refuses_connections(talk: Talk, model: ScriptedModel):
    conversation = await untitled(talk)
    with model.away():
        error = await fail(talk, conversation)
    assert (error["code"], error["retryable"]) == ("AGENTX_ERROR", True)
    await check_goes_on(talk, model, conversation)


@pytest.mark.parametrize("reply", [[Hang()], [Say("half"), Hang()]], ids=["at once", "in mid-stream"])
async def test_model_that_hangs(talk: Talk, model: ScriptedModel, reply: Reply):
    model.otherwise = reply
    conversation = await untitled(talk, generationTimeoutS=3)
    error = await fail(talk, conversation)
    assert error["code"] == "GENERATION_TIMEOUT"
    assert await model.requests[0].until_over() == "disconnected"
    agent = (await talk.client.get(f"/api/conversations/{conversation}")).json()["agentId"]
    await talk.client.patch(f"/api/agents/{agent}", json={"settings": {"generationTimeoutS": 300}})
    await check_goes_on(talk, model, conversation)


async def test_busy_model_is_asked_again_and_the_user_is_told(talk: Talk, model: ScriptedModel):
    model.script([Status(429, "Slow down", retry_after="0")], [Say("Here I am.")])
    conversation = await untitled(talk)
    events = await talk.events(await talk.begin(conversation))
    assert [event["type"] for event in events][:4] == ["turn_start", "iteration_start", "notice", "text"]
    assert (await check_ended(talk, conversation, events))["status"] == "COMPLETED"
    await check_goes_on(talk, model, conversation)


async def test_event_of_an_unknown_kind_is_passed_over(talk: Talk, model: ScriptedModel):
    model.script([UnknownEvent(), Say("a"), UnknownEvent(), Say("b")])
    conversation = await untitled(talk)
    assert (await talk.ask(conversation))["content"] == "ab"


@pytest.mark.parametrize("arguments", [{"a": 1}, '{"a": ', '{"a": 1' + "0" * 30 + "}"])
async def test_call_of_an_unknown_tool_is_answered_and_the_turn_goes_on(
    talk: Talk, model: ScriptedModel, arguments: Any
):
    model.script([UseTool("made_up", arguments)], [Say("Then without.")])
    conversation = await untitled(talk)
    events = await talk.events(await talk.begin(conversation))
    reply = await check_ended(talk, conversation, events)
    assert (reply["status"], reply["content"]) == ("COMPLETED", "Then without.")
    (called,) = (event for event in events if event["type"] == "tool_call")
    (result,) = (event for event in events if event["type"] == "tool_result")
    assert (result["tool_call_id"], result["status"]) == (called["tool_call_id"], "error")
    await check_goes_on(talk, model, conversation)


async def test_five_megabytes_and_characters_that_no_database_keeps(talk: Talk, model: ScriptedModel):
    piece = "五兆字节 five megabytes\n" * 1000
    count = 5 * 1024 * 1024 // len(piece.encode()) + 1
    model.script([Say("a\x00b"), *[Say(piece)] * count])
    conversation = await untitled(talk)
    events = await talk.events(await talk.begin(conversation))
    assert events[-1]["status"] == "COMPLETED"
    assert texts(events) == "a\ufffdb" + piece * count
    assert (await talk.messages(conversation))[-1]["content"] == texts(events)
    await check_goes_on(talk, model, conversation)


@pytest.mark.usefixtures("piece_by_piece")
async def test_client_that_leaves_after_any_event_loses_nothing(talk: Talk, model: ScriptedModel):
    model.otherwise = [Think("Hm."), Say("a "), Say("b "), Say("c")]
    kinds: list[str] = []
    left = 0
    while not kinds or left < len(kinds):
        left += 1
        conversation = await untitled(talk)
        path = f"/api/conversations/{conversation}/messages"
        seen: list[dict[str, Any]] = []
        async with talk.client.stream("POST", path, json={"content": "?"}) as response:
            async for event in parse(response):
                seen.append(event)
                if len(seen) == left:
                    break
        turn_id = response.headers["location"].rpartition("/")[2]
        rest = await talk.events(turn_id, seen[-1]["seq"]) if seen[-1]["type"] != "done" else []
        await check_ended(talk, conversation, [*seen, *rest])
        kinds = [event["type"] for event in [*seen, *rest]]
        assert texts([*seen, *rest]) == "a b c"
    assert left > 5


async def test_reader_of_one_byte_a_second_does_not_slow_the_turn(talk: Talk, model: ScriptedModel):
    gate = Gate()
    piece = "x" * 50_000
    model.script([Say("begun"), Wait(gate), *[Say(piece)] * 100])
    conversation = await untitled(talk)
    turn_id = await talk.begin(conversation)
    slow = socket.socket()
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    slow.setblocking(False)
    loop = asyncio.get_running_loop()
    host, _, port = talk.url.removeprefix("http://").partition(":")
    await loop.sock_connect(slow, (host, int(port)))
    await loop.sock_sendall(
        slow, f"GET /api/turns/{turn_id}/events HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
    )
    crawling = asyncio.create_task(crawl(slow))
    await asyncio.sleep(0.05)
    gate.open()
    events = await talk.events(turn_id)
    assert not crawling.done()
    crawling.cancel()
    assert texts(events) == "begun" + piece * 100
    await check_ended(talk, conversation, events)
    slow.close()
    assert await talk.events(turn_id, 1) == events[1:]  # it can come back
    await check_goes_on(talk, model, conversation)


async def crawl(reader: socket.socket) -> None:
    while await asyncio.get_running_loop().sock_recv(reader, 1):  # noqa: ASYNC110
        await asyncio.sleep(1)


@on_both
async def test_turn_whose_user_is_deleted_is_stopped_and_its_followers_told(talk: Talk, model: ScriptedModel):
    gate = Gate()
    model.script([Say("one two "), Wait(gate), Say("three")])
    turn_id = await talk.begin(await untitled(talk))
    follower = talk.follow(turn_id)
    events = [await anext(follower)]
    await gate.reached()
    assert (await talk.client.delete("/api/users/local")).status_code == 204
    events += [event async for event in follower]
    assert (events[-1]["type"], events[-1]["status"]) == ("done", "CANCELLED")
    assert (await talk.client.get(f"/api/turns/{turn_id}")).status_code == 404
    assert await model.requests[0].until_over() == "disconnected"


async def test_last_event_id_of_the_past_the_future_and_of_others(talk: Talk, model: ScriptedModel):
    gate = Gate()
    model.script([Say("one two "), Wait(gate), Say("three")], [Say("other")])
    conversation = await untitled(talk)
    turn_id = await talk.begin(conversation)
    await gate.reached()
    future = asyncio.create_task(talk.events(turn_id, 10**6))
    stale = asyncio.create_task(talk.events(turn_id, 0))
    await asyncio.sleep(0.05)
    gate.open()
    events = await stale
    assert texts(events) == "one two three"
    assert await future == []
    after_end = await talk.client.get(f"/api/turns/{turn_id}/events", headers={"Last-Event-ID": "1000000"})
    assert after_end.status_code == 204
    other = (await talk.ask(await untitled(talk)))["turnId"]
    foreign = await talk.client.get(
        f"/api/turns/{other}/events?dialect=agentx", headers={"Last-Event-ID": f"{turn_id}:3"}
    )
    assert foreign.status_code == 422
    assert "one" not in foreign.text
    unknown = await talk.client.get(f"/api/turns/{new_uuid()}/events", headers={"Last-Event-ID": "1"})
    assert unknown.status_code == 404


async def test_abort_and_regenerate_at_once(talk: Talk, model: ScriptedModel):
    model.otherwise = [Say("half"), Pause(0.5), Say(" and half")]
    conversation = await untitled(talk)
    for _ in range(3):
        path = f"/api/conversations/{conversation}"
        begun = await talk.client.post(f"{path}/messages", json={"content": "?"}, headers=JSON)
        responses = await asyncio.gather(
            talk.client.post(f"{path}/abort"),
            talk.client.post(f"{path}/regenerate", headers=JSON),
            talk.client.post(f"{path}/abort"),
            talk.client.post(f"{path}/regenerate", headers=JSON),
        )
        assert begun.status_code == 202
        assert {it.status_code for it in responses[::2]} == {200}
        assert {it.status_code for it in responses[1::2]} <= {202, 409}
        await talk.client.post(f"{path}/abort")
        for it in (begun, *responses[1::2]):
            if it.status_code == 202:
                assert (await talk.events(it.json()["turnId"]))[-1]["type"] == "done"
        states = [it["status"] for it in await talk.messages(conversation) if it["role"] == "assistant"]
        assert set(states) <= {"CANCELLED", "OVERWRITTEN", "COMPLETED"}
        assert states[-1] != "OVERWRITTEN"
    await check_goes_on(talk, model, conversation)


@contextmanager
def full_disk(database_url: str) -> Generator[None]:
    """No file may grow beyond what the database's log has now."""
    log = Path(database_url.removeprefix("sqlite:///") + "-wal")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (log.stat().st_size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("patience_s", [30, 0.2], ids=["for a moment", "for long"])
async def test_disk_that_is_full_in_mid_turn(
    talk: Talk,
    model: ScriptedModel,
    database_url: str,
    patience_s: float,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
):
    monkeypatch.setattr(log_writer, "GIVE_UP_AFTER_S", patience_s)
    monkeypatch.setattr(leases, "LEASE_MS", 1000)
    gate = Gate()
    model.script([Say("shown "), Wait(gate), Say("x" * 300_000), Say(" end")])
    model.otherwise = [Say("shown again")]
    conversation = await untitled(talk)
    turn_id = await talk.begin(conversation)
    shown: list[dict[str, Any]] = []

    async def watch() -> None:
        async for event in talk.follow(turn_id):
            shown.append(event)  # noqa: PERF401  (looked at while it grows)

    watching = asyncio.create_task(watch())
    await gate.reached()
    await until(lambda: texts(shown) == "shown ")
    noticed = "retrying" if patience_s > 1 else "couldn't store turn"
    with full_disk(database_url):
        gate.open()
        await model.requests[0].until_over()
        await until(lambda: noticed in caplog.text)
        assert texts(shown) == "shown "  # nothing that is not stored
        assert not watching.done()
    await watching
    if patience_s > 1:
        reply = await check_ended(talk, conversation, shown)
        assert texts(shown) == "shown " + "x" * 300_000 + " end"
    else:  # its lease ran out, and it was continued: the model was asked again
        reply = (await talk.messages(conversation))[-1]
        assert reply["content"] == "shown again"
        assert texts(shown) == "shown again"
        assert next(it["text"] for it in shown if it["type"] == "text") == "shown "
        assert await talk.events(turn_id) == shown
        assert [event["seq"] for event in shown] == [*range(1, len(shown) + 1)]
    assert reply["status"] == "COMPLETED"
    await check_goes_on(talk, model, conversation)
