"""One run of an agent's function for one turn, from the top: its claims, its tasks, its end."""

import asyncio
import contextvars
import itertools
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar

from msgspec import Raw, Struct

from threadkeep.agents.agent import Agent
from threadkeep.agents.errors import (
    AgentError,
    AmbiguousStep,
    ModelFailed,
    NotJson,
    StepInsideStep,
    TurnCancelled,
    TurnEnded,
    TurnError,
    TurnMisused,
    TurnSuspended,
)
from threadkeep.agents.failures import leading, raised_by, record, without_values
from threadkeep.agents.listening import current_listener
from threadkeep.agents.output import Outputs
from threadkeep.agents.replies import text_and_value
from threadkeep.agents.state import State
from threadkeep.agents.threads import Threads
from threadkeep.agents.values import Unstorable, as_sent, encode
from threadkeep.domain.text import storable
from threadkeep.wire.programs import (
    AGENT_ABSENT,
    AMBIGUOUS,
    MOST_OPEN_CLAIMS,
    NOT_RUNNING,
    NOTHING,
    Ack,
    Cancel,
    Claim,
    ClaimFailed,
    End,
    FromProgram,
    OutputItem,
    ProgramError,
    Refused,
    Result,
    Run,
    SaveClaim,
    Settled,
    Start,
    StepDone,
    TextItem,
    ThoughtItem,
    ToProgram,
)

log = logging.getLogger("threadkeep.agents")

M = TypeVar("M", bound=Struct)

GRACE_S = 2.0
"""How long `finally` blocks may take."""
MOST_PASSES = 5
"""How often the loop runs at most until the code has reacted to a result."""
MOST_PASSES_BEFORE = 100
"""How often it runs at most before: only code that never waits uses them up."""
QUIET_PASSES = 4
"""How often none of the code's tasks may be about to run, until none will: a task that waits for several
futures, such as those of a `gather`, is woken through others.
"""


class Threading(Protocol):
    """Where functions run that aren't `async`, and which agents there are."""

    functions: Threads
    """For agents: they wait for their steps, so they have threads of their own."""
    steps: Threads

    def functions_inside(self, depth: int) -> Threads:
        """For agents that others run, which wait for them: each depth has threads of its own."""
        ...

    def agent(self, key: str) -> Agent | None:
        """An agent that runs here, too."""
        ...


CallFunction = Callable[..., Awaitable[object]]


class RunningStep:
    """A step whose function runs."""

    def __init__(self, run: "FunctionRun", id_: int, name: str, idempotency_key: str) -> None:
        self.run = run
        self.id = id_
        self.name = name
        self.idempotency_key = idempotency_key
        self.has_shown = False
        self.is_over = False


current_run: ContextVar["FunctionRun | None"] = ContextVar("current_run", default=None)
current_step: ContextVar[RunningStep | None] = ContextVar("current_step", default=None)


class FunctionRun:
    """One run of an agent's function."""

    def __init__(
        self, agent: Agent, start: Start, threads: Threading, send: Callable[[FromProgram], None]
    ) -> None:
        self.agent = agent
        self.start = start
        self.threads = threads
        self.loop: asyncio.AbstractEventLoop | None = None
        self.tasks: set[asyncio.Task[Any]] = set()
        """The function's own tasks: itself, and all that they have started."""
        self.calls: set[asyncio.Task[Any]] = set()
        """Those that threads wait for."""
        self.saved = dict(start.saved)
        self.read_saved: set[str] = set()
        """The scopes whose saved point the function has looked at."""
        self.now_ms = start.at
        self.shown_reply: str | None = None
        """What a model replied, if that is the last that was shown."""
        self.cancelled: str | None = None
        """Why the run was cancelled, if it was."""
        self.call_function: CallFunction | None = None
        """Calls the function of an agent, its own or that of one that it runs."""
        self._pass_on = send
        self._places = asyncio.Semaphore(MOST_OPEN_CLAIMS)
        self._ids = itertools.count(1)
        self._open: dict[int, asyncio.Future[Run | Result]] = {}
        self._names: dict[int, str] = {}
        self._outputs = Outputs(self._pass_on_if_counted)
        self._state: State | None = None
        self._main: asyncio.Task[None] | None = None
        self._has_returned = False
        self._has_ended = False
        self._is_void = False

    # The function's life

    def begin(self, function: CallFunction) -> None:
        """Starts the function in a task of its own, on the running loop."""
        self.call_function = function
        context = contextvars.copy_context()
        context.run(current_run.set, self)
        loop = self.loop = asyncio.get_running_loop()
        self._main = loop.create_task(self._live(function), name=self.agent.key, context=context)
        self._main.add_done_callback(lambda _: self._end(self._cancelled_end()))

    async def _live(self, function: Callable[["FunctionRun"], Awaitable[object]]) -> None:
        end = await self._outcome(function)
        self._has_returned = True
        await self._end_tasks()
        self._end(end)

    async def _outcome(self, function: Callable[["FunctionRun"], Awaitable[object]]) -> End:
        try:
            return self._completed(await function(self))
        except BaseException as exc:  # noqa: BLE001 - the function ends here; a program can't end our thread
            return self._failed(exc)

    def _completed(self, returned: object) -> End:
        text, value = text_and_value(returned, self.agent.key)
        if text is not None and self._has_just_shown(text):
            text = None
        return End(
            "completed",
            text=storable(text) if text else None,
            state=self.changed_state(),
            output=NOTHING if value is None else Raw(encode(value)),
        )

    def _has_just_shown(self, text: str) -> bool:
        """Whether it is what a model has just said: `return (await turn.model(…)).text`."""
        return self.shown_reply is not None and self.shown_reply.strip() == text.strip()

    def _failed(self, error: BaseException) -> End:
        if self.cancelled is not None:
            return self._cancelled_end()
        if not self.start.is_check:
            self.agent.note_failure(error)
        telling = leading(error)
        if isinstance(telling, AgentError):
            return End("failed", error=record(telling), shown=True, state=self._state_or_nothing())
        if not self.start.is_check:
            self._log(error)
        if isinstance(telling, ModelFailed) and telling.turn_code is not None:
            return End(
                "failed",
                error=record(telling),
                code=telling.turn_code,
                shown=True,
                retryable=telling.is_retryable,
                state=self._state_or_nothing(),
            )
        code = telling.code if isinstance(telling, TurnError) else None
        return End("failed", error=record(telling), code=code, state=self._state_or_nothing())

    def _log(self, error: BaseException) -> None:
        bare = without_values(error)
        log.error(
            'agent "%s" failed in turn %s',
            self.agent.key,
            self.start.turn,
            exc_info=(type(bare), bare, bare.__traceback__),
        )

    def _cancelled_end(self) -> End:
        return End("cancelled", state=self._state_or_nothing())

    def _state_or_nothing(self) -> Raw:
        try:
            return self.changed_state()
        except NotJson as exc:
            log.warning('agent "%s": %s', self.agent.key, exc)
            return NOTHING

    def end_absent(self, key: str, version: int) -> None:
        """Ends the run: it needs an agent that began elsewhere, or newer code of it."""
        message = f"The agent's program ({key}, version {version}) doesn't run in this process."
        error = ProgramError("AgentAbsent", message)
        self._end(End("failed", error=error, code=AGENT_ABSENT, shown=True, retryable=True))
        self.cancel("lost")

    async def _end_tasks(self) -> None:
        """Cancels what the function has left running, and waits for it a little."""
        mine = asyncio.current_task()
        left = [it for it in self.tasks if it is not mine and not it.done()]
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=GRACE_S)

    def _end(self, end: End) -> None:
        if not self._has_ended:
            self._outputs.flush()
            self._has_ended = True
            self._pass_on(end if self.cancelled is None else self._cancelled_end())

    def cancel(self, reason: str) -> None:
        """Ends the function: `finally` blocks run, but nothing that it does counts any more."""
        if self.cancelled is not None or self._has_ended:
            return
        self._outputs.flush()
        self.cancelled = reason
        for task in (self._main, *self.calls) if self.agent.is_async else self.calls:
            if task is not None:
                task.cancel()
        for answer in tuple(self._open.values()):
            answer.cancel()
        asyncio.get_running_loop().call_later(GRACE_S, self._expire)

    def _expire(self) -> None:
        self._end(self._cancelled_end())
        self._is_void = True
        for task in self.tasks:
            if not task.done():
                task.cancel()

    # What the server says

    def receive(self, message: ToProgram) -> None:
        """Takes a message of the server, on the agents' loop."""
        match message:
            case Run():
                self._answer(message.re, message)
            case Result() | ClaimFailed():
                self._deliver(message)
            case Cancel(reason):
                self.cancel(reason)
            case Ack(size):
                self._outputs.acknowledge(size)
            case Refused():
                self._refuse(message)
            case Start():
                pass

    def _deliver(self, message: Result | ClaimFailed, passes: int = 0, quiet: int = 0) -> None:
        """Gives the code a result, once none of its other tasks is about to run.

        What they are about to claim was claimed before this result came: on the first run, it took longer.
        """
        if self.cancelled is not None:
            return
        quiet = 0 if _is_any_ready(self.tasks) else quiet + 1
        if len(self.tasks) > 1 and quiet < QUIET_PASSES and passes < MOST_PASSES_BEFORE:
            asyncio.get_running_loop().call_soon(self._deliver, message, passes + 1, quiet)
            return
        self.now_ms = message.at or self.now_ms
        if isinstance(message, Result):
            self._answer(message.re, message)
        else:
            self._fail(message.re, raised_by(self._names.get(message.re, "The claim"), message))
        if message.settle:
            self._settle(message.re, 0)

    def _answer(self, re: int, message: Run | Result) -> None:
        answer = self._open.get(re)
        if answer is not None and not answer.done():
            answer.set_result(message)

    def _fail(self, re: int, error: Exception) -> None:
        answer = self._open.get(re)
        if answer is not None and not answer.done():
            answer.set_exception(error)
            answer.exception()  # a claim that nobody waits for fails silently

    def _refuse(self, refused: Refused) -> None:
        log.error('agent "%s": the server refused a message: %s', self.agent.key, refused.message)
        if refused.code == NOT_RUNNING:
            return  # the step has ended for the server, which says how
        if refused.re is not None:
            kind = AmbiguousStep if refused.code == AMBIGUOUS else TurnMisused
            self._fail(refused.re, kind(refused.message))
        else:
            self.cancel("lost")

    def _settle(self, re: int, passes: int) -> None:
        """Says that the code has reacted to a result, once none of its tasks is about to run."""
        if self.cancelled is not None:
            return
        if passes < MOST_PASSES and _is_any_ready(self.tasks):
            asyncio.get_running_loop().call_soon(self._settle, re, passes + 1)
        else:
            self.send(Settled(re))

    # What the function says

    def check_usable(self) -> None:
        """Raises if the function has ended, or ends."""
        caller = current_run.get()
        if self.cancelled is not None and caller is self:
            raise self.cancelled_error()
        if self.cancelled is not None or self._has_returned:
            raise TurnEnded("This turn has ended. A `turn` can be used only while its function runs.")
        if caller is not None and caller is not self:
            raise TurnMisused("This `turn` is another turn's. Use the one that your function was given.")
        if not self.is_on_its_loop:
            raise TurnMisused(
                "This `turn` works on the agents' event loop. In a thread, use `blocking(turn)`, whose calls "
                "need no `await`."
            )

    @property
    def is_on_its_loop(self) -> bool:
        """Whether the caller runs on the loop on which the function runs."""
        try:
            return asyncio.get_running_loop() is self.loop
        except RuntimeError:
            return False

    async def check(self) -> None:
        """The same, before something is awaited: code that swallows it can't keep the loop to itself."""
        if self.cancelled is not None:
            await self.unless_cancelled(asyncio.sleep(1 if self._is_void else 0.01))
        self.check_usable()

    def check_outside_step(self, what: str) -> None:
        """Raises inside a step."""
        step = current_step.get()
        if step is not None and step.run is self:
            raise StepInsideStep(
                f"{what} is inside the step `{step.name}`. Call the function directly, "
                "or make the outer step a plain function."
            )

    def cancelled_error(self) -> TurnCancelled:
        """What every call of `turn` raises once the run is cancelled."""
        if self.cancelled == "pause":
            return TurnSuspended("The turn waits for its user.")
        return TurnCancelled("The turn was stopped.")

    def send(self, message: FromProgram) -> None:
        """Passes a message to the server, after what was shown before."""
        self._outputs.flush()
        self._pass_on_if_counted(message)

    def _pass_on_if_counted(self, message: FromProgram) -> None:
        if self.cancelled is None and not self._has_ended:
            self._pass_on(message)

    async def show(self, item: OutputItem) -> None:
        """Shows something, as part of the step that runs, if any."""
        await self.check()
        step = current_step.get()
        step = step if step is not None and step.run is self else None
        if (listener := current_listener.get()) is not None and isinstance(item, TextItem | ThoughtItem):
            if step is None and isinstance(item, TextItem):
                listener.hear(item.text)
            if not listener.is_shown:
                return
        if step is not None and step.is_over:
            raise TurnEnded(f"The step `{step.name}` has ended. It can't show anything any more.")
        await self.unless_cancelled(self._outputs.room())
        if isinstance(item, TextItem):
            self.shown_reply = None
        if step is not None:
            step.has_shown = True
        self._outputs.add(item, None if step is None else step.id)

    async def unless_cancelled(self, waiting: Any) -> Any:
        """Waits for something; once the run is cancelled, that is what was waited for."""
        try:
            return await waiting
        except asyncio.CancelledError:
            if self.cancelled is not None:
                raise self.cancelled_error() from None
            raise

    @asynccontextmanager
    async def place(self) -> AsyncGenerator[None]:
        """Waits until the server takes another claim; those that wait go in the order in which they came."""
        await self.unless_cancelled(self._places.acquire())
        try:
            self.check_usable()
            yield
        finally:
            self._places.release()

    def open(self, name: str, make: Callable[[int], Claim]) -> int:
        """Claims something; returns its number."""
        id_ = next(self._ids)
        claim = make(id_)
        if not isinstance(claim, SaveClaim):  # that is JSON already
            claim = checked(name, claim)
        self._open[id_] = asyncio.get_running_loop().create_future()
        self._names[id_] = name
        self.send(claim)
        return id_

    async def answer(self, id_: int) -> Run | Result:
        """What the server says next of a claim; if the caller is cancelled, nobody waits for it any more."""
        answer = self._open[id_]
        try:
            return await answer
        except asyncio.CancelledError:
            if self.cancelled is not None:
                raise self.cancelled_error() from None
            # Also if a result has arrived that the code was not given any more: this run went on without it.
            self.send(StepDone(id_))
            raise

    def reopen(self, id_: int) -> None:
        """The server will say something else of a claim."""
        self._open[id_] = asyncio.get_running_loop().create_future()

    def watch(self, id_: int) -> "asyncio.Future[Run | Result]":
        """A claim that nobody has to wait for."""
        answer = self._open[id_]
        answer.add_done_callback(lambda _: self.close(id_))
        return answer

    def close(self, id_: int) -> None:
        """A claim is over."""
        self._open.pop(id_, None)
        self._names.pop(id_, None)

    async def claim(self, name: str, make: Callable[[int], Claim]) -> Raw:
        """Claims something that the server does; returns its value."""
        await self.check()
        self.check_outside_step(name)
        async with self.place():
            id_ = self.open(name, make)
            try:
                answer = await self.answer(id_)
            finally:
                self.close(id_)
        if isinstance(answer, Run):
            raise TurnMisused(f"The server asked the program to run {name}, which is no step.")
        return answer.value

    @property
    def state(self) -> State:
        """The state that follows the branch."""
        if self._state is None:
            self._state = State(self.start.state, is_in_step)
        return self._state

    def changed_state(self) -> Raw:
        """The state, if it was changed."""
        return self._state.changed() if self._state is not None else NOTHING


def checked(name: str, message: M) -> M:
    """A message that the server can take, for the call of this name; raises TurnMisused."""
    try:
        return as_sent(message)
    except Unstorable as exc:
        raise TurnMisused(f"{name} was given what it can't take: {exc}.") from exc


def is_in_step() -> bool:
    """Whether a step's function runs here."""
    return current_step.get() is not None


def _is_any_ready(tasks: Iterable["asyncio.Task[Any]"]) -> bool:
    """Whether a task is about to run, or has ended without its waiters knowing yet.

    One loop, because it is asked for every result, of all tasks. One that has ended waits for nothing,
    either; it leaves the run's tasks when its waiters learn of that.
    """
    for task in tasks:
        waits_for = getattr(task, "_fut_waiter", None)
        if waits_for is None or waits_for.done():
            return True
    return False


def note_task(loop: asyncio.AbstractEventLoop, coro: Any, **options: Any) -> "asyncio.Task[Any]":
    """Makes a task, as a loop's task factory: it belongs to the run in whose code it is made."""
    context = options.get("context")
    run = context.get(current_run) if context is not None else current_run.get()
    task = asyncio.Task(coro, loop=loop, **options)
    if run is not None:
        run.tasks.add(task)
        task.add_done_callback(run.tasks.discard)
    return task
