"""The store against the floor: direct `sqlite3` or psycopg with the same SQL and the same durability."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any, cast

from bench.contender import Contender, Floor
from bench.databases import Copies, open_floor
from bench.measure import Block, Call, Effort, block, calls_a_block, compare, compare_blocks, race
from bench.ours import Threadkeep
from bench.sample import READER, WARM_UP_TURNS, WRITERS, Sample, check_same_rows
from bench.table import Aim, Line, Row
from threadkeep.domain.ids import ConversationId
from threadkeep.storage.store import open_store


@dataclass(frozen=True, slots=True)
class Sides:
    """The two contenders, and what is there for them."""

    floor: Floor
    ours: Contender
    sample: Sample
    writers_aim: Aim | None


Operation = Callable[[Sides, Effort], Awaitable[Sequence[Line]]]
Reading = Callable[[Contender], Awaitable[Sequence[object]]]


async def append(sides: Sides, effort: Effort) -> Sequence[Line]:
    """A turn at the end of a short, a long and a very long conversation."""
    calls = {
        (side, length): _appender(contender, ids)
        for length, ids in sides.sample.appended.items()
        for side, contender in (("floor", sides.floor), ("ours", sides.ours))
    }
    for call in calls.values():
        await block(call, WARM_UP_TURNS)
    blocks = await race(calls, rounds=effort.append_rounds, times=effort.turns_a_block)
    lines = [
        Line(
            f"append a turn to {length:,}",
            compare_blocks(blocks["floor", length], blocks["ours", length]),
            Aim("≤", 1.6),
        )
        for length in sides.sample.appended
    ]
    shortest, longest = min(sides.sample.appended), max(sides.sample.appended)
    flatness = compare_blocks(blocks["ours", shortest], blocks["ours", longest])
    name = f"Threadkeep alone: {longest:,} against {shortest}"
    return [*lines, Line(name, flatness, Aim("≤", 1.2))]


async def latest(sides: Sides, effort: Effort) -> Sequence[Line]:
    """The newest messages of a very long conversation."""
    read = sides.sample.read
    return [
        Line(
            f"latest {limit} of 5,000",
            compare_blocks(**await _read(sides, effort, lambda it, n=limit: it.latest(read, n), limit)),
            Aim("≤", 2),
        )
        for limit in (20, 50)
    ]


async def conversations(sides: Sides, effort: Effort) -> Sequence[Line]:
    """The first page of a long list."""
    blocks = await _read(sides, effort, lambda it: it.conversations(READER, 20), 20)
    return [Line("list 20 of 1,000 conversations", compare_blocks(**blocks), Aim("≤", 2))]


async def main(sides: Sides, effort: Effort) -> Sequence[Line]:
    """Get-or-create where there is nothing to create."""
    agent = sides.sample.dataset.agent_id
    blocks = await _read(sides, effort, lambda it: it.main(READER, agent), 1)
    return [Line("get-or-create an existing one", compare_blocks(**blocks))]


async def writers(sides: Sides, effort: Effort) -> Sequence[Line]:
    """32 writers at once through the store, against one connection that serves them one by one."""
    sample, turns = sides.sample, effort.turns_a_writer

    async def one_by_one(
        append: Callable[[ConversationId], Awaitable[None]], ids: Sequence[ConversationId]
    ) -> None:
        for _ in range(turns):
            for id_ in ids:
                await append(id_)

    async def all_at_once() -> None:
        await asyncio.gather(*(one_by_one(sides.ours.append, [id_]) for id_ in sample.writers))

    calls: Mapping[str, Call] = {
        "ours": all_at_once,
        "two": lambda: one_by_one(sides.floor.append, sample.writers),
        "one": lambda: one_by_one(sides.floor.append_at_once, sample.hasty),
    }
    blocks = await race(calls, rounds=effort.writer_rounds, times=1)
    ours, two, one = (
        [WRITERS * turns * 1e6 / it.wall for it in blocks[name]] for name in ("ours", "two", "one")
    )
    name = f"{WRITERS} writers, against one with"
    return [
        Line(f"{name} the same two commits a turn", compare(two, ours), sides.writers_aim, "turns/s"),
        Line(f"{name} a single commit a turn", compare(one, ours), unit="turns/s"),
    ]


OPERATIONS: Mapping[str, Operation] = {
    "append": append,
    "latest": latest,
    "list": conversations,
    "main": main,
    "writers": writers,
}


async def through_store(copies: Copies, effort: Effort, sample: Sample, names: Sequence[str]) -> list[Row]:
    """The operations on one database; at the end both sides must have left the same rows."""
    floor = await open_floor(copies.floor_url, sample.dataset)
    ours = Threadkeep(await open_store(copies.ours_url), sample.dataset)
    sides = Sides(floor, ours, sample, copies.writers_aim)
    rows: list[Row] = [line for name in names for line in await OPERATIONS[name](sides, effort)]
    await ours.close()
    witness = await open_floor(copies.ours_url, sample.dataset)
    await check_same_rows(floor, witness)
    await witness.close()
    await floor.close()
    return rows


def _appender(contender: Contender, ids: Sequence[ConversationId]) -> Call:
    turn = cycle(ids)
    return lambda: contender.append(next(turn))


async def _read(sides: Sides, effort: Effort, reading: Reading, count: int) -> dict[str, list[Block]]:
    calls: Mapping[str, Call] = {"floor": lambda: reading(sides.floor), "ours": lambda: reading(sides.ours)}
    found = [[_id(it) for it in await reading(side)] for side in (sides.floor, sides.ours)]
    assert found[0] == found[1] and len(found[0]) == count, "floor and Threadkeep read different things"
    times = await calls_a_block(calls, effort.read_block_ms)
    return await race(calls, rounds=effort.read_rounds, times=times)


def _id(thing: Any) -> object:
    return cast("tuple[object, ...]", thing)[0] if isinstance(thing, tuple) else thing.id
