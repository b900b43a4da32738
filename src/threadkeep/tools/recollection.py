"""Finds the memories relevant to a question."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Protocol

from threadkeep.domain.memory import Memory

# A memory that contains less of the question than this matches by chance.
LEAST_SCORE = 0.2
# Words that say nothing about the question.
_EMPTY = (
    "a about an and any are as at be been but by can did do does for from had has have he her his how i if "
    "in is it its me my of on or our she so that the their them they this to user was we were what when "
    "where which who why will with would you your"
)


class Words(Protocol):
    """How texts are split into terms for searching, in any language."""

    def terms(self, text: str) -> Sequence[str]:
        """All terms that a text is found by."""
        ...

    def query_terms(self, text: str) -> Sequence[str]:
        """What to look for."""
        ...


def find(
    query: str, memories: Sequence[Memory], words: Words, *, most: int
) -> Sequence[tuple[Memory, float]]:
    """The memories that answer a question, best first and newer before older, with a score from 0 to 1.

    The score is the share of the question's words that a memory contains; rare words count more. A question
    that asks for nothing in particular returns the newest, which come first in `memories`.
    """
    asked = frozenset(words.query_terms(query)).difference(words.query_terms(_EMPTY))
    if not asked:
        return [(memory, 1.0) for memory in memories[:most]]
    held = [asked.intersection(words.terms(" ".join((it.content, *it.tags)))) for it in memories]
    times = Counter(word for found in held for word in found)
    weights = {word: math.log(1 + len(memories) / (times[word] or 1)) for word in asked}
    whole = sum(weights.values())
    scored = [
        (memory, sum(weights[word] for word in found) / whole)
        for memory, found in zip(memories, held, strict=True)
        if found
    ]
    best = sorted(scored, key=lambda it: (it[1], it[0].id), reverse=True)
    return [(memory, score) for memory, score in best[:most] if score >= LEAST_SCORE]
