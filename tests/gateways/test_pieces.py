"""Where the network cuts a stream does not matter; where it ends does."""

import itertools
from collections.abc import AsyncIterator, Sequence

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.gateways.asking import MODEL, WIRES, ask, heard, make_gateway, text_of
from threadkeep.ports.gateway import ModelUsage, TextDelta, ThoughtDelta, ToolUse
from threadkeep.testing import BrokenJson, Ping, Say, Step, Think, UnknownEvent, Usage, UseTool
from threadkeep.testing.wires import WireName, open_wire

REPLY: Sequence[Step] = [
    Think("想一想 ", signature=""),
    Think("🤔", signature="sig"),
    Say("你好, "),
    Ping(),
    Say("naïve 👩‍👩‍👧 \x00"),
    UnknownEvent(),
    UseTool("add", {"名": "值 👍", "b": [1, 2]}, id="call_1"),
    UseTool("now", {}, id="call_2"),
    Usage(5, 6, 7, 8),
]


def stream_of(wire: WireName) -> bytes:
    request = {"model": MODEL, "stream_options": {"include_usage": True}}
    writer = open_wire(wire, request, 1, REPLY)
    return b"".join([writer.begin(), *map(writer.write, REPLY), writer.end()])


class Pieces(httpx2.AsyncByteStream):
    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece


async def ask_in_pieces(wire: str, pieces: Sequence[bytes]):
    transport = httpx2.MockTransport(lambda _: httpx2.Response(200, stream=Pieces(pieces)))
    return await ask(make_gateway(wire, "http://model.test", transport=transport))


@pytest.mark.parametrize("wire", WIRES)
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(cuts=st.sets(st.integers(1, 4000), max_size=40), newline=st.sampled_from([b"\n", b"\r\n", b"\r"]))
async def test_pieces_may_end_anywhere(wire: WireName, cuts: set[int], newline: bytes):
    data = stream_of(wire).replace(b"\n", newline)
    places = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
    pieces = [data[begin:end] for begin, end in itertools.pairwise(places)]
    events, error = await ask_in_pieces(wire, pieces)
    whole, _ = await ask_in_pieces(wire, [stream_of(wire)])
    assert error is None
    assert heard(events) == heard(whole)


@pytest.mark.parametrize("wire", WIRES)
async def test_text_that_comes_together_is_told_together(wire: WireName):
    writer = open_wire(wire, {"model": MODEL}, 1, REPLY)
    steps = [Think("a"), Think("b", signature="sig"), Say("c"), Say("d"), Say("e")]
    together = b"".join([writer.begin(), *map(writer.write, steps)])
    events, _ = await ask_in_pieces(wire, [together, writer.write(Say("f")), writer.end()])
    told = [event.text for event in events if isinstance(event, TextDelta | ThoughtDelta)]
    assert told == ["ab", "cde", "f"]


@pytest.mark.parametrize("wire", WIRES)
async def test_text_that_comes_together_with_an_error_is_told_before_it(wire: WireName):
    writer = open_wire(wire, {"model": MODEL}, 1, REPLY)
    steps = [Say("a"), Say("b"), BrokenJson()]
    events, error = await ask_in_pieces(wire, [b"".join([writer.begin(), *map(writer.write, steps)])])
    assert text_of(events) == "ab"
    assert error is not None


@pytest.mark.parametrize("wire", WIRES)
async def test_every_single_byte_may_come_alone(wire: WireName):
    data = stream_of(wire)
    events, error = await ask_in_pieces(wire, [data[at : at + 1] for at in range(len(data))])
    assert error is None
    reply = heard(events)
    assert reply.text == "你好, naïve 👩‍👩‍👧 \x00"
    assert reply.thought == "想一想 🤔"
    assert reply.tools == [("call_1", "add", {"名": "值 👍", "b": [1, 2]}), ("call_2", "now", {})]
    assert reply.usage == ModelUsage(20, 6, 7, 0 if wire == "openai" else 8)


@pytest.mark.parametrize("wire", WIRES)
async def test_stream_that_ends_too_soon_broke_off_wherever_that_is(wire: WireName):
    data = stream_of(wire)
    whole = text_of((await ask_in_pieces(wire, [data]))[0])
    # What is needed: for chat completions the reason for stopping, otherwise the last event.
    marks = {"anthropic": b"event: message_stop\ndata: {", "responses": b"event: response.completed\ndata: {"}
    needed = data.index(marks.get(wire, b'"finish_reason":"tool_calls"'))
    for end in range(0, needed, 7):
        events, error = await ask_in_pieces(wire, [data[:end]])
        assert error, end
        assert error.message == "The model's response ended early."
        assert whole.startswith(text_of(events))
    events, error = await ask_in_pieces(wire, [data.rstrip()])
    assert error is None
    assert sum(isinstance(event, ToolUse) for event in events) == 2
