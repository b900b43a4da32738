"""Everything that `python -m bench` measures, by name."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bench import (
    begin,
    beside,
    branches,
    cold,
    compacted,
    context,
    delays,
    history,
    http,
    memory,
    paths,
    pieces,
    programs,
    prompting,
    reading,
    rest,
    workers,
)
from bench.databases import DATABASES, LARGE_DATABASES
from bench.measure import Effort
from bench.operations import OPERATIONS, through_store
from bench.retrieval import near, speed
from bench.sample import make_sample
from bench.table import Row, Times

TITLES = {"sqlite": "SQLite", "postgres": "PostgreSQL"}


class Asked(NamedTuple):
    """What is to be measured."""

    effort: Effort
    databases: Sequence[str]
    operations: Sequence[str]
    """Of the store."""
    beside: Path | None
    """Another checkout, measured in the same rounds where a group can do that."""
    rests: Sequence[rest.Rest]


class Measured(NamedTuple):
    """A table as it comes; `name` tells it from the others of its group."""

    name: str
    title: str
    rows: Sequence[Row]


Group = Callable[[Asked], AsyncIterator[Measured]]


async def _store(asked: Asked) -> AsyncIterator[Measured]:
    for name in asked.databases:
        # A slow disk is only interesting where writers share it.
        operations = [it for it in asked.operations if name != "slow-disk" or it == "writers"]
        sample = make_sample(asked.effort)
        async with DATABASES[name](sample.dataset) as copies:
            if operations:
                rows = await through_store(copies, asked.effort, sample, operations)
                yield Measured(name, copies.title, rows)


async def _http(asked: Asked) -> AsyncIterator[Measured]:
    for name in _large(asked):
        sample = make_sample(asked.effort)
        async with DATABASES[name](sample.dataset) as copies:
            yield Measured(name, copies.title, http.through_http(copies, sample, asked.effort))


async def _memory(asked: Asked) -> AsyncIterator[Measured]:
    for name in _large(asked):
        yield Measured(name, TITLES[name], list(memory.measure(asked.effort, name)))


async def _cold(asked: Asked) -> AsyncIterator[Measured]:
    yield Measured("", "SQLite", list(cold.measure(asked.effort)))


async def _rest(asked: Asked) -> AsyncIterator[Measured]:
    yield Measured("", "SQLite, 50 turns", list(rest.measure(asked.effort, asked.rests)))


async def _workers(asked: Asked) -> AsyncIterator[Measured]:
    if "postgres" in asked.databases:
        yield Measured("", "PostgreSQL; the floor is one worker", list(workers.measure(asked.effort)))


async def _reading(asked: Asked) -> AsyncIterator[Measured]:
    yield Measured("", "The floor is httpx2's transport", await reading.measure(asked.effort))


async def _programs(asked: Asked) -> AsyncIterator[Measured]:
    for name in _large(asked):
        yield Measured(name, TITLES[name], [row async for row in programs.measure(asked.effort, name)])


def _on_each(measure: Callable[[Effort, str, Path | None], Iterable[Row]]) -> Group:
    """A group that measures one database after the other."""

    async def measured(asked: Asked) -> AsyncIterator[Measured]:
        for name in _large(asked):
            yield Measured(name, TITLES[name], list(measure(asked.effort, name, asked.beside)))

    return measured


def _at_once(measure: Callable[[Effort, Sequence[str]], Awaitable[Sequence[Times]]]) -> Group:
    """A group that gives all its rows in one table."""

    async def measured(asked: Asked) -> AsyncIterator[Measured]:
        yield Measured("", "", await measure(asked.effort, asked.databases))

    return measured


def _large(asked: Asked) -> list[str]:
    return [name for name in LARGE_DATABASES if name in asked.databases]


GROUPS: Mapping[str, Group] = {
    "begin": _on_each(begin.measure),
    "pieces": _on_each(pieces.measure),
    "delays": _on_each(delays.measure),
    "rest": _rest,
    "store": _store,
    "workers": _workers,
    "programs": _programs,
    "memory": _memory,
    "cold": _cold,
    "context": _at_once(context.measure),
    "branches": _at_once(branches.measure),
    "http": _http,
    "prompt": _at_once(prompting.measure),
    "compaction": _at_once(compacted.measure),
    "paths": _at_once(paths.measure),
    "reading": _reading,
    "ingest": _at_once(beside.measure),
    "search": _at_once(speed.measure),
    "near": _at_once(near.measure),
    "history": _at_once(history.measure),
}
LONG = ("ingest", "search", "near", "history")
"""Only measured when asked for by name: each takes minutes."""
ASKABLE = (*GROUPS, *OPERATIONS)
