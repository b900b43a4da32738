"""The turn for code in a thread: the same calls, which return when they are done."""

import asyncio
import concurrent.futures
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar, TypeVarTuple, cast, overload

from threadkeep.agents.attempts import report
from threadkeep.agents.errors import TurnEnded, TurnMisused
from threadkeep.agents.facts import TurnFacts
from threadkeep.agents.replies import Messages, Reply, Usage
from threadkeep.agents.run import FunctionRun
from threadkeep.agents.tool import Tool
from threadkeep.agents.turn import GivenTool, Streamed, Turn, turn_of
from threadkeep.wire.programs import Effect, HitItem, ModelMessageItem, ServerTool, StepAccess

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class BlockingTurn(TurnFacts):
    """A turn for functions that aren't `async`."""

    def __init__(self, turn: Turn) -> None:
        super().__init__(turn.function_run)
        self._turn = turn

    def _wait(self, call: Coroutine[Any, Any, T]) -> T:
        run, loop = self._run, self._run.loop
        if loop is None or loop.is_closed():
            call.close()
            raise TurnEnded("This turn has ended.")
        if _is_on_a_loop():
            call.close()
            raise TurnMisused(
                "This turn blocks, so it can't be used in `async` code: use `await turn.…` there."
            )
        called = asyncio.run_coroutine_threadsafe(_noted(run, call), loop)
        try:
            return called.result()
        except concurrent.futures.CancelledError:
            raise run.cancelled_error() from None

    def say(self, text: str) -> None:
        """Shows a piece of the reply."""
        self._wait(self._turn.say(text))

    def think(self, text: str) -> None:
        """Shows a piece of reasoning."""
        self._wait(self._turn.think(text))

    def notice(self, text: str) -> None:
        """Shows a notice."""
        self._wait(self._turn.notice(text))

    def cite(self, hits: Sequence[HitItem | Mapping[str, Any]], query: str = "") -> None:
        """Shows passages that the reply is based on."""
        self._wait(self._turn.cite(hits, query))

    def attach(self, name: str, content: bytes | str | Path, media_type: str | None = None) -> None:
        """Attaches a file to the reply: its bytes, or where they are."""
        self._wait(self._turn.attach(name, content, media_type))

    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Shows how far the step has come that runs."""
        self._wait(self._turn.progress(progress, total, message))

    @overload
    def step(
        self,
        fn: Callable[[*Ts], AsyncIterator[Streamed] | Iterator[Streamed]],
        *args: *Ts,
        effect: Effect = ...,
        access: StepAccess = ...,
        name: str | None = ...,
        key: object = ...,
        timeout_s: float | None = ...,
        retries: int = ...,
        title: str | None = ...,
        hidden: bool = ...,
        unknown: Literal["raise", "ask"] = ...,
    ) -> str: ...
    @overload
    def step(
        self,
        fn: Callable[[*Ts], Awaitable[T]],
        *args: *Ts,
        effect: Effect = ...,
        access: StepAccess = ...,
        name: str | None = ...,
        key: object = ...,
        timeout_s: float | None = ...,
        retries: int = ...,
        title: str | None = ...,
        hidden: bool = ...,
        unknown: Literal["raise", "ask"] = ...,
    ) -> T: ...
    @overload
    def step(
        self,
        fn: Callable[[*Ts], T],
        *args: *Ts,
        effect: Effect = ...,
        access: StepAccess = ...,
        name: str | None = ...,
        key: object = ...,
        timeout_s: float | None = ...,
        retries: int = ...,
        title: str | None = ...,
        hidden: bool = ...,
        unknown: Literal["raise", "ask"] = ...,
    ) -> T: ...
    def step(self, fn: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Calls a function once, whatever crashes; returns what is recorded of it."""
        return self._wait(cast("Coroutine[Any, Any, Any]", self._turn.step(fn, *args, **options)))

    def model(
        self,
        messages: Messages,
        *,
        system: str | None = None,
        model: str | None = None,
        tools: Sequence[GivenTool] = (),
        output: Any = None,
        temperature: float | None = None,
        max_tokens: int | None = None,
        show: bool = True,
    ) -> Reply:
        """Asks a model once, through the server's gateways."""
        return self._wait(
            self._turn.model(
                messages,
                system=system,
                model=model,
                tools=tools,
                output=output,
                temperature=temperature,
                max_tokens=max_tokens,
                show=show,
            )
        )

    def run(
        self,
        *,
        system: str | None = None,
        tools: Sequence[GivenTool] = (),
        model: str | None = None,
        messages: Messages | None = None,
    ) -> Reply:
        """Asks a model and calls its tools until it has replied."""
        return self._wait(self._turn.run(system=system, tools=tools, model=model, messages=messages))

    def call(self, tool: str | Tool[..., Any], arguments: Mapping[str, Any] | None = None) -> Any:
        """Calls a tool: of a server or of the client by its name, or a function."""
        return self._wait(self._turn.call(tool, arguments))

    def tools(self) -> list[ServerTool]:
        """The tools of the agent's servers, and of the client."""
        return self._wait(self._turn.tools())

    def ask(self, message: str, choices: Sequence[str] | None = None, type: Any = None) -> Any:  # noqa: A002
        """Asks the user; None if they decline."""
        return self._wait(self._turn.ask(message, choices, type))

    def approve(self, message: str) -> bool:
        """Asks the user for a yes or a no; no answer is a no."""
        return self._wait(self._turn.approve(message))

    def steering(self) -> list[str]:
        """What the user has sent meanwhile, and the agent was not given yet."""
        return self._wait(self._turn.steering())

    @overload
    def history(
        self, limit: int | None = None, *, as_context: Literal[False] = False
    ) -> list[dict[str, Any]]: ...
    @overload
    def history(self, limit: int | None = None, *, as_context: Literal[True]) -> list[ModelMessageItem]: ...
    def history(self, limit: int | None = None, *, as_context: bool = False) -> list[Any]:
        """The messages before the turn's own; `as_context`, with it, as a model would receive them."""
        if as_context:
            return self._wait(self._turn.history(limit, as_context=True))
        return self._wait(self._turn.history(limit))

    def usage(
        self,
        model: str,
        input_tokens: int,
        output_tokens: int,
        *,
        cache_read_tokens: int = 0,
        cost: str | None = None,
    ) -> None:
        """Reports a model call that the agent made itself."""
        usage = Usage(model, input_tokens, output_tokens, cache_read_tokens, cost)

        async def reported() -> None:
            await report(self._run, usage, self._turn.scope_name)

        self._wait(reported())

    @property
    def state(self) -> dict[str, Any]:
        """What the agent keeps for the next turn of this branch; inside a step it can't be changed."""
        return self._turn.state

    @state.setter
    def state(self, state: Mapping[str, Any]) -> None:
        self._turn.state = cast("dict[str, Any]", state)

    def scope(self, name: str) -> "BlockingTurn":
        """The same turn with keys of its own."""
        return BlockingTurn(self._turn.scope(name))

    def save(self, value: Any) -> None:
        """Records a point to start from."""
        self._wait(self._turn.save(value))

    @property
    def saved(self) -> Any:
        """The last value that was saved in this scope."""
        return self._turn.saved


def blocking(turn: Turn) -> BlockingTurn:
    """A turn for the code of a step that runs in a thread."""
    return BlockingTurn(turn)


async def call_function(run: FunctionRun) -> object:
    """Calls an agent's function: on the loop, or in a thread with a turn that blocks."""
    turn = turn_of(run)
    if run.agent.is_async:
        return await run.agent.fn(turn)
    return await run.threads.functions.run(run, run.agent.fn, BlockingTurn(turn))


def _is_on_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def _noted(run: FunctionRun, call: Coroutine[Any, Any, T]) -> T:
    """A call that a thread waits for: it ends with the run."""
    task = asyncio.current_task()
    assert task is not None
    run.calls.add(task)
    try:
        return await call
    finally:
        run.calls.discard(task)
