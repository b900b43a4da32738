"""What a person looks for in conversations, and where a text has it.

Every word must occur. The last may still be being typed, so it also finds the words that it begins:
`lighth` finds `lighthouse`.
"""

import heapq
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from threadkeep.search.stem import begun_stems
from threadkeep.search.terms import RUN, fold, fold_beginning, is_dense, query_terms

FEWEST_LETTERS = 3
"""A shorter last word finds only itself: too much begins with two letters."""


@dataclass(frozen=True, slots=True)
class BegunWord:
    """The last word of a query, perhaps without its last letters."""

    beginning: str
    stems: frozenset[str]
    """The stems of words that it begins, but that lose some of its letters: `organiza` begins `organization`,
    whose stem is `organ`.
    """

    def finds(self, term: str) -> bool:
        """Whether a text with this term is found."""
        return term.startswith(self.beginning) or term in self.stems


@dataclass(frozen=True, slots=True)
class Query:
    """Whole terms, and a word that may go on."""

    terms: frozenset[str]
    begun: BegunWord | None = None

    def __bool__(self) -> bool:
        """Whether there is anything to look for."""
        return bool(self.terms or self.begun)

    @property
    def length(self) -> int:
        """How many terms a text must have."""
        return len(self.terms) + (self.begun is not None)

    def count_in(self, found: Collection[str]) -> int:
        """How many of them are among these."""
        whole = len(self.terms.intersection(found))
        return whole + (self.begun is not None and any(map(self.begun.finds, found)))

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Where a text has them, in order, with touching and overlapping places joined."""
        begin = end = -1
        for first, last in self.places(text):
            if first > end:
                if end > 0:
                    yield begin, end
                begin = first
            end = max(end, last)
        if end > 0:
            yield begin, end

    def places(self, text: str) -> Iterator[tuple[int, int]]:
        """Where a text has them, one by one, in order."""
        dense_terms = [term for term in self.terms if is_dense(term)]
        for match in RUN.finditer(text):
            if match[1]:
                yield from heapq.merge(*(_occurrences(text, term, *match.span()) for term in dense_terms))
            elif (term := fold(match[2])) in self.terms or (self.begun and self.begun.finds(term)):
                yield match.span()


def read_query(text: str) -> Query:
    """A query as a person types it; signs mean nothing in it."""
    last = next(reversed([*RUN.finditer(text)]), None)
    if last is None or not last[2] or len(beginning := fold_beginning(last[2])) < FEWEST_LETTERS:
        return Query(frozenset(query_terms(text)))
    return Query(frozenset(query_terms(text[: last.start()])), BegunWord(beginning, begun_stems(beginning)))


def _occurrences(text: str, term: str, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Searches the whole run, not each character: it may be as long as the text."""
    while (begin := text.find(term, begin, end)) >= 0:
        yield begin, begin + len(term)
        begin += 1
