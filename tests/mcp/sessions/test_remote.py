"""Servers that are reached by HTTP."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import Response, StreamingResponse

from tests.mcp.remote_servers import (
    bad_server,
    bomb,
    broken,
    cut_off,
    ending,
    forgotten,
    garbage,
    gateway_timeout,
    greeter,
    huge,
    huge_event,
    on,
    redirect,
    serving_http,
    unauthorized,
    web_page,
)
from tests.mcp.running import BOB, MENDED, Limits, Pooled, pooled, until
from threadkeep.domain.mcp import RemoteServer, ServerScope
from threadkeep.domain.secret import Secret
from threadkeep.mcp.link import LinkBroken
from threadkeep.mcp.sessions.incoming import LARGE_BYTES, TOO_LARGE
from threadkeep.ports.mcp import ServerState
from threadkeep.ports.tools import Progress, Returned

LIMITS = Limits(budget_s=60, connect_s=60, ping_s=60)


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Pooled]:
    """A pool that may reach this machine, and must leave nothing behind."""
    async with pooled(tmp_path, LIMITS, allow_private=True) as here:
        yield here


async def test_real_server_is_used_with_its_headers_and_its_user(here: Pooled):
    with greeter() as there:
        server = RemoteServer(there.url, {"Authorization": Secret("Bearer theirs")}, scope=ServerScope.USER)
        assert await here.tools(server, BOB) == ["greet", "wait"]
        calling = here.pool.call(here.key(server, BOB), server, "greet", {"name": "you"})
        assert [step async for step in calling] == [
            Progress(1, 2, "thinking"),
            Returned("ok", {"result": "Hello you, bob, Bearer theirs"}),
        ]
        await here.pool.close()


async def test_call_that_is_given_up_leaves_the_session_as_it_was(here: Pooled):
    with greeter() as there:
        server = RemoteServer(there.url)
        await here.tools(server)
        calling = here.pool.call(here.key(server), server, "wait", {})
        waiting = asyncio.ensure_future(anext(calling))
        await until(lambda: [use.tool_name for use in there.uses] == ["wait"])
        waiting.cancel()
        await asyncio.wait([waiting])
        await calling.aclose()
        again = here.pool.call(here.key(server), server, "greet", {"name": "you"})
        assert [step async for step in again][-1] == Returned("ok", {"result": "Hello you, None, None"})
        assert here.pool.statuses(here.agent_id)["chaos"].state is ServerState.READY
        await here.pool.close()


async def test_server_that_came_back_without_its_memory_gets_a_new_session(here: Pooled):
    """A restarted server does not know our session any more."""
    state = {"forgets": False}

    async def respond(request: Any, message: dict[str, Any]) -> Response | None:
        if state["forgets"] and message["method"] != "initialize":
            return Response(status_code=404)
        state["forgets"] = False
        return None

    async with serving_http(bad_server(respond)) as url:
        server = RemoteServer(url)
        assert await here.tools(server) == ["bad"]
        state["forgets"] = True
        assert (await here.call(server, "bad")).status == "error"
        await until(lambda: here.pool.statuses(here.agent_id)["chaos"].state is not ServerState.READY)
        assert await here.tools(server) == ["bad"]
        await here.pool.close()


async def test_server_that_is_not_there_is_away_with_its_reason(here: Pooled):
    with pytest.raises(LinkBroken, match="It can't be reached"):
        await here.tools(RemoteServer("http://127.0.0.1:1/mcp"))


async def test_private_address_is_not_reached_unless_that_is_allowed(tmp_path: Path):
    async with pooled(tmp_path, LIMITS) as here:
        with greeter() as there, pytest.raises(LinkBroken, match="private or local network"):
            await here.tools(RemoteServer(there.url))


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (redirect, "not followed"),
        (unauthorized, "It returned HTTP status 401"),
        (bomb, "compressed"),
        (huge, TOO_LARGE),
        (huge_event, TOO_LARGE),
        (garbage, "The server's response isn't a valid MCP message"),
        (web_page, "Unexpected content type"),
    ],
)
async def test_server_that_responds_to_the_greeting_badly_is_away(
    here: Pooled, make: Callable[[Any], Response], reason: str
):
    async with serving_http(bad_server(on("initialize", make))) as url:
        with pytest.raises(LinkBroken, match=reason):
            await here.tools(RemoteServer(url))
        await here.pool.close()


@pytest.mark.parametrize("make", [redirect, bomb, huge, huge_event, garbage])
async def test_bad_response_to_a_call_is_its_error(here: Pooled, make: Callable[[Any], Response]):
    async with serving_http(bad_server(on("tools/call", make))) as url:
        returned = await here.call(RemoteServer(url), "bad")
        assert returned.status == "error"
        assert returned.error
        assert len(returned.error) < 1000
        assert "token=x" not in returned.error
        await here.pool.close()


@pytest.mark.parametrize(
    ("make", "is_lost"),
    [
        (gateway_timeout, True),
        (ending, True),
        (cut_off, True),
        (broken, False),
        (unauthorized, False),
        (forgotten, False),
    ],
)
async def test_call_is_lost_only_if_the_server_may_work_on_it(
    here: Pooled, make: Callable[[Any], Response], is_lost: bool
):
    async with serving_http(bad_server(on("tools/call", make))) as url:
        returned = await here.call(RemoteServer(url), "bad")
        assert (returned.status, returned.lost) == ("error", is_lost)
        await here.pool.close()


async def test_call_that_nobody_received_is_not_lost(here: Pooled):
    async with serving_http(bad_server(on("nothing", unauthorized))) as url:
        server = RemoteServer(url)
        assert await here.tools(server) == ["bad"]
    returned = await here.call(server, "bad")
    assert (returned.status, returned.lost) == ("error", False)
    assert "can't be reached" in (returned.error or "")
    await here.pool.close()


@pytest.mark.parametrize("media_type", ["application/json", "text/event-stream"])
@pytest.mark.parametrize(("result", "shown"), MENDED)
async def test_text_with_halves_of_characters_arrives_with_replacements(
    here: Pooled, media_type: str, result: str, shown: str
):
    def make(number: Any) -> Response:
        body = b'{"jsonrpc": "2.0", "id": %d, "result": %s}' % (number, result.encode("latin-1"))
        return Response(as_event(body) if "event" in media_type else body, media_type=media_type)

    async with serving_http(bad_server(on("tools/call", make))) as url:
        returned = await here.call(RemoteServer(url), "bad")
        assert (returned.status, returned.result) == ("ok", shown)
        await here.pool.close()


@pytest.mark.parametrize("media_type", ["application/json", "text/event-stream"])
@pytest.mark.parametrize(
    "body", [b"no JSON", b"[]", b'{"a": 1}', b'{"jsonrpc": "2.0", "id": 3, "result": 5}']
)
async def test_response_that_is_no_message_is_an_error_in_our_own_words(
    here: Pooled, caplog: pytest.LogCaptureFixture, media_type: str, body: bytes
):
    def make(number: Any) -> Response:
        return Response(as_event(body) if "event" in media_type else body, media_type=media_type)

    async with serving_http(bad_server(on("tools/call", make))) as url:
        returned = await here.call(RemoteServer(url), "bad")
        assert (returned.status, returned.error) == (
            "error",
            "The server's response isn't a valid MCP message.",
        )
        assert here.pool.statuses(here.agent_id)["chaos"].state is ServerState.READY
        await here.pool.close()
    assert not [record for record in caplog.records if record.exc_info]


async def test_notice_that_is_too_large_to_look_at_does_not_cost_the_response_after_it(here: Pooled):
    def make(number: Any) -> Response:
        data = b"x" * LARGE_BYTES
        notice = b'{"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "%s"}}' % data
        result = b'{"jsonrpc": "2.0", "id": %d, "result": {"content": []}}' % number
        return Response(as_event(notice) + as_event(result), media_type="text/event-stream")

    async with serving_http(bad_server(on("tools/call", make))) as url:
        assert (await here.call(RemoteServer(url), "bad")).status == "ok"
        await here.pool.close()


def as_event(message: bytes) -> bytes:
    return b"event: message\ndata: " + message + b"\n\n"


async def test_stream_without_an_end_and_without_a_response_can_be_given_up(here: Pooled):
    talks = threading.Event()

    def endless(number: Any) -> Response:
        async def events() -> AsyncIterator[bytes]:
            while True:
                talks.set()
                yield b": still thinking\n\n"
                await asyncio.sleep(0.001)

        return StreamingResponse(events(), media_type="text/event-stream")

    async with serving_http(bad_server(on("tools/call", endless))) as url:
        server = RemoteServer(url)
        calling = asyncio.ensure_future(here.call(server, "bad"))
        await until(talks.is_set)
        calling.cancel()
        await asyncio.wait([calling])
        assert await here.tools(server) == ["bad"]
        assert here.pool.statuses(here.agent_id)["chaos"].state is ServerState.READY
        await here.pool.close()


async def test_server_that_never_responds_to_the_farewell_holds_nobody_up(here: Pooled):
    async with serving_http(bad_server(on("tools/call", garbage), says_farewell=False)) as url:
        await here.tools(RemoteServer(url))
        await here.pool.close()
