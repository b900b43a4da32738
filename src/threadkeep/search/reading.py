"""Splits long texts into terms in the event loop, a little at a time between other requests.

A thread would delay others for longer: it competes for the GIL, which the event loop gives up with every
row that it reads and every byte that it sends.
"""

import asyncio

from threadkeep.search.query import Query
from threadkeep.search.terms import MOST_WORD_CHARACTERS, terms, windows


async def terms_of(text: str) -> list[str]:
    """All terms of a text, in order and as often as they occur."""
    found: list[str] = []
    for begin, end in windows(text):
        found += terms(text[begin:end])
        await asyncio.sleep(0)
    return found


async def first_places(text: str, query: Query, within: int) -> list[tuple[int, int]]:
    """The first place in a text of what a query looks for, and those at most `within` characters after it."""
    for window_begin, window_end in windows(text):
        place = next(query.places(text[window_begin:window_end]), None)
        if place is not None:
            first = window_begin + place[0]
            near = text[first : first + within + MOST_WORD_CHARACTERS]
            return [(first + begin, first + end) for begin, end in query.spans(near) if begin < within]
        await asyncio.sleep(0)
    return []
