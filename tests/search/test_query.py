"""What a query looks for, and where a text has it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadkeep.search.query import FEWEST_LETTERS, read_query
from threadkeep.search.terms import terms


def finds(query: str, text: str) -> bool:
    """Whether a text has all that a query looks for."""
    asked = read_query(query)
    return bool(asked) and asked.count_in(terms(text)) == asked.length


@pytest.mark.parametrize(
    "word",
    [
        "lighthouse", "organization", "organizations", "hopping", "ponies", "responsibilities", "sensibility",
        "controller", "nationalization", "happily", "generalizations", "Überraschung",
        "маяк", "2026", "ＡＰＩ３",
    ],
)  # fmt: skip
def test_every_beginning_of_a_word_finds_it(word: str):
    for length in range(FEWEST_LETTERS, len(word) + 1):
        assert finds(word[:length], f"about {word}, perhaps"), word[:length]


@given(st.text("abcdefghilmnorstuyz", min_size=FEWEST_LETTERS, max_size=14), st.integers(0, 11))
def test_word_that_keeps_its_letters_is_found_by_its_beginning(word: str, cut: int):
    stem = terms(word)[0]
    assert finds(stem[: max(FEWEST_LETTERS, len(stem) - cut)], word) or len(stem) < FEWEST_LETTERS


def test_only_the_last_word_may_be_a_beginning():
    assert finds("lighthouse kee", "The keeper of the lighthouse")
    assert not finds("kee lighthouse", "The keeper of the lighthouse")


def test_two_letters_are_a_whole_word():
    assert finds("li", "li and others")
    assert not finds("li", "lighthouse")


def test_chinese_needs_all_its_pairs():
    assert finds("违约", "违约金")
    assert not finds("违金", "违约金")
    assert not finds("lighthouse 违约", "lighthouse")


@pytest.mark.parametrize("text", ["", "  ", "*", '"', "!?…，。", "\x00", "-" * 10_000])
def test_query_without_words_looks_for_nothing(text: str):
    assert not read_query(text)


@pytest.mark.parametrize("text", ['"lighth"', "lighth*", "title:lighth", "(lighth"])
def test_signs_are_no_operators(text: str):
    assert finds(text, "title or lighthouse, lighthorse")


@given(st.text(), st.text())
def test_spans_are_in_order_and_apart(text: str, query: str):
    end = -1
    for first, last in read_query(query).spans(text):
        assert end < first < last <= len(text)
        end = last


def test_spans_join_neighbouring_pairs_and_take_whole_words():
    text = "关于合同条款，以及 Contractors。"
    found = list(read_query("合同条款 contr").spans(text))
    assert [text[first:last] for first, last in found] == ["合同条款", "Contractors"]
