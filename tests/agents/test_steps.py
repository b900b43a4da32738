"""Steps: what identifies them, what they return, and how they fail."""

import asyncio
import dataclasses
import functools
import importlib
import inspect
import sqlite3
import sys
import threading
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any

import msgspec
import pydantic
import pytest

from tests.agents.peer import Journal, Lost, Peer, Script, fails, lose_everywhere, run_once
from threadkeep.agents import (
    AmbiguousStep,
    NotInAStep,
    NotJson,
    OutcomeUnknown,
    Result,
    StateReadOnly,
    StepFailed,
    StepInsideStep,
    StepResultInvalid,
    StepResultTooLarge,
    Thought,
    Turn,
    Usage,
    agent,
    attempts,
    blocking,
    current_turn,
    step_key,
    tool,
)
from threadkeep.wire import programs as server
from threadkeep.wire.programs import End, StepClaim, StepDone, ThoughtItem


class Colour(Enum):
    RED = "red"


@dataclasses.dataclass
class Order:
    id: int
    total: Decimal
    at: datetime


class Item(msgspec.Struct):
    name: str


class Shop(pydantic.BaseModel):
    name: str
    orders: list[int]


async def seen(fn: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """What a step gives the code: on the first run, and again from its record."""
    given: list[Any] = []

    @agent()
    async def it(turn: Turn) -> None:
        try:
            given.append(await turn.step(fn, *args, **options))
        except Exception as exc:
            given.append(exc)
        await turn.say("done")

    _, journal = await run_once(it)
    await Peer(it, journal, Script()).end()
    assert not journal.repeated
    first, again = given
    assert type(first) is type(again)
    if isinstance(first, Exception):
        assert str(first) == str(again)
        assert again.__cause__ is None
    else:
        assert first == again
    return first


AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def order() -> Order:
    return Order(7, Decimal("1.10"), AT)


async def item() -> Item:
    return Item("x")


async def shop() -> Shop:
    return Shop(name="s", orders=[1])


def colour() -> Colour:
    return Colour.RED


def content() -> bytes:
    return b"\0\xff"


def pair() -> tuple[int, str]:
    return 1, "a"


def by_id() -> dict[int, Order]:
    return {1: order()}


def identity() -> uuid.UUID:
    return uuid.UUID(int=5)


def maybe() -> Shop | None:
    return Shop(name="maybe", orders=[])


def nothing() -> None:
    return None


@pytest.mark.parametrize(
    "fn",
    [order, item, shop, colour, content, pair, by_id, identity, maybe, nothing],
    ids=lambda it: it.__name__,
)
async def test_the_value_is_what_the_annotation_says(fn: Callable[..., Any]):
    expected = await fn() if inspect.iscoroutinefunction(fn) else fn()
    assert await seen(fn) == expected


async def test_without_an_annotation_the_value_is_plain_json_already_on_the_first_run():
    def unannotated():  # type: ignore[no-untyped-def]
        return {"pair": (1, 2), "at": AT, 3: Decimal("1.5")}

    assert await seen(unannotated) == {"pair": [1, 2], "at": "2026-01-02T03:04:05Z", "3": "1.5"}


def a_row() -> Any:
    connection = sqlite3.connect(":memory:")
    connection.row_factory = sqlite3.Row
    try:
        return connection.execute("SELECT 1 AS one").fetchone()
    finally:
        connection.close()


def not_a_number() -> Any:
    return [1.0, float("nan")]


def half_a_surrogate() -> str:
    return "\ud800"


def itself() -> Any:
    found: list[Any] = []
    found.append(found)
    return found


def an_int() -> int:
    return "seven"  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("fn", "sentence"),
    [
        (a_row, "a_row returned a sqlite3.Row, which can't be stored: a sqlite3.Row isn't JSON"),
        (not_a_number, "JSON has no NaN"),
        (half_a_surrogate, "half of a surrogate pair"),
        (itself, "contains itself"),
        (an_int, "an_int returned something else than it says: Expected `int`, got `str`"),
    ],
    ids=lambda it: getattr(it, "__name__", ""),
)
async def test_what_cannot_be_stored_fails_its_step(fn: Callable[..., Any], sentence: str):
    error = await seen(fn)
    assert isinstance(error, StepResultInvalid)
    assert sentence in str(error)


async def test_an_open_file_cannot_be_stored(tmp_path: Any):
    path = tmp_path / "file"
    path.write_text("x")

    def opened() -> Any:
        with path.open() as file:
            return {"file": file}

    assert "_io.TextIOWrapper isn't JSON" in str(await seen(opened))


async def test_a_result_of_50_mb_fails_its_step():
    def large() -> str:
        return "x" * 50_000_000

    error = await seen(large)
    assert isinstance(error, StepResultTooLarge)
    assert "50000002 bytes" in str(error)


class ShopError(Exception):
    pass


class Coded(Exception):
    def __init__(self, code: int) -> None:
        super().__init__(f"code {code}")
        self.code = code


class Picky(Exception):
    def __init__(self, *, code: int) -> None:
        super().__init__("picky")


async def raises(kind: str) -> None:
    errors: dict[str, BaseException] = {
        "own": ShopError("no such order", 7),
        "builtin": KeyError("x"),
        "os": FileNotFoundError(2, "No such file"),
        "os of a file": FileNotFoundError(2, "No such file", "a.txt"),  # which its `args` don't have
        "coded": Coded(5),
        "picky": Picky(code=1),
        "open": ValueError(threading.Lock()),
        "stop": StopIteration("s"),
        "exit": SystemExit(2),
        "cancelled": asyncio.CancelledError("of something else"),
        "group": ExceptionGroup("several", [ValueError("1")]),
        "long": ValueError("x" * 10_000_000),
        "surrogate": ValueError("\ud800\0"),
    }
    raise errors[kind]


@pytest.mark.parametrize("kind", ["own", "builtin", "os"])
async def test_an_exception_is_raised_as_its_own_class(kind: str):
    error = await seen(raises, kind)
    assert isinstance(error, ShopError | KeyError | FileNotFoundError)


@pytest.mark.parametrize(
    ("kind", "type_"),
    [
        ("coded", "tests.agents.test_steps.Coded"),
        ("picky", "tests.agents.test_steps.Picky"),
        ("open", "ValueError"),
        ("os of a file", "FileNotFoundError"),
        ("exit", "SystemExit"),
        ("cancelled", "asyncio.exceptions.CancelledError"),
        ("group", "ExceptionGroup"),
        ("long", "ValueError"),
        ("surrogate", "ValueError"),
    ],
)
async def test_an_exception_that_cannot_be_rebuilt_is_a_failed_step(kind: str, type_: str):
    error = await seen(raises, kind)
    assert isinstance(error, StepFailed)
    assert (error.name, error.type) == ("raises", type_)
    assert len(str(error)) < 20_000


async def test_stop_iteration_in_a_step_does_not_break_the_function():
    def ends() -> int:
        return next(iter(()))

    assert isinstance(await seen(ends), StepFailed | RuntimeError)


async def test_the_original_exception_is_the_cause_on_the_first_run_only():
    @agent()
    async def it(turn: Turn) -> str:
        try:
            await turn.step(raises, "coded")
        except StepFailed as exc:
            return type(exc.__cause__).__name__
        return "nothing"

    end, journal = await run_once(it)
    assert end.text == "Coded"
    assert (await Peer(it, journal, Script()).end()).text == "NoneType"


async def test_a_class_that_only_the_step_imports_is_found_in_a_later_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "bank_errors.py").write_text("class Declined(Exception): ...")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])

    async def pay() -> None:
        declined = importlib.import_module("bank_errors").Declined
        raise declined("no money", 7)

    @agent()
    async def it(turn: Turn) -> str:
        try:
            await turn.step(pay)
        except Exception as exc:
            return f"{type(exc).__qualname__}{exc.args}"
        return "paid"

    first, journal = await run_once(it)
    del sys.modules["bank_errors"]
    later = await Peer(it, journal, Script()).end()
    assert first.text == later.text == "Declined('no money', 7)"


async def test_a_record_that_names_no_exception_class_is_a_failed_step():
    @agent()
    async def it(turn: Turn) -> None:
        await turn.step(raises, "own")

    _, journal = await run_once(it)
    ((key, ended),) = journal.ended.items()
    assert ended.error is not None
    for type_ in ("os.system", "builtins.SystemExit", "builtins.print", "", "a.b.c", "os.nothing", "a b.c"):
        error = msgspec.structs.replace(ended.error, type=type_)
        journal.ended[key] = msgspec.structs.replace(ended, error=error)
        end = await Peer(it, journal, Script()).end()
        assert end.error is not None
        assert end.error.type == "threadkeep.agents.errors.StepFailed"


async def test_arguments_decide_the_key():
    claims: list[StepClaim] = []

    async def keyed(*args: Any) -> None: ...

    @agent()
    async def it(turn: Turn) -> None:
        for value in (
            1,
            1.0,
            "1",
            True,
            None,
            [1],
            {"a": 1, "b": [AT]},
            order(),
            Colour.RED,
            b"x",
            Item("a"),
        ):
            await turn.step(keyed, value)
        await turn.step(keyed, {"b": [AT], "a": 1})
        await turn.step(keyed, Shop(name="s", orders=[]))

    peer = Peer(it, Journal(), Script())
    await peer.end()
    claims = [it for it in peer.claimed if isinstance(it, StepClaim)]
    assert claims[6].hash == claims[11].hash
    assert len({it.hash for it in claims}) == len(claims) - 1
    assert not any(it.arguments for it in claims)


@pytest.mark.parametrize(
    "argument",
    [threading.Lock(), float("nan"), "\ud800", object(), lambda: 1],
    ids=["lock", "nan", "half", "o", "f"],
)
async def test_arguments_that_are_not_json_are_refused_with_a_sentence(argument: object):
    async def keyed(_: object) -> None: ...

    end = await fails(agent(key="a")(_steps(lambda turn: turn.step(keyed, argument))))
    assert end.error is not None
    assert end.error.type == f"{NotJson.__module__}.NotJson"
    assert "or give the step a `key`" in end.error.message


def _steps(make: Callable[[Turn], Any]) -> Any:
    async def it(turn: Turn) -> None:
        await make(turn)

    return it


async def test_a_key_replaces_the_arguments():
    lock = threading.Lock()

    async def keyed(_: object) -> int:
        return 5

    assert await seen(keyed, lock, key=["a", 1]) == 5


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"name": "two\nlines"}, "1 to 128 characters in one line"),
        ({"name": "x" * 10_240}, "1 to 128 characters in one line"),
        ({"name": ""}, "1 to 128 characters in one line"),
        ({"name": "a/b"}, "no slash"),
        ({"effect": "none"}, "`effect` is one of read, idempotent, write"),
        ({"access": "maybe"}, "`access` is one of allow, ask"),
        ({"unknown": "x"}, "`unknown` is raise or ask"),
        ({"retries": 2}, "is a write, which is never repeated"),
        ({"retries": -1}, "`retries` is a number from 0"),
        ({"timeout_s": 0}, "`timeout_s` is more than 0"),
    ],
    ids=str,
)
async def test_wrong_options_are_refused_with_a_sentence(options: dict[str, Any], sentence: str):
    end = await fails(agent(key="a")(_steps(lambda turn: turn.step(raises, "own", **options))))
    assert end.error is not None
    assert sentence in end.error.message


async def test_a_lambda_needs_a_name():
    error = await fails(agent(key="a")(_steps(lambda turn: turn.step(lambda: 1))))
    assert error.error is not None
    assert "Give this one a name" in error.error.message
    assert await seen(lambda: 1, name="one") == 1


async def test_a_title_is_cut_and_put_in_one_line():
    peer = Peer(
        agent(key="a")(_steps(lambda turn: turn.step(item, title="a\nb" + "x" * 500))), Journal(), Script()
    )
    await peer.end()
    (claim,) = peer.claimed
    assert isinstance(claim, StepClaim)
    assert claim.title is not None
    assert claim.title.startswith("a bx")
    assert len(claim.title) == 200


async def test_partials_count_with_what_they_hold():
    async def add(one: int, two: int, three: int = 0) -> int:
        return one + two + three

    assert await seen(functools.partial(add, 1, three=5), 2) == 8


# Ambiguity, nesting


async def test_two_closures_at_once_are_refused_on_the_first_run():
    ran: list[int] = []

    @agent()
    async def it(turn: Turn) -> None:
        async def one(number: int) -> None:
            async def fetch() -> None:
                ran.append(number)

            await turn.step(fetch)

        await asyncio.gather(one(1), one(2))

    end = await fails(it)
    assert end.error is not None
    assert end.error.type.endswith(".AmbiguousStep")
    assert "run at once and take no arguments" in end.error.message
    assert "turn.step(fetch, value)" in end.error.message


async def test_two_plain_calls_with_equal_arguments_are_interchangeable():
    async def plain(number: int) -> int:
        return number

    @agent()
    async def it(turn: Turn) -> str:
        return str(await asyncio.gather(turn.step(plain, 1), turn.step(plain, 1)))

    end, journal = await run_once(it)
    assert end.text == "[1, 1]"
    assert len(journal.ended) == 2


async def test_methods_of_one_object_are_interchangeable_and_those_of_two_are_not():
    class Client:
        def __init__(self, name: str) -> None:
            self.name = name

        def get(self, number: int) -> str:
            return f"{self.name}{number}"

    def calls(one: Client, two: Client) -> Any:
        return _steps(lambda turn: asyncio.gather(turn.step(one.get, 1), turn.step(two.get, 1)))

    client = Client("a")
    end, _ = await run_once(agent(key="a")(calls(client, client)))
    assert end.status == "completed"
    end = await fails(agent(key="a")(calls(client, Client("b"))))
    assert end.error is not None
    assert end.error.type.endswith(".AmbiguousStep")


async def test_builtin_functions_are_steps_too():
    @agent()
    async def it(turn: Turn) -> str:
        both = await asyncio.gather(turn.step(len, "abc"), turn.step(len, "abc"))
        return f"{both} {await turn.step(max, 1, 2)}"

    end, _ = await run_once(it)
    assert end.text == "[3, 3] 2"


async def test_keys_tell_closures_apart_and_an_equal_key_does_not():
    @agent()
    async def it(turn: Turn) -> str:
        async def fetch() -> int:
            return 1

        await asyncio.gather(turn.step(fetch, key=1), turn.step(fetch, key=2))
        try:
            await asyncio.gather(turn.step(fetch, key=3), turn.step(fetch, key=3))
        except AmbiguousStep:
            return "refused"
        return "taken"

    assert (await run_once(it))[0].text == "refused"


async def test_a_step_inside_a_step_is_an_error():
    @agent()
    async def it(turn: Turn) -> str:
        async def inner() -> int:
            return 1

        async def outer() -> str:
            with pytest.raises(StepInsideStep, match=r"is inside the step `.*outer`"):
                await turn.step(inner)
            with pytest.raises(StepInsideStep):
                await turn.ask("?")
            with pytest.raises(StepInsideStep):
                await asyncio.gather(turn.steering())
            return "refused"

        return await turn.step(outer)

    assert (await run_once(it))[0].text == "refused"


async def test_inside_a_step_there_is_output_and_a_key_and_the_state_cannot_be_changed():
    @agent()
    async def it(turn: Turn) -> str:
        with pytest.raises(NotInAStep):
            step_key()
        state = turn.state
        state["a"] = {"b": [1]}

        async def inner() -> str:
            await turn.say("inside")
            await current_turn().progress(1, 2, "half")
            for change in (
                lambda: turn.state.update(c=1),
                lambda: state.__setitem__("c", 1),
                lambda: state["a"].pop("b"),
                lambda: turn.state["a"]["b"].append(2),
                lambda: state.clear(),
            ):
                with pytest.raises(StateReadOnly):
                    change()
            assert turn.state == {"a": {"b": [1]}}
            return step_key()

        return await turn.step(inner)

    end, journal = await run_once(it)
    assert end.status == "completed", end
    assert end.text is not None
    assert end.text.startswith("key-/")
    assert [who for who, _ in journal.shown] == [*journal.ended] * 2
    assert msgspec.json.decode(end.state) == {"a": {"b": [1]}}


# How functions run


def test_plain_functions_run_in_threads_and_coroutines_on_the_loop():
    async def on_loop() -> str:
        return threading.current_thread().name

    def in_thread() -> str:
        return threading.current_thread().name

    async def main() -> None:
        assert await seen(on_loop, effect="read") == threading.current_thread().name
        assert (await seen(in_thread, effect="read")).startswith("test-step")

    asyncio.run(main())


async def test_a_plain_function_may_return_something_to_await():
    assert (await seen(lambda: item(), name="item"))["name"] == "x"


async def test_a_plain_function_shows_through_a_blocking_turn():
    @agent()
    async def it(turn: Turn) -> None:
        def inner() -> None:
            blocking(turn).say(f"from {step_key()[:4]}")

        await turn.step(inner)

    assert (await run_once(it))[1].text == "from key-"


async def streams(number: int) -> AsyncIterator[str | Thought | Usage]:
    yield Thought("hm")
    for it in range(number):
        yield f"{it} "
    yield Usage("m", 10, 5)


def streams_in_a_thread(number: int) -> Iterator[str]:
    for it in range(number):
        yield f"{it} "


async def returns_something_else() -> AsyncIterator[str | Result]:
    yield "said"
    yield Result({"value": 1})


async def yields_a_number() -> AsyncIterator[Any]:
    yield 5


async def test_a_generator_shows_what_it_yields_and_returns_the_text():
    journal = Journal()
    peer = Peer(agent(key="a")(_steps(lambda turn: turn.step(streams, 3))), journal, Script())
    await peer.end()
    assert journal.text == "0 1 2 "
    assert ThoughtItem("hm") in [it for _, it in journal.shown]
    assert [(it.model, it.step) for it in peer.usage] == [("m", 1)]
    assert await seen(streams, 3) == "0 1 2 "
    assert await seen(streams_in_a_thread, 3) == "0 1 2 "
    assert await seen(returns_something_else) == {"value": 1}
    assert "yielded an int" in str(await seen(yields_a_number))


async def test_what_a_generator_said_before_it_was_cut_off_is_superseded():
    @agent()
    async def it(turn: Turn) -> None:
        await turn.say("a")
        await turn.step(streams, 3, effect="idempotent")
        await turn.say("b")

    found = await lose_everywhere(it)
    assert found.journal.text == "a0 1 2 b"
    assert not found.differ


# Retries, time


async def test_a_read_is_repeated_under_the_same_key_and_what_it_said_is_superseded(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(attempts, "FIRST_RETRY_S", 0)
    keys: list[str] = []

    async def flaky() -> AsyncIterator[str]:
        keys.append(step_key())
        yield f"try {len(keys)} "
        if len(keys) < 3:
            raise OSError("not yet")

    @agent()
    async def it(turn: Turn) -> str:
        return await turn.step(flaky, effect="read", retries=5)

    end, journal = await run_once(it)
    assert end.text == "try 3 "
    assert journal.text == "try 3 "
    assert len(set(keys)) == 1
    assert len(journal.ended) == 1


async def test_the_last_error_is_the_outcome(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(attempts, "FIRST_RETRY_S", 0)
    tries: list[int] = []

    async def fails_always() -> None:
        tries.append(1)
        raise OSError(f"try {len(tries)}")

    assert str(await seen(fails_always, effect="read", retries=2)) == "try 3"


async def test_a_timeout_is_recorded_as_an_error():
    async def sleeps() -> None:
        await asyncio.sleep(30)

    error = await seen(sleeps, timeout_s=0.01)
    assert type(error) is TimeoutError
    assert "took longer than 0.01 s" in str(error)


async def test_a_timeout_of_the_functions_own_is_its_own():
    async def own() -> None:
        raise TimeoutError("mine")

    assert str(await seen(own, timeout_s=20)) == "mine"


# Approval


async def test_a_step_that_asks_is_shown_with_its_arguments_and_takes_them_as_they_were_changed():
    async def refund(order_id: int, amount: Decimal = Decimal(1)) -> str:
        """Refunds an order."""
        return f"{order_id}: {amount + 1}"

    peer = Peer(
        agent(key="a")(_steps(lambda turn: turn.step(refund, 7, access="ask", name="refund"))),
        journal := Journal(),
        Script(edits={"refund": {"order_id": 8, "amount": "2.5"}}),
    )
    await peer.end()
    (claim,) = peer.claimed
    assert isinstance(claim, StepClaim)
    assert claim.arguments == {"order_id": 7}
    assert claim.schema is not None
    assert claim.schema["properties"]["order_id"] == {"type": "integer"}
    (ended,) = journal.ended.values()
    assert bytes(ended.value) == b'"8: 3.5"'


@pytest.mark.parametrize(
    ("options", "effect", "access", "seen_as"),
    [
        ({}, "idempotent", "allow", ("idempotent", "allow")),
        ({"access": "ask"}, "idempotent", "allow", ("idempotent", "ask")),
        ({"access": "allow"}, "idempotent", "ask", ("idempotent", "ask")),
        ({"effect": "write"}, "idempotent", "allow", ("write", "allow")),
        ({"effect": "read"}, "idempotent", "allow", ("idempotent", "allow")),
        ({"retries": 2}, "read", "allow", ("read", "allow")),
    ],
    ids=str,
)
async def test_a_tool_as_a_step_is_at_least_as_strict_as_both_say(
    options: dict[str, Any], effect: Any, access: Any, seen_as: tuple[str, str]
):
    @tool(effect=effect, access=access)
    def refund(order_id: int) -> int:
        return order_id

    peer = Peer(agent(key="a")(_steps(lambda turn: turn.step(refund, 7, **options))), Journal(), Script())
    assert (await peer.end()).status == "completed"
    (claim,) = peer.claimed
    assert isinstance(claim, StepClaim)
    assert (claim.effect, claim.access) == seen_as


async def test_a_tool_that_writes_is_not_repeated_by_a_step():
    @tool
    def refund(order_id: int) -> int:
        return order_id

    end = await fails(agent(key="a")(_steps(lambda turn: turn.step(refund, 7, retries=2, effect="read"))))
    assert end.error is not None
    assert "is a write, which is never repeated" in end.error.message


async def test_changed_arguments_that_do_not_fit_fail_the_step():
    async def refund(order_id: int) -> str:
        return str(order_id)

    @agent()
    async def it(turn: Turn) -> str:
        try:
            return await turn.step(refund, 7, access="ask", name="refund")
        except ValueError as exc:
            return str(exc)

    end, _ = await run_once(it, edits={"refund": {"order_id": "x"}})
    assert end.text is not None
    assert "The arguments don't fit refund: Expected `int`, got `str` - at `$.order_id`" in end.text


# Unknown outcomes


async def test_an_unknown_outcome_can_be_caught():
    @agent()
    async def it(turn: Turn) -> str:
        try:
            await turn.step(item)
        except OutcomeUnknown:
            return "unknown"
        return "done"

    journal = Journal()
    with pytest.raises(Lost):
        await Peer(it, journal, Script(lose_after=1)).end()
    assert (await Peer(it, journal, Script()).end()).text == "unknown"


async def test_an_unknown_outcome_that_nobody_catches_ends_the_turn_with_its_code():
    it = agent(key="a")(_steps(lambda turn: turn.step(item)))
    journal = Journal()
    with pytest.raises(Lost):
        await Peer(it, journal, Script(lose_after=1)).end()
    end = await Peer(it, journal, Script()).end()
    assert (end.status, end.code) == ("failed", "OUTCOME_UNKNOWN")


# Cancelled by the code


async def test_a_step_that_the_code_cancels_is_recorded_as_cancelled():
    async def waits() -> None:
        await asyncio.sleep(30)

    @agent()
    async def it(turn: Turn) -> str:
        task = asyncio.create_task(turn.step(waits, effect="read"))
        await asyncio.wait([task], timeout=0.02)
        task.cancel()
        await asyncio.wait([task])
        return str(task.cancelled())

    journal = Journal()
    peer = Peer(it, journal, Script())
    assert (await peer.end()).text == "True"
    assert [it for it in peer.received if isinstance(it, StepDone)] == [StepDone(1)]
    assert [it.status for it in journal.ended.values()] == ["cancelled"]
    assert (await Peer(it, journal, Script()).end()).text == "True"


async def test_a_step_that_the_code_gives_up_as_its_result_comes_is_cancelled_for_the_server_too():
    tasks: list[asyncio.Task[Any]] = []

    @agent()
    async def it(turn: Turn) -> str:
        tasks.append(asyncio.create_task(turn.step(item)))
        await asyncio.wait(tasks)
        return str(tasks[0].cancelled())

    journal = Journal()
    peer = Peer(it, journal, Script())
    send = peer.send

    def give_up_as_it_comes(message: Any) -> None:
        send(message)
        if isinstance(message, server.Result):
            tasks[0].cancel()

    peer.send = give_up_as_it_comes
    assert (await peer.end()).text == "True"
    assert peer.received[-2:] == [StepDone(1), End("completed", text="True")]
    assert [it.status for it in journal.ended.values()] == ["cancelled"]


async def test_a_step_that_has_ended_shows_nothing_any_more():
    @agent()
    async def it(turn: Turn) -> str:
        tasks: list[asyncio.Task[None]] = []
        is_over = asyncio.Event()

        async def later() -> None:
            await is_over.wait()
            await turn.say("late")

        async def leaves() -> None:
            tasks.append(asyncio.create_task(later()))

        await turn.step(leaves)
        is_over.set()
        await asyncio.wait(tasks)
        return str(tasks[0].exception())

    end, journal = await run_once(it)
    assert end.text is not None
    assert "has ended" in end.text
    assert not journal.shown


async def test_one_claim_is_one_message_each_way():
    peer = Peer(agent(key="a")(_steps(lambda turn: turn.step(item))), Journal(), Script())
    await peer.end()
    assert [type(it).__name__ for it in peer.received] == ["StepClaim", "StepDone", "End"]
