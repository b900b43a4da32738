"""A turn's log in portions: as much as its readers get, and handle, at once, however long it is."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

from threadkeep.domain.events import LogChunk, TurnEvent
from threadkeep.log.format import cut, decode_chunk, reference_count

MOST_CHARACTERS = 256 * 1024
MOST_REFERRING = 4
"""How many events with values stored apart are in a portion: those are large, and a reader may be slow."""


def portions(chunks: Sequence[LogChunk]) -> Iterator[Sequence[LogChunk]]:
    """Chunks in portions; a long one becomes several."""
    if len(chunks) == 1 and _fits(chunks[0]):  # a reader who keeps up
        return iter((chunks,))
    return _portions(chunks)


def _portions(chunks: Iterable[LogChunk]) -> Iterator[Sequence[LogChunk]]:
    portion: list[LogChunk] = []
    length = referring = 0
    for chunk in _pieces(chunks):
        length += len(chunk.events)
        referring += reference_count(chunk.events)
        if portion and (length > MOST_CHARACTERS or referring > MOST_REFERRING):
            yield portion
            portion, length, referring = [], len(chunk.events), reference_count(chunk.events)
        portion.append(chunk)
    if portion:
        yield portion


def _pieces(chunks: Iterable[LogChunk]) -> Iterator[LogChunk]:
    for chunk in chunks:
        if _fits(chunk):
            yield chunk
        else:
            yield from cut(chunk, MOST_CHARACTERS, MOST_REFERRING)


def _fits(chunk: LogChunk) -> bool:
    return len(chunk.events) <= MOST_CHARACTERS and reference_count(chunk.events) <= MOST_REFERRING


def events_of(chunks: Iterable[LogChunk]) -> Iterator[TurnEvent]:
    """The events of chunks."""
    return chain.from_iterable(decode_chunk(chunk.events) for chunk in chunks)


def passing(take: Callable[[TurnEvent], object]) -> Callable[[Iterable[LogChunk]], None]:
    """What passes the events of chunks to a function."""

    def pass_all(chunks: Iterable[LogChunk]) -> None:
        for event in events_of(chunks):
            take(event)

    return pass_all
