"""The terms that a text is found by, the same on every database.

Words are folded (case, accents, full width) and stemmed. Scripts without spaces between words yield
characters and pairs of neighbours: 合同条款 is found by 合, 同, 条, 款, 合同, 同条 and 条款.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

from threadkeep.domain.text import normalized
from threadkeep.search.stem import stem

# Chinese, Japanese and Korean, and Thai, Lao, Khmer and Burmese, which have no spaces either.
_DENSE = (
    "\u0e01-\u0e4e\u0e81-\u0ece\u1000-\u109f\u1100-\u11ff\u1780-\u17d3\u3005-\u3007\u3041-\u3096"
    "\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3131-\u318e\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7a3\uf900-\ufaff\uff66-\uff9d\U00020000-\U0003ffff"
)
# Marks that belong to a word though they aren't letters: accents, Hebrew, Arabic, the scripts of India.
_MARKS = "\u0300-\u036f\u0483-\u0489\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff"
# What is one term or several: dense characters beside each other, or a word.
# Nothing follows that could fail, so a long word costs one step for each of its parts.
RUN = re.compile(f"([{_DENSE}]++)|((?:[^\\W_{_DENSE}]++|[{_MARKS}]++)+)")
_GAP = re.compile(f"[\\W_](?<![{_MARKS}])")
is_dense = re.compile(f"[{_DENSE}]+").fullmatch
# What folding drops: accents, and the spaces and signs into which ⑴ and ﷺ decompose.
_NO_PART = re.compile(r"[\u0300-\u036f\s!-/:-@\[-`{-~]+")

MOST_TERM_CHARACTERS = 40
# Only the beginning of a longer word counts: normalizing is quadratic in a run of accents.
MOST_WORD_CHARACTERS = 160
_MOST_PARTS = 18 * MOST_WORD_CHARACTERS  # a ligature becomes at most 18 letters
WINDOW_CHARACTERS = 1000


def terms(text: str) -> list[str]:
    """All terms of a text, in order and as often as they occur."""
    found: list[str] = []
    for dense, word in RUN.findall(text):
        if word:
            found.append(fold(word))
        else:
            found += dense
            found += _pairs(dense)
    return found


def query_terms(text: str) -> list[str]:
    """What to look for, each once: words and pairs; a single character only if it is alone."""
    found: dict[str, None] = {}
    for dense, word in RUN.findall(text):
        found |= dict.fromkeys(_pairs(dense) or dense) if dense else {fold(word): None}
    return list(found)


def windows(text: str) -> Iterator[tuple[int, int]]:
    """A text in parts small enough to process at once; none ends within a word."""
    begin = 0
    while begin < len(text):
        gap = _GAP.search(text, begin + WINDOW_CHARACTERS)
        end = gap.start() if gap else len(text)
        yield begin, end
        begin = end


def fold(word: str) -> str:
    """The form in which words are compared: without case, accents, width and ending."""
    return _stemmed(word[:MOST_WORD_CHARACTERS])


def fold_beginning(word: str) -> str:
    """The same of a word that may have more letters, and so has its ending."""
    return _folded(word[:MOST_WORD_CHARACTERS])[:MOST_TERM_CHARACTERS]


@lru_cache(maxsize=65536)
def _stemmed(word: str) -> str:
    return stem(_folded(word))[:MOST_TERM_CHARACTERS]


def _folded(word: str) -> str:
    if not word.isascii():
        whole = normalized("NFKD", word, most=MOST_WORD_CHARACTERS)
        word = normalized("NFC", _NO_PART.sub("", whole), most=_MOST_PARTS) or word
    return word.casefold()


def _pairs(dense: str) -> list[str]:
    return [first + second for first, second in pairwise(dense)]
