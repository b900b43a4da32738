"""Turns of agents in code, killed after every write to their logs: they end alike, no effect is repeated."""

import asyncio
import itertools
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from typing import Any

import pytest
from msgspec import Raw

from tests.engine.code.in_memory import TURN, CodeTurn, allows, answers, killed_everywhere
from tests.engine.in_memory import InMemoryGateway, InMemoryTools, Step, adds
from threadkeep.agents import (
    Agent,
    AgentError,
    Denied,
    LocalPrograms,
    ModelFailed,
    OutcomeUnknown,
    Turn,
    Usage,
    agent,
    attempts,
    current_turn,
    step_key,
    tool,
)
from threadkeep.domain.approval import ApprovalAction, Decision
from threadkeep.domain.errors import BudgetExceeded, ModelNotAllowed
from threadkeep.domain.events import (
    ApprovalRequest,
    ApprovalResponse,
    Done,
    Failed,
    IterationRestart,
    Notice,
    StepChanged,
    Text,
    ToolCalled,
    ToolResultStored,
    TurnEvent,
    UsageReported,
    UserMessage,
)
from threadkeep.domain.message import Usage as MessageUsage
from threadkeep.engine.code import codes, running, voices
from threadkeep.engine.code.replay import replay_code
from threadkeep.engine.code.run import AGENT_FAILED, TOO_MUCH
from threadkeep.engine.code.tool_calls import LEFT
from threadkeep.engine.journal import ReplayDiverged, StateSaved, StepBegun, StepEnded
from threadkeep.engine.loop import Together
from threadkeep.engine.recorded_steps import StepRecorder
from threadkeep.engine.stop import Stop
from threadkeep.ports.gateway import (
    GatewayError,
    GatewayUnavailable,
    ModelStopped,
    ModelUsage,
    ReplyBrokeOff,
    TextDelta,
    ToolResultBlock,
    ToolUse,
)
from threadkeep.wire.programs import (
    RESULT_INVALID,
    Cancel,
    ClaimFailed,
    End,
    FromProgram,
    Output,
    ProgramError,
    Result,
    Run,
    Start,
    StepClaim,
    StepDone,
    TextItem,
    ToProgram,
)


class World:
    """What steps read and change, and how often."""

    def __init__(self) -> None:
        self.reads: list[Any] = []
        self.writes: list[Any] = []

    async def read(self, what: Any) -> Any:
        """Has no effect."""
        self.reads.append(what)
        return what

    async def write(self, what: Any) -> str:
        """Has one."""
        self.writes.append(what)
        return f"wrote {what}"


def said(*texts: str) -> list[Step]:
    """A model's reply."""
    return [*(TextDelta(it) for it in texts), ModelUsage(10, 5), ModelStopped("end_turn")]


def models(*replies: list[Step]) -> Callable[[], InMemoryGateway]:
    """A model that says the same in every try, however often a call is repeated."""
    return lambda: InMemoryGateway(*replies, *(replies[-1:] * 50))


def ends_alike(whole: CodeTurn, killed: list[CodeTurn]) -> None:
    """All turns end as the one does that nobody killed."""
    for turn in killed:
        assert turn.end == whole.end
        assert turn.shown == whole.shown


async def test_a_refund_survives_a_kill_after_every_entry():
    worlds: list[World] = []

    def make() -> CodeTurn:
        world = World()
        worlds.append(world)

        @agent(name="Orders")
        async def orders(turn: Turn):
            order = await turn.step(world.read, {"id": 7, "total": 120}, effect="read", name="find_order")
            await turn.say(f"Order {order['id']} costs {order['total']} €. ")
            if await turn.ask("Refund it?", choices=["yes", "no"]) != "yes":
                return "Then it stays as it is."
            await turn.step(world.write, order["id"], name="refund")
            await turn.model("Write one kind sentence about the refund.")
            return None

        return CodeTurn([orders], gateway=models(said("Your money ", "is back.")), answer=answers("yes"))

    whole, killed = await killed_everywhere(make)
    assert isinstance(whole.end, Done)
    assert whole.shown == "Order 7 costs 120 €. \n\nYour money is back."
    for turn, world in zip(killed, worlds[1:], strict=False):
        assert len(world.writes) <= 1
        assert len(turn.requests.times_asked) == 1
        if isinstance(turn.end, Failed):  # killed while it refunded
            assert turn.end.code == codes.OUTCOME_UNKNOWN
            statuses = [it.status for it in turn.entries if isinstance(it, StepEnded)]
            assert "unknown" in statuses
        else:
            assert turn.shown == whole.shown
            assert world.writes == [7]


async def test_results_reach_the_branch_that_asked_for_them():
    def make() -> CodeTurn:
        @agent()
        async def parallel(turn: Turn):
            async def branch(city: str, wait_s: float) -> str:
                await asyncio.sleep(wait_s)

                async def temperature(of: str) -> str:
                    await asyncio.sleep(0.004 - wait_s)
                    return f"{of} 20"

                return f"{city}: {await turn.step(temperature, city, effect='read')}"

            found = await asyncio.gather(branch("Paris", 0.004), branch("Oslo", 0.002), branch("Rome", 0))
            return "; ".join(found)

        return CodeTurn([parallel])

    whole, killed = await killed_everywhere(make)
    assert whole.shown == "Paris: Paris 20; Oslo: Oslo 20; Rome: Rome 20"
    ends_alike(whole, killed)


async def race(turn: Turn) -> str:
    """The first of three wins; the others are cancelled."""

    async def wait(number: int) -> int:
        await asyncio.sleep(0.002 * number)
        return number

    tasks = [asyncio.ensure_future(turn.step(wait, it, effect="read")) for it in (3, 1, 2)]
    done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    await asyncio.gather(*pending, return_exceptions=True)
    return f"first: {sorted(it.result() for it in done)}"


async def completed_in_order(turn: Turn) -> str:
    async def wait(number: int) -> int:
        await asyncio.sleep(0.002 * number)
        return number

    steps = [turn.step(wait, it, effect="read") for it in (3, 1, 2)]
    return " ".join([str(await it) for it in asyncio.as_completed(steps)])


async def gives_up(turn: Turn) -> str:
    async def wait() -> str:
        await asyncio.sleep(30)
        return "late"

    try:
        async with asyncio.timeout(0.01):
            await turn.step(wait, effect="read")
    except TimeoutError:
        await turn.say("It took too long. ")
    return str(await turn.step(abs, -3, effect="read"))


async def one_of_a_group_fails(turn: Turn) -> str:
    async def fails(number: int) -> int:
        await asyncio.sleep(0.001)
        raise ValueError("no luck")

    async def wait(number: int) -> int:
        await asyncio.sleep(5)
        return number

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(turn.step(fails, 1, effect="read"))
            group.create_task(turn.step(wait, 2, effect="read"))
    except* ValueError as exc:
        await turn.say(f"failed: {exc.exceptions[0]}")
    return "."


async def in_the_background(turn: Turn) -> str:
    async def wait(number: int) -> int:
        await asyncio.sleep(0.001 * number)
        return number

    task = asyncio.ensure_future(turn.step(wait, 4, effect="read"))
    first = [await turn.step(wait, it, effect="read") for it in (1, 2)]
    return f"{first} {await task}"


@pytest.mark.parametrize(
    "program", [race, completed_in_order, gives_up, one_of_a_group_fails, in_the_background]
)
async def test_what_depends_on_timing_goes_as_it_went(program: Any):
    """The winner of a race may differ from run to run, but not between the runs of one turn."""
    for at in itertools.count(1):
        turn = CodeTurn([agent(key="timing")(program)])
        await turn.run(commits=at)
        if turn.end is not None:
            break
        recorded = [it for it in turn.entries if isinstance(it, StepEnded)]
        await turn.run()
        assert isinstance(turn.end, Done)
        ended = [it for it in turn.entries if isinstance(it, StepEnded)]
        assert ended[: len(recorded)] == recorded
        again = CodeTurn([agent(key="timing")(program)], entries=turn.entries[:-1])
        await again.run()
        assert again.shown == turn.shown
        assert not any(isinstance(it, Notice) for it in again.events)


class GivesUp:
    """A program that gives its step up as the result comes; a later run waits for it."""

    answers = True

    def __init__(self) -> None:
        self._messages = asyncio.Queue[FromProgram]()
        self._messages.put_nowait(StepClaim(1, "nap", "hash", effect="read"))

    def send(self, message: ToProgram) -> None:
        match message:
            case Run():
                self._messages.put_nowait(StepDone(1, Raw(b"1")))
            case Result():
                self._messages.put_nowait(StepDone(1))
                self._messages.put_nowait(Output((TextItem("gave up"),)))
                self._messages.put_nowait(End("completed"))
            case _:
                pass

    async def receive(self) -> FromProgram:
        return await self._messages.get()

    async def close(self) -> None: ...


async def test_a_result_that_came_as_the_code_gave_up_is_recorded_as_cancelled(
    monkeypatch: pytest.MonkeyPatch,
):
    def start(programs: LocalPrograms, start: Start) -> GivesUp:
        return GivesUp()

    monkeypatch.setattr(LocalPrograms, "start", start)
    turn = await CodeTurn([agent(key="a")(gives_nothing)]).run()
    assert turn.shown == "gave up"
    ends = [it for it in turn.entries if isinstance(it, StepEnded)]
    assert [it.status for it in ends] == ["ok", "cancelled"]
    assert len({it.key for it in ends}) == 1


async def gives_nothing(turn: Turn) -> None: ...


async def killed_at_its_first(it: Agent, kind: type[StepBegun | StepEnded] = StepBegun) -> CodeTurn:
    """Its turn, killed once its first step has begun, or has ended."""
    for commits in itertools.count(1):
        turn = await CodeTurn([it]).run(commits=commits)
        if any(isinstance(entry, kind) for entry in turn.entries):
            return turn
    raise AssertionError


async def test_a_cut_off_write_that_nobody_catches_is_named_to_the_user_and_with_advice_in_the_log(
    caplog: pytest.LogCaptureFixture,
):
    caplog.set_level("INFO", "threadkeep.engine")

    @agent()
    async def pays(turn: Turn):
        await turn.step(World().write, 7)

    turn = await killed_at_its_first(pays)
    await turn.run()
    sentence = 'The step "World.write" was interrupted and may have taken effect.'
    assert turn.end == Failed(codes.OUTCOME_UNKNOWN, sentence)
    resumed, advice = [it for it in caplog.messages if it.startswith("turn t")]
    assert resumed.endswith('in progress then: "World.write" (step 1), a write')
    assert "Catch OutcomeUnknown" in advice and 'effect="read"' in advice


async def test_a_question_that_changed_while_its_turn_waited_is_asked_again_and_the_log_says_so(
    caplog: pytest.LogCaptureFixture,
):
    def asks(question: str) -> Agent:
        @agent(key="asks")
        async def it(turn: Turn):
            return await turn.ask(question)

        return it

    turn = CodeTurn([asks("Go?")], answer=answers("old", "new"))
    while not turn.requests.times_asked:
        await turn.run(commits=len(turn.entries) + 1)
    turn.agents = [asks("Shall we go?")]
    await turn.run()
    assert turn.shown == "new"
    (said,) = [it for it in caplog.messages if "no longer asks" in it]
    assert '"ask" (step 1)' in said and "Go?" not in said


async def test_a_write_that_was_cut_off_is_unknown_and_never_run_again():
    world = World()
    heard: list[str] = []

    @agent()
    async def pays(turn: Turn):
        try:
            await turn.step(world.write, 7)
        except OutcomeUnknown:
            heard.append("unknown")
            return "Nobody knows."
        return "Paid."

    turn = await killed_at_its_first(pays)
    world.writes.clear()
    await turn.run()
    assert (turn.shown, heard, world.writes) == ("Nobody knows.", ["unknown"], [])
    steps = [it.status for it in turn.events if isinstance(it, StepChanged)]
    assert steps[-1] == "unknown"


@pytest.mark.parametrize("effect", ["read", "idempotent"])
async def test_what_may_run_twice_runs_again_with_its_key(effect: Any):
    keys: list[str] = []

    @agent()
    async def looks(turn: Turn):
        async def look() -> str:
            keys.append(step_key())
            await turn.say("I look. ")
            if len(keys) == 1:
                await asyncio.Event().wait()  # until it is killed
            return "seen"

        return await turn.step(look, effect=effect)

    turn = CodeTurn([looks])
    at = 1
    while not keys:
        turn = CodeTurn([looks])
        await turn.run(commits=at)
        at += 1
    assert not any(isinstance(it, StepEnded) for it in turn.entries)
    stored: list[Any] = []
    turn.on_step = stored.append
    await turn.run()
    (end,) = [it for it in stored if isinstance(it, Together) and isinstance(it.entries[-1], StepEnded)]
    assert end.is_urgent == (effect == "idempotent")
    assert turn.shown.endswith("seen")
    assert turn.shown.count("I look.") == 1
    assert (len(keys), len(set(keys))) == (2, 1)


@pytest.mark.parametrize("change", ["an argument", "a step removed", "swapped", "added before"])
async def test_changed_code_is_found_before_it_does_anything(change: str):
    world = World()

    def program(version: str) -> Any:
        @agent(key="changes")
        async def changes(turn: Turn):
            names = {
                "": ["one", "two", "three"],
                "an argument": ["one", "deux", "three"],
                "a step removed": ["two", "three"],
                "swapped": ["two", "one", "three"],
                "added before": ["zero", "one", "two", "three"],
            }[version]
            for name in names:
                await turn.step(world.write, name)
            return "done"

        return changes

    turn = CodeTurn([program("")])
    at = 1
    while sum(isinstance(it, StepEnded) for it in turn.entries) < 2:
        turn = CodeTurn([program("")])
        await turn.run(commits=at)
        at += 1
    world.writes.clear()
    turn.agents = [program(change)]
    await turn.run()
    assert world.writes == [] or change == "swapped"
    if change == "swapped":  # both are recorded: their order doesn't matter to what they are
        return
    assert isinstance(turn.end, Failed)
    assert turn.end.code == codes.REPLAY_DIVERGED
    diverged = [it for it in turn.entries if isinstance(it, ReplayDiverged)][-1]
    assert diverged.recorded and diverged.asked


async def test_code_added_behind_the_crash_just_runs():
    world = World()

    def program(names: list[str]) -> Any:
        @agent(key="grows")
        async def grows(turn: Turn):
            for name in names:
                await turn.step(world.read, name, effect="read")
            return "done"

        return grows

    turn = CodeTurn([program(["one"])])
    at = 1
    while not any(isinstance(it, StepEnded) for it in turn.entries):
        turn = CodeTurn([program(["one"])])
        await turn.run(commits=at)
        at += 1
    turn.agents = [program(["one", "two"])]
    await turn.run()
    assert isinstance(turn.end, Done)


async def test_parallel_models_and_a_write_survive_every_kill():
    worlds: list[World] = []

    def make() -> CodeTurn:
        world = World()
        worlds.append(world)

        @agent()
        async def both(turn: Turn):
            one, two, done = await asyncio.gather(
                turn.model("one", show=False), turn.model("two"), turn.step(world.write, 1)
            )
            return f" / {len(one.text)} {len(two.text)} {done}"

        return CodeTurn([both], gateway=models(said("abc"), said("abc")))

    whole, killed = await killed_everywhere(make)
    assert whole.shown.endswith(" / 3 3 wrote 1")
    for turn, world in zip(killed, worlds[1:], strict=False):
        assert len(world.writes) <= 1
        if isinstance(turn.end, Done):
            assert turn.shown.endswith(" / 3 3 wrote 1")
            assert turn.shown.count("abc") == 1


async def test_a_streaming_step_that_is_cut_off_says_its_text_once():
    def make() -> CodeTurn:
        @agent()
        async def streams(turn: Turn):
            async def pieces():
                for piece in ("one ", "two ", "three"):
                    await asyncio.sleep(0)
                    yield piece

            text = await turn.step(pieces, effect="idempotent")
            await turn.say(f" [{text}]")

        return CodeTurn([streams])

    whole, killed = await killed_everywhere(make)
    assert "one two three" in whole.shown
    for turn in killed:
        assert turn.shown == whole.shown
    assert any(isinstance(event, IterationRestart) for turn in killed for event in turn.events)


async def test_what_a_step_used_is_reported_once_for_every_time_it_ran():
    ran: list[int] = []

    def make() -> CodeTurn:
        ran.clear()

        @agent()
        async def streams(turn: Turn):
            async def pieces():
                ran.append(1)
                yield "said"
                yield Usage("m", 10, 5)

            await turn.step(pieces, effect="idempotent")
            await turn.usage("n", 1, 1)

        return CodeTurn([streams])

    whole = make()
    await whole.run()
    for turn in (whole, *(await killed_everywhere(make))[1]):
        assert isinstance(turn.end, Done)
        used = [event for event in turn.events if isinstance(event, UsageReported)]
        assert [it.model for it in used].count("n") == 1
        assert 1 <= [it.model for it in used].count("m") <= 2


async def test_a_tool_in_python_asks_before_it_runs_and_runs_once():
    worlds: list[World] = []

    def make() -> CodeTurn:
        world = World()
        worlds.append(world)

        @tool(effect="write", access="ask")
        async def refund(order_id: int) -> str:
            """Refunds an order."""
            return await world.write(order_id)

        @agent(tools=[refund])
        async def helps(turn: Turn):
            await turn.run(system="Help.", tools=[refund])

        calls: list[Step] = [
            ToolUse("1", "refund", {"order_id": 7}),
            ModelUsage(10, 5),
            ModelStopped("tool_use"),
        ]
        return CodeTurn([helps], gateway=lambda: InMemoryGateway(calls, *[said("Done.")] * 9), answer=allows)

    whole, killed = await killed_everywhere(make)
    assert whole.shown.endswith("Done.")
    assert [it.server for it in whole.events if isinstance(it, ToolCalled)] == ["agent"]
    for turn, world in zip(killed, worlds[1:], strict=False):
        assert len(world.writes) <= 1
        results = [it for it in turn.events if isinstance(it, ToolResultStored)]
        assert len(results) <= 1


async def test_a_denied_step_raises_and_does_not_run():
    world = World()

    @agent()
    async def asks(turn: Turn):
        try:
            await turn.step(world.write, 7, access="ask", name="refund")
        except Denied:
            return "Not allowed."
        return "Refunded."

    def denies(asking: Any) -> Decision:
        return Decision(action=ApprovalAction.DENY, at=0)

    turn = await CodeTurn([asks], answer=denies).run()
    assert (turn.shown, world.writes) == ("Not allowed.", [])


@pytest.mark.parametrize(
    ("title", "asked"), [("Book a room", "Book a room?"), ("Book it?", "Book it?"), (None, "Call book?")]
)
async def test_the_title_of_a_step_is_what_its_user_is_asked_and_sees(title: str | None, asked: str):
    async def book(what: int) -> str:
        return f"wrote {what}"

    @agent()
    async def books(turn: Turn):
        return await turn.step(book, 7, access="ask", title=title)

    turn = await CodeTurn([books], answer=allows).run()
    assert [it.message for it in turn.events if isinstance(it, ApprovalRequest)] == [asked]
    recorder = StepRecorder(lambda subject: subject)
    for entry in turn.entries:
        recorder.add(entry)
    assert [it.title for it in recorder.steps(is_over=True).steps] == [title]


async def test_a_step_inside_the_function_is_shown_without_the_functions_name():
    async def look(what: int) -> int:
        return what

    @agent()
    async def looks(turn: Turn):
        return f"{await turn.step(look, 7, effect='read')}."

    turn = await CodeTurn([looks]).run()
    assert [it.name for it in turn.events if isinstance(it, StepChanged)] == ["look", "look"]
    assert [it.name for it in turn.entries if isinstance(it, StepBegun)] == ["look"]


async def test_tools_of_servers_are_called_and_their_results_returned():
    @agent()
    async def sums(turn: Turn):
        returned = await turn.call("adds", {"a": 1, "b": 2})
        return f"{returned.result}"

    turn = await CodeTurn([sums], tools=InMemoryTools(adds=adds)).run()
    assert "3" in turn.shown
    assert [it.tool_name for it in turn.events if isinstance(it, ToolCalled)] == ["adds"]


async def test_the_first_model_call_of_a_run_is_offered_the_tools_of_servers():
    @agent()
    async def sums(turn: Turn):
        return await turn.run()

    asks: list[Step] = [ToolUse("call_1", "adds", {"a": 1, "b": 2}), ModelStopped("tool_use")]
    turn = CodeTurn(
        [sums],
        "1 + 2?",
        tools=InMemoryTools(adds=adds),
        gateway=lambda: InMemoryGateway(asks, [TextDelta("3"), ModelStopped("end_turn")]),
    )
    await turn.run()
    assert turn.model is not None
    assert [[it.name for it in request.tools] for request in turn.model.requests] == [["adds"], ["adds"]]
    assert [it.status for it in turn.events if isinstance(it, ToolResultStored)] == ["ok"]
    assert turn.shown == "3"


async def test_code_that_raises_fails_without_its_words():
    @agent()
    async def breaks(turn: Turn):
        raise RuntimeError("secret")

    turn = await CodeTurn([breaks]).run()
    assert isinstance(turn.end, Failed)
    assert (turn.end.code, turn.end.message) == (codes.AGENT_FAILED, AGENT_FAILED)


async def test_an_error_for_the_user_is_shown():
    @agent()
    async def breaks(turn: Turn):
        raise AgentError("Order 7 doesn't exist.")

    turn = await CodeTurn([breaks]).run()
    assert isinstance(turn.end, Failed)
    assert turn.end.message == "Order 7 doesn't exist."


async def test_the_same_output_again_is_shown_once_and_other_output_is_noticed():
    runs: list[int] = []

    @agent()
    async def talks(turn: Turn):
        runs.append(1)
        await turn.say("The same. ")
        if len(runs) > 1:
            await turn.say("Something else. ")
        else:
            await turn.say("At first. ")
        await turn.step(abs, -1, effect="read")
        return "End."

    turn = CodeTurn([talks])
    at = 1
    while not any(isinstance(it, StepBegun) for it in turn.entries):
        runs.clear()
        turn = CodeTurn([talks])
        await turn.run(commits=at)
        at += 1
    await turn.run()
    assert turn.shown.count("The same. ") == 1
    assert [it.code for it in turn.events if isinstance(it, Notice)] == [codes.OUTPUT_DIFFERED]


async def test_a_stop_ends_the_turn_and_keeps_what_was_said():
    stop, loop = Stop(), asyncio.get_running_loop()

    async def wait() -> None:
        loop.call_soon_threadsafe(stop.request, "abort")
        await asyncio.sleep(30)

    @agent()
    async def waits(turn: Turn):
        await turn.say("Wait. ")
        await turn.step(wait, effect="read")

    turn = CodeTurn([waits])
    await turn.run(stop=stop)
    assert isinstance(turn.end, Done) and turn.end.status == "CANCELLED"
    assert turn.shown == "Wait. "
    assert [it.status for it in turn.events if isinstance(it, StepChanged)] == ["running", "cancelled"]


async def test_too_many_steps_end_the_turn():
    @agent()
    async def spins(turn: Turn):
        while True:
            await turn.step(abs, -1, effect="read")

    turn = await CodeTurn([spins], most_steps=20).run()
    assert isinstance(turn.end, Failed)
    assert turn.end.code == codes.STEP_LIMIT


async def test_nothing_said_is_an_empty_reply():
    @agent()
    async def is_silent(turn: Turn):
        await turn.step(abs, -1, effect="read")

    turn = await CodeTurn([is_silent]).run()
    assert isinstance(turn.end, Failed)
    assert not [it for it in turn.events if isinstance(it, Text)]


async def test_files_of_steps_and_of_the_program_are_attached_once_each_wherever_it_is_killed():
    async def make_pdf(turn: Turn) -> str:
        await turn.attach("a.pdf", b"the same", media_type="application/pdf")
        return "made"

    def make() -> CodeTurn:
        @agent()
        async def reports(turn: Turn):
            await turn.step(lambda: make_pdf(turn), name="make_pdf", effect="read")
            await turn.ask("Go on?")
            for content in (b"the same", b"the same", b"another"):
                await turn.attach("b.txt", content, media_type="text/plain")
            return "Here they are."

        return CodeTurn([reports], answer=answers("yes"))

    whole, killed = await killed_everywhere(make)
    assert [it.arguments["name"] for it in whole.events if isinstance(it, ToolCalled)] == [
        "a.pdf",
        *["b.txt"] * 3,
    ]
    ends_alike(whole, killed)
    for turn in killed:
        assert len([it for it in turn.events if isinstance(it, ToolCalled)]) == 4


async def test_what_waits_to_speak_waits_as_long_as_another_speaks(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(voices, "MOST_SILENCE_S", 0.1)

    async def speaks(word: str) -> AsyncGenerator[str]:
        for _ in range(8):
            yield word
            await asyncio.sleep(0.04)

    @agent()
    async def talks(turn: Turn):
        await asyncio.gather(
            turn.step(speaks, "a", effect="read"),
            turn.step(speaks, "b", effect="read"),
        )

    turn = await CodeTurn([talks]).run()
    assert isinstance(turn.end, Done)
    assert turn.shown.replace("\n\n", "") == "a" * 8 + "b" * 8


async def test_a_silent_step_that_keeps_the_voice_fails_what_waits_and_names_both(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(voices, "MOST_SILENCE_S", 0.05)
    failed = asyncio.Event()

    async def begins_and_is_silent(turn: Turn) -> None:
        await turn.say("Well, ")
        await failed.wait()

    @agent()
    async def talks(turn: Turn):
        silent = asyncio.create_task(
            turn.step(lambda: begins_and_is_silent(turn), name="silent", effect="read")
        )
        await asyncio.sleep(0.05)
        with pytest.raises(ModelFailed, match="could not speak"):
            await turn.model("Speak!")
        failed.set()
        await silent

    turn = await CodeTurn([talks], gateway=models(said("Never heard."))).run()
    assert isinstance(turn.end, Done)
    assert turn.shown == "Well, "
    assert any(isinstance(it, UsageReported) for it in turn.events)  # the provider bills it all the same


@pytest.mark.parametrize("is_tool", [False, True])
async def test_a_write_that_waits_to_speak_is_recorded_at_once_and_heard_later(is_tool: bool):
    recorded = threading.Event()

    async def speaks(turn: Turn) -> None:
        await turn.say("I speak. ")
        is_recorded.append(await asyncio.to_thread(recorded.wait, 5))
        await turn.say("Still I. ")

    async def writes() -> None:
        await current_turn().say("I wrote. ")

    @agent()
    async def talks(turn: Turn):
        speaking = asyncio.create_task(turn.step(lambda: speaks(turn), name="speaks", effect="read"))
        await asyncio.sleep(0.05)
        await turn.step(tool(effect="write", access="ask")(writes) if is_tool else writes)
        await speaking

    def look(step: Any) -> None:
        entries = step.entries if isinstance(step, Together) else ()
        if any(isinstance(it, StepEnded) and it.is_progress for it in entries):
            recorded.set()

    is_recorded: list[bool] = []
    turn = await CodeTurn([talks], answer=allows, on_step=look).run()
    assert is_recorded == [True]
    assert turn.shown.replace("\n\n", "") == "I speak. Still I. I wrote. "


async def test_the_same_step_on_both_sides_of_a_saved_point_is_refused_on_the_first_run():
    world = World()

    @agent()
    async def charges(turn: Turn):
        for number in range(turn.saved or 0, 3):
            await turn.step(world.write, "ada")
            await turn.save(number + 1)

    turn = await CodeTurn([charges]).run()
    assert isinstance(turn.end, Failed)
    assert world.writes == ["ada"]


async def test_a_loop_with_a_scope_for_each_round_charges_each_once_wherever_it_is_killed():
    worlds: list[World] = []

    def make() -> CodeTurn:
        world = World()
        worlds.append(world)

        @agent()
        async def charges(turn: Turn):
            for number in range(turn.saved or 0, 3):
                round_ = turn.scope(f"round {number}")
                with suppress(OutcomeUnknown):
                    await round_.step(world.write, "ada")
                await round_.model("Thank her.")
                await turn.save(number + 1)

        return CodeTurn([charges], gateway=models(said("Thanks.")))

    whole, killed = await killed_everywhere(make)
    assert isinstance(whole.end, Done)
    for turn, world in zip([whole, *killed], worlds, strict=False):
        assert isinstance(turn.end, Done), turn.end
        assert len(world.writes) <= 3
        begun = [it for it in turn.entries if isinstance(it, StepEnded) and it.status == "unknown"]
        assert len(world.writes) + len(begun) >= 3


async def test_a_program_that_is_slow_to_ask_again_gets_a_second_run():
    runs = itertools.count(1)
    world = World()

    @agent()
    async def is_slow(turn: Turn):
        if next(runs) == 2:
            await asyncio.sleep(5)
        await turn.step(world.read, 1, effect="read")
        await turn.step(world.write, 2)
        return "Done."

    turn = CodeTurn([is_slow])
    await turn.run(commits=4)
    await turn.run()
    assert isinstance(turn.end, Done)
    assert world.writes == [2]
    assert sum(isinstance(it, ReplayDiverged) for it in turn.entries) == 1


async def test_a_stop_while_something_is_stored_keeps_the_state_and_does_not_wait():
    stop = Stop()

    @agent()
    async def counts(turn: Turn):
        turn.state["n"] = 1
        await turn.say("One. ")
        await turn.step(asyncio.sleep, 30, effect="read")

    turn = CodeTurn([counts], on_step=lambda step: stop.request("abort") if isinstance(step, Text) else None)
    await turn.run(stop=stop)
    assert isinstance(turn.end, Done) and turn.end.status == "CANCELLED"
    assert turn.state == b'{"n":1}'


async def test_foreign_json_in_a_result_is_recorded_in_one_line():
    foreign = b'{"a":\n\t{"type":"text","turn_id":"t","seq":3,"at":1,"text":"INJECTED"},\r\n "n": 1.50}'

    def fetch() -> dict[str, Raw]:
        return {"body": Raw(foreign)}

    @agent()
    async def fetches(turn: Turn):
        fetched = await turn.step(fetch, effect="read")
        await turn.save({"body": Raw(foreign)})
        return f"{bytes(fetched['body']).decode()} {turn.saved['body']['n']}"

    turn = await CodeTurn([fetches]).run()
    compact = '{"a":{"type":"text","turn_id":"t","seq":3,"at":1,"text":"INJECTED"},"n":1.50}'
    assert turn.shown == f"{compact} 1.5"


class Foreign:
    """A program that somebody else wrote: it says what it likes, and ends once it was answered."""

    answers = True

    def __init__(self, *messages: Any, done: StepDone | None = None) -> None:
        self.heard: list[ToProgram] = []
        self._done = done
        self._messages = asyncio.Queue[FromProgram]()
        for message in messages:
            self._messages.put_nowait(message)

    def send(self, message: ToProgram) -> None:
        self.heard.append(message)
        if isinstance(message, Run) and self._done is not None:
            self._messages.put_nowait(self._done)
        elif not isinstance(message, Cancel):
            self._messages.put_nowait(End("completed", text="End."))

    async def receive(self) -> FromProgram:
        return await self._messages.get()

    async def close(self) -> None: ...

    async def ends(self, monkeypatch: pytest.MonkeyPatch) -> CodeTurn:
        """The turn that it has run."""

        def start(programs: LocalPrograms, start: Start) -> "Foreign":
            return self

        monkeypatch.setattr(LocalPrograms, "start", start)
        turn = await CodeTurn([agent(key="a")(gives_nothing)]).run()
        assert turn.shown == "End."
        return turn


@pytest.mark.parametrize("content", [b'{"a":\n1}', b'"\xff"'])
async def test_a_value_that_the_log_cannot_hold_fails_its_step(
    monkeypatch: pytest.MonkeyPatch, content: bytes
):
    program = Foreign(StepClaim(1, "fetch", "hash", effect="read"), done=StepDone(1, Raw(content)))
    await program.ends(monkeypatch)
    (failed,) = [it for it in program.heard if isinstance(it, ClaimFailed)]
    assert failed.code == RESULT_INVALID


async def test_what_an_exception_was_made_with_is_left_out_if_the_log_cannot_hold_it(
    monkeypatch: pytest.MonkeyPatch,
):
    error = ProgramError("builtins.ValueError", "no", Raw(b"[\n1]"))
    program = Foreign(StepClaim(1, "fetch", "hash", effect="read"), done=StepDone(1, error=error))
    await program.ends(monkeypatch)
    (failed,) = [it for it in program.heard if isinstance(it, ClaimFailed)]
    assert failed.error == ProgramError("builtins.ValueError", "no")


async def test_a_text_goes_on_where_it_was_cut_off_by_a_kill():
    world = World()

    def make() -> CodeTurn:
        @agent()
        async def says(turn: Turn):
            await turn.say("The answer ")
            await turn.step(world.read, 1, effect="read")
            if await turn.ask("Which?") == "yes":
                await turn.say("is 42.")

        return CodeTurn([says], answer=answers("yes"))

    whole, killed = await killed_everywhere(make)
    assert whole.shown == "The answer is 42."
    ends_alike(whole, killed)


async def test_a_write_that_the_code_gives_up_before_it_runs_is_cancelled_and_not_unknown():
    world = World()
    gives_up: list[Callable[[], object]] = []

    @agent()
    async def changes_its_mind(turn: Turn):
        task = asyncio.create_task(turn.step(world.write, 1))
        loop = asyncio.get_running_loop()
        gives_up.append(lambda: loop.call_soon_threadsafe(task.cancel))
        with suppress(asyncio.CancelledError):
            await task
        return "Then not."

    async def hold(step: Any) -> None:
        """The code gives up while the begin of its step is being stored."""
        if isinstance(step, Together) and any(isinstance(it, StepBegun) for it in step.entries):
            gives_up[0]()
            await asyncio.sleep(0.1)

    turn = await CodeTurn([changes_its_mind], on_step=hold).run()
    assert isinstance(turn.end, Done)
    assert world.writes == []
    assert [it.status for it in turn.entries if isinstance(it, StepEnded)] == ["cancelled"]
    assert [it.status for it in turn.events if isinstance(it, StepChanged)] == ["running", "cancelled"]


async def test_what_was_cut_off_and_is_given_up_while_it_is_held_ends_and_a_write_is_unknown():
    @tool(effect="read", access="ask")
    async def look() -> None: ...

    @agent()
    async def gives_up(turn: Turn):
        begun = (
            turn.step(forever, 1),
            turn.step(forever, 2, effect="read"),
            turn.step(look),
            turn.ask("Sure?"),
        )
        open_ = [asyncio.create_task(it) for it in begun]
        if world.writes:
            await asyncio.sleep(0.05)
            for it in open_:
                it.cancel()
        await turn.step(world.read, 3, effect="read")
        await asyncio.wait(open_)
        return "Done."

    async def forever(what: int) -> None:
        await asyncio.Event().wait()

    world = World()
    turn = await killed_at_its_first(gives_up, StepEnded)
    world.writes.append("impatient")
    await turn.run()
    assert turn.shown == "Done."
    assert not replay_code(turn.entries, {}).unfinished
    changes = [it.status for it in turn.events if isinstance(it, StepChanged) and it.status != "running"]
    ends = [it.status for it in turn.entries if isinstance(it, StepEnded)]
    assert (changes, ends) == (["ok", "unknown", "cancelled"], ["ok", "unknown", *["cancelled"] * 3])
    assert await turn.check() is None
    (returned,) = [it for it in turn.events if isinstance(it, ToolResultStored)]
    assert (returned.status, returned.error) == ("interrupted", LEFT)
    (expired,) = [it for it in turn.events if isinstance(it, ApprovalResponse)]
    assert expired.action is ApprovalAction.EXPIRE


async def test_a_program_that_says_too_much_ends_with_a_sentence(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(running, "MOST_SHOWN", 10_000)

    @agent()
    async def talks(turn: Turn):
        while True:
            await turn.say("x" * 1_000)

    turn = await CodeTurn([talks]).run()
    assert turn.end == Failed(codes.AGENT_FAILED, TOO_MUCH)
    assert len(turn.shown) == 10_000


@pytest.mark.parametrize(
    "error", [GatewayUnavailable("The model is down."), GatewayError("The gateway refuses its key.")]
)
async def test_a_model_that_fails_ends_the_turn_with_its_sentence_wherever_it_is_killed(error: GatewayError):
    def make() -> CodeTurn:
        @agent()
        async def asks(turn: Turn):
            await turn.model("Hi.")
            return "End."

        return CodeTurn([asks], gateway=models([error]))

    whole, killed = await killed_everywhere(make)
    assert whole.end == Failed(error.code, error.message, retryable=error.retryable)
    ends_alike(whole, killed)


async def test_a_model_that_is_not_allowed_is_no_budget_that_is_used_up():
    heard: list[str] = []

    @agent()
    async def asks(turn: Turn):
        try:
            await turn.model("Hi.", model="nope")
        except ModelFailed as exc:
            heard.append(str(exc))
            raise

    turn = await CodeTurn([asks], gateway=models([ModelNotAllowed("The agent doesn't offer nope.")])).run()
    assert turn.end == Failed("MODEL_NOT_ALLOWED", "The agent doesn't offer nope.")
    assert heard == ["The agent doesn't offer nope."]


async def test_a_budget_that_is_used_up_ends_the_turn_with_its_sentence():
    @agent()
    async def asks(turn: Turn):
        await turn.model("Hi.")

    turn = await CodeTurn([asks], gateway=models([BudgetExceeded("No more today.")])).run()
    assert turn.end == Failed("BUDGET_EXCEEDED", "No more today.")


async def test_what_a_step_says_again_after_a_retry_is_shown_once_wherever_it_is_killed(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(attempts, "FIRST_RETRY_S", 0)

    def make() -> CodeTurn:
        tries: list[int] = []

        @agent()
        async def streams(turn: Turn):
            async def pieces():
                tries.append(1)
                yield "one "
                await asyncio.sleep(0.01)
                if len(tries) == 1:
                    raise ConnectionError
                yield "two "
                await asyncio.sleep(0.01)
                yield "three"

            await turn.step(pieces, effect="idempotent", retries=1)

        return CodeTurn([streams])

    whole, killed = await killed_everywhere(make)
    assert whole.shown == "one two three"
    ends_alike(whole, killed)


async def test_a_model_that_broke_off_and_is_killed_when_asked_again_is_heard_once():
    replies: list[Step] = [TextDelta("one "), ReplyBrokeOff("It broke off.")]

    def make() -> CodeTurn:
        @agent()
        async def asks(turn: Turn):
            await turn.model("Hi.")

        return CodeTurn([asks], gateway=models(replies, said("one ", "two")))

    whole, killed = await killed_everywhere(make)
    assert [it.shown for it in (whole, *killed)] == ["one two"] * (len(killed) + 1)


@pytest.mark.parametrize(
    ("city", "read"),
    [
        ("Oslo", "3 degrees"),
        ("Rome", '{"degrees":30}'),
        ("Atlantis", "AgentError: There is no such city."),
        (7, "StepFailed: "),
    ],
    ids=["a text", "a value", "an error", "wrong arguments"],
)
async def test_a_model_reads_what_a_function_of_the_program_returns(city: Any, read: str):
    values = {"Oslo": "3 degrees", "Rome": {"degrees": 30}}

    @tool(effect="read")
    async def weather(city: str) -> Any:
        """The weather in a city."""
        if city not in values:
            raise AgentError("There is no such city.")
        return values[city]

    @agent()
    async def reports(turn: Turn):
        if city in values:
            assert await turn.call(weather, {"city": city}) == values[city]
        await turn.run(tools=[weather])

    asks: list[Step] = [ToolUse("c1", "weather", {"city": city}), ModelUsage(1, 1), ModelStopped("tool_use")]
    turn = await CodeTurn([reports], gateway=lambda: InMemoryGateway(asks, said("So it is."))).run()
    assert isinstance(turn.end, Done), turn.end
    assert turn.model is not None
    (result,) = [
        block
        for message in turn.model.requests[1].messages
        for block in message.blocks
        if isinstance(block, ToolResultBlock)
    ]
    assert result.content.startswith(read)
    assert result.is_error == (city not in values)


def test_a_step_called_like_what_a_program_takes_loses_no_message_of_the_user():
    said = TurnEvent(TURN.id, 1, 0, UserMessage("m", "Faster."))
    ended = StepEnded("/steering/hash/1", "ok", 0, value=Raw(b"[]"))
    step = StepBegun(ended.key, "1", "steering", "step", "read")
    assert [it.content for it in replay_code([said, step, ended], {}).steered] == ["Faster."]
    take = StepBegun(ended.key, "1", "steering", "take", "read")
    assert replay_code([said, take, ended], {}).steered == ()


async def test_a_step_that_asks_ends_by_its_own_time_limit_alike_wherever_it_is_killed():
    def make() -> CodeTurn:
        async def slow(order: int) -> str:
            await asyncio.sleep(30)
            return str(order)

        @agent()
        async def asks(turn: Turn):
            try:
                await turn.step(slow, 7, effect="read", access="ask", timeout_s=0.05, name="slow")
            except TimeoutError as exc:
                return str(exc)

        return CodeTurn([asks], answer=allows)

    whole, killed = await killed_everywhere(make)
    assert whole.shown == "slow took longer than 0.05 s."
    ends_alike(whole, killed)


async def test_many_calls_are_reported_at_once_and_none_is_lost():
    @agent()
    async def reports(turn: Turn):
        for _ in range(300):
            turn.usage("m", 2, 1)
        await turn.step(abs, -1, effect="read")
        return "End."

    turn = await CodeTurn([reports]).run()
    assert sum(isinstance(it, UsageReported) for it in turn.events) == 300
    assert isinstance(turn.end, Done)
    assert turn.end.usage == MessageUsage(600, 300)


@pytest.mark.parametrize(("hidden", "apart"), [(True, 16), (False, 0)])
async def test_results_between_two_events_do_not_all_collect_in_the_log(hidden: bool, apart: int):
    def loads(number: int) -> str:
        return f"{number} " + "x" * 15_000

    @agent()
    async def collects(turn: Turn):
        found = [await turn.step(loads, it, effect="read", hidden=hidden) for it in range(20)]
        await turn.say(" ".join(it.partition(" ")[0] for it in found))

    turn = await CodeTurn([collects]).run()
    assert turn.shown == " ".join(map(str, range(20)))
    assert len(turn.values) == apart
    again = await CodeTurn([collects], entries=turn.entries[:-1], values=turn.values).run()
    assert again.shown == turn.shown


async def test_what_waited_for_a_voice_is_shown_as_one_text():
    spoken = asyncio.Event()
    loop = asyncio.get_running_loop()

    @agent()
    async def both(turn: Turn):
        async def first():
            yield "first "
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(spoken.wait(), loop))

        async def second():
            for _ in range(1_000):
                yield "again "
                await asyncio.sleep(0)
            loop.call_soon_threadsafe(spoken.set)

        await asyncio.gather(turn.step(first, effect="read"), turn.step(second, effect="read"))

    turn = await CodeTurn([both]).run()
    assert turn.shown.count("again") == 1_000
    texts = [it.text for it in turn.events if isinstance(it, Text)]
    assert texts[0] == "first "
    assert len(texts) < 100


async def test_a_point_that_no_run_has_recorded_is_saved_wherever_it_is_killed():
    world = World()

    def make() -> CodeTurn:
        @agent()
        async def saves(turn: Turn):
            async def reads() -> None:
                await turn.step(world.read, 1, effect="read")
                await turn.save("read")

            await asyncio.gather(reads(), turn.step(asyncio.sleep, 0.05, effect="read"))
            return "Done."

        return CodeTurn([saves])

    whole, killed = await killed_everywhere(make)
    ends_alike(whole, killed)
    for turn in (whole, *killed):
        assert any(isinstance(it, StateSaved) for it in turn.entries)
