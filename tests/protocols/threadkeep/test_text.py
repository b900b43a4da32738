"""The `text` dialect."""

from tests.protocols.recorded import BEGINNING, CANCELLED, RECORDED, TIMED_OUT, told, turn
from threadkeep.domain.events import Failed, Text
from threadkeep.protocols.sse import Position
from threadkeep.protocols.threadkeep.text import TEXT


def test_pieces_of_the_reply_and_then_done():
    assert told(TEXT, turn(Text("Hello"), Text(" world"))) == (
        b"data: Hello\n\ndata:  world\n\ndata: [DONE]\n\n"
    )


def test_recorded_turn_is_its_text_alone():
    assert told(TEXT, RECORDED) == (
        'data: Looking …\ndata: "now"\ndata: \n\ndata: 你好 👋\n\ndata: [DONE]\n\n'.encode()
    )


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
