"""How large the pieces of what is written or deleted in pieces are."""

from collections.abc import Generator
from contextlib import contextmanager
from time import perf_counter

AT_ONCE = 300
"""Rows of a transaction. The first ones have fewer: rows can be large."""
FIRST_AT_ONCE = 30
SLOW_S = 0.05
"""A transaction that takes longer is followed by a smaller one."""


class Pace:
    """How many rows the next transaction takes."""

    def __init__(self) -> None:
        self._most = FIRST_AT_ONCE

    @contextmanager
    def piece(self) -> Generator[int]:
        """One transaction, and its number of rows."""
        begun, limit = perf_counter(), min(self._most, AT_ONCE)
        yield limit
        self._most = max(limit // 2, 1) if perf_counter() - begun > SLOW_S else limit * 2
