"""Threads for functions that aren't `async`."""

import asyncio
import inspect
import threading
from typing import Any

import pytest

from threadkeep.agents import threads
from threadkeep.agents.threads import Threads
from threadkeep.testing.waiting import until


async def test_a_function_returns_and_raises_and_knows_its_context():
    pool = Threads("t", 2)
    assert await pool.run(None, max, 1, 2) == 2

    def fails(kind: type[BaseException]) -> None:
        raise kind("x")

    for kind in (ValueError, SystemExit, KeyboardInterrupt):
        with pytest.raises(kind):
            await pool.run(None, fails, kind)
    with pytest.raises(RuntimeError, match="raised StopIteration"):
        await pool.run(None, fails, StopIteration)
    assert await pool.run(None, lambda: threading.current_thread().daemon)


async def test_at_most_so_many_run_at_once_and_who_waits_is_known():
    pool = Threads("t", 2)
    let_go = threading.Event()
    owner, other = object(), object()
    first = [asyncio.create_task(pool.run(owner, let_go.wait, 20)) for _ in range(2)]
    await asyncio.sleep(0)
    await until(lambda: not pool.keeps_waiting(owner))
    second = asyncio.create_task(pool.run(owner, lambda: "second"))
    third = asyncio.create_task(pool.run(owner, lambda: "third"))
    await asyncio.sleep(0)
    assert pool.keeps_waiting(owner)
    assert not pool.keeps_waiting(other)
    third.cancel()
    let_go.set()
    assert await second == "second"
    assert await asyncio.gather(*first) == [True, True]
    assert not pool.keeps_waiting(owner)
    with pytest.raises(asyncio.CancelledError):
        await third


async def test_threads_are_used_again():
    pool = Threads("again", 8)
    names = {await pool.run(None, lambda: threading.current_thread().name) for _ in range(50)}
    assert len(names) <= 2


async def test_threads_go_when_there_is_nothing_to_do(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(threads, "IDLE_S", 0.01)
    pool = Threads("once", 8)
    await asyncio.gather(*(pool.run(None, str, it) for it in range(10)))
    await until(lambda: not any(it.name.startswith("once-") for it in threading.enumerate()))
    assert await pool.run(None, lambda: 5) == 5


async def test_many_functions_at_once_all_run():
    pool = Threads("many", 4)
    assert await asyncio.gather(*(pool.run(None, str, it) for it in range(500))) == [*map(str, range(500))]


async def test_a_coroutine_that_a_thread_returns_too_late_is_closed():
    pool, begun, gate = Threads("t", 1), threading.Event(), threading.Event()
    late = asyncio.sleep(0)

    def returns_late() -> object:
        begun.set()
        gate.wait()
        return late

    waiting = asyncio.create_task(pool.run(None, returns_late))
    await until(begun.is_set)
    waiting.cancel()
    await asyncio.wait([waiting])
    gate.set()
    await until(lambda: inspect.getcoroutinestate(late) == inspect.CORO_CLOSED)


async def test_a_coroutine_that_a_thread_returns_as_its_caller_is_cancelled_is_closed(
    monkeypatch: pytest.MonkeyPatch,
):
    pool, coroutine = Threads("t", 1), asyncio.sleep(0)
    settle = threads._Job._settle  # pyright: ignore[reportPrivateUsage]

    def settle_and_cancel(*given: Any) -> None:
        settle(*given)
        waiting.cancel()  # before the caller has run again

    monkeypatch.setattr(threads._Job, "_settle", settle_and_cancel)  # pyright: ignore[reportPrivateUsage]
    waiting = asyncio.create_task(pool.run(None, lambda: coroutine))
    await asyncio.wait([waiting])
    assert waiting.cancelled()
    assert inspect.getcoroutinestate(coroutine) == inspect.CORO_CLOSED
