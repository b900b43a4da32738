"""The turn for code in a thread: the same calls, which return when they are done."""

import asyncio
import concurrent.futures
import functools
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from threadkeep.agents.agent import Agent
from threadkeep.agents.errors import TurnEnded, TurnMisused
from threadkeep.agents.facts import TurnFacts
from threadkeep.agents.replies import Reply
from threadkeep.agents.run import FunctionRun
from threadkeep.agents.threads import Threads
from threadkeep.agents.turn import Turn, turn_of

P = ParamSpec("P")
T = TypeVar("T")


class BlockingTurn(TurnFacts):
    """A turn for functions that aren't `async`."""

    def __init__(self, turn: Turn) -> None:
        super().__init__(turn.function_run, turn._start)
        self._turn = turn

    def _wait(self, call: Coroutine[Any, Any, T]) -> T:
        run, loop = self._run, self._run.loop
        if loop is None or loop.is_closed():
            call.close()
            raise TurnEnded("This turn has ended.")
        if run.is_on_its_loop:
            call.close()
            raise TurnMisused(
                "This turn blocks, so it can't be used on the agents' event loop: use `await turn.…` there."
            )
        called = asyncio.run_coroutine_threadsafe(_noted(run, call), loop)
        try:
            return called.result()
        except concurrent.futures.CancelledError:
            raise run.cancelled_error() from None

    @staticmethod
    def _blocks(
        call: Callable[Concatenate[Turn, P], Awaitable[T]],
    ) -> Callable[Concatenate["BlockingTurn", P], T]:
        """The same call of a turn, which returns when it is done."""

        @functools.wraps(call)
        def blocking_call(self: "BlockingTurn", *args: P.args, **kwargs: P.kwargs) -> T:
            async def called() -> T:
                return await call(self._turn, *args, **kwargs)

            return self._wait(called())

        return blocking_call

    say = _blocks(Turn.say)
    think = _blocks(Turn.think)
    notice = _blocks(Turn.notice)
    cite = _blocks(Turn.cite)
    attach = _blocks(Turn.attach)
    progress = _blocks(Turn.progress)
    model = _blocks(Turn.model)
    run = _blocks(Turn.run)
    call = _blocks(Turn.call)
    tools = _blocks(Turn.tools)
    ask = _blocks(Turn.ask)
    approve = _blocks(Turn.approve)
    steering = _blocks(Turn.steering)
    usage = _blocks(Turn.usage)
    save = _blocks(Turn.save)
    step = _blocks(Turn.step)
    handoff = _blocks(Turn.handoff)
    history = _blocks(Turn.history)

    @property
    def state(self) -> dict[str, Any]:
        """What the agent keeps for the next turn of this branch; inside a step it can't be changed."""
        return self._turn.state

    @state.setter
    def state(self, state: Mapping[str, Any]) -> None:
        self._turn.state = cast("dict[str, Any]", state)

    def agent(self, name: str) -> "BlockingOtherAgent":
        """Another agent, which can run inside this turn."""
        other = self._turn.agent(name)
        return BlockingOtherAgent(lambda text: self._wait(other.run(text)))

    def scope(self, name: str) -> "BlockingTurn":
        """The same turn with keys of its own."""
        return BlockingTurn(self._turn.scope(name))

    @property
    def saved(self) -> Any:
        """The last value that was saved in this scope."""
        return self._turn.saved


class BlockingOtherAgent:
    """Another agent, for functions that aren't `async`."""

    def __init__(self, run: Callable[[str], Reply]) -> None:
        self._run = run

    def run(self, text: str) -> Reply:
        """What the agent replies to a text. Its text is not shown: say or return it."""
        return self._run(text)


def blocking(turn: Turn) -> BlockingTurn:
    """A turn for the code of a step that runs in a thread."""
    return BlockingTurn(turn)


async def call_function(run: FunctionRun, inner: Turn | None = None) -> object:
    """Calls an agent's function: on the loop, or in a thread with a turn that blocks. `inner` is the turn of
    an agent that another one runs.
    """
    if inner is None:
        return await _call(run, run.agent, turn_of(run), run.threads.functions)
    assert inner.own_agent is not None
    with inner:
        return await _call(run, inner.own_agent, inner, run.threads.functions_inside(inner.depth))


async def _call(run: FunctionRun, agent: Agent, turn: Turn, threads: Threads) -> object:
    if agent.is_async:
        return await agent.fn(turn)
    return await threads.run(run, agent.fn, BlockingTurn(turn))


async def _noted(run: FunctionRun, call: Coroutine[Any, Any, T]) -> T:
    """A call that a thread waits for: it ends with the run."""
    task = asyncio.current_task()
    assert task is not None
    run.calls.add(task)
    try:
        return await call
    finally:
        run.calls.discard(task)
