"""The `text` dialect."""

from hypothesis import given

from tests.protocols.recorded import (
    BEGINNING,
    CANCELLED,
    RECORDED,
    REPLY,
    TIMED_OUT,
    patient,
    replies,
    told,
    turn,
)
from threadkeep.domain.events import Failed, IterationStart, Text, ToolCalled, TurnEvent
from threadkeep.engine.fold import fold
from threadkeep.protocols.dialect import Position
from threadkeep.protocols.threadkeep.encode import TEXT
from threadkeep.sse import EventReader


def read(stream: bytes) -> str:
    """What a client makes of a stream: its pieces one after the other."""
    pieces = [event.data for event in EventReader().feed(stream)]
    assert pieces.pop() == b"[DONE]"
    return b"".join(pieces).decode()


def test_pieces_of_the_reply_and_then_done():
    assert told(TEXT, turn(Text("Hello"), Text(" world"))) == (
        b"data: Hello\n\ndata:  world\n\ndata: [DONE]\n\n"
    )


def test_recorded_turn_is_its_text_alone():
    assert (
        told(TEXT, RECORDED)
        == (
            'data: Looking …\ndata: "now"\ndata: \n\ndata: \ndata: \ndata: 你好 👋\n\ndata: [DONE]\n\n'
        ).encode()
    )


def test_text_of_a_later_call_begins_with_a_blank_line():
    calls = turn(Text("Numbers"), Text(" first."), IterationStart(2), Text("Now"), Text(" I check."))
    assert read(told(TEXT, calls)) == "Numbers first.\n\nNow I check."
    tools = turn(IterationStart(1), Text("One."), ToolCalled("1", "add", "", {}), Text("Two."))
    assert read(told(TEXT, tools)) == "One.\n\nTwo."


@patient
@given(replies)
def test_text_is_what_the_message_says_in_the_end(events: list[TurnEvent]):
    assert read(told(TEXT, events)) == fold(REPLY, events).content


def test_stopped_turn_just_ends():
    assert told(TEXT, turn(*BEGINNING, CANCELLED)) == told(TEXT, RECORDED)


def test_error_is_told_before_the_end():
    assert told(TEXT, turn(Text("a"), TIMED_OUT)) == (
        b"data: a\n\nevent: error\n"
        b'data: {"code":"GENERATION_TIMEOUT","message":"The turn took longer than 60 s."}\n\n'
        b"data: [DONE]\n\n"
    )
    assert b'"message":"a\\nb"}\n\n' in told(TEXT, turn(Failed("AGENTX_ERROR", "a\nb")))


def test_reply_cannot_end_the_stream_by_itself():
    assert told(TEXT, turn(Text("[DONE]"), Text("!"))) == (
        b"data: [DON\n\ndata: E]\n\ndata: !\n\ndata: [DONE]\n\n"
    )


def test_reader_gets_the_pieces_it_lacks():
    assert told(TEXT, turn(Text("a"), Text("b")), Position(1)) == b"data: b\n\ndata: [DONE]\n\n"


def test_reader_that_comes_back_gets_the_blank_line_too():
    events = turn(Text("a"), IterationStart(2), Text("b"))
    assert told(TEXT, events, Position(1)) == b"data: \ndata: \ndata: b\n\ndata: [DONE]\n\n"
