"""How texts become search terms."""

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from threadkeep.search.stem import stem
from threadkeep.search.terms import MOST_TERM_CHARACTERS, query_terms, terms


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        # The examples of Porter's paper.
        ("caresses", "caress"), ("ponies", "poni"), ("cats", "cat"), ("feed", "feed"), ("agreed", "agre"),
        ("plastered", "plaster"), ("bled", "bled"), ("motoring", "motor"), ("sing", "sing"),
        ("conflated", "conflat"), ("troubled", "troubl"), ("sized", "size"), ("hopping", "hop"),
        ("falling", "fall"), ("hissing", "hiss"), ("failing", "fail"), ("filing", "file"), ("happy", "happi"),
        ("sky", "sky"), ("relational", "relat"), ("conditional", "condit"), ("rational", "ration"),
        ("digitizer", "digit"), ("operator", "oper"), ("feudalism", "feudal"), ("hopefulness", "hope"),
        ("formality", "formal"), ("sensibility", "sensibl"), ("triplicate", "triplic"),
        ("electrical", "electr"), ("goodness", "good"), ("revival", "reviv"), ("allowance", "allow"),
        ("adjustment", "adjust"), ("adoption", "adopt"), ("homologous", "homolog"), ("probate", "probat"),
        ("rate", "rate"), ("cease", "ceas"), ("controller", "control"), ("roll", "roll"),
        ("replacement", "replac"), ("generalizations", "gener"), ("oscillators", "oscil"),
    ],
)  # fmt: skip
def test_stem_is_porters(word: str, expected: str):
    assert stem(word) == expected


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("paying", "pays"),
        ("terminated", "TERMINATION"),
        ("Café", "cafe"),
        ("ＡＰＩ", "api"),
        ("naïve", unicodedata.normalize("NFD", "naïve")),
        ("Straße", "strasse"),
        ("⑴", "1"),
    ],
)
def test_forms_of_one_word_are_one_term(text: str, other: str):
    assert terms(text) == terms(other)


def test_chinese_gives_characters_and_pairs():
    assert terms("违约金") == ["违", "约", "金", "违约", "约金"]


def test_scripts_beside_each_other_are_kept_apart():
    assert terms("Review耗时30小时") == ["review", "耗", "时", "耗时", "30", "小", "时", "小时"]


def test_hindi_word_with_its_marks_is_one_term():
    assert terms("हिन्दी") == ["हिन्दी"]


def test_query_looks_for_pairs_and_for_a_character_that_stands_alone():
    assert query_terms("税") == ["税"]
    assert query_terms("合同税 合同") == ["合同", "同税"]


@pytest.mark.parametrize("text", ["", "   ", "!?…，。", "___", "\x00\u200b"])
def test_text_without_words_has_no_terms(text: str):
    assert terms(text) == query_terms(text) == []


@given(st.text())
def test_what_is_asked_for_is_among_the_terms_of_the_same_text(text: str):
    assert set(query_terms(text)) <= set(terms(text))


@given(st.text())
@example("\ufdfa ⑴ ½")
def test_terms_are_short_and_without_spaces(text: str):
    for term in terms(text):
        assert term
        assert len(term) <= MOST_TERM_CHARACTERS
        assert not any(character.isspace() for character in term)
