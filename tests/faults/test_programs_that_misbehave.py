"""Agents in code that do what they shouldn't: users see a sentence, authors find the traceback."""

import asyncio
import logging
import sys
import threading
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.faults.dying import DyingNode, dying_node, mortality
from tests.faults.programs import Sent, ask, send, settings_on
from tests.postgres import Postgres
from threadkeep import Settings
from threadkeep.agents import Agent, AgentError, OutcomeUnknown, Turn, agent
from threadkeep.engine.code import run
from threadkeep.testing import Recorded, Reply, Say, ScriptedModel, Status, until

__all__ = ["mortality"]

pytestmark = pytest.mark.usefixtures("mortality")

SECRET = "the PIN of the customer is 4711"
FAILED = "The agent's code failed."

WRITES = Counter[str]()
"""What steps have changed, by the text of their turn's message."""
HEARD = defaultdict[str, list[list[str]]](list)
"""What each run of a program heard of its steps, by the text of its turn's message."""
OVER = defaultdict[str, threading.Event](threading.Event)
"""Ends what else would go on for ever, by the text of its turn's message."""
TASKS: list[asyncio.Task[None]] = []
KEPT: dict[str, Turn] = {}


@pytest.fixture(params=["sqlite", "postgres"])
async def settings(
    request: pytest.FixtureRequest,
    model: ScriptedModel,
    tmp_path: Path,
    postgres: Postgres,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Settings]:
    """A node on an empty database, once of each kind, that waits for nothing longer than it must."""
    monkeypatch.setattr(run, "CANCEL_GRACE_S", 0.05)
    for world in (WRITES, HEARD, OVER, TASKS, KEPT):
        world.clear()
    async with settings_on(request.param, model, tmp_path, postgres, agents_pause_after_s=0.05) as settings:
        yield settings


class NoLuck(Exception):
    """An exception of the program's own."""


class Broken(Exception):
    """One that can't even say what is wrong."""

    def __str__(self) -> str:
        raise RuntimeError(SECRET)


async def write(what: str) -> str:
    WRITES[what] += 1
    return what


def huge(what: str) -> str:
    WRITES[what] += 1
    return "x" * 50_000_000


def opened(what: str) -> Any:
    WRITES[what] += 1
    return sys.__stdout__


def not_a_number(what: str) -> dict[str, float]:
    WRITES[what] += 1
    return {"total": float("nan")}


async def raises_its_own(what: str) -> None:
    WRITES[what] += 1
    raise NoLuck(SECRET)


async def raises_what_is_broken(what: str) -> None:
    WRITES[what] += 1
    raise Broken(SECRET)


async def raises_system_exit(what: str) -> None:
    WRITES[what] += 1
    raise SystemExit(SECRET)


def exits_its_thread(what: str) -> None:
    WRITES[what] += 1
    raise SystemExit(SECRET)


async def raises_cancelled_error(what: str) -> None:
    WRITES[what] += 1
    raise asyncio.CancelledError(SECRET)


async def says_too_much(what: str) -> None:
    WRITES[what] += 1
    raise ValueError(f"{SECRET}\n\0\ud800" * 400_000)


STEPS: dict[Callable[[str], Any], str] = {
    huge: "StepResultTooLarge",
    opened: "StepResultInvalid",
    not_a_number: "StepResultInvalid",
    raises_its_own: "NoLuck",
    raises_what_is_broken: "Broken",
    raises_system_exit: "StepFailed",
    exits_its_thread: "StepFailed",
    raises_cancelled_error: "StepFailed",
    says_too_much: "StepFailed",
}
"""What steps do, and what their programs hear of it."""


@agent()
async def catches(turn: Turn) -> str:
    """Goes on, whatever its steps do."""
    heard: list[str] = []
    for fn in STEPS:
        try:
            await turn.step(fn, turn.text)
        except Exception as exc:
            heard.append(type(exc).__name__)
    HEARD[turn.text].append(heard)
    await turn.ask("Go on?")
    return "Done."


async def test_programs_hear_of_their_steps_alike_whenever_they_run(settings: Settings):
    async with dying_node(settings, [catches]) as node:
        sent = await send(node, "Catches")
        await sent.answer(node)
        assert (await sent.until(node))["status"] == "COMPLETED"
        first, again = HEARD[sent.text]
        assert first == again == [*STEPS.values()]
        assert WRITES[sent.text] == len(STEPS)
        shown = (await sent.steps(node))["items"]
        assert [it["status"] for it in shown] == [*["error"] * len(STEPS), "ok"]
        check_sentence(await sent.seen(node))


def of_step(fn: Callable[[str], Any]) -> Agent:
    """An agent that has nothing but this step."""

    @agent(name=fn.__name__, key=fn.__name__.replace("_", "-"))
    async def runs(turn: Turn) -> None:
        await turn.step(fn, turn.text)

    return runs


@agent()
async def raises_after_a_write(turn: Turn) -> None:
    await turn.step(write, turn.text)
    raise RuntimeError(SECRET)


@agent()
async def raises_a_group(turn: Turn) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(turn.step(write, turn.text))
        group.create_task(turn.step(raises_its_own, f"{turn.text} too"))


@agent()
async def exits(turn: Turn) -> None:
    await turn.step(write, turn.text)
    raise SystemExit(SECRET)


@agent()
def exits_in_a_thread(turn: Any) -> None:
    turn.step(write, turn.text)
    raise SystemExit(SECRET)


@agent()
async def cancels_itself(turn: Turn) -> None:
    await turn.step(write, turn.text)
    raise asyncio.CancelledError(SECRET)


@agent()
async def steps_in_a_step(turn: Turn) -> None:
    async def outer(what: str) -> str:
        return await turn.step(write, what)

    await turn.step(outer, turn.text)


@agent()
async def has_two_closures_of_one_name(turn: Turn) -> None:
    def closure(number: int) -> Callable[[], Any]:
        async def pay() -> int:
            WRITES[turn.text] += 1
            return number

        return pay

    await asyncio.gather(turn.step(closure(1)), turn.step(closure(2)))


@agent()
async def names_a_step_in_two_lines(turn: Turn) -> None:
    await turn.step(write, turn.text, name=f"pay\n{SECRET}")


@agent()
async def names_a_step_too_long(turn: Turn) -> None:
    await turn.step(write, turn.text, name="n" * 10_240)


@agent()
async def passes_a_client(turn: Turn) -> None:
    await turn.step(write, threading.Lock())  # type: ignore[arg-type]


@agent()
async def returns_a_number(turn: Turn) -> Any:
    await turn.step(write, turn.text)
    return 7


@agent()
async def keeps_what_is_no_json(turn: Turn) -> str:
    await turn.step(write, turn.text)
    turn.state["handle"] = threading.Lock()
    return "Done."


@agent()
async def raises_what_is_ours(turn: Turn) -> None:
    await turn.step(write, turn.text)
    raise OutcomeUnknown(SECRET)


@agent()
async def asks_a_model_that_fails(turn: Turn) -> None:
    await turn.step(write, turn.text)
    await turn.model("Well?")


@agent(max_steps=20)
async def never_stops(turn: Turn) -> None:
    while True:
        with suppress(Exception):
            await turn.step(write, turn.text, effect="read")


@dataclass(frozen=True)
class Fault:
    """An agent that misbehaves, and what becomes of its turn."""

    agent: Agent
    logged: str | None
    """The exception in the program's log."""
    writes: Collection[int] = (1,)
    code: str = "AGENT_FAILED"
    message: str = FAILED
    is_in_function: bool = True
    """Whether the traceback has a line of the program."""


FAULTS = [
    *(Fault(of_step(fn), kind) for fn, kind in STEPS.items()),
    Fault(raises_after_a_write, "RuntimeError"),
    Fault(raises_a_group, "NoLuck", writes=(0, 1)),
    Fault(raises_what_is_ours, "OutcomeUnknown"),
    Fault(exits, "SystemExit"),
    Fault(exits_in_a_thread, "SystemExit"),
    Fault(cancels_itself, "CancelledError"),
    Fault(steps_in_a_step, "StepInsideStep", writes=(0,)),
    Fault(has_two_closures_of_one_name, "AmbiguousStep", writes=(0, 1)),
    Fault(names_a_step_in_two_lines, "ValueError", writes=(0,)),
    Fault(names_a_step_too_long, "ValueError", writes=(0,)),
    Fault(passes_a_client, "NotJson", writes=(0,)),
    Fault(returns_a_number, "TurnMisused", is_in_function=False),
    Fault(keeps_what_is_no_json, "NotJson", is_in_function=False),
    Fault(
        asks_a_model_that_fails,
        "ModelFailed",
        code="AGENTX_ERROR",
        message="The model provider rejected the request (400): The model is tired.",
    ),
    Fault(
        never_stops,
        None,
        writes=(20,),
        code="STEP_LIMIT",
        message="The agent's code took more than 20 steps in one turn.",
    ),
]


def fails(request: Recorded) -> Reply:
    return [Status(400, "The model is tired.")]


async def test_users_see_a_sentence_and_authors_find_the_traceback(
    settings: Settings, model: ScriptedModel, caplog: pytest.LogCaptureFixture
):
    model.otherwise = fails
    async with dying_node(settings, [it.agent for it in FAULTS]) as node:
        await asyncio.gather(*(check_fault(node, it, caplog) for it in FAULTS))
        await until(lambda: node.is_idle)
        assert SECRET not in caplog.text


async def check_fault(node: DyingNode, fault: Fault, caplog: pytest.LogCaptureFixture) -> None:
    name = fault.agent.declaration.name
    sent = await send(node, name, text=name)
    try:
        turn = await sent.until(node)
        assert (turn["status"], turn["error"]["code"]) == ("FAILED", fault.code)
        assert turn["error"]["message"] == fault.message
        assert WRITES[name] in fault.writes
        check_sentence(await sent.seen(node))
        check_log(caplog, sent, fault)
        # Nothing of it is run again, and its conversation goes on.
        again = await node.client.post(
            f"/api/conversations/{sent.conversation}/messages", json={"content": f"{name} again"}
        )
        assert again.status_code < 300, again.text
    except BaseException as exc:
        exc.add_note(name)
        raise


def check_sentence(seen: str) -> None:
    """No exception's text, and no traceback."""
    for never in (SECRET, "4711", "Traceback", 'File \\"', ".py", *set(STEPS.values())):
        assert never not in seen, never


def check_log(caplog: pytest.LogCaptureFixture, sent: Sent, fault: Fault) -> None:
    """The traceback of the program, with the exception's class and without what it says."""
    logged = [it for it in caplog.records if sent.turn_id in it.getMessage() and it.exc_info]
    if fault.logged is None:
        assert not logged
        return
    (record,) = logged
    assert record.exc_info
    assert (record.levelno, record.name) == (logging.ERROR, "threadkeep.agents")
    text = "".join(traceback.format_exception(*record.exc_info))
    assert fault.logged in text and SECRET not in text
    assert (Path(__file__).name in text) is fault.is_in_function


@agent()
async def returns_a_time(turn: Turn) -> str:
    async def with_annotation() -> datetime:
        return datetime(2026, 11, 19, 5, 30, tzinfo=UTC)

    async def without():
        return datetime(2026, 11, 19, 5, 30, tzinfo=UTC)

    found = [await turn.step(with_annotation), await turn.step(without)]
    HEARD[turn.text].append([repr(it) for it in found])
    await turn.ask("Go on?")
    return "Done."


@agent()
async def leaves_a_task(turn: Turn) -> str:
    """Its task goes on saying something, also when it is cancelled, and when the function has returned."""

    async def chat() -> None:
        while not over.is_set():
            with suppress(BaseException):
                await turn.say("tick ")
                await asyncio.sleep(0)
                continue
            with suppress(BaseException):
                await asyncio.sleep(0.01)

    over = OVER[turn.text]
    chatting = asyncio.create_task(chat())
    await turn.step(write, turn.text)
    TASKS.append(chatting)
    return "Done."


@agent()
async def keeps_its_turn(turn: Turn) -> str:
    KEPT[turn.text] = turn
    return "Kept."


@agent()
async def uses_another_turn(turn: Turn) -> str:
    other = KEPT[turn.text]
    for use in (lambda: other.say(SECRET), lambda: other.step(write, SECRET), lambda: other.ask("?")):
        try:
            await use()
        except Exception as exc:
            HEARD[turn.text].append([type(exc).__name__])
    return "Refused."


@agent()
async def swallows_everything(turn: Turn) -> str:
    """Goes on when it is to be suspended, for as long as the test lasts."""
    over = OVER[turn.text]
    answer = None
    while answer is None and not over.is_set():
        with suppress(BaseException):
            answer = await turn.ask("Well?")
        if answer is None:
            with suppress(BaseException):
                await turn.step(write, turn.text)
    await turn.step(write, turn.text)
    return f"You said {answer}."


@agent()
async def says_a_lot_in_many_lines(turn: Turn) -> str:
    long = "a line\n" * 1_500
    await turn.step(write, turn.text, title=long)
    await turn.notice(long)
    await turn.attach(f"../{long}/x.txt", b"content")
    await turn.ask(long, choices=[long, "yes"])
    raise AgentError(long)


OTHERS = [
    returns_a_time,
    leaves_a_task,
    keeps_its_turn,
    uses_another_turn,
    swallows_everything,
    says_a_lot_in_many_lines,
]


async def test_other_mistakes_harm_nobody(settings: Settings):
    async with dying_node(settings, OTHERS) as node:
        checks = (
            check_time,
            check_task_that_is_left,
            check_turn_that_is_kept,
            check_swallowing,
            check_long_texts,
        )
        try:
            async with asyncio.TaskGroup() as group:
                for check in checks:
                    group.create_task(check(node))
        finally:
            for over in OVER.values():
                over.set()
        await until(lambda: node.is_idle and all(it.done() for it in TASKS))


async def check_time(node: DyingNode) -> None:
    sent = await send(node, "Returns a time", "time")
    await sent.answer(node)
    assert (await sent.until(node))["status"] == "COMPLETED"
    first, again = HEARD["time"]
    assert first == again
    assert first == [
        "datetime.datetime(2026, 11, 19, 5, 30, tzinfo=datetime.timezone.utc)",
        "'2026-11-19T05:30:00Z'",
    ]


async def check_task_that_is_left(node: DyingNode) -> None:
    sent = await send(node, "Leaves a task", "task")
    assert (await sent.until(node))["status"] == "COMPLETED"
    before = await sent.seen(node)
    assert (await sent.reply(node))["content"].endswith("Done.")
    await asyncio.sleep(0.1)
    assert await sent.seen(node) == before


async def check_turn_that_is_kept(node: DyingNode) -> None:
    kept = await send(node, "Keeps its turn", "kept")
    await kept.until(node)
    before = await kept.seen(node)
    other = await ask(node, "Uses another turn", "kept")
    assert other["status"] == "COMPLETED"
    assert HEARD["kept"] == [["TurnEnded"]] * 3
    assert await kept.seen(node) == before
    assert not WRITES[SECRET]


async def check_swallowing(node: DyingNode) -> None:
    sent = await send(node, "Swallows everything", "swallow")
    turn = await sent.until(node, "WAITING")
    assert (turn["status"], WRITES["swallow"]) == ("WAITING", 0)
    await sent.answer(node, "yes")
    assert (await sent.until(node))["status"] == "COMPLETED"
    assert (await sent.reply(node))["content"] == "You said yes."
    assert WRITES["swallow"] == 1


async def check_long_texts(node: DyingNode) -> None:
    sent = await send(node, "Says a lot in many lines", "long")
    await sent.answer(node, "yes")
    turn = await sent.until(node)
    assert (turn["status"], turn["error"]["code"]) == ("FAILED", "AGENT_FAILED")
    (step, _) = (await sent.steps(node))["items"]
    assert "\n" not in step["title"] and len(step["title"]) <= 200
    parts = {it["type"]: it for it in (await sent.reply(node))["parts"]}
    (artifact,) = parts["tool_call"]["artifactIds"]
    file = await node.client.get(f"/api/artifacts/{artifact}")
    assert (file.status_code, file.content) == (200, b"content")


def spins(turn_text: str) -> None:
    while not OVER[turn_text].is_set():  # for ever, but for the rest of the tests
        pass


def sleeps(turn_text: str) -> None:
    while not OVER[turn_text].is_set():
        time.sleep(0.05)


def blocking(fn: Callable[[str], None]) -> Agent:
    @agent(name=fn.__name__, key=fn.__name__, timeout_s=1)
    async def blocks(turn: Turn) -> str:
        await turn.say("I begin. ")
        await turn.step(write, turn.text)
        fn(turn.text)
        await turn.step(write, turn.text, name="later")
        return "Done."

    return blocks


def answers_at_once(request: Recorded) -> Reply:
    return [Say("Yes.")]


@pytest.mark.parametrize("fn", [spins, sleeps])
async def test_program_that_blocks_ends_in_time_and_delays_no_ordinary_agent(
    settings: Settings, model: ScriptedModel, fn: Callable[[str], None]
):
    model.otherwise = answers_at_once
    name = fn.__name__
    async with dying_node(settings, [blocking(fn)]) as node:
        try:
            made = await node.client.post("/api/agents", json={"name": "Ordinary"})
            assert made.status_code == 201
            sent = await send(node, name, text=name)
            await until(lambda: WRITES[name] == 1)
            assert (await ask(node, "Ordinary"))["status"] == "COMPLETED"
            turn = await sent.until(node)
            assert (turn["status"], turn["error"]["code"]) == ("FAILED", "GENERATION_TIMEOUT")
            assert turn["error"]["message"] == "The turn took longer than 1 s."
            assert (await sent.reply(node))["content"] == "I begin. "
        finally:
            OVER[name].set()
        # What the program does once it goes on has no effect; another turn of it runs.
        again = await ask(node, name, text=name)
        assert again["status"] == "COMPLETED"
        assert WRITES[name] == 3
        assert (await sent.turn(node)) == turn
