"""The vectors of an agent's chunks, in a memory-mapped file and searched with numpy.

A small collection is compared in full. For a large one, the signs of the numbers are compared first, a
thirtieth of the data, and then the best of them in full: this needs no training, chunks come and go at no
cost, and the result is the same every time.
"""

import mmap
import tempfile
import weakref
from collections.abc import Sequence
from typing import IO

import numpy as np
from numpy.typing import NDArray

from threadkeep.storage.documents.vector_index import LARGE_COLLECTION

SIGNS_KEPT = 2_000

Floats = NDArray[np.float32]
Ids = NDArray[np.int64]


class Vectors:
    """The vectors of one collection."""

    def __init__(self) -> None:
        self._file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as we do
        weakref.finalize(self, self._file.close)
        self._ids: Ids = np.empty(0, np.int64)
        self._places: dict[int, int] = {}
        self._matrix: Floats = np.empty((0, 0), np.float32)
        self._signs: NDArray[np.uint64] = np.empty((0, 0), np.uint64)

    def __len__(self) -> int:
        return len(self._ids)

    def add(self, rows: Sequence[tuple[int, bytes]]) -> None:
        """Adds vectors, each with the id of its chunk."""
        rows = [row for row in rows if row[0] not in self._places]
        if not rows:
            return
        self._places |= {id_: place for place, (id_, _) in enumerate(rows, len(self._ids))}
        fresh = np.frombuffer(b"".join(vector for _, vector in rows), "<f2").reshape(len(rows), -1)
        self._ids = np.concatenate([self._ids, np.array([id_ for id_, _ in rows], np.int64)])
        self._file.seek(0, 2)
        self._file.write(fresh.astype(np.float32).tobytes())
        self._file.flush()
        mapped = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        self._matrix = np.frombuffer(mapped, np.float32).reshape(len(self._ids), fresh.shape[1])
        signs = _signs(fresh.astype(np.float32))
        self._signs = np.concatenate([self._signs, signs], axis=1) if len(self._signs) else signs

    def nearest(self, query: bytes, limit: int, others: Sequence[int]) -> dict[int, float]:
        """The cosine of the nearest chunks, and of the others given, to a query."""
        wanted = np.frombuffer(query, "<f2").astype(np.float32)
        if not len(self._ids) or len(wanted) != self._matrix.shape[1]:
            return {}
        known = np.array([self._places[id_] for id_ in others if id_ in self._places], np.int64)
        if len(self._ids) <= LARGE_COLLECTION:
            near = self._matrix @ wanted
            places = np.argsort(-near, kind="stable")[:limit]
        else:
            apart = np.bitwise_count(self._signs ^ _signs(wanted[None, :])).sum(axis=0, dtype=np.uint16)
            likely = np.argpartition(apart, SIGNS_KEPT)[:SIGNS_KEPT]
            places = likely[np.argsort(-(self._matrix[likely] @ wanted), kind="stable")[:limit]]
        chosen = np.union1d(places, known)
        near = self._matrix[chosen] @ wanted
        return dict(zip(self._ids[chosen].tolist(), near.tolist(), strict=True))


def _signs(vectors: Floats) -> NDArray[np.uint64]:
    """The positive numbers as bits, in words of 64: a column per vector, which sums up quickly."""
    bits = np.packbits(vectors > 0, axis=1)
    padding = -bits.shape[1] % 8
    words = np.ascontiguousarray(np.pad(bits, ((0, 0), (0, padding)))).view(np.uint64)
    return np.ascontiguousarray(words.T)
