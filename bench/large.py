"""Prints how long list and detail take with a million messages and 32 clients: `python -m bench.large`."""

import argparse
import asyncio
import random
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from statistics import quantiles

import uvloop

from bench import results
from bench.client import Clients, Request, Timed, request
from bench.data import Dataset, make_conversation
from bench.databases import LARGE_DATABASES
from bench.servers import serve_threadkeep
from bench.table import render
from threadkeep.domain.conversation import Conversation, ConversationFilter
from threadkeep.domain.ids import AgentId, UserId, new_uuid
from threadkeep.domain.message import MessageWindow
from threadkeep.domain.user import User
from threadkeep.http.sign_in.access_tokens import issue_token
from threadkeep.storage.store import Store, open_store

USERS, CONVERSATIONS, LENGTH, LONGEST = 200, 20_000, 50, 10_000
CLIENTS = 32
AIM_MS = 100
SECRET = "only for this measurement, nobody else has it"

HEADINGS = ("database", "way", "operation", "requests/s", "P50 ms", "P99 ms", "most ms", "aim", "")


@dataclass(frozen=True, slots=True)
class Step:
    """One request of a client."""

    name: str
    conversation: Conversation


def make_large() -> Dataset:
    """A million messages of 200 users, and one conversation that is long."""
    agent = AgentId(new_uuid())
    users = [UserId(f"user-{number}") for number in range(USERS)]
    many = (
        make_conversation(users[number % USERS], agent, length=LENGTH, age=number)
        for number in range(CONVERSATIONS)
    )
    return Dataset(agent, [make_conversation(users[0], agent, length=LONGEST), *many])


def steps(dataset: Dataset, seed: int) -> Iterator[Step]:
    """What a client asks for, without end: lists and details of anybody, the long one now and then."""
    chance = random.Random(seed)
    while True:
        anybody = chance.choice(dataset.conversations)
        yield Step("list", anybody)
        yield Step("detail", anybody if chance.random() < 0.95 else dataset.conversations[0])


@dataclass(frozen=True, slots=True)
class Run:
    """The times of one run, and how long it took in all."""

    times: Sequence[Timed]
    seconds: float


async def through_store(url: str, dataset: Dataset, count: int) -> Run:
    """32 tasks in this process."""
    store = await open_store(url)
    await _drive(store, dataset, count // 10)
    begun = time.perf_counter()
    times = await _drive(store, dataset, count)
    took = time.perf_counter() - begun
    await store.close()
    return Run(times, took)


async def _drive(store: Store, dataset: Dataset, count: int) -> list[Timed]:
    times: list[Timed] = []

    async def client(number: int) -> None:
        for step in islice(steps(dataset, number), count // CLIENTS):
            begun = time.perf_counter()
            await _take(store, step)
            times.append(Timed(step.name, time.perf_counter() - begun))

    await asyncio.gather(*map(client, range(CLIENTS)))
    return times


async def _take(store: Store, step: Step) -> None:
    wanted = step.conversation
    if step.name == "list":
        page = await store.conversations.page(
            wanted.user_id, ConversationFilter(), after=None, offset=0, limit=20
        )
        assert len(page) == 20
        return
    assert await store.conversations.get(wanted.user_id, wanted.id)
    messages = await store.messages.page(wanted.id, MessageWindow(newest_first=True), offset=0, limit=50)
    assert len(messages) == 50


async def through_http(url: str, dataset: Dataset, count: int) -> Run:
    """32 connections to a server in a process of its own, each user signed in."""
    tokens = {
        user_id: issue_token(SECRET, User(user_id), 3600)
        for user_id in {it.user_id for it in dataset.conversations}
    }

    def requests() -> Iterator[Request]:
        for step in steps(dataset, 0):
            path = "" if step.name == "list" else f"/{step.conversation.id}"
            token = tokens[step.conversation.user_id]
            yield request("GET", f"/api/conversations{path}", name=step.name, token=token)

    with serve_threadkeep(url, THREADKEEP_JWT_SECRET=SECRET) as server:
        clients = Clients(server.port, CLIENTS)
        clients.drive(islice(requests(), count // 10))
        begun = time.perf_counter()
        times = clients.drive(islice(requests(), count))
        took = time.perf_counter() - begun
        clients.close()
    return Run(times, took)


def cells(database: str, way: str, run: Run) -> Iterator[tuple[str, ...]]:
    """The lines of one measurement."""
    by_name: dict[str, list[float]] = defaultdict(list)
    for it in run.times:
        by_name[it.name].append(it.seconds * 1000)
    for name, milliseconds in by_name.items():
        hundredths = quantiles(milliseconds, n=100)
        p50, p99, most = hundredths[49], hundredths[98], max(milliseconds)
        verdict = "ok" if p99 < AIM_MS else "miss"
        rate = f"{len(milliseconds) / run.seconds:,.0f}"
        yield (
            database, way, name, rate, f"{p50:.1f}", f"{p99:.1f}", f"{most:.1f}", f"< {AIM_MS}", verdict
        )  # fmt: skip


WAYS = {"store": through_store, "HTTP": through_http}


async def main(arguments: argparse.Namespace) -> None:
    """Every database, through the store and through HTTP."""
    lines: list[tuple[str, ...]] = []
    here = results.Run.now(is_quick=False)
    for name, opened in LARGE_DATABASES.items():
        if arguments.database not in (None, name):
            continue
        dataset = make_large()
        async with opened(dataset) as url:
            for way, run in WAYS.items():
                lines += cells(name, way, await run(url, dataset, arguments.requests))
    print(render(lines, HEADINGS, markdown=False))
    if arguments.save:
        results.save_texts("large", "", HEADINGS, lines, here)


def parse(arguments: list[str]) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser("python -m bench.large", description=__doc__)
    parser.add_argument("--requests", type=int, default=12_000, help="how many each way, half of them lists")
    parser.add_argument("--database", choices=LARGE_DATABASES, help="on one database only")
    parser.add_argument("--save", action="store_true", help="keep the figures for docs/performance.md")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    uvloop.run(main(parse(sys.argv[1:])))
