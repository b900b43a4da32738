"""Agents in the server's own process: on one event loop, in a thread of its own."""

import asyncio
import logging
import threading
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress

from threadkeep.agents.agent import Agent, check_keys
from threadkeep.agents.blocking import call_function
from threadkeep.agents.failures import without_values
from threadkeep.agents.run import FunctionRun, note_task
from threadkeep.agents.threads import Threads
from threadkeep.agents.watchdog import Watchdog
from threadkeep.domain.agent import BlockedLoop, Code, Places
from threadkeep.wire.programs import AgentDeclared, Cancel, FromProgram, ProgramLost, Start, ToProgram

log = logging.getLogger("threadkeep.agents")

MOST_THREADS = 16
CLOSE_GRACE_S = 2.0


class LocalPrograms:
    """The agents of this process."""

    def __init__(
        self, agents: Sequence[Agent], *, built_in: Sequence[Agent] = (), most_threads: int = MOST_THREADS
    ) -> None:
        """`built_in` are programs of ours that can run here, too, because they run these agents."""
        check_keys(agents)
        self._agents = {it.key: it for it in agents}
        self._built_in = {it.key: it for it in built_in}
        self._most_threads = most_threads
        self._inside: dict[int, Threads] = {}
        self.functions = Threads("agents-function", most_threads)
        self.steps = Threads("agents-step", most_threads)
        self._runs: set[LocalRun] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._watchdog: Watchdog | None = None
        self._is_closed = False

    @property
    def codes(self) -> Sequence[Code]:
        """Which agents they are."""
        return [Code(it.key, it.version) for it in self._agents.values()]

    @property
    def declarations(self) -> Sequence[AgentDeclared]:
        """What the agents say of themselves."""
        return [it.declaration for it in self._agents.values()]

    @property
    def blocked_s(self) -> float:
        """For how long the agents' event loop has not answered; 0 if it does."""
        return self._watchdog.blocked_s if self._watchdog is not None else 0.0

    @property
    def blocked(self) -> BlockedLoop | None:
        """What keeps it from answering; None if it answers."""
        return self._watchdog.blocked if self._watchdog is not None else None

    @property
    def blocked_total_s(self) -> float:
        """For how long it has not answered so far, all times together."""
        return self._watchdog.total_s if self._watchdog is not None else 0.0

    @property
    def places(self) -> Mapping[str, Places]:
        """The threads for what isn't `async`, by what they run."""
        return {"function": self.functions.places, "step": self.steps.places}

    def functions_inside(self, depth: int) -> Threads:
        """The threads of agents that others run, by how deep."""
        if depth not in self._inside:
            self._inside[depth] = Threads(f"agents-inside-{depth}", self._most_threads)
        return self._inside[depth]

    def agent(self, key: str) -> Agent | None:
        """One of the agents."""
        return self._agents.get(key)

    def start(self, start: Start) -> "LocalRun":
        """Runs an agent's function for a turn; called on the server's loop."""
        agent = self._agents.get(start.agent) or self._built_in.get(start.agent)
        if agent is None or self._is_closed:
            raise ProgramLost(f"Agent {start.agent!r} doesn't run here.")
        run = LocalRun(self, agent, start)
        self._runs.add(run)
        self.call_soon(run.function.begin, call_function)
        return run

    def keeps_waiting_inside(self, run: FunctionRun) -> bool:
        """Whether an agent that another one runs waits for a thread."""
        return any(it.keeps_waiting(run) for it in tuple(self._inside.values()))

    def call_soon(self, *call: object) -> None:
        """Calls a function on the agents' loop."""
        try:
            self._started_loop().call_soon_threadsafe(*call)  # type: ignore[arg-type]
        except RuntimeError as exc:
            raise ProgramLost("The agents' event loop has ended.") from exc

    def forget(self, run: "LocalRun") -> None:
        """A run is over."""
        self._runs.discard(run)

    async def close(self) -> None:
        """Ends all runs and the thread, unless an agent blocks it: then it ends with the process."""
        self._is_closed = True
        runs = tuple(self._runs)
        for run in runs:
            run.lose()
        if self._loop is None or self._thread is None or self._watchdog is None:
            return
        with suppress(ProgramLost):
            for run in runs:
                self.call_soon(run.function.cancel, "lost")
        self._watchdog.close()
        with suppress(RuntimeError):  # it was closed before
            self._loop.call_soon_threadsafe(self._loop.stop)
        await asyncio.to_thread(self._thread.join, CLOSE_GRACE_S)

    def _started_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            loop = self._loop = asyncio.new_event_loop()
            loop.set_task_factory(note_task)
            loop.set_exception_handler(_log_unnoticed)
            self._thread = threading.Thread(target=self._live, args=(loop,), name="agents", daemon=True)
            self._thread.start()
            self._watchdog = Watchdog(loop, lambda: self._thread and self._thread.ident, self._running_agent)
        return self._loop

    def _live(self, loop: asyncio.AbstractEventLoop) -> None:
        while not self._is_closed:
            try:
                loop.run_forever()
            except (SystemExit, KeyboardInterrupt) as exc:  # a task's of an agent: it ends that, not all
                log.error("an agent raised %s outside its function", type(exc).__name__)
        with suppress(SystemExit, KeyboardInterrupt):
            loop.run_until_complete(_end_tasks(asyncio.all_tasks(loop)))
        loop.close()

    def _running_agent(self) -> str | None:
        task = asyncio.current_task(self._loop)
        found = [it.function for it in tuple(self._runs) if task in it.function.tasks]
        return found[0].agent.key if found else None


class LocalRun:
    """One run, between the server's loop and the agents'."""

    def __init__(self, programs: LocalPrograms, agent: Agent, start: Start) -> None:
        self._programs = programs
        self._server = asyncio.get_running_loop()
        self._messages: asyncio.Queue[FromProgram | None] = asyncio.Queue()
        self._is_closed = False
        self.function = FunctionRun(agent, start, programs, self._pass_on)

    @property
    def answers(self) -> bool:
        """Whether the program could react now: nothing blocks its loop, and its threads have room."""
        programs = self._programs
        return not (
            programs.blocked_s
            or programs.functions.keeps_waiting(self.function)
            or programs.steps.keeps_waiting(self.function)
            or programs.keeps_waiting_inside(self.function)
        )

    def send(self, message: ToProgram) -> None:
        """Passes a message on, in order."""
        if not self._is_closed:
            self._programs.call_soon(self.function.receive, message)

    async def receive(self) -> FromProgram:
        """The next message; raises ProgramLost when there will be none."""
        message = await self._messages.get()
        if message is None:
            self._messages.put_nowait(None)
            raise ProgramLost("The agents of this process have ended.")
        return message

    async def close(self) -> None:
        """Ends the run; nothing that the program still does reaches the turn."""
        self._is_closed = True
        self._programs.forget(self)
        with suppress(ProgramLost):
            self._programs.call_soon(self.function.receive, Cancel("lost"))

    def lose(self) -> None:
        """There will be no more messages."""
        self._is_closed = True
        self._programs.forget(self)
        self._messages.put_nowait(None)

    def _pass_on(self, message: FromProgram) -> None:
        """Called on the agents' loop."""
        if self._is_closed:
            return
        try:
            self._server.call_soon_threadsafe(self._messages.put_nowait, message)
        except RuntimeError:  # the server's loop is closed
            self._is_closed = True


async def _end_tasks(tasks: Collection["asyncio.Task[object]"]) -> None:
    """Lets `finally` blocks of functions that were cancelled run, for a moment."""
    if tasks:
        _, left = await asyncio.wait(tasks, timeout=CLOSE_GRACE_S / 2)
        for task in left:
            task.cancel()
        await asyncio.sleep(0)
    await asyncio.get_running_loop().shutdown_asyncgens()


def _log_unnoticed(_: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
    """An exception that nothing in an agent awaited: without what it says."""
    error = context.get("exception")
    if isinstance(error, BaseException):
        bare = without_values(error)
        log.error("an agent's task failed unnoticed", exc_info=(type(bare), bare, bare.__traceback__))
    else:
        log.error("in an agent's event loop: %s", context.get("message"))
