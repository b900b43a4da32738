"""Lines and logs of servers: bounded, whatever they write."""

import asyncio

import pytest

from threadkeep.mcp.processes.lines import LOG_BYTES, LongLine, ServerLog, read_lines
from threadkeep.ports.tools import MOST_RESULT_BYTES


async def lines_of(*pieces: bytes) -> list[bytes | LongLine]:
    reader = asyncio.StreamReader()
    for piece in pieces:
        reader.feed_data(piece)
    reader.feed_eof()
    return [line async for line in read_lines(reader)]


async def test_lines_are_put_together_from_pieces():
    assert await lines_of(b"on", b"e\ntwo\n\nthr", b"ee") == [b"one", b"two", b"", b"three"]


async def test_line_of_the_greatest_length_is_kept_and_a_longer_one_only_at_its_ends():
    longest = b"x" * MOST_RESULT_BYTES
    begin, end = b"{" + b"a" * 255, b"b" * 255 + b"}"
    longer = begin + longest + end
    kept, cut, after, _ = await lines_of(longest + b"\n", longer + b"\n", b"after\n")
    assert kept == longest
    assert cut == LongLine(begin, end, len(longer))
    assert after == b"after"


def test_log_keeps_the_latest():
    log = ServerLog()
    for number in range(20_000):
        log.write(b"%d\n" % number)
    assert len(log.text) == LOG_BYTES
    assert log.text.endswith("\n19999\n")


def test_log_takes_bytes_that_are_no_text():
    log = ServerLog()
    log.write(b"\xff\xfe")
    log.note("A note.")
    assert log.text == "\ufffd\ufffd\n[threadkeep] A note.\n"


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        ("", ""),
        ("Listening.\nGoing away.\n\n", "Going away."),
        ("npm error code E404\nnpm error 404 Not Found\n", "npm error code E404 npm error 404 Not Found"),
        ("Traceback:\n  line 1\nValueError: no key\n", "ValueError: no key"),
        ("Error: no module\n    at a\n\nNode.js v24\n", "Error: no module at a Node.js v24"),
        ("error " + "x" * 1000, "error " + "x" * 294),
    ],
)
def test_complaint_is_what_the_latest_process_said(written: str, complaint: str):
    log = ServerLog()
    log.write(b"Error: of the process before\n")
    log.started()
    log.write(written.encode())
    log.note("It ended with an error.")
    assert log.complaint == complaint
