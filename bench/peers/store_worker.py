"""Runs one store in its own environment: reads commands as lines of JSON and writes one line for each."""

import asyncio
import importlib
import json
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from itertools import cycle
from typing import Any

from bench.peers.contender import StoreContender
from bench.peers.store_sample import APPENDS, LATEST, LISTED, READ, ids_of, writers

Call = Callable[[], Awaitable[Any]]


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The quicker event loop, where the environment has it."""
    try:
        import uvloop  # noqa: PLC0415
    except ImportError:
        return None
    return uvloop.new_event_loop


class Worker:
    """A store and what it is asked to do."""

    def __init__(self, store: StoreContender) -> None:
        self._store = store
        self._appended: dict[str, Iterator[str]] = {}

    async def obey(self, command: dict[str, Any]) -> dict[str, Any]:
        """Carries out one command."""
        match command:
            case {"do": "open", "place": place, "lengths": lengths}:
                await self._store.open(place)
                await self._store.fill(lengths)
                return {}
            case {"do": "writers", "turns": turns}:
                return await self._time(lambda: self._write_together(turns), 1, 0)
            case {"do": "close"}:
                await self._store.close()
                return {}
            case {"do": operation, "times": times, "limit_s": limit_s}:
                return await self._time(self._call(operation), times, limit_s)
            case _:
                raise ValueError(command)

    def _call(self, operation: str) -> Call:
        if operation == LATEST:
            return self._read_latest
        if operation == LISTED:
            return self._read_list
        ids = self._appended.setdefault(operation, _ids(operation))
        return lambda: self._store.append(next(ids))

    async def _read_latest(self) -> None:
        assert len(await self._store.latest(READ, 20)) == 20

    async def _read_list(self) -> None:
        assert len(await self._store.list_conversations(20)) == 20

    async def _write_together(self, turns: int) -> None:
        async def write(conversation_id: str) -> None:
            for _ in range(turns):
                await self._store.append(conversation_id)

        await asyncio.gather(*map(write, writers()))

    async def _time(self, call: Call, times: int, limit_s: float) -> dict[str, float]:
        cpu, begun = time.process_time(), time.perf_counter()
        calls, elapsed = 0, 0.0
        while not calls or (calls < times and elapsed < limit_s):
            await call()
            calls += 1
            elapsed = time.perf_counter() - begun
        return {"calls": calls, "wall_s": elapsed, "cpu_s": time.process_time() - cpu}


def _ids(operation: str) -> Iterator[str]:
    ids = ids_of(operation)
    return iter(ids) if APPENDS[operation] == 0 else cycle(ids)


async def main() -> None:
    """Obeys until there are no more commands."""
    worker = Worker(importlib.import_module(f"bench.peers.stores.{sys.argv[1]}").CONTENDER())
    answers, sys.stdout = sys.stdout, sys.stderr  # whatever a library prints is no answer
    while line := sys.stdin.readline():
        try:
            answer = await worker.obey(json.loads(line))
        except Exception as error:  # noqa: BLE001
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(f"{json.dumps(answer)}\n")
        answers.flush()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(main())
