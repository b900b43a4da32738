"""Functions that aren't `async`: the same turn, in a thread."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.agents.peer import Journal, Paused, Peer, Script, lose_everywhere, run_once
from threadkeep.agents import (
    AgentError,
    BlockingTurn,
    Reply,
    StepInsideStep,
    Turn,
    TurnCancelled,
    TurnEnded,
    TurnMisused,
    TurnSuspended,
    agent,
    blocking,
    run,
    tool,
)
from threadkeep.testing.waiting import until
from threadkeep.wire.programs import ModelClaim, ModelReply, ModelToolCall


def double(number: int) -> int:
    return number * 2


async def double_on_the_loop(number: int) -> int:
    return number * 2


def counts(number: int) -> Any:
    yield from (f"{it} " for it in range(number))


@agent()
def orders(turn: BlockingTurn) -> str:
    """A function that uses most of a turn."""
    turn.say(f"{turn.text} ")
    turn.think("hm")
    results = [turn.step(double, 1), turn.step(double_on_the_loop, 2, effect="read")]
    turn.step(counts, 2, effect="idempotent")
    answer = turn.ask("Which?", choices=["a", "b"])
    turn.state["n"] = turn.state.get("n", 0) + 1
    turn.usage("m", 1, 2)
    return f"{results} {answer} {turn.approve('Sure?')}"


async def test_a_plain_function_is_an_agent_and_ends_the_same_wherever_it_is_lost():
    answers = {"Which?": "b", "Sure?": "yes"}
    found = await lose_everywhere(orders, answers=answers)
    assert found.whole.text == "[2, 4] b True"
    assert found.journal.text == "hello 0 1 "
    assert bytes(found.whole.state) == b'{"n":1}'
    assert not found.differ
    assert not found.repeated
    assert found.unknown == 1


async def test_everything_else_of_a_turn_is_there_too():
    @tool(effect="read")
    def find(number: int) -> str:
        return str(number)

    @agent(tools=[find])
    def it(turn: BlockingTurn) -> Reply:
        turn.notice("n")
        turn.attach("a.txt", b"x")
        turn.cite([])
        inner = turn.scope("inner")
        inner.save([1])
        assert inner.saved == [1]
        assert turn.saved is None
        assert turn.steering() == ["late"]
        assert turn.history() == []
        assert turn.tools() == []
        assert turn.call(find, {"number": 3}) == "3"
        assert turn.model("x", show=False).text == "a reply"
        return turn.run(messages="y")

    def reply(claim: ModelClaim) -> ModelReply:
        if len(claim.messages) == 1 and claim.tools:
            return ModelReply("", tool_calls=(ModelToolCall("c1", "find", {"number": 5}),))
        return ModelReply("a reply")

    peer = Peer(it, Journal(), Script(reply=reply, steering=[["late"]]))
    end = await peer.end()
    assert end.status == "completed", end
    assert peer.models[-1].messages[-1].content == [
        {"type": "tool_result", "tool_use_id": "c1", "content": "5", "is_error": False}
    ]


async def test_exceptions_are_those_of_the_step():
    def fails() -> None:
        raise AgentError("No.")

    @agent()
    def it(turn: BlockingTurn) -> str:
        try:
            turn.step(fails)
        except AgentError as exc:
            return f"{exc} {type(exc.__cause__).__name__}"
        return ""

    end, journal = await run_once(it)
    assert end.text == "No. AgentError"
    assert (await Peer(it, journal, Script()).end()).text == "No. NoneType"


async def test_a_step_inside_a_step_is_refused_across_threads():
    @agent()
    def it(turn: BlockingTurn) -> str:
        def outer() -> str:
            with pytest.raises(StepInsideStep):
                turn.step(double, 1)
            turn.say("said inside")
            return "refused"

        return turn.step(outer)

    end, journal = await run_once(it)
    assert end.text == "refused"
    assert [(bool(who), item.text) for who, item in journal.shown] == [(True, "said inside")]  # type: ignore[union-attr]


async def test_a_pause_suspends_it_at_its_question_and_calls_in_finally_raise():
    raised: list[type[BaseException]] = []
    has_ended = threading.Event()

    @agent()
    def it(turn: BlockingTurn) -> None:
        try:
            turn.ask("Which?")
        except BaseException as exc:
            raised.append(type(exc))
            raise
        finally:
            try:
                turn.say("late")
            except BaseException as exc:
                raised.append(type(exc))
            has_ended.set()

    journal = Journal()
    with pytest.raises(Paused):
        await Peer(it, journal, Script()).end()
    assert has_ended.is_set()
    assert raised == [TurnSuspended, TurnSuspended]
    assert not journal.shown


async def test_a_stopped_function_that_computes_is_void_after_the_grace(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(run, "GRACE_S", 0.02)
    let_go, has_begun = threading.Event(), threading.Event()
    raised: list[type[BaseException]] = []

    @agent()
    def it(turn: BlockingTurn) -> None:
        has_begun.set()
        let_go.wait(20)
        try:
            turn.say("late")
        except BaseException as exc:
            raised.append(type(exc))
            raise

    peer = Peer(it, Journal(), Script())
    ending = asyncio.create_task(peer.end())
    await until(has_begun.is_set)
    assert (await peer.cancelled("abort")).status == "cancelled"
    await ending
    let_go.set()
    await until(lambda: bool(raised))
    assert raised == [TurnCancelled]


async def test_a_stop_during_a_step_ends_the_function_though_its_thread_goes_on(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(run, "GRACE_S", 5)
    let_go, has_begun = threading.Event(), threading.Event()

    def computes() -> None:
        has_begun.set()
        let_go.wait(20)

    @agent()
    def it(turn: BlockingTurn) -> None:
        turn.step(computes)

    peer = Peer(it, Journal(), Script())
    ending = asyncio.create_task(peer.end())
    await until(has_begun.is_set)
    assert (await peer.cancelled("abort")).status == "cancelled"
    let_go.set()
    await ending


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, StopIteration])
async def test_what_would_end_a_thread_is_the_functions_failure(kind: type[BaseException]):
    @agent()
    def it(turn: BlockingTurn) -> None:
        raise kind

    assert (await run_once(it))[0].status == "failed"


kept: list[Any] = []


async def test_a_blocking_turn_is_refused_on_the_loop_and_after_its_run():
    @agent()
    async def it(turn: Turn) -> str:
        kept.append(blocking(turn))
        try:
            blocking(turn).say("x")
        except TurnMisused as exc:
            return str(exc)
        return ""

    end, _ = await run_once(it)
    assert end.text is not None
    assert "use `await turn.…` there" in end.text

    def later(call: Callable[[], object]) -> str:
        try:
            call()
        except TurnEnded:
            return "refused"
        return "taken"

    assert await asyncio.to_thread(later, lambda: kept[-1].say("x")) == "refused"


async def test_a_turn_is_refused_off_its_loop_where_a_blocking_one_works():
    def elsewhere(turn: Turn) -> list[str]:
        async def in_another_loop() -> str:
            with pytest.raises(TurnMisused, match=r"use `blocking\(turn\)`"):
                await turn.step(len, "four", effect="read")
            return str(blocking(turn).step(len, "four", effect="read"))

        with pytest.raises(TurnMisused, match=r"use `blocking\(turn\)`"):
            turn.usage("own/model", 1, 2)
        blocking(turn).usage("own/model", 1, 2)
        return [asyncio.run(in_another_loop())]

    @agent()
    async def it(turn: Turn) -> str:
        return " ".join(await asyncio.to_thread(elsewhere, turn))

    end, _ = await run_once(it)
    assert (end.status, end.text) == ("completed", "4"), end
