"""Puts values that lie in the payload store back into stored chunks, for those who are shown them."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import msgspec

from threadkeep.domain.ids import PayloadId
from threadkeep.log.format import has_references, put_back, references_in
from threadkeep.ports.payloads import Lost, PayloadStore
from threadkeep.ports.turn_log import LogChunk


async def whole_chunks(store: PayloadStore, chunks: Sequence[LogChunk]) -> Sequence[LogChunk]:
    """Stored chunks as clients may see them; most refer to nothing and are handed on as they are."""
    if not any(has_references(chunk.events) for chunk in chunks):
        return chunks
    found = await load_values(store, (ref for chunk in chunks for ref in references_in(chunk.events)))
    return [
        replace(chunk, events=put_back(chunk.events, found)) if has_references(chunk.events) else chunk
        for chunk in chunks
    ]


async def load_values(store: PayloadStore, refs: Iterable[PayloadId]) -> dict[PayloadId, bytes]:
    """Values as JSON; one that cannot be loaded says so in its place."""
    found = await store.load(refs)
    return {ref: _unavailable(it) if isinstance(it, Lost) else it for ref, it in found.items()}


def _unavailable(lost: Lost) -> bytes:
    return msgspec.json.encode({"unavailable": True, "reason": lost.reason})
