import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.protocols.recorded import patient, texts
from threadkeep.sse import HEARTBEAT, EventReader, EventTooLong, ServerSentEvent, frame


def read(*chunks: bytes) -> list[tuple[str, str]]:
    reader = EventReader()
    events = [event for chunk in chunks for event in reader.feed(chunk)]
    return [(name.decode(), data.decode()) for name, data in events]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_each_kind_of_line_ending_ends_a_line(newline: str):
    text = "event: a\ndata: 1\ndata: 2\n\n: comment\n\ndata:3\n\n".replace("\n", newline)
    assert read(text.encode()) == [("a", "1\n2"), ("", "3")]


def test_fields_are_read_as_the_standard_has_them():
    assert read(b"data\n\n") == [("", "")]
    assert read(b"data:  two spaces\n\n") == [("", " two spaces")]
    assert read(b"event: a\nevent\ndata: 1\n\n") == [("", "1")]
    assert read(b"event: forgotten\n\ndata: 1\n\n") == [("", "1")]
    assert read(b"id: 1\nretry: 10\nunknown: x\ndatax: y\n\n") == []


def test_byte_order_mark_is_skipped_only_at_the_start():
    assert read(b"\xef", b"\xbb\xbfdata: 1\n\n") == [("", "1")]
    assert read(b"\n\n\xef\xbb\xbfdata: 1\n\n") == []


def test_event_comes_as_soon_as_its_last_line_has_ended():
    reader = EventReader()
    assert reader.feed(b"data: 1\r") == []
    assert reader.feed(b"\r") == [ServerSentEvent(b"", b"1")]
    assert reader.feed(b"\ndata: 2\n\n") == [ServerSentEvent(b"", b"2")]


def test_rest_without_its_empty_line_is_given_at_the_end():
    reader = EventReader()
    assert reader.feed(b"data: 1\n\ndata: [DONE]") == [ServerSentEvent(b"", b"1")]
    assert reader.finish() == [ServerSentEvent(b"", b"[DONE]")]
    assert reader.finish() == []


def test_event_without_an_end_is_refused():
    reader = EventReader(most_bytes=1000)
    with pytest.raises(EventTooLong):
        for _ in range(11):
            reader.feed(b"data: " + b"x" * 100)
    reader = EventReader(most_bytes=1000)
    with pytest.raises(EventTooLong):
        for _ in range(11):
            reader.feed(b"data: " + b"x" * 100 + b"\n")


def test_long_stream_of_small_events_and_comments_is_not_refused():
    reader = EventReader(most_bytes=1000)
    for _ in range(100):
        reader.feed(b"data: " + b"x" * 100 + b"\n\n")
        reader.feed(b": " + b"x" * 100 + b"\n\n")


def test_large_event_in_small_pieces_takes_no_quadratic_time():
    reader = EventReader()
    assert not reader.feed(b"data: ")
    for _ in range(100_000):
        assert not reader.feed(b"x" * 100)
    assert len(reader.feed(b"\n\n")[0].data) == 10_000_000


lines = st.sampled_from(
    ["data: 好", "data: 👍 x", "data:", "data", "event: e", "event:", ": ping", "id: 1", "x", "", "", ""]
)


@given(
    st.lists(st.tuples(lines, st.sampled_from(["\n", "\r\n", "\r"])), max_size=20),
    st.lists(st.integers(0, 300), max_size=20),
)
def test_pieces_may_end_anywhere(written: list[tuple[str, str]], cuts: list[int]):
    data = "".join(line + end for line, end in written).encode()
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    pieces = [data[begin:end] for begin, end in itertools.pairwise(places)]
    assert read(*pieces) == read(data)
    assert read(*(data[at : at + 1] for at in range(len(data)))) == read(data)


def test_frame_has_id_and_event_before_its_data():
    assert frame("x") == b"data: x\n\n"
    assert frame(b"x", event="text", id=7) == b"id: 7\nevent: text\ndata: x\n\n"
    assert frame("", id="a:1") == b"id: a:1\ndata: \n\n"


@pytest.mark.parametrize("newline", ["\n", "\r", "\r\n"])
def test_newline_in_a_frame_begins_a_further_data_line(newline: str):
    assert frame(f"a{newline}b{newline}") == b"data: a\ndata: b\ndata: \n\n"


def test_heartbeat_is_a_comment():
    assert HEARTBEAT.startswith(b":")
    assert HEARTBEAT.endswith(b"\n\n")


@patient
@given(texts)
def test_reader_gets_the_data_that_was_framed(text: str):
    lines = frame(text).decode().removesuffix("\n\n").split("\n")
    assert all(line.startswith("data: ") and "\r" not in line for line in lines)
    read = "\n".join(line.removeprefix("data: ") for line in lines)
    assert read == text.replace("\r\n", "\n").replace("\r", "\n")
