"""What it costs the stores to keep and to read turns."""

import contextlib
import json
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Timer
from typing import Any

from tests.postgres import PostgresServer

from bench.peers.contender import StoreContender
from bench.peers.effort import Effort
from bench.peers.environments import python_of
from bench.peers.processes import Process, disk_bytes, end, process_in, start
from bench.peers.progress import say
from bench.peers.results import Result
from bench.peers.store_sample import APPENDS, LATEST, LISTED, TOGETHER, WRITERS, lengths
from bench.peers.turns import Figures, rotated

TURNS_A_BLOCK, READS_A_BLOCK = 5, 50
BLOCK_S = 0.5
WARM_UP = 2
LONGEST_S = 300
"""For one command; a store that takes longer is ended."""


class Store:
    """A store in a process of its own."""

    def __init__(self, name: str, contender: StoreContender, folder: Path, url: str | None) -> None:
        self.contender = contender
        self.folder = folder
        folder.mkdir(parents=True)
        self._place = url or str(folder)
        command = [str(python_of(contender.lock)), "-m", "bench.peers.store_worker", name]
        self._running = start(command, folder, talks=True)
        self.spent_s: dict[str, float] = {}

    @property
    def process(self) -> Process:
        """What is measured of it."""
        return process_in(self.folder, self._running.pid)

    def fill(self) -> None:
        """Makes all conversations."""
        self.ask(do="open", place=self._place, lengths=lengths(lists=self.contender.lists))

    def ask(self, **command: Any) -> dict[str, Any]:
        """Has it do something."""
        assert self._running.stdin and self._running.stdout
        self._running.stdin.write(f"{json.dumps(command)}\n")
        self._running.stdin.flush()
        patience = Timer(LONGEST_S, self._running.kill)
        patience.start()
        line = self._running.stdout.readline()
        patience.cancel()
        if not line:
            raise RuntimeError(f"it ended: {self.folder.with_suffix('.log').read_text()[-300:]}")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def close(self) -> None:
        """Ends it."""
        with contextlib.suppress(RuntimeError, OSError):
            self.ask(do="close")
        end(self._running)


def measure_stores(
    contenders: Mapping[str, StoreContender], results: Mapping[str, Result], effort: Effort, folder: Path
) -> None:
    """Rounds of every operation, in which every store has its turn; who goes first changes every round."""
    with contextlib.ExitStack() as stack:
        stores = _fill(contenders, results, folder, stack)
        for operation in (*APPENDS, LATEST, LISTED, TOGETHER):
            say(f"{operation}")
            able = {name: it for name, it in stores.items() if it.contender.lists or operation != LISTED}
            _warm_up(operation, able, results)
            for number in range(effort.store_rounds):
                for name in rotated(list(able), number):
                    if able[name].spent_s.get(operation, 0) > effort.store_budget_s:
                        continue
                    try:
                        results[name].add(number, _block(able[name], operation, effort))
                    except (RuntimeError, OSError) as error:
                        results[name].fail(operation, error)
                        able.pop(name)


def _fill(
    contenders: Mapping[str, StoreContender],
    results: Mapping[str, Result],
    folder: Path,
    stack: contextlib.ExitStack,
) -> dict[str, Store]:
    """Starts and fills all of them, two at a time: nothing of it is measured."""
    postgres: PostgresServer | None = None
    stores: dict[str, Store] = {}
    for name, contender in contenders.items():
        url: str | None = None
        try:
            if contender.database == "postgres":
                postgres = postgres or stack.enter_context(PostgresServer(durable=True))
                url = postgres.create_database(f"peer_{name}")
            stores[name] = Store(name, contender, folder / name, url)
        except (RuntimeError, OSError) as error:
            results[name].fail("starting", error)
            continue
        stack.callback(stores[name].close)

    def fill(name: str) -> str | None:
        say(f"filling {contenders[name].title}")
        try:
            stores[name].fill()
        except (RuntimeError, OSError) as error:
            results[name].fail("filling", error)
            return None
        return name

    with ThreadPoolExecutor(2) as threads:
        filled = [name for name in threads.map(fill, stores) if name]
    return {name: stores[name] for name in filled}


def _warm_up(operation: str, stores: dict[str, Store], results: Mapping[str, Result]) -> None:
    for name in list(stores):
        try:
            if operation == TOGETHER:
                stores[name].ask(do="writers", turns=1)
            else:
                stores[name].ask(do=operation, times=WARM_UP, limit_s=BLOCK_S)
        except (RuntimeError, OSError) as error:
            results[name].fail(operation, error)
            stores.pop(name)


def _block(store: Store, operation: str, effort: Effort) -> Figures:
    """One round of one store."""
    syncs = store.process.syncs()
    if operation == TOGETHER:
        return dict(_together(store, effort.turns_a_writer))
    times = TURNS_A_BLOCK if operation in APPENDS else READS_A_BLOCK
    done = store.ask(do=operation, times=times, limit_s=BLOCK_S)
    store.spent_s[operation] = store.spent_s.get(operation, 0) + done["wall_s"]
    calls = done["calls"]
    figures: Figures = {
        f"{operation} µs": done["wall_s"] * 1e6 / calls,
        f"{operation} CPU µs": done["cpu_s"] * 1e6 / calls,
    }
    if operation in APPENDS and syncs is not None and store.contender.database == "sqlite":
        figures[f"{operation} syncs"] = ((store.process.syncs() or 0) - syncs) / calls
    return figures


def _together(store: Store, turns: int) -> Iterator[tuple[str, float | None]]:
    kept = disk_bytes(store.folder)
    done = store.ask(do="writers", turns=turns)
    store.spent_s[TOGETHER] = store.spent_s.get(TOGETHER, 0) + done["wall_s"]
    yield f"{TOGETHER} turns/s", WRITERS * turns / done["wall_s"]
    yield f"{TOGETHER} CPU µs a turn", done["cpu_s"] * 1e6 / WRITERS / turns
    if store.contender.database == "sqlite":
        yield "disk bytes a turn", (disk_bytes(store.folder) - kept) / WRITERS / turns
