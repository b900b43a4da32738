"""Searches documents by words and by meaning, and combines the two."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import log
from typing import TYPE_CHECKING

from threadkeep.domain.ids import AgentId
from threadkeep.ports.embedder import Embedder, EmbedderError
from threadkeep.ports.retriever import FoundPassages
from threadkeep.retrieval.questions import asked_terms
from threadkeep.storage.documents.chunk_index import Candidates, ChunkTerms, Collection, SqlChunkIndex
from threadkeep.storage.documents.vector_index import LARGE_COLLECTION, PgVector

if TYPE_CHECKING:
    from threadkeep.retrieval.vectors import Vectors

log_ = logging.getLogger("threadkeep.retrieval")

MOST_CANDIDATES = 96
MOST_NEAR = 64
VECTORS_AT_ONCE = 20_000
MOST_COLLECTIONS_KEPT = 16
MOST_QUERY_CHARACTERS = 2_000

K1, B = 1.2, 0.75


@dataclass(frozen=True, slots=True)
class Weights:
    """How the two searches are combined; fitted by `python -m bench.retrieval`."""

    meaning: float = 0.7
    """The share of meaning in a score, if it is known; the rest is words."""
    half: float = 0.5
    """A chunk whose words fit this well gets half of the score that words can give."""
    unknown: float = 0.5
    """How much a word that no document contains lowers all scores, compared with a rare one."""


class DocumentIndex:
    """The retriever over the chunks of a database."""

    def __init__(
        self,
        chunks: SqlChunkIndex,
        embedder: Embedder | None,
        weights: Weights | None = None,
        vector_index: PgVector | None = None,
    ) -> None:
        self._chunks = chunks
        self._embedder = embedder
        self._weights = weights or Weights()
        self._vector_index = vector_index
        self._shelves: OrderedDict[AgentId, _Shelf] = OrderedDict()

    async def search(self, agent_id: AgentId, query: str, *, top_k: int, threshold: float) -> FoundPassages:
        """The best chunks of an agent's ready documents with at least this score."""
        query = query[:MOST_QUERY_CHARACTERS]
        terms = asked_terms(query)
        candidates = await self._chunks.candidates(agent_id, terms, limit=MOST_CANDIDATES)
        if candidates is None:
            return FoundPassages()
        near, notice = await self._near(agent_id, query, candidates)
        chunk_ids = list({*candidates.chunk_ids, *near})
        known = list(candidates.frequencies)
        counted = await self._chunks.term_counts(candidates.collection, chunk_ids, known) if chunk_ids else ()
        scores = self._scores(terms, candidates, counted, near)
        best = sorted((it for it in scores.items() if it[1] >= threshold), key=lambda it: (-it[1], it[0]))
        best = [(id_, score) for id_, score in best if score > 0][:top_k]
        hits = dict(await self._chunks.chunks([id_ for id_, _ in best])) if best else {}
        found = (replace(hits[id_], score=round(score, 4)) for id_, score in best if id_ in hits)
        return FoundPassages(tuple(found), notice)

    async def _near(
        self, agent_id: AgentId, query: str, candidates: Candidates
    ) -> tuple[Mapping[int, float], str | None]:
        """How near in meaning chunks are, where known."""
        if self._embedder is None or not self._embedder.understands(query):
            return {}, None
        try:
            vector = await self._embedder.embed_query(query)
        except EmbedderError as exc:
            log_.warning("searching by keyword only: %s", exc.message)
            return {}, f"Searched documents by keyword only: {exc.message}"
        collection, name, others = candidates.collection, self._embedder.name, candidates.chunk_ids
        if self._vector_index is not None and collection.chunk_count > LARGE_COLLECTION:
            near = await self._vector_index.nearest(collection, name, vector, limit=MOST_NEAR, others=others)
            if near is not None:
                return near, None
        shelf = await self._shelf(agent_id, collection, name, len(vector))
        return await asyncio.to_thread(shelf.vectors.nearest, vector, MOST_NEAR, others), None

    async def _shelf(self, agent_id: AgentId, collection: Collection, embedder: str, size: int) -> "_Shelf":
        """An agent's up-to-date vectors of the same length as the query's."""
        shelf = self._shelves.get(agent_id)
        if shelf is None or (shelf.removals, shelf.size) != (collection.removals, size):
            shelf = _Shelf(collection.removals, size, _new_vectors(), asyncio.Lock())
            self._shelves[agent_id] = shelf
        self._shelves.move_to_end(agent_id)
        if len(self._shelves) > MOST_COLLECTIONS_KEPT:
            self._shelves.popitem(last=False)
        async with shelf.lock:
            newest = await self._chunks.newest_vector()
            read = self._chunks.newer_vectors if shelf.is_filled else self._chunks.vectors
            while shelf.last_seq < newest:
                rows = await read(agent_id, embedder, after=shelf.last_seq, limit=VECTORS_AT_ONCE)
                # An endpoint may return different vectors under the same name when its model is replaced.
                fitting = [(id_, vector) for _, id_, vector in rows if len(vector) == size]
                await asyncio.to_thread(shelf.vectors.add, fitting)
                shelf.last_seq = rows[-1][0] if len(rows) == VECTORS_AT_ONCE else newest
            shelf.is_filled = True
        return shelf

    def _scores(
        self,
        terms: Sequence[str],
        candidates: Candidates,
        counted: Sequence[ChunkTerms],
        near: Mapping[int, float],
    ) -> dict[int, float]:
        weights = self._weights
        fits = bm25(terms, candidates, counted, unknown=weights.unknown)
        scores: dict[int, float] = {}
        for id_, fit in fits.items():
            words = fit / (fit + weights.half) if fit else 0.0
            # A chunk without a vector (yet) is scored by its words alone.
            share = weights.meaning if id_ in near else 0.0
            scores[id_] = (1 - share) * words + share * min(max(near.get(id_, 0.0), 0.0), 1.0)
        return scores


@dataclass(slots=True)
class _Shelf:
    """An agent's vectors, as far as read."""

    removals: int
    size: int
    vectors: "Vectors"
    lock: asyncio.Lock
    last_seq: int = 0
    is_filled: bool = False


def _new_vectors() -> "Vectors":
    from threadkeep.retrieval.vectors import Vectors  # noqa: PLC0415 - an extra

    return Vectors()


def bm25(
    terms: Sequence[str], candidates: Candidates, counted: Sequence[ChunkTerms], *, unknown: float
) -> dict[int, float]:
    """BM25 relative to a chunk of average length that contains every term once: 1 is a good fit."""
    count = candidates.collection.chunk_count
    usual_length = max(candidates.collection.term_count / count, 1.0)
    rarity = {term: _rarity(count, frequency) for term, frequency in candidates.frequencies.items()}
    missing = sum(term not in rarity for term in terms) * unknown * _rarity(count, 0)
    whole = sum(rarity.values()) + missing
    fits: dict[int, float] = {}
    for chunk in counted:
        slowness = K1 * (1 - B + B * chunk.term_count / usual_length)
        fits[chunk.chunk_id] = (
            sum(rarity[term] * times * (K1 + 1) / (times + slowness) for term, times in chunk.counts.items())
            / whole
            if whole
            else 0.0
        )
    return fits


def _rarity(count: int, frequency: int) -> float:
    return log(1 + (count - frequency + 0.5) / (frequency + 0.5))
