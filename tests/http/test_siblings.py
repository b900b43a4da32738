"""What the processes of one server tell each other."""

import asyncio
from collections.abc import Iterator

import pytest

from threadkeep.http.siblings import Lines, Siblings, connect_siblings

MUCH = "metric 1\n" * 100_000
"""More than a socket holds."""


@pytest.fixture
def lines() -> Iterator[Lines]:
    lines = connect_siblings(2)
    yield lines
    for end in (end for line in lines for end in line):
        end.close()


async def test_workers_that_ask_each_other_at_once_hear_everything(lines: Lines):
    processes = [Siblings(number, lines) for number in (1, 2)]
    for process in processes:
        process.respond_with(lambda number=process.number: f"{number}\n{MUCH}")
    heard = await asyncio.wait_for(asyncio.gather(*(process.ask() for process in processes)), 30)
    assert heard == [{1: f"1\n{MUCH}", 2: f"2\n{MUCH}"}] * 2


async def test_worker_that_does_not_run_is_left_out(lines: Lines):
    alone = Siblings(1, lines)
    alone.respond_with(lambda: "mine")
    assert await alone.ask() == {1: "mine"}
