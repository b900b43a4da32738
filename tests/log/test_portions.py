"""A log in portions: nothing is lost, and no portion is large."""

from collections.abc import Sequence
from itertools import pairwise
from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from tests.protocols.recorded import AT, CONTEXT, patient
from threadkeep.domain.events import EventBody, LogChunk, Text, ToolResultStored, TurnEvent
from threadkeep.domain.ids import PayloadId
from threadkeep.engine.journal import ModelChosen
from threadkeep.log import portions as log_portions
from threadkeep.log.format import LogEntry, decode_entries, encode_chunk, reference_count
from threadkeep.log.portions import events_of, portions

MOST = 500
LONGEST = 450
"""More than a line of these tests has."""
ENTRIES = st.lists(
    st.builds(Text, st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
    | st.just(ToolResultStored("t", "search", "ok", refs={"result": PayloadId("p")}, duration_ms=1))
    | st.just(ModelChosen("other")),
    min_size=1,
    max_size=40,
)


def chunks_of(runs: Sequence[Sequence[EventBody | ModelChosen]]) -> list[LogChunk]:
    """A turn's log, a chunk for each run that has events, as they are stored: an event comes first."""
    chunks: list[LogChunk] = []
    seq = 0
    for run in runs:
        first, entries = seq + 1, list[LogEntry]()
        for body in (Text("-"), *run):
            seq += not isinstance(body, ModelChosen)
            is_event = not isinstance(body, ModelChosen)
            entries.append(TurnEvent(CONTEXT.turn_id, seq, AT, body) if is_event else body)
        chunks.append(LogChunk(CONTEXT.turn_id, first, seq, encode_chunk(entries)))
    return chunks


def entries_of(chunks: Sequence[LogChunk]) -> list[LogEntry]:
    return [entry for chunk in chunks for entry in decode_entries(chunk.events)]


@patient
@given(st.lists(ENTRIES, max_size=6))
def test_portions_are_small_and_lose_nothing(runs: Sequence[Sequence[EventBody | ModelChosen]]):
    chunks = chunks_of(runs)
    with mock.patch.object(log_portions, "MOST_CHARACTERS", MOST):
        found = list(portions(chunks))
    pieces = [piece for portion in found for piece in portion]
    assert entries_of(pieces) == entries_of(chunks)
    assert all(found), "none is empty"
    for portion in found:
        assert sum(len(it.events) for it in portion) <= MOST + LONGEST
        assert sum(reference_count(it.events) for it in portion) <= log_portions.MOST_REFERRING
    for piece in pieces:
        seqs = [event.seq for event in events_of([piece])]
        assert seqs == list(range(piece.first_seq, piece.last_seq + 1))
    assert all(after.first_seq == before.last_seq + 1 for before, after in pairwise(pieces))


def test_reader_who_keeps_up_gets_the_chunk_as_it_is():
    (chunk,) = chunks_of([[Text("Hello")]])
    ((piece,),) = portions([chunk])
    assert piece is chunk
