"""Puts values from the payload store back into stored chunks, for clients."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import msgspec

from threadkeep.domain.events import LogChunk
from threadkeep.domain.ids import ConversationId, PayloadId
from threadkeep.domain.payload import Lost
from threadkeep.log.format import has_references, put_back, references_in
from threadkeep.storage.payloads.database import SqlPayloads

MOST_PUT_BACK_AT_ONCE = 256 * 1024
"""More than this would delay others: a thread does it."""


async def whole_chunks(
    store: SqlPayloads, conversation_id: ConversationId, chunks: Sequence[LogChunk]
) -> Sequence[LogChunk]:
    """A conversation's stored chunks as clients may see them; most have no references and stay as is."""
    if not any(has_references(chunk.events) for chunk in chunks):
        return chunks
    refs = (ref for chunk in chunks for ref in references_in(chunk.events))
    found = await load_values(store, conversation_id, refs)
    if sum(map(len, found.values())) <= MOST_PUT_BACK_AT_ONCE:
        return _put_back(chunks, found)
    return await asyncio.to_thread(_put_back, chunks, found)


def _put_back(chunks: Sequence[LogChunk], found: Mapping[PayloadId, bytes]) -> Sequence[LogChunk]:
    return [
        replace(chunk, events=put_back(chunk.events, found)) if has_references(chunk.events) else chunk
        for chunk in chunks
    ]


async def load_values(
    store: SqlPayloads,
    conversation_id: ConversationId,
    refs: Iterable[PayloadId],
    *,
    most_bytes: int | None = None,
) -> dict[PayloadId, bytes]:
    """Values of a conversation as JSON; a note replaces one that can't be loaded or would be too much."""
    found = await store.load(conversation_id, refs, most_bytes=most_bytes)
    return {ref: _unavailable(it) if isinstance(it, Lost) else it for ref, it in found.items()}


def _unavailable(lost: Lost) -> bytes:
    return msgspec.json.encode({"unavailable": True, "reason": lost.reason})
