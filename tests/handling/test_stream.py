"""How a stream treats the one who reads it: signs of life, and patience with an end."""

import asyncio
import logging
import re
import socket
from contextlib import nullcontext

import msgspec
import pytest
from starlette.types import Message

from tests.conftest import ONLY_SQLITE
from tests.making import chunk_of
from tests.talking import Talk, parse
from threadkeep.domain.events import Text
from threadkeep.domain.ids import AgentId, ConversationId, MessageId, TurnId, new_uuid
from threadkeep.handling import stream
from threadkeep.handling.stream import EventStream
from threadkeep.http.server.server import filter_uvicorns_lines
from threadkeep.log.live import LiveLog
from threadkeep.protocols.dialect import TurnContext
from threadkeep.protocols.threadkeep.encode import TEXT
from threadkeep.runtime.following import Follower
from threadkeep.storage.store import Store
from threadkeep.testing import Gate, Say, ScriptedModel, Wait
from threadkeep.testing.waiting import until


@ONLY_SQLITE
async def test_turn_that_says_nothing_gives_signs_of_life(
    talk: Talk, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(stream, "HEARTBEAT_EVERY_S", 0.05)
    gate = Gate()
    model.script([Say("one "), Wait(gate), Say("two")])
    turn_id = await talk.begin(await talk.conversation())
    lines: list[str] = []
    async with talk.client.stream("GET", f"/api/turns/{turn_id}/events") as response:
        async for line in response.aiter_lines():
            lines.append(line)
            if lines.count(": keep-alive") == 3:
                gate.open()
    events = [msgspec.json.decode(line[6:]) for line in lines if line.startswith("data: ")]
    assert "".join(event["text"] for event in events if event["type"] == "text") == "one two"
    assert events[-1]["type"] == "done"
    assert lines[-3].startswith("event: done")  # nothing comes after the end


@ONLY_SQLITE
async def test_reader_that_takes_nothing_is_dropped_and_comes_back(
    talk: Talk, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO)
    filter_uvicorns_lines()
    gate = Gate()
    model.script([Say("begun"), *[Say("x" * 100_000)] * 100, Wait(gate), Say("end")])
    turn_id = await talk.begin(await talk.conversation())
    await gate.reached()
    with socket.socket() as stuck:
        stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        stuck.setblocking(False)
        loop = asyncio.get_running_loop()
        host, _, port = talk.url.removeprefix("http://").partition(":")
        await loop.sock_connect(stuck, (host, int(port)))
        asked = f"GET /api/turns/{turn_id}/events HTTP/1.1\r\nHost: {host}\r\n\r\n"
        with monkeypatch.context() as patch:
            patch.setattr(stream, "HEARTBEAT_EVERY_S", 0.1)
            patch.setattr(stream, "SLOWEST_READ_S", 0.3)
            await loop.sock_sendall(stuck, asked.encode())
            assert (await loop.sock_recv(stuck, 100)).startswith(b"HTTP/1.1 200")
            await until(lambda: "GET /api/turns/{turn_id}/events" in caplog.text)  # its request is over
        gate.open()
        whole = await talk.events(turn_id)  # the turn did not wait
        left = bytearray()
        while data := await loop.sock_recv(stuck, 1 << 20):
            left += data
    assert b"begun" in left
    assert b"event: done" not in left
    assert not left.endswith(b"0\r\n\r\n")  # it was cut off, and can tell
    seen = int(re.findall(rb"^id: (\d+)$", left.rpartition(b"\n\n")[0], re.MULTILINE)[-1])
    assert 0 < seen < len(whole)
    assert await talk.events(turn_id, seen) == whole[seen:]
    assert "dropping a stream" in caplog.text
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


@ONLY_SQLITE
async def test_reader_that_is_slow_but_reads_is_kept(
    talk: Talk, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(stream, "HEARTBEAT_EVERY_S", 0.1)
    monkeypatch.setattr(stream, "SLOWEST_READ_S", 30)
    gate = Gate()
    model.script([Say("begun"), Wait(gate), *[Say("x" * 100_000)] * 100])
    turn_id = await talk.begin(await talk.conversation())
    async with talk.client.stream("GET", f"/api/turns/{turn_id}/events") as response:
        gate.open()
        whole = await talk.events(turn_id)
        await asyncio.sleep(0.5)  # it takes nothing for a while
        assert [event async for event in parse(response)] == whole


async def test_stream_of_a_turn_whose_end_is_not_known_is_broken_off(store: Store):
    live = LiveLog(TurnId(new_uuid()))
    live.extend([chunk_of(live.turn_id, 1, Text("half"))])
    encoder = TEXT.start(TurnContext(live.turn_id, MessageId("m"), ConversationId("c"), AgentId("a")))

    async def receive() -> Message:
        return await asyncio.Future[Message]()

    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)
        live.close()

    log = Follower(lambda: nullcontext(live), 0, store, ConversationId("c"), nullcontext())
    await EventStream(log, encoder, {})({}, receive, send)
    assert [(it["body"], it["more_body"]) for it in sent[1:]] == [(b"data: half\n\n", True)]
