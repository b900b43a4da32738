"""One run of a graph in a turn: where its calls are made, and what is recorded of them."""

import asyncio
import hashlib
from collections import Counter
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar

from langgraph.config import get_config

from threadkeep.agents.errors import TurnMisused
from threadkeep.agents.langgraph.bridge import wait_for
from threadkeep.agents.langgraph.checkpoints import JournalSaver
from threadkeep.agents.replies import Reply
from threadkeep.agents.turn import Turn, in_step
from threadkeep.agents.values import content_hash
from threadkeep.domain.text import one_line
from threadkeep.wire.programs import Effect

T = TypeVar("T")

MOST_PLACE_CHARACTERS = 120
AROUND = (
    "A model was called around the record: its text was not streamed, and the call is made again if the turn "
    "is interrupted. Call it with `ainvoke`, which streams, too, and leave out `cache=False`."
)

_running: ContextVar["GraphRun | None"] = ContextVar("running_graph", default=None)
_is_in_tool: ContextVar[bool] = ContextVar("is_in_tool", default=False)


@dataclass(frozen=True, slots=True)
class NextCall:
    """A call that a node makes, and which of the same it is."""

    key: str
    number: int
    turn: Turn
    """In whose scope it is recorded."""


@dataclass(slots=True)
class GraphRun:
    """What all of a graph's nodes share while it runs in a turn."""

    turn: Turn
    """In the scope of the graph, whose results are optional once a checkpoint has them."""
    saver: JournalSaver
    effects: dict[str, Effect]
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    places: dict[str, str] = field(default_factory=dict[str, str])
    """By a task's namespace, which has random ids, where it is in its graph: the same in every run."""
    _counts: Counter[tuple[str, str, str]] = field(default_factory=Counter[tuple[str, str, str]])
    _known: dict[str, tuple[Any, BaseException | None]] = field(
        default_factory=dict[str, tuple[Any, BaseException | None]]
    )
    _aside: dict[asyncio.Task[Any], str] = field(default_factory=dict[asyncio.Task[Any], str])
    """What is recorded while its node goes on, and the namespace of the node's task."""

    failed: tuple[str, BaseException] | None = None
    """The model that failed last, and how."""

    def begin_pass(self) -> None:
        """The graph runs (again): a node that was answered starts from its top, and gets what it got."""
        self._counts.clear()

    def note_task(self, namespace: str, node: str, step: int, path: tuple[Any, ...]) -> None:
        """A task begins in a node."""
        number = "".join(f".{it}" for it in path[1:] if isinstance(it, int) and not isinstance(it, bool))
        self.places.setdefault(namespace, f"{node}@{step}{number}")

    def place(self) -> str:
        """Where the caller is: the node, its step, and those of the graphs around it."""
        parts = self.namespace().split("|")
        return "/".join(self._named("|".join(parts[: n + 1]), part) for n, part in enumerate(parts) if part)

    def namespace(self) -> str:
        """That of the task in whose node the caller is."""
        return _namespace()

    def _named(self, namespace: str, part: str) -> str:
        return self.places.get(namespace, part.partition(":")[0])

    def next_call(self, place: str, name: str, identity: str) -> "NextCall":
        """The next call of this content at a place: a loop in a node makes the same one again and again."""
        self._counts[place, name, identity] += 1
        number = self._counts[place, name, identity]
        if len(place) > MOST_PLACE_CHARACTERS or not all(place.split("/")) or one_line(place) != place:
            place = hashlib.sha256(place.encode()).hexdigest()[:32] if place else "start"
        return NextCall(f"{place}/{name}/{identity}/{number}", number, self.turn.scope(f"{place}/{number}"))

    async def once(self, key: str, call: Callable[[], Awaitable[T]]) -> T:
        """What a call came to, also if the node that makes it starts again in this run."""
        if key not in self._known:
            try:
                self._known[key] = await call(), None
            except Exception as exc:
                self._known[key] = None, exc
                raise
        value, error = self._known[key]
        if error is not None:
            raise error
        return value

    def record_aside(self, name: str, identity: str, call: Callable[[], Awaitable[None]]) -> None:
        """Records something that a node shows; what the node does is saved only after that."""
        next_ = self.next_call(self.place(), name, identity)

        async def made() -> None:
            await next_.turn.step(call, name=name, key=identity, effect="read", hidden=True)

        if not self.turn.function_run.is_on_its_loop:
            wait_for(self.once(next_.key, made), self.loop)
            return
        task = asyncio.create_task(self.once(next_.key, made))
        self._aside[task] = _namespace()

    async def until_recorded(self, concerns: Callable[[str], bool]) -> None:
        """Waits for what the tasks of some namespaces have shown."""
        waiting = [task for task, namespace in self._aside.items() if concerns(namespace)]
        await asyncio.gather(*waiting)
        for task in waiting:
            self._aside.pop(task, None)

    def tell_around(self) -> None:
        """Tells the user once that a model's call is not recorded."""
        place = self.place()
        if self.saver.now.told_around in (None, place):
            if self.saver.now.told_around is None or not self._counts[place, "notice", "around"]:
                self.record_aside("notice", "around", self._around)
            self.saver.now.told_around = place

    async def _around(self) -> None:
        await self.turn.notice(AROUND)


def _namespace() -> str:
    """The namespace of the task in whose node the caller is."""
    try:
        return get_config().get("configurable", {}).get("checkpoint_ns", "")
    except RuntimeError:  # outside a node
        return ""


def running() -> GraphRun | None:
    """The graph whose node the caller is in, outside a step: in one, nothing else is recorded."""
    return None if in_step() else _running.get()


@contextmanager
def in_tool() -> Generator[None]:
    """Inside, what models say is for the tool that asks them, and no part of the reply."""
    mark = _is_in_tool.set(True)
    try:
        yield
    finally:
        _is_in_tool.reset(mark)


def is_in_tool() -> bool:
    """Whether a tool asks."""
    return _is_in_tool.get()


def set_running(run: GraphRun) -> None:
    """Whatever the caller starts from now on is in this graph."""
    _running.set(run)


async def ask_agent(name: str, text: str) -> Reply:
    """`turn.agent(name).run(text)` for a node: a node that starts again gets the same reply."""
    run = running()
    if run is None:
        raise TurnMisused("`ask_agent` works in the nodes of a durable graph, outside steps.")
    next_ = run.next_call(run.place(), "agent", content_hash([name, text]))
    return await run.once(next_.key, lambda: next_.turn.agent(name).run(text))


async def step(
    fn: Callable[..., Any], *args: Any, effect: Effect = "write", key: object = None, **options: Any
) -> Any:
    """`turn.step` for a node: a node that starts again gets what its steps came to."""
    run = running()
    if run is None:
        raise TurnMisused("`step` works in the nodes of a durable graph, outside other steps.")
    name = options.get("name") or getattr(fn, "__qualname__", type(fn).__name__)
    identity = content_hash({"key": key} if key is not None else list(args))
    next_ = run.next_call(run.place(), name, identity)

    async def call() -> Any:
        return await next_.turn.step(fn, *args, effect=effect, key=key, **options)

    return await run.once(next_.key, call)
