"""Agents in the server's process: in a thread of their own."""

import asyncio
import logging
import threading
from collections.abc import AsyncGenerator

import pytest

from threadkeep.agents import Agent, BlockingTurn, LocalPrograms, Turn, agent
from threadkeep.agents.local import LocalRun
from threadkeep.testing.waiting import until
from threadkeep.wire.programs import (
    Cancel,
    End,
    FromProgram,
    Output,
    ProgramLost,
    Result,
    Run,
    Start,
    StartConversation,
    StartMessage,
    StartUser,
    StepClaim,
    StepDone,
)


def start_of(it: Agent) -> Start:
    return Start(
        turn="t1",
        run=1,
        agent=it.key,
        version=it.version,
        user=StartUser("u1"),
        conversation=StartConversation("c1", "Title"),
        message=StartMessage("m1", "hello"),
        at=1_000,
    )


async def next_of(run: LocalRun) -> FromProgram:
    async with asyncio.timeout(10):
        return await run.receive()


async def serve_steps(run: LocalRun) -> End:
    """Lets a program run all its steps, to its end."""
    while True:
        match await next_of(run):
            case StepClaim(id=id_):
                run.send(Run(id_, "key"))
            case StepDone(re, value):
                run.send(Result(re, value))
            case End() as end:
                return end
            case _:
                pass


@agent()
async def says_its_thread(turn: Turn) -> str:
    await turn.say(threading.current_thread().name)
    return await turn.step(thread_name)


@agent()
def says_its_thread_blocking(turn: BlockingTurn) -> str:
    turn.say(threading.current_thread().name)
    return turn.step(thread_name)


def thread_name() -> str:
    return threading.current_thread().name


let_go = threading.Event()


@agent()
async def blocks(turn: Turn) -> str:
    let_go.wait(20)
    return "done"


@agent()
async def exits(turn: Turn) -> None:
    async def exit_now() -> None:
        raise SystemExit(3)

    task = asyncio.create_task(exit_now())
    await asyncio.wait([task])
    assert isinstance(task.exception(), SystemExit)


@pytest.fixture
async def programs() -> AsyncGenerator[LocalPrograms]:
    programs = LocalPrograms([says_its_thread, says_its_thread_blocking, blocks, exits])
    yield programs
    let_go.set()
    await programs.close()
    let_go.clear()


async def test_functions_run_in_the_agents_thread_and_plain_ones_in_threads_of_their_own(
    programs: LocalPrograms,
):
    run = programs.start(start_of(says_its_thread))
    output = await next_of(run)
    assert isinstance(output, Output)
    assert output.items[0].text == "agents"  # type: ignore[union-attr]
    assert (await serve_steps(run)).text == "agents-step-1"

    run = programs.start(start_of(says_its_thread_blocking))
    output = await next_of(run)
    assert isinstance(output, Output)
    assert output.items[0].text == "agents-function-1"  # type: ignore[union-attr]
    assert (await serve_steps(run)).text == "agents-step-1"


async def test_system_exit_in_a_task_of_an_agent_ends_neither_its_turn_nor_the_thread(
    programs: LocalPrograms,
):
    assert (await serve_steps(programs.start(start_of(exits)))).status == "completed"
    assert (await serve_steps(programs.start(start_of(says_its_thread)))).status == "completed"


async def test_an_agent_that_blocks_the_loop_is_named_and_does_not_answer(
    programs: LocalPrograms, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.WARNING, "threadkeep.agents")
    run = programs.start(start_of(blocks))
    assert run.answers
    await until(lambda: not run.answers)
    await until(lambda: bool(caplog.messages))
    assert 'agent "blocks" blocks the event loop (test_local.py:' in caplog.messages[0]
    assert "in blocks) for" in caplog.messages[0]
    assert "in a step whose function is `def` and runs in a thread" in caplog.messages[0]
    assert programs.blocked_s > 0

    let_go.set()
    assert (await serve_steps(run)).text == "done"
    await until(lambda: run.answers)
    await until(lambda: len(caplog.messages) == 2)
    assert "no longer blocks" in caplog.messages[1]
    assert programs.blocked_total_s > 0


async def test_closing_while_an_agent_blocks_ends_its_runs(programs: LocalPrograms):
    run = programs.start(start_of(blocks))
    closing = asyncio.create_task(programs.close())
    with pytest.raises(ProgramLost):
        await next_of(run)
    let_go.set()
    await closing
    with pytest.raises(ProgramLost):
        programs.start(start_of(says_its_thread))


@agent()
async def needs_a_thread(turn: Turn) -> None:
    await turn.step(waits_for_the_test)


def waits_for_the_test() -> None:
    let_go.wait(20)


async def test_a_run_does_not_answer_while_it_waits_for_a_thread():
    programs = LocalPrograms([needs_a_thread], most_threads=1)
    try:
        first, second = (programs.start(start_of(needs_a_thread)) for _ in range(2))
        ending = [asyncio.create_task(serve_steps(first))]
        await until(lambda: any(it.name == "agents-step-1" for it in threading.enumerate()))
        ending.append(asyncio.create_task(serve_steps(second)))
        await until(lambda: not second.answers)
        await until(lambda: first.answers)
        let_go.set()
        assert [it.status for it in await asyncio.gather(*ending)] == ["completed", "completed"]
        assert second.answers
    finally:
        let_go.set()
        await programs.close()
        let_go.clear()


cleaned: list[str] = []


@agent()
async def cleans_up(turn: Turn) -> None:
    async def inner() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)
            cleaned.append("inner")

    task = asyncio.create_task(inner())
    try:
        await turn.say("begun")
        await asyncio.sleep(60)
    finally:
        task.cancel()
        await asyncio.wait([task])
        cleaned.append("outer")


async def test_closing_lets_functions_clean_up_and_logs_nothing(caplog: pytest.LogCaptureFixture):
    programs = LocalPrograms([cleans_up])
    run = programs.start(start_of(cleans_up))
    assert isinstance(await next_of(run), Output)
    await programs.close()
    assert cleaned == ["inner", "outer"]
    assert not caplog.messages


async def test_nothing_of_a_closed_run_arrives(programs: LocalPrograms):
    run = programs.start(start_of(says_its_thread))
    await next_of(run)
    await run.close()
    run.send(Cancel("abort"))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            while True:
                await run.receive()
