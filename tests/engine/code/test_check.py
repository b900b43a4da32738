"""A turn's program, run again after its end, is compared with what it has recorded."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable

import pytest

from tests.engine.code.in_memory import CodeTurn, answers
from tests.engine.in_memory import InMemoryGateway
from threadkeep.agents import Agent, AgentError, Turn, agent
from threadkeep.ports.gateway import ModelStopped, TextDelta

Function = Callable[[Turn], Awaitable[str | None]]


async def find(order: str) -> str:
    """Looks something up."""
    return f"order {order}"


async def refund(order: str) -> str:
    """Changes something."""
    return f"refunded {order}"


def alternating(*functions: Function) -> Agent:
    """An agent that does something else each time it runs."""
    next_ = itertools.chain(functions, itertools.repeat(functions[-1]))

    @agent(key="orders")
    async def orders(turn: Turn) -> str | None:
        return await next(next_)(turn)

    return orders


async def checked(turn: CodeTurn) -> str | None:
    """What differs when a turn's program runs once more."""
    await turn.run()
    runs, entries = turn.runs, list(turn.entries)
    found = await turn.check()
    assert (turn.runs, turn.entries) == (runs, entries)
    return found


async def steps(turn: Turn) -> str:
    """Does something of everything."""
    async with asyncio.TaskGroup() as group:
        for order in ("7", "8"):
            group.create_task(turn.step(find, order, effect="read"))
    await turn.say("Found. ")
    if await turn.ask("Refund?", choices=["yes", "no"]) == "yes":
        await turn.step(refund, "7")
    await turn.usage("my-model", 3, 4)
    await turn.save({"at": "the end"})
    return "Done."


async def races(turn: Turn) -> str:
    """Takes what comes first, and leaves the rest."""

    async def slow(order: str) -> str:
        await asyncio.sleep(60)
        return order

    tasks = [asyncio.create_task(turn.step(it, "7", effect="read")) for it in (slow, find)]
    done, left = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in left:
        task.cancel()
    return done.pop().result()


async def gives_up(turn: Turn) -> str:
    """Waits for a step by its own clock."""

    async def never() -> None:
        await asyncio.Event().wait()

    try:
        async with asyncio.timeout(0.1):
            await turn.step(never, effect="read")
    except TimeoutError:
        return "Too slow."
    return "Never."


async def leaves_a_step_running(turn: Turn) -> str:
    """Returns although a step has not ended."""
    began = asyncio.Event()

    async def endless() -> None:
        began.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(turn.step(endless, effect="read"))
    await turn.step(find, "7", effect="read")
    assert not task.done()
    return "Enough."


async def fails(turn: Turn) -> str:
    """Ends with an error of its own."""
    await turn.step(find, "7", effect="read")
    raise AgentError("No such order.")


@pytest.mark.parametrize("function", [steps, races, gives_up, leaves_a_step_running, fails])
async def test_program_that_does_the_same_again_is_fine(function: Function):
    assert await checked(CodeTurn([alternating(function)], answer=answers("yes"))) is None


async def test_no_step_runs_in_a_check():
    ran: list[str] = []

    async def counted(order: str) -> None:
        ran.append(order)

    async def once(turn: Turn) -> str:
        await turn.step(counted, "7")
        return "Done."

    async def more(turn: Turn) -> str:
        await turn.step(counted, "7")
        await turn.step(counted, "8")
        return "Done."

    found = await checked(CodeTurn([alternating(once, more)]))
    name = "test_no_step_runs_in_a_check.<locals>.counted"
    assert found == f"after {name}, the first run ended, this one asked for {name}"
    assert ran == ["7"]


def refunds(*orders: str, then: str = "Done.") -> Function:
    """Looks an order up, and refunds some."""

    async def function(turn: Turn) -> str:
        await turn.step(find, "7", effect="read")
        for order in orders:
            await turn.step(refund, order)
        return then

    return function


async def asks(turn: Turn) -> str:
    """Asks where others refund."""
    await turn.step(find, "7", effect="read")
    await turn.ask("Really?")
    return "Done."


async def raises(turn: Turn) -> str:
    """Fails where others return."""
    await turn.step(find, "7", effect="read")
    raise KeyError("secret")


async def asks_a_model(turn: Turn) -> None:
    """Asks a model."""
    await turn.model("Hello")


async def asks_a_model_otherwise(turn: Turn) -> None:
    """Asks a model something else."""
    await turn.model("Good day")


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        (
            refunds("7"),
            refunds("8"),
            "after find, the first run asked for refund, this one for refund with other arguments",
        ),
        (refunds("7"), asks, "after find, the first run asked for refund, this one for turn.ask"),
        (asks, refunds("7"), "after find, the first run asked for turn.ask, this one for refund"),
        (refunds("7"), refunds(), "after find, the first run asked for refund, this one ended"),
        (
            refunds("7", "7"),
            refunds("7"),
            "after refund, the first run asked for refund (2), this one ended",
        ),
        (refunds(), refunds("7"), "after find, the first run ended, this one asked for refund"),
        (
            asks_a_model,
            asks_a_model_otherwise,
            "after turn.steering, the first run asked for turn.model, this one for turn.model with other "
            "arguments",
        ),
        (
            refunds(),
            refunds(then="Nothing."),
            "after find, the first run said something else than this one",
        ),
        (refunds(then="Done. Bye."), refunds(), "after find, the first run said more than this one"),
        (raises, refunds(), "after find, the first run failed, this one ended"),
        (refunds(), raises, "after find, the first run ended, this one raised KeyError"),
        (refunds("7"), raises, "after find, the first run asked for refund, this one raised KeyError"),
    ],
)
async def test_difference_is_named_without_values(first: Function, second: Function, found: str):
    def gateway() -> InMemoryGateway:
        return InMemoryGateway([TextDelta("Hi."), ModelStopped("end_turn")])

    turn = CodeTurn([alternating(first, second)], gateway=gateway, answer=answers("yes"))
    assert await checked(turn) == found


async def test_code_that_fails_in_a_check_is_not_logged_twice(caplog: pytest.LogCaptureFixture):
    assert await checked(CodeTurn([alternating(raises)])) is None
    assert [it.message for it in caplog.records if it.levelname == "ERROR"] == [
        'agent "orders" failed in turn t'
    ]
