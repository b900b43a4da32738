"""Texts of words as common as in a language."""

import random

VOCABULARY = 30_000


def words(chance: random.Random, count: int) -> str:
    """Words of which the n-th comes as often as one through n."""
    return " ".join(f"word{int(VOCABULARY ** chance.random())}" for _ in range(count))
