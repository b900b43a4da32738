"""English stemming: Porter's algorithm of 1980, so that `paying` finds `payment`.

By hand: stems are stored, so another algorithm, or another version of a library, would need a new index.
"""

import re
from functools import lru_cache

# `C` and `V` stand for a consonant and a vowel; `y` is a vowel after a consonant.
_VOWEL = re.compile(r"[aeiou]|(?<=[^aeiou])y")
_CONSONANT = re.compile("[^V]")

_STEP_2 = {
    "ational": "ate", "tional": "tion", "enci": "ence", "anci": "ance", "izer": "ize", "abli": "able",
    "alli": "al", "entli": "ent", "eli": "e", "ousli": "ous", "ization": "ize", "ation": "ate",
    "ator": "ate", "alism": "al", "iveness": "ive", "fulness": "ful", "ousness": "ous", "aliti": "al",
    "iviti": "ive", "biliti": "ble",
}  # fmt: skip
_STEP_3 = {
    "icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": "",
}  # fmt: skip
_STEP_4 = dict.fromkeys(
    (
        "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "sion", "tion",
        "ou", "ism", "ate", "iti", "ous", "ive", "ize",
    ),
    "",
) | {"sion": "s", "tion": "t"}  # fmt: skip
# The endings that stemming takes off, as they are typed: `y` where a later step sees `i`.
_ENDINGS = frozenset(
    re.sub("i$", "y", ending) for ending in ("s", "ies", "ed", "eed", "ing", *_STEP_2, *_STEP_3, *_STEP_4)
)


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """The stem of a word in lower-case ASCII letters; other words are their own stem."""
    if len(word) < 3 or not word.isascii() or not word.isalpha():
        return word
    word = _without_plural(word)
    word = _without_tense(word)
    if word.endswith("y") and _has_vowel(word[:-1]):
        word = word[:-1] + "i"
    for endings, least in ((_STEP_2, 0), (_STEP_3, 0), (_STEP_4, 1)):
        word = _replaced(word, endings, least)
    if word.endswith("e") and (
        _measure(word[:-1]) > 1 or (_measure(word[:-1]) == 1 and not _is_short(word[:-1]))
    ):
        word = word[:-1]
    return word[:-1] if word.endswith("ll") and _measure(word) > 1 else word


def begun_stems(beginning: str) -> frozenset[str]:
    """The stems of words that begin like this but lose some of these letters; those that keep them all have
    stems that begin with them.
    """
    rests = {
        ending[length:]
        for ending in _ENDINGS
        for length in range(len(ending))
        if beginning.endswith(ending[:length])
    }
    stems = {stem(beginning + rest) for rest in ("", *rests)}
    return frozenset(it for it in stems if not it.startswith(beginning))


def _without_plural(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _without_tense(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) else word
    ending = next((it for it in ("ed", "ing") if word.endswith(it)), "")
    if not ending or not _has_vowel(word[: -len(ending)]):
        return word
    word = word[: -len(ending)]
    if word.endswith(("at", "bl", "iz")):
        return word + "e"
    if len(word) > 1 and word[-1] == word[-2] and word[-1] not in "aeioulsz":
        return word[:-1]
    return word + "e" if _measure(word) == 1 and _is_short(word) else word


def _replaced(word: str, endings: dict[str, str], least: int) -> str:
    """The word with its longest known ending replaced, if enough of the word remains before it."""
    for length in range(min(7, len(word)), 1, -1):
        ending = word[-length:]
        if ending in endings:
            begin = word[:-length] + endings[ending]
            kept = begin if least else word[:-length]
            return begin if _measure(kept) > least else word
    return word


def _shape(word: str) -> str:
    return _CONSONANT.sub("C", _VOWEL.sub("V", word))


def _measure(word: str) -> int:
    """How often consonants follow vowels. Counted, not matched: `V+C+` is quadratic in a run of vowels."""
    return _shape(word).count("VC")


def _has_vowel(word: str) -> bool:
    return "V" in _shape(word)


def _is_short(word: str) -> bool:
    return _shape(word).endswith("CVC") and word[-1] not in "wxy"
