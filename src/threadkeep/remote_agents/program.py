"""Runs a turn of an agent that another server runs: each run is a step, what it asks are questions."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from itertools import count
from typing import Any, cast

import msgspec
from msgspec import Struct

from threadkeep.agents import Agent, OutcomeUnknown, Turn, step_key
from threadkeep.agents.replies import Result
from threadkeep.agents.steps import StepOptions
from threadkeep.domain.engines.remote_agent import AG_UI_KEY, RemoteAgent
from threadkeep.domain.secret import Secret
from threadkeep.remote_agents.connection import Reach, frames_of
from threadkeep.remote_agents.errors import RemoteFailed, RunCutOff
from threadkeep.remote_agents.frames import Interrupt
from threadkeep.remote_agents.limits import LIMITS, RunLimits
from threadkeep.remote_agents.reading import LEGACY_INTERRUPT, RunReader, Shown
from threadkeep.remote_agents.thread import STATE_KEY, messages_for
from threadkeep.remote_agents.transcript import Json, Transcript
from threadkeep.wire.programs import AgentDeclared, CallReturned

VERSION = 1
MOST_RUNS = 50
"""How often a server may ask the user or call our client's tools in one turn."""
MOST_QUESTION = 4_000
"""How many characters of a question are shown."""
ATTEMPTS = 3
"""How often a run is made that may be repeated and breaks off."""
CUT_OFF = (
    "The connection to the agent's server was cut off, and the run isn't repeated: it may have had an effect."
)
SILENT = "The agent's server ended the run without a reply."


class RunDone(Struct, frozen=True):
    """What a run came to."""

    messages: list[Json]
    state: Any
    pending: dict[str, tuple[str, Json]]
    """The calls that our client is to run, by the server's id: name and arguments."""
    interrupts: list[Interrupt]
    open_calls: dict[str, str]
    has_spoken: bool


def ag_ui_program(reach: Reach, limits: RunLimits = LIMITS) -> Agent:
    """The program that runs the turns of agents that speak AG-UI."""

    async def run(turn: Turn) -> None:
        await _RemoteTurn(turn, reach, limits).run()

    return Agent(run, AgentDeclared(AG_UI_KEY, VERSION), ())


class _RemoteTurn:
    """One run of the program for one turn."""

    def __init__(self, turn: Turn, reach: Reach, limits: RunLimits) -> None:
        settings = turn.settings
        if not settings:
            raise RemoteFailed("This agent no longer runs on another server. Send the message again.")
        headers = {name: Secret(value) for name, value in settings["headers"].items()}
        self._remote = RemoteAgent(settings["url"], headers, settings["repeat"])
        self._turn = turn
        self._reach = reach
        self._limits = limits
        self._resume: Json = {}
        self._open_calls: dict[str, str] = {}
        self._has_spoken = False

    async def run(self) -> None:
        """Runs until the server neither asks anything nor calls a tool of ours."""
        turn = self._turn
        kept = cast("Json", turn.state.get(STATE_KEY) or {})
        messages, state = await messages_for(turn, kept), kept.get("state")
        for number in range(1, MOST_RUNS + 1):
            if number > 1:
                texts = await turn.steering()
                own = turn.message.id
                messages += [_user(f"{own}-{number}-{at}", it) for at, it in enumerate(texts)]
            done = await self._run_once(number, messages, state)
            messages, state = done.messages, done.state
            self._open_calls, self._has_spoken = done.open_calls, self._has_spoken or done.has_spoken
            self._keep(messages, state)
            if done.interrupts:
                self._resume = await self._answers(number, done.interrupts)
            elif done.pending:
                self._resume = {}
                messages += await self._results(done.pending)
                self._keep(messages, state)
            elif self._has_spoken:
                return
            else:
                raise RemoteFailed(SILENT, is_retryable=True)
        raise RemoteFailed(f"The agent's server has asked for something {MOST_RUNS} times in one turn.")

    async def _run_once(self, number: int, messages: list[Json], state: Any) -> RunDone:
        repeat, numbers = self._remote.repeat, count(1)

        def reader() -> RunReader:
            return RunReader(
                Transcript(messages),
                state,
                self._limits,
                run_key=f"{self._turn.id}/{number}",
                client_tools=frozenset(it.name for it in self._turn.client_tools),
                earlier_calls=self._open_calls,
                step_numbers=numbers,
            )

        async def ask_server() -> AsyncGenerator[Shown | Result]:
            async with aclosing(self._ask(reader(), messages, state)) as shown:
                async for it in shown:
                    yield it

        options = StepOptions(
            effect="idempotent" if repeat else "write",
            name="AG-UI",
            hidden=True,  # what it shows says more
            key=["run", number],
            retries=ATTEMPTS - 1 if repeat else 0,
            retries_for=RunCutOff,
            keeps_output=True,
        )
        try:
            return msgspec.convert(await self._turn.take_step(ask_server, (), options), RunDone)
        except OutcomeUnknown:
            raise RunCutOff(CUT_OFF) from None

    async def _ask(
        self, reader: RunReader, messages: list[Json], state: Any
    ) -> AsyncGenerator[Shown | Result]:
        """One run of the server; what it says of its own secrets is hidden."""
        headers = {name: secret.reveal() for name, secret in self._remote.headers.items()}
        frames = frames_of(
            self._remote.url, headers, self._request(messages, state), self._reach, self._limits
        )
        try:
            async with aclosing(frames):
                async for frame in frames:
                    for it in reader.read(frame):
                        yield it
                    if reader.is_over:
                        break
            if not reader.is_over:
                raise RunCutOff("The agent's server closed the connection before the run ended.")
        except RemoteFailed as exc:
            for it in reader.left_open("error"):
                yield it
            raise type(exc)(self._remote.hide(exc.args[0]), *exc.args[1:]) from None
        yield Result(_done(reader, self._limits))

    def _request(self, messages: list[Json], state: Any) -> bytes:
        turn = self._turn
        tools = [
            {"name": it.name, "description": it.description, "parameters": it.parameters}
            for it in turn.client_tools
        ]
        return msgspec.json.encode(
            {
                "threadId": turn.conversation.id,
                "runId": step_key(),
                "state": {} if state is None else state,
                "messages": messages,
                "tools": tools,
                "context": [],
                "forwardedProps": {},
                **self._resume,
            }
        )

    def _keep(self, messages: list[Json], state: Any) -> None:
        """For the next turn of this branch, and in case this one ends early."""
        kept: Json = {"state": state, "messages": messages, "after": self._turn.message.id}
        self._turn.state[STATE_KEY] = kept

    async def _answers(self, number: int, interrupts: list[Interrupt]) -> Json:
        """What the user says to all that the server asks, at once and in any order."""
        scopes = [self._turn.scope(f"run-{number}-{at}") for at in range(len(interrupts))]
        answers = await asyncio.gather(*map(self._answer, scopes, interrupts))
        if all(it.reason == LEGACY_INTERRUPT and not it.id for it in interrupts):
            return {"forwardedProps": {"command": {"resume": answers[0] if len(answers) == 1 else answers}}}
        return {
            "resume": [
                {"interruptId": it.id, "status": "cancelled"}
                if answer is None
                else {"interruptId": it.id, "status": "resolved", "payload": answer}
                for it, answer in zip(interrupts, answers, strict=True)
            ]
        }

    async def _answer(self, scope: Turn, asked: Interrupt) -> Any:
        message = self._remote.hide(asked.message or asked.reason or "The agent asks for your decision.")
        return await scope.ask_form(message[:MOST_QUESTION], asked.response_schema or {"type": "string"})

    async def _results(self, pending: dict[str, tuple[str, Json]]) -> list[Json]:
        """What our client's tools return, as messages."""
        called = await asyncio.gather(*(self._turn.call(*it) for it in pending.values()))
        return [
            {
                "id": f"{id_}-result",
                "role": "tool",
                "toolCallId": id_,
                "content": cast("CallReturned", it).text,
            }
            for id_, it in zip(pending, called, strict=True)
        ]


def _user(id_: str, text: str) -> Json:
    return {"id": id_, "role": "user", "content": text}


def _done(reader: RunReader, limits: RunLimits) -> Json:
    """What a run came to; raises RemoteFailed if that can't be kept."""
    messages = reader.transcript.whole()
    for what, value, most in (
        ("state", reader.state, limits.state_bytes),
        ("thread", messages, limits.thread_bytes),
    ):
        try:
            size = len(msgspec.json.encode(value))
        except (TypeError, ValueError, OverflowError, RecursionError):
            raise RemoteFailed(f"The {what} of the agent's server can't be stored.") from None
        if size > most:
            raise RemoteFailed(f"The {what} of the agent's server has more than {most:,} bytes.")
    return {
        "messages": messages,
        "state": reader.state,
        "pending": reader.pending,
        "interrupts": [msgspec.to_builtins(it) for it in reader.interrupts],
        "open_calls": reader.shown_calls,
        "has_spoken": reader.has_spoken,
    }
