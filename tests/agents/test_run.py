"""One run of a function: how it ends, however it behaves."""

import asyncio
import contextlib
import enum
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from tests.agents.peer import Journal, Paused, Peer, Script, fails, run_once
from threadkeep.agents import (
    AgentError,
    OutcomeUnknown,
    Turn,
    TurnCancelled,
    TurnEnded,
    TurnMisused,
    TurnSuspended,
    agent,
    current_turn,
    run,
)
from threadkeep.testing.waiting import until
from threadkeep.wire.programs import (
    MOST_UNACKNOWLEDGED_BYTES,
    Ack,
    End,
    FromProgram,
    Output,
    Refused,
    Result,
    StepDone,
    TextItem,
)


async def number(given: int) -> int:
    return given


async def waits() -> None:
    await asyncio.sleep(60)


# How it ends


async def test_a_function_that_returns_nothing_ends_with_what_it_said():
    @agent()
    async def it(turn: Turn) -> None:
        await turn.say("said")

    end, journal = await run_once(it)
    assert end == End("completed")
    assert journal.text == "said"


async def test_an_agent_error_is_for_the_user_and_not_for_the_log(caplog: pytest.LogCaptureFixture):
    @agent()
    async def it(turn: Turn) -> None:
        raise AgentError("Order 7 doesn't exist.")

    end = await fails(it)
    assert end.shown
    assert end.error is not None
    assert end.error.message == "Order 7 doesn't exist."
    assert not caplog.messages


async def test_another_exception_is_logged_with_its_place_and_without_what_it_says(
    caplog: pytest.LogCaptureFixture,
):
    @agent()
    async def it(turn: Turn) -> None:
        try:
            raise KeyError("first secret")
        except KeyError as exc:
            raise ValueError("secret") from exc

    end = await fails(it)
    assert not end.shown
    assert end.code is None
    assert end.error is not None
    assert (end.error.type, end.error.message) == ("builtins.ValueError", "secret")
    text = caplog.text
    assert 'agent "it" failed in turn t1' in text
    assert "test_run.py" in text
    assert "ValueError" in text
    assert "KeyError" in text
    assert "secret" not in text.replace('ValueError("secret")', "").replace('KeyError("first secret")', "")


async def test_a_mistake_in_the_use_of_a_turn_is_explained_in_the_log(caplog: pytest.LogCaptureFixture):
    @agent()
    async def it(turn: Turn) -> None:
        async def outer() -> None:
            await turn.step(number, 7, effect="read")

        async with asyncio.TaskGroup() as group:
            group.create_task(turn.step(outer, effect="read"))

    await fails(it)
    assert "StepInsideStep: The step `number` is inside the step `" in caplog.text
    assert "Call the function directly, or make the outer step a plain function." in caplog.text


async def steps_in_a_lambda(turn: Turn) -> None:
    await turn.step(lambda: 1)


async def retries_a_write(turn: Turn) -> None:
    await turn.step(number, 7, retries=2)


async def steps_in_a_call(turn: Turn) -> None:
    await turn.step(number(7))  # type: ignore[arg-type]


async def misspells_an_effect(turn: Turn) -> None:
    await turn.step(number, 7, effect="reads")  # type: ignore[arg-type]


async def says_a_number(turn: Turn) -> None:
    await turn.say(7)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("misuse", "sentence"),
    [
        (steps_in_a_lambda, "Give this one a name"),
        (steps_in_a_call, "not what a call returns"),
        (misspells_an_effect, "`effect` is one of read, idempotent, write; not 'reads'."),
        (retries_a_write, "is a write, which is never repeated by itself"),
        (says_a_number, "A turn shows texts; this is an int. Use `str(…)`."),
    ],
)
async def test_what_newcomers_get_wrong_is_explained_in_the_log(
    misuse: Callable[[Turn], Awaitable[None]], sentence: str, caplog: pytest.LogCaptureFixture
):
    @agent()
    async def it(turn: Turn) -> None:
        await misuse(turn)

    await fails(it)
    assert sentence in caplog.text


async def test_a_result_that_is_refused_is_explained_in_the_log_without_its_value(
    caplog: pytest.LogCaptureFixture,
):
    class Color(enum.Enum):
        RED = "red"

    async def color() -> Color:
        return "secret"  # type: ignore[return-value]

    @agent()
    async def it(turn: Turn) -> None:
        await turn.step(color, effect="read")

    color.__annotations__["return"] = Color  # not known by its name outside this test
    end = await fails(it)
    assert end.error is not None and "secret" in end.error.message
    explained = [it for it in caplog.text.splitlines() if ".errors.StepResultInvalid" in it]
    assert explained and all(it.endswith("color returned something else than it says.") for it in explained)


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError])
async def test_what_would_end_a_thread_is_the_functions_failure(kind: type[BaseException]):
    @agent()
    async def it(turn: Turn) -> None:
        raise kind

    assert (await fails(it)).error is not None


async def test_a_coded_error_in_a_group_ends_the_turn_with_its_code():
    @agent()
    async def it(turn: Turn) -> None:
        raise ExceptionGroup("several", [ValueError("x"), ExceptionGroup("more", [OutcomeUnknown("?")])])

    assert (await fails(it)).code == "OUTCOME_UNKNOWN"


async def test_only_texts_and_objects_can_be_returned():
    @agent()
    async def it(turn: Turn) -> Any:
        return 7

    end = await fails(it)
    assert end.error is not None
    assert "returned an int; return a text, an object, or nothing" in end.error.message


async def test_a_state_that_cannot_be_stored_fails_the_turn():
    @agent()
    async def it(turn: Turn) -> None:
        turn.state["x"] = object()

    end = await fails(it)
    assert end.error is not None
    assert "`turn.state` can't be stored: it contains an object" in end.error.message


# What it leaves running


async def test_tasks_that_outlive_the_function_are_cancelled_with_it_and_say_nothing_more():
    left: list[asyncio.Task[Any]] = []
    errors: list[BaseException] = []

    @agent()
    async def it(turn: Turn) -> str:
        async def talks() -> None:
            try:
                while True:
                    await turn.say("x")
                    await asyncio.sleep(0)
            finally:
                try:
                    await turn.say("late")
                except TurnEnded as exc:
                    errors.append(exc)

        left.append(asyncio.create_task(talks()))
        await turn.step(number, 1)
        return "done"

    end, journal = await run_once(it)
    assert end.text == "done"
    assert left[0].cancelled()
    assert len(errors) == 1
    assert "late" not in journal.text


async def test_a_step_that_is_left_open_is_recorded_as_cancelled_before_the_end():
    @agent()
    async def it(turn: Turn) -> str:
        task = asyncio.create_task(turn.step(waits, effect="read"))
        await asyncio.wait([task], timeout=0.02)
        return "done"

    journal = Journal()
    peer = Peer(it, journal, Script())
    assert (await peer.end()).text == "done"
    assert isinstance(peer.received[-2], StepDone)
    assert isinstance(peer.received[-1], End)


kept: list[Turn] = []


async def test_a_turn_that_is_kept_is_of_no_use_after_its_run():
    @agent()
    async def keeps(turn: Turn) -> None:
        kept.append(turn)

    @agent()
    async def uses(turn: Turn) -> str:
        for use in (kept[-1].say("x"), kept[-1].step(number, 1), kept[-1].ask("?"), kept[-1].steering()):
            with pytest.raises(TurnEnded, match="This turn has ended"):
                await use
        with pytest.raises(TurnEnded):
            kept[-1].usage("m", 1, 1)
        return "refused"

    await run_once(keeps)
    assert (await run_once(uses))[0].text == "refused"
    with pytest.raises(TurnEnded):
        await kept[-1].say("x")


async def test_a_turn_of_another_run_is_refused_while_that_runs_and_when_it_was_cancelled():
    let_go = asyncio.Event()

    @agent()
    async def keeps(turn: Turn) -> None:
        kept.append(turn)
        await let_go.wait()

    @agent()
    async def uses(turn: Turn) -> str:
        try:
            await kept[-1].say("x")
        except TurnMisused as exc:
            return f"{type(exc).__name__}: {exc}"
        return "taken"

    peer = Peer(keeps, Journal(), Script())
    keeping = asyncio.create_task(peer.end())
    await until(lambda: bool(kept) and kept[-1].function_run is peer.run)
    end, _ = await run_once(uses)
    assert end.text is not None
    assert end.text.startswith("TurnMisused: This `turn` is another turn's")
    await peer.cancelled("abort")
    await keeping
    end, _ = await run_once(uses)
    assert end.text is not None
    assert end.text.startswith("TurnEnded")


# Cancelling


async def cancelled(peer: Peer, reason: Any) -> End:
    ending = asyncio.create_task(peer.end())
    await until(lambda: bool(peer.claimed))
    end = await peer.cancelled(reason)
    assert await ending == end
    return end


async def test_a_cancelled_function_runs_its_finally_blocks_in_which_every_call_raises():
    raised: list[BaseException] = []

    @agent()
    async def it(turn: Turn) -> None:
        turn.state["a"] = 1
        try:
            await turn.step(waits)
        finally:
            for call in (turn.say("x"), turn.step(number, 1), turn.ask("?"), turn.save(1)):
                try:
                    await call
                except TurnCancelled as exc:
                    raised.append(exc)
            turn.state["a"] = 2

    peer = Peer(it, Journal(), Script())
    end = await cancelled(peer, "abort")
    assert end.status == "cancelled"
    assert msgspec.json.decode(end.state) == {"a": 2}
    assert len(raised) == 4
    assert not any(isinstance(exc, TurnSuspended) for exc in raised)
    assert [type(it).__name__ for it in peer.received] == ["StepClaim", "End"]


async def test_a_pause_suspends_the_function_at_its_question():
    seen: list[tuple[str, bool]] = []

    @agent()
    async def it(turn: Turn) -> None:
        try:
            await turn.ask("Which?")
        except asyncio.CancelledError as exc:
            seen.append((type(exc).__name__, turn.is_suspending))
            raise

    with pytest.raises(Paused):
        await Peer(it, Journal(), Script()).end()
    assert seen == [("TurnSuspended", True)]


async def test_a_function_that_swallows_everything_is_refused_everything_and_void_after_the_grace(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(run, "GRACE_S", 0.05)
    tries: list[BaseException] = []
    gives_up = asyncio.Event()

    @agent()
    async def it(turn: Turn) -> str:
        while not gives_up.is_set():
            try:
                await turn.ask("Which?")
            except BaseException as exc:
                tries.append(exc)
        return "went on"

    journal = Journal()
    peer = Peer(it, journal, Script())
    try:
        with pytest.raises(Paused):
            await peer.end()
    finally:
        gives_up.set()
    assert len(tries) > 1
    assert all(isinstance(it, TurnSuspended) for it in tries)
    assert [type(it).__name__ for it in peer.received] == ["AskClaim"]


async def test_a_cancel_before_the_function_began_ends_the_run():
    @agent()
    async def it(turn: Turn) -> None: ...

    sent: list[FromProgram] = []
    asyncio.get_running_loop().set_task_factory(run.note_task)
    peer = Peer(it, Journal(), Script())
    one = run.FunctionRun(it, peer.run.start, peer.run.threads, sent.append)

    async def nothing(_: object) -> None: ...

    one.begin(nothing)
    one.cancel("abort")
    await until(lambda: bool(sent))
    assert sent == [End("cancelled")]


async def test_after_the_end_a_cancel_changes_nothing_and_neither_do_late_messages():
    @agent()
    async def it(turn: Turn) -> str:
        return "done"

    peer = Peer(it, Journal(), Script())
    assert (await peer.end()).text == "done"
    for message in (Result(1, msgspec.Raw(b"1")), Ack(5), Refused("X", "late", 7)):
        peer.send(message)
    peer.run.cancel("abort")
    assert peer.run.cancelled is None


async def test_tasks_in_a_group_are_cancelled_with_the_function():
    @agent()
    async def it(turn: Turn) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(turn.step(waits, key=1))
            group.create_task(turn.step(waits, key=2))

    peer = Peer(it, Journal(), Script())
    assert (await cancelled(peer, "timeout")).status == "cancelled"
    assert not any(isinstance(it, StepDone) for it in peer.received)


async def test_a_background_task_that_waits_for_a_claim_is_cancelled_at_once():
    @agent()
    async def it(turn: Turn) -> None:
        task = asyncio.create_task(turn.step(waits))
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        await asyncio.wait([task])

    peer = Peer(it, Journal(), Script())
    assert (await cancelled(peer, "abort")).status == "cancelled"


async def test_a_refused_claim_raises_and_a_refused_run_is_over(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.CRITICAL)

    @agent()
    async def it(turn: Turn) -> str:
        try:
            await turn.step(waits)
        except TurnMisused as exc:
            await turn.say(str(exc))
        await turn.step(waits)
        return "went on"

    peer = Peer(it, Journal(), Script())
    ending = asyncio.create_task(peer.end())
    await until(lambda: bool(peer.claimed))
    peer.send(Refused("TOO_MANY", "Too many.", 1))
    peer.send(Refused("RUN_LOST", "This run is over."))
    assert (await ending).status == "cancelled"


# Many at once, much at once


async def test_more_claims_than_the_server_takes_wait_for_their_turn():
    most: list[int] = []
    running: set[int] = set()

    async def one(given: int) -> int:
        running.add(given)
        most.append(len(running))
        await asyncio.sleep(0)
        running.remove(given)
        return given

    @agent()
    async def it(turn: Turn) -> str:
        return str(sum(await asyncio.gather(*(turn.step(one, it, effect="read") for it in range(300)))))

    end, journal = await run_once(it)
    assert end.text == str(sum(range(300)))
    assert max(most) <= 100
    assert (await Peer(it, journal, Script()).end()).text == end.text


async def test_a_turn_that_says_more_than_the_server_stores_waits():
    said: list[int] = []

    @agent()
    async def it(turn: Turn) -> None:
        for size in (MOST_UNACKNOWLEDGED_BYTES - 1, 1, 10):
            await turn.say("ä" * (size // 2) + "x" * (size % 2))
            said.append(size)

    peer = Peer(it, Journal(), Script(acknowledges=False))
    ending = asyncio.create_task(peer.end())
    await until(lambda: len(said) == 2)
    for _ in range(20):
        await asyncio.sleep(0)
    assert len(said) == 2
    peer.send(Ack(2))
    assert (await ending).status == "completed"


async def test_a_say_that_waits_for_the_server_ends_with_the_run():
    @agent()
    async def it(turn: Turn) -> None:
        await turn.step(number, 1)
        await turn.say("x" * MOST_UNACKNOWLEDGED_BYTES)
        await turn.say("y")

    peer = Peer(it, Journal(), Script(acknowledges=False))
    ending = asyncio.create_task(peer.end())
    await until(lambda: any(isinstance(it, Output) for it in peer.received))
    assert (await peer.cancelled("abort")).status == "cancelled"
    await ending


async def test_texts_that_follow_each_other_at_once_go_together_and_before_the_next_claim():
    @agent()
    async def it(turn: Turn) -> None:
        for piece in "abc":
            await turn.say(piece)
        await turn.step(number, 1)

    peer = Peer(it, Journal(), Script())
    await peer.end()
    assert peer.received[0] == Output((TextItem("a"), TextItem("b"), TextItem("c")))


async def test_texts_are_cleaned_and_what_is_none_is_refused():
    @agent()
    async def it(turn: Turn) -> None:
        await turn.say("a\0b\ud800")
        await turn.say("")
        with pytest.raises(TurnMisused, match="this is an int"):
            await turn.say(5)  # type: ignore[arg-type]

    _, journal = await run_once(it)
    assert journal.text == "a\ufffdb?"


# Context


async def test_the_current_turn_is_that_of_the_function_in_all_its_tasks():
    @agent()
    async def it(turn: Turn) -> str:
        async def inner() -> bool:
            return current_turn() is turn

        with turn.scope("inner") as scoped:
            is_scoped = current_turn() is scoped
        return str([*await asyncio.gather(inner(), inner()), is_scoped, current_turn() is turn])

    assert (await run_once(it))[0].text == "[True, True, True, True]"
    with pytest.raises(LookupError):
        current_turn()
