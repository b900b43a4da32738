"""An event loop on virtual time, which knows whose callbacks it runs."""

# pyright: reportPrivateUsage=false

import asyncio
import heapq
import logging
from asyncio import events
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context, ContextVar
from typing import Any, cast

from threadkeep.agents.run import current_run

log = logging.getLogger("tests.proof")

MOST_AT_ONE_TIME = 100_000
"""So many callbacks without any time passing are a loop that never waits."""


class Place:
    """Where code runs: a node, whose process can be gone or stand still. Users and the world have none."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_dead = False
        self.is_stalled = False
        self.kept_back: list[events.Handle] = []
        self.remains: list[asyncio.Task[Any]] = []

    def context(self) -> Context:
        """A context in which code runs here."""
        context = Context()
        context.run(_place.set, self)
        return context


_place: ContextVar[Place | None] = ContextVar("place", default=None)


def current_place() -> Place | None:
    """Where the calling code runs."""
    return _place.get()


def place_of(task: "asyncio.Task[Any]") -> Place | None:
    """Where a task runs."""
    assert isinstance(task, NumberedTask)
    return task.place


class _Numbered:
    """Sets of tasks and futures must have the same order in every run, so their hash isn't their address."""

    __slots__ = ()
    count = 0

    @classmethod
    def next(cls) -> int:
        _Numbered.count += 1
        return _Numbered.count


class NumberedTask(asyncio.Task[Any]):
    """A task whose hash is its number."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self._number = _Numbered.next()
        context = options.get("context")
        self.place = _place.get() if context is None else context.get(_place)
        super().__init__(*args, **options)

    def __hash__(self) -> int:
        return self._number

    def __eq__(self, other: object) -> bool:
        return self is other


class NumberedFuture(asyncio.Future[Any]):
    """A future whose hash is its number."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self._number = _Numbered.next()
        super().__init__(*args, **options)

    def __hash__(self) -> int:
        return self._number

    def __eq__(self, other: object) -> bool:
        return self is other


class VirtualLoop(asyncio.BaseEventLoop):
    """Runs what is ready, then lets time jump to the next timer."""

    _ready: "deque[events.Handle]"
    _scheduled: "list[events.TimerHandle]"

    def __init__(self) -> None:
        super().__init__()
        _Numbered.count = 0
        self._time = 0.0
        self._at_one_time = 0
        self.set_task_factory(cast("Any", _task_factory))
        self.set_exception_handler(self._note_problem)
        self.problems: list[str] = []
        """What nobody awaited: a bug, wherever it comes from."""

    def time(self) -> float:
        """Virtual seconds."""
        return self._time

    def create_future(self) -> "asyncio.Future[Any]":
        return NumberedFuture(loop=self)

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:
        """What a thread would do is done at once; its answer comes with the next round."""
        future = self.create_future()
        try:
            result = func(*args)
        except BaseException as exc:
            self.call_soon(_settle, future, None, exc)
        else:
            self.call_soon(_settle, future, result, None)
        return future

    def call_soon_threadsafe(self, callback: Any, *args: Any, context: Context | None = None) -> Any:
        return self.call_soon(callback, *args, context=context)

    def elsewhere(self, callback: Callable[..., object], *args: object, after_s: float = 0.0) -> None:
        """Calls something outside all nodes."""
        self.call_later(after_s, callback, *args, context=Context())

    def at(self, place: Place, coroutine: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        """Runs a coroutine at a place."""
        return self.create_task(coroutine, context=place.context())

    def kill(self, place: Place) -> None:
        """Nothing of a place runs any more; what it was doing is kept as it was, and nothing ends it."""
        place.is_dead = True
        place.kept_back.clear()
        place.remains = [it for it in asyncio.all_tasks(self) if place_of(it) is place]

    def stall(self, place: Place, seconds: float) -> None:
        """Keeps everything of a place from running for a while."""
        place.is_stalled = True
        self.elsewhere(self._wake, place, after_s=seconds)

    def _wake(self, place: Place) -> None:
        place.is_stalled = False
        self._ready.extend(place.kept_back)
        place.kept_back.clear()

    def _note_problem(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        task, error = context.get("task"), context.get("exception")
        if isinstance(task, NumberedTask) and task.place is not None and task.place.is_dead:
            return  # its process is gone
        self.problems.append(f"{context.get('message')} {error!r} {context.get('task', '')}")

    def _run_once(self) -> None:
        self._collect_due()
        if not self._ready:
            if not self._scheduled:
                raise RuntimeError("Nothing will ever happen: every task waits for another.")
            if self._scheduled[0].when() > self._time + 0.0001:
                self._at_one_time = 0
            self._time = self._scheduled[0].when()
            self._collect_due()
        self._at_one_time += len(self._ready)
        if self._at_one_time > MOST_AT_ONE_TIME:
            raise RuntimeError(f"At {self._time:.3f} s something runs without ever waiting: {self._ready[0]}")
        ready = self._ready
        for _ in range(len(ready)):
            handle = ready.popleft()
            if handle._cancelled:  # type: ignore[attr-defined]
                continue
            place = handle._context.get(_place)  # type: ignore[attr-defined]
            if place is not None and (place.is_dead or place.is_stalled):
                if not place.is_dead:
                    place.kept_back.append(handle)
                continue
            handle._run()

    def _collect_due(self) -> None:
        scheduled = self._scheduled
        while scheduled and (scheduled[0]._cancelled or scheduled[0].when() <= self._time):  # type: ignore[attr-defined]
            handle = heapq.heappop(scheduled)
            handle._scheduled = False  # type: ignore[attr-defined]
            if not handle._cancelled:  # type: ignore[attr-defined]
                self._ready.append(handle)

    def _timer_handle_cancelled(self, handle: events.TimerHandle) -> None:
        """Nothing: it is dropped when its time comes."""

    def _process_events(self, event_list: Any) -> None:
        """There are none: nothing here is a socket."""

    def _write_to_self(self) -> None:
        """Nobody has to be woken: there is one thread."""


def _settle(future: "asyncio.Future[Any]", result: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)


def _task_factory(
    loop: asyncio.AbstractEventLoop, coro: Coroutine[Any, Any, Any] | Generator[Any], **options: Any
) -> "asyncio.Task[Any]":
    """As the agents' own loop makes them: a task belongs to the run of an agent in whose code it is made."""
    context = options.get("context")
    run = context.get(current_run) if context is not None else current_run.get()
    task = NumberedTask(coro, loop=loop, **options)
    if run is not None:
        run.tasks.add(task)
        task.add_done_callback(run.tasks.discard)
    return task
