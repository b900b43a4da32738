"""An agent in code, run once by a whole Threadkeep: `run = await run_agent(orders, "Refund order 7")`."""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import msgspec
from msgspec import UNSET

from threadkeep.agents import Agent, AgentError
from threadkeep.client import Client, ClientError, TurnWaiting
from threadkeep.domain.turn import TurnStatus
from threadkeep.domain.user import LOCAL, User, UserRole
from threadkeep.testing.app import RunningApp, running_app
from threadkeep.testing.diaries import Diary
from threadkeep.testing.scripted_model import ScriptedModel
from threadkeep.wire.approvals import ApprovalView
from threadkeep.wire.messages import FailureView
from threadkeep.wire.programs import Effect, bare_name

log = logging.getLogger("threadkeep.testing")

TIMEOUT_S = 30.0
MOST_PAUSE_S = 5.0

_ALIKE = 0.75
"""How alike two names are of which one is a misspelt other, from 0 to 1."""
_USER = User(LOCAL, UserRole.ADMIN)
"""Whose client a running app has."""

Fakes = Mapping[str, Callable[..., Any]]
"""What runs instead of steps, by their names."""


Prepare = Callable[[Client], Awaitable[str | None]]
"""Makes what a turn needs besides agents in code; returns the agent that gets the message, if it is none."""


class StepNotFaked(AssertionError):
    """A step that can't be undone was about to run for real, or one ran whose fake is misspelt."""


class NotDeterministic(AssertionError):
    """The agent's function, run again, did something else than before."""


@dataclass(frozen=True, slots=True)
class StepRuns:
    """All steps of one name in a turn."""

    count: int
    """How often the function, or its fake, was called."""
    statuses: tuple[str, ...]
    """How each of the steps ended, in the order in which they began."""

    @property
    def status(self) -> str:
        """How the last of them ended."""
        return self.statuses[-1]


@dataclass(frozen=True, slots=True)
class AgentRun:
    """What an agent has made of a message."""

    text: str
    parts: Sequence[Mapping[str, Any]]
    """The parts of the reply, as the API has them."""
    status: TurnStatus
    error: FailureView | None
    steps: Mapping[str, StepRuns]
    """By their names; a function inside another one has its bare name."""
    questions: Sequence[str]
    """What the agent asked its user, and which calls it wanted approved."""
    exception: BaseException | None = None
    """What the agent's function raised, if that ended the turn: `error` is what its user sees of it."""
    output: Any = None
    """The reply as a value, if it is structured."""


class Effects:
    """Runs fakes instead of steps, and notes what runs."""

    def __init__(self, fakes: Fakes, diary: Diary) -> None:
        self._fakes = fakes
        self._diary = diary
        self.exception: BaseException | None = None
        """What ended the last turn."""

    def of(self, agent: Agent) -> Agent:
        """The agent with these effects."""

        def note_failure(error: BaseException) -> None:
            self.exception = error
            if not isinstance(error, AgentError):
                log.error('agent "%s" raised, and its turn failed', agent.key, exc_info=error)

        return agent.with_functions(self._choose, note_failure)

    @property
    def counts(self) -> Counter[str]:
        """How often each function, or its fake, was called."""
        return Counter(it["ran"] for it in self._diary.read() if "ran" in it)

    @property
    def writes(self) -> set[str]:
        """Those of them that are writes."""
        return {it["ran"] for it in self._diary.read() if it.get("effect") == "write"}

    def _choose(self, step: str, effect: Effect, fn: Callable[..., Any]) -> Callable[..., Any]:
        name = bare_name(step)
        fake = self._fakes.get(name)
        if fake is None and effect == "write":
            refused = (
                f"The step `{name}` is a write and has no fake, so a test would really do it. Pass one: "
                f'`steps={{"{name}": …}}`; or say what it is, `effect="read"` or `effect="idempotent"`.'
            )
            self._diary.write({"refused": refused})
            raise StepNotFaked(refused)
        self._diary.write({"ran": name, "effect": effect})
        return fake or fn

    def check(self) -> None:
        """Raises if a step was refused, whatever the agent made of that, or its fake is misspelt."""
        for it in self._diary.read():
            if "refused" in it:
                raise StepNotFaked(it["refused"])
        ran = self.counts
        real = ran.keys() - self._fakes.keys()
        for unused in self._fakes.keys() - ran.keys():
            if meant := get_close_matches(unused, real, n=1, cutoff=_ALIKE):
                raise StepNotFaked(
                    f"`steps` has a fake `{unused}`, which no step used, and `{meant[0]}` ran for real. "
                    "Correct the fake's name, or leave it out."
                )


async def run_agent(
    agent: Agent,
    text: str,
    *,
    answers: Sequence[Any] = (),
    model: ScriptedModel | None = None,
    steps: Fakes | None = None,
    agents: Sequence[Agent] = (),
    prepare: Prepare | None = None,
    check: bool = True,
    timeout_s: float = TIMEOUT_S,
    **settings: Any,
) -> AgentRun:
    """Sends an agent a message in a Threadkeep of its own, and returns what has become of it.

    Its questions get `answers`, in turn; a call that needs approval "allow" or "deny"; None declines. `steps`
    has fakes by the names of the steps; a write without one is refused, and so is a misspelt name. `agents`
    are others in code that it runs; `prepare` makes others with a client, and may return the id of an agent
    without code that gets the message instead. With
    `check`, the function then runs again against what was recorded, without running a step; if it does
    something else, that raises NotDeterministic. `settings` are those of `Settings`.
    """
    effects = Effects(steps or {}, Diary())
    course = Course(agent, effects, answers, timeout_s)
    async with running_app(model, agents=[*map(effects.of, (agent, *agents))], **settings) as app:
        course.asked_id = await prepare(app.client) if prepare is not None else None
        run = await course.run(app.client, text)
        if check:
            await course.check(app)
    if run.status == "COMPLETED":
        course.check_answers()
    return run


class Course:
    """One turn of an agent, from the message to the end, in one Threadkeep after another."""

    def __init__(
        self,
        agent: Agent,
        effects: Effects,
        answers: Sequence[Any],
        timeout_s: float,
        *,
        pauses: bool = False,
    ) -> None:
        self._agent = agent
        self._effects = effects
        self._answers = list(answers)
        self._timeout_s = timeout_s
        self._pauses = pauses
        self._conversation_id = ""
        self.turn_id = ""
        self.asked_id: str | None = None
        """The agent that gets the message, if it is none in code."""
        self._asked: dict[str, tuple[str, Any]] = {}
        """What was asked, and what is answered, by the request."""

    async def run(self, client: Client, text: str) -> AgentRun:
        """Sends the message, unless it is sent, answers what the agent asks, and waits for the end."""
        if not self.turn_id:
            await self._start(client, text)
        return await self._finish(client)

    def check_answers(self) -> None:
        """Raises if the agent has asked less than the test expects."""
        if self._answers:
            raise AssertionError(
                f"Agent {self._agent.key!r} has ended without asking for {self._answers!r} of `answers`. "
                f"It asked: {[message for message, _ in self._asked.values()]!r}."
            )

    async def _start(self, client: Client, text: str) -> None:
        if not self._conversation_id:
            key = self._agent.key
            ids = [it.id async for it in client.agents() if it.engine.key == key]
            asked_id = self.asked_id or ids[0]
            self._conversation_id = (await client.create_conversation(asked_id, title="Test")).id
        started = await client.start(self._conversation_id, text, idempotency_key=self._conversation_id)
        self.turn_id = started.turn_id

    async def _finish(self, client: Client) -> AgentRun:
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._converse(client)
        except TimeoutError:
            raise TimeoutError(
                f"Agent {self._agent.key!r} took longer than {self._timeout_s:g} s: "
                f"{await self._state(client)}"
            ) from None
        self._effects.check()
        return await self._outcome(client)

    async def check(self, app: RunningApp) -> None:
        """Raises NotDeterministic if the agent's function does something else when it runs again."""
        services = await app.app.services()
        turn = await services.turns.get(_USER, self.turn_id)
        conversation = await services.conversations.get(_USER, turn.conversation_id)
        try:
            found = await services.code_checks.difference(_USER, turn, conversation, self._timeout_s)
        except TimeoutError:
            raise TimeoutError(
                f"Agent {self._agent.key!r} took longer than {self._timeout_s:g} s when it ran again."
            ) from None
        if found is not None:
            raise NotDeterministic(found)

    async def _converse(self, client: Client) -> None:
        while True:
            try:
                await client.reply(self.turn_id)
            except TurnWaiting as waiting:
                for request in waiting.approvals:
                    await self._answer(client, request)
            else:
                return

    async def _answer(self, client: Client, request: ApprovalView) -> None:
        turn_id, request_id = request.turn_id, request.request_id
        if request_id not in self._asked:
            if not self._answers:
                raise AssertionError(
                    f"Agent {self._agent.key!r} asks {request.message!r}, and `answers` has no answer left."
                )
            self._asked[request_id] = request.message, self._answers.pop(0)
        if self._pauses:
            await self._until_paused(client)
        _, answer = self._asked[request_id]
        try:
            if answer is None:
                await client.answer(turn_id, request_id, "deny")
            elif request.kind == "tool":
                await client.answer(turn_id, request_id, answer)
            else:
                action = "result" if request.kind == "client_tool" else "answer"
                await client.answer(turn_id, request_id, action, content=_as_asked(request, answer))
        except ClientError as exc:
            raise AssertionError(
                f"Agent {self._agent.key!r} asks {request.message!r}, which {answer!r} doesn't answer: {exc}"
            ) from exc

    async def _until_paused(self, client: Client) -> None:
        """Waits for the end of the function; one that does something else meanwhile doesn't end."""
        with suppress(TimeoutError):
            async with asyncio.timeout(MOST_PAUSE_S):
                while (await client.turn(self.turn_id)).status != "WAITING":  # noqa: ASYNC110 - an API
                    await asyncio.sleep(0.01)

    async def _outcome(self, client: Client) -> AgentRun:
        message, turn = await client.reply(self.turn_id), await client.turn(self.turn_id)
        return AgentRun(
            text=str(message.content),
            parts=msgspec.to_builtins(message.parts),
            status=turn.status,
            error=turn.error,
            steps=await self._steps(client),
            questions=[message for message, _ in self._asked.values()],
            exception=self._effects.exception,
            output=None if message.output is UNSET else message.output,
        )

    async def _steps(self, client: Client) -> dict[str, StepRuns]:
        statuses: dict[str, list[str]] = {}
        async for step in client.steps(self.turn_id, values=True):
            if step.kind in ("step", "tool"):
                statuses.setdefault(bare_name(step.name), []).append(step.status)
        counts = self._effects.counts
        return {name: StepRuns(counts[name], tuple(ended)) for name, ended in statuses.items()}

    async def _state(self, client: Client) -> str:
        """What a turn that hasn't ended waits for."""
        open_ = [bare_name(it.name) async for it in client.steps(self.turn_id) if it.status == "running"]
        turn = await client.turn(self.turn_id)
        asked = [it.message for it in await client.approvals() if it.turn_id == self.turn_id]
        if asked:
            return f"it waits for an answer to {asked[0]!r}."
        if open_:
            return f"it waits for `{'`, `'.join(open_)}`."
        return f"its turn is {turn.status}, and its code waits for nothing that Threadkeep knows of."


def _as_asked(request: ApprovalView, answer: Any) -> Any:
    """An answer as the question's schema has it: `turn.ask(type=int)` asks for an object with it."""
    properties: Mapping[str, Any] = request.schema.get("properties", {}) if request.schema else {}
    is_bare = set(properties) == {"answer"} and not issubclass(type(answer), dict)
    return {"answer": answer} if is_bare else answer
