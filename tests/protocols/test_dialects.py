"""What all dialects have in common."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.protocols.recorded import CONTEXT, RECORDED, UNSHOWN, patient, told, turns
from threadkeep.domain.errors import InvalidRequest
from threadkeep.domain.events import LogChunk, TurnEvent
from threadkeep.handling.stream import StreamEnd
from threadkeep.log.format import encode_chunk
from threadkeep.protocols.dialect import Dialect, Position
from threadkeep.protocols.dialects import DIALECTS, DialectName

every_dialect = pytest.mark.parametrize("dialect", DIALECTS.values(), ids=lambda it: it.name)


def test_dialects_are_found_by_name():
    assert tuple(DIALECTS) == get_args(DialectName)
    assert all(name == dialect.name for name, dialect in DIALECTS.items())


@every_dialect
def test_replay_gives_the_same_bytes(dialect: Dialect):
    assert told(dialect, RECORDED) == told(dialect, RECORDED)


@every_dialect
@patient
@given(events=turns, seen=st.integers(0, 12))
def test_stored_chunk_becomes_the_frames_of_its_events(dialect: Dialect, events: list[TurnEvent], seen: int):
    after = Position(min(seen, len(events)))
    stored = LogChunk(CONTEXT.turn_id, 1, len(events), encode_chunk(events))
    encoder = dialect.start(CONTEXT, after)
    assert encoder.encode_chunk(stored) + encoder.end(StreamEnd.OVER) == told(dialect, events, after)


@every_dialect
def test_what_only_the_server_needs_is_never_shown(dialect: Dialect):
    assert UNSHOWN in encode_chunk(RECORDED)
    first, *rest = encode_chunk(RECORDED).split("\n")
    journal = f'\t{{"type":"text","text":"{UNSHOWN}","refs":{{}}}}'
    stored = "\n".join([journal, first, journal, *rest, journal])
    encoder = dialect.start(CONTEXT)
    shown = encoder.encode_chunk(LogChunk(CONTEXT.turn_id, 1, len(RECORDED), stored)) + encoder.end(
        StreamEnd.OVER
    )
    assert UNSHOWN.encode() not in shown
    assert shown == told(dialect, RECORDED)
    assert encoder.encode_chunk(LogChunk(CONTEXT.turn_id, 15, 14, journal)) == b""


@every_dialect
@patient
@given(events=turns, cut=st.integers(0, 12))
def test_resumed_stream_is_the_rest_of_the_whole(dialect: Dialect, events: list[TurnEvent], cut: int):
    encoder = dialect.start(CONTEXT)
    seen = b"".join([encoder.encode(event) for event in events[:cut]])
    assert seen + told(dialect, events, Position(min(cut, len(events)))) == told(dialect, events)


@every_dialect
def test_number_of_an_event_is_a_position(dialect: Dialect):
    assert dialect.position(CONTEXT, "5") == Position(5)


@every_dialect
@pytest.mark.parametrize("last_id", ["", "-1", "x", "1.5", "٣", "9" * 16, "1:2", "1:2:3:4"])
def test_what_is_no_id_is_refused(dialect: Dialect, last_id: str):
    with pytest.raises(InvalidRequest):
        dialect.position(CONTEXT, last_id)
