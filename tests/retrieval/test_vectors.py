"""Vectors of small collections are compared as a whole, those of large ones by their signs first."""

import numpy as np
import pytest
from numpy.typing import NDArray

from threadkeep.retrieval import vectors as vectors_module
from threadkeep.retrieval.vectors import Vectors

COUNT, DIMENSIONS = 2_000, 100  # not a multiple of 64
Floats = NDArray[np.float32]


def drawn(count: int, seed: int) -> Floats:
    rows = np.random.default_rng(seed).normal(size=(count, DIMENSIONS))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def packed(rows: NDArray[np.floating]) -> list[bytes]:
    return [row.tobytes() for row in rows.astype("<f2")]


@pytest.mark.parametrize("large", [False, True], ids=["small", "large"])
def test_nearest_are_found_with_their_cosines_and_so_are_the_others_asked_for(
    large: bool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(vectors_module, "LARGE_COLLECTION", 500 if large else COUNT)
    monkeypatch.setattr(vectors_module, "SIGNS_KEPT", 200)
    rows = drawn(COUNT, 1)
    vectors = Vectors()
    kept = list(enumerate(packed(rows), 1000))
    for first in range(0, COUNT, 700):
        vectors.add(kept[first : first + 700])
    vectors.add(kept[:5])  # again
    assert len(vectors) == COUNT
    noise = drawn(20, 2)
    for place, wanted in enumerate(packed(rows[:20] + np.float32(0.5) * noise)):
        exact = rows @ np.frombuffer(wanted, "<f2").astype(np.float32)
        near = vectors.nearest(wanted, 10, [1999, 2999, 5])
        assert max(near, key=lambda id_: near[id_]) == 1000 + place
        assert {1999, 2999} < set(near) and 5 not in near
        assert len(near) <= 12
        assert all(abs(cosine - exact[id_ - 1000]) < 0.01 for id_, cosine in near.items())


def test_query_of_another_length_finds_nothing():
    vectors = Vectors()
    assert vectors.nearest(packed(drawn(1, 1))[0], 10, ()) == {}
    vectors.add(list(enumerate(packed(drawn(3, 1)))))
    assert vectors.nearest(b"\0\x3c", 10, ()) == {}
