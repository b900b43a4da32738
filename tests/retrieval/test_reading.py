"""Long texts taken apart between other requests."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadkeep.search.query import Query, read_query
from threadkeep.search.reading import first_places, terms_of
from threadkeep.search.terms import terms

TEXTS = st.text(st.sampled_from("合同条款ab é́\u0301_.\n1"), max_size=60)


@pytest.fixture(autouse=True)
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("threadkeep.search.terms.WINDOW_CHARACTERS", 3)


@given(TEXTS)
def test_text_taken_apart_in_parts_has_the_terms_of_the_whole(text: str):
    assert asyncio.run(terms_of(text)) == terms(text)


@given(TEXTS, TEXTS, st.integers(1, 20))
def test_places_are_those_of_the_whole_text_near_the_first(text: str, query: str, within: int):
    wanted = read_query(query)
    whole = list(wanted.spans(text))
    near = [place for place in whole if place[0] < whole[0][0] + within]
    assert asyncio.run(first_places(text, wanted, within)) == near


async def test_others_come_between_the_parts_of_a_long_text():
    others_turns = 0

    async def other() -> None:
        nonlocal others_turns
        while True:
            others_turns += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(other())
    await terms_of("one two three " * 100)
    await first_places("one two three " * 100, Query(frozenset({"four"})), within=10)
    beside.cancel()
    assert others_turns > 200
