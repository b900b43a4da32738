"""Messages so large that they are read by a process of their own; nothing of them is lost on the way."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from starlette.responses import JSONResponse, Response, StreamingResponse

from tests.mcp.remote_servers import bad_server, on, serving_http
from tests.mcp.running import MENDED, Limits, Pooled, chaos, pooled
from threadkeep.domain.mcp import RemoteServer
from threadkeep.mcp.sessions.call_result import (
    MOST_ERROR_CHARACTERS,
    MOST_TOOLS,
    MOST_TOOLS_BYTES,
    extract_result,
)
from threadkeep.mcp.sessions.incoming import (
    CANNOT_READ,
    LARGE_BYTES,
    MOST_UNCLAIMED,
    IncomingMessages,
    LargeMessageReader,
)

LIMITS = Limits(budget_s=60, connect_s=60, ping_s=60)
ROWS = [{"id": number, "name": f"row {number}"} for number in range(10_000)]
TOO_DEEP = "The tool's result is nested too deeply."


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Pooled]:
    async with pooled(tmp_path, LIMITS, allow_private=True) as here:
        yield here


def message(result: Any, number: int = 7) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", "id": number, "result": result})


def left(given: bytes) -> Any:
    """What a session sees of a message."""
    whole = msgspec.json.decode(extract_result(given).message)
    assert (whole["jsonrpc"], whole["id"]) == ("2.0", 7)
    return whole


# On their way from a server


async def test_dense_value_arrives_whole_and_in_one_piece(here: Pooled):
    returned = await here.call(chaos(), "rows", rows=50_000)
    assert isinstance(returned.result, msgspec.Raw)
    rows = msgspec.json.decode(returned.result)["rows"]
    assert (len(rows), rows[-1]) == (50_000, {"id": 49_999, "name": "row 49999", "ok": True})


async def test_many_small_texts_are_one(here: Pooled):
    assert (await here.call(chaos(), "blocks", blocks=30_000)).result == "\n\n".join("x" * 30_000)


async def test_file_and_chart_are_taken_out_and_the_small_rest_is_a_value(here: Pooled):
    returned = await here.call(chaos(), "scan", bytes=500_000, rows=20_000)
    (file,) = returned.files
    assert (file.file_name, file.media_type, len(file.content)) == ("image-1.png", "image/png", 500_000)
    assert returned.result == {"pages": 1}
    assert isinstance(returned.chart_data, msgspec.Raw)
    assert len(msgspec.json.decode(returned.chart_data)["rows"]) == 20_000


@pytest.mark.parametrize(
    ("levels", "size", "error"),
    [
        (300, 100_000, TOO_DEEP),
        (5_000, 1, "too deeply nested"),
        (5_000, 100_000, "too deeply nested"),
    ],
)
async def test_deeply_nested_result_is_an_error_and_the_server_lives_on(
    here: Pooled, levels: int, size: int, error: str
):
    returned = await here.call(chaos(), "deep", levels=levels, beside="x" * size)
    assert returned.status == "error"
    assert returned.error
    assert error in returned.error
    assert (await here.call(chaos(), "echo", text="still here")).result == "still here"
    assert len(here.pids()) == 1


@pytest.mark.parametrize(("result", "shown"), MENDED)
async def test_text_with_halves_of_characters_arrives_with_replacements(
    here: Pooled, result: str, shown: str
):
    returned = await here.call(chaos(), "raw", result=result)
    assert (returned.status, returned.result) == ("ok", shown)


async def test_server_with_far_too_many_tools_has_the_first_ones(here: Pooled):
    assert len(await here.tools(chaos("abundant"))) == MOST_TOOLS


def as_json(number: int) -> Response:
    return JSONResponse(msgspec.json.decode(message({"content": [], "structuredContent": ROWS}, number)))


def as_events(line_end: bytes, blank: bytes) -> Callable[[int], Response]:
    """An event in pieces, its message on two lines, after a comment; the stream stays open."""

    def make(number: int) -> Response:
        body = message({"content": [], "structuredContent": ROWS}, number)
        lines = (b": hello", b"", b"id: 1", b"event: message", b"data:" + body[:-1], b"data: }")
        whole = line_end.join(lines) + line_end + blank

        async def pieces() -> AsyncIterator[bytes]:
            for start in range(0, len(whole), 10_001):
                yield whole[start : start + 10_001]
            await asyncio.Event().wait()

        return StreamingResponse(pieces(), media_type="text/event-stream")

    return make


@pytest.mark.parametrize(
    "make", [as_json, as_events(b"\n", b"\n"), as_events(b"\r\n", b"\r\n"), as_events(b"\n", b"\r\n")]
)
async def test_dense_value_arrives_whole_over_http(here: Pooled, make: Callable[[Any], Response]):
    async with serving_http(bad_server(on("tools/call", make))) as url:
        returned = await here.call(RemoteServer(url), "bad")
        assert isinstance(returned.result, msgspec.Raw)
        assert msgspec.json.decode(returned.result) == ROWS
        await here.pool.close()


async def test_deeply_nested_response_over_http_is_an_error(here: Pooled):
    def deep(number: int) -> Response:
        nested = b"[" * 100_000 + b"]" * 100_000
        whole = b'{"jsonrpc": "2.0", "id": %d, "result": {"content": %s}}' % (number, nested)
        return Response(whole, media_type="application/json")

    async with serving_http(bad_server(on("tools/call", deep))) as url:
        assert (await here.call(RemoteServer(url), "bad")).status == "error"
        await here.pool.close()


async def test_large_message_that_nobody_can_read_is_an_error(here: Pooled, monkeypatch: pytest.MonkeyPatch):
    await here.tools(chaos())
    for name, place in (("sys.executable", "/no/such/python"), ("__file__", "/no/such/file")):
        with monkeypatch.context() as patched:
            patched.setattr(f"threadkeep.confined.isolated.{name}", place)
            returned = await here.call(chaos(), "rows", rows=10_000)
        assert (returned.status, returned.error) == ("error", CANNOT_READ)
    assert (await here.call(chaos(), "echo", text="still here")).result == "still here"


async def test_large_notice_is_passed_over():
    notice = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": ROWS}}
    assert await IncomingMessages(LargeMessageReader()).shrink(msgspec.json.encode(notice)) is None


def test_claim_of_a_server_is_worth_nothing():
    claimed: dict[str, Any] = {"content": [], "structuredContent": {"threadkeep/claim": "0"}}
    assert IncomingMessages(LargeMessageReader()).returned(claimed).result == {"threadkeep/claim": "0"}


async def test_responses_that_nobody_waits_for_are_not_kept_for_ever():
    incoming = IncomingMessages(LargeMessageReader())
    large = message({"content": [{"type": "text", "text": "x" * LARGE_BYTES}]})
    told = [await incoming.shrink(large) for _ in range(MOST_UNCLAIMED + 1)]
    first, *others = (msgspec.json.decode(small)["result"] for small in told if small)
    assert "threadkeep/claim" in incoming.returned(first).result
    assert {len(incoming.returned(other).result) for other in others} == {LARGE_BYTES}


# What is left of them


def test_large_error_is_cut():
    given = {"jsonrpc": "2.0", "id": 7, "error": {"code": -1, "message": "x" * 100_000, "data": ROWS}}
    assert left(msgspec.json.encode(given))["error"] == {"code": -1, "message": "x" * MOST_ERROR_CHARACTERS}
    failed = extract_result(message({"content": [{"type": "text", "text": "x" * 100_000}], "isError": True}))
    assert failed.result
    assert failed.result.error == "x" * MOST_ERROR_CHARACTERS


def test_tools_are_cut_where_they_no_longer_fit():
    tools = [{"name": f"tool{number}", "inputSchema": {"title": "x" * 100_000}} for number in range(50)]
    kept = left(message({"tools": tools, "nextCursor": "on"}))["result"]
    assert kept["nextCursor"] == "on"
    assert kept["tools"] == tools[: MOST_TOOLS_BYTES // 100_100]


@pytest.mark.parametrize(
    "given",
    [
        b'{"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "%s"}}' % (b"x" * 100_000),
        b'{"jsonrpc": "2.0", "id": 7, "result": {"content": [], "structuredContent": 1e999}}',
        b'{"jsonrpc": "2.0", "id": 7, "result": {"content": ["\\ud800"]}}',
        b'{"jsonrpc": "2.0", "id": 7, "result": {"content": ["\xff"]}}',
        b'{"jsonrpc": "2.0", "id": 7, "result": {"content": [{"type": 5}]}}',
        message({"capabilities": ROWS * 10}),
        b"[]",
        b"{",
    ],
)
def test_what_is_no_response_is_not_read(given: bytes):
    with pytest.raises(ValueError):
        extract_result(given)
