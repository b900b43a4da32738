"""Nodes die under many turns of agents in code at once, at any place; later nodes end them as they began."""

import asyncio
import functools
import random
import threading
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

import pytest

from tests.agents.test_reexecution import TIMING
from tests.faults.dying import Death, DyingNode, Point, dying_node, mortality
from tests.faults.programs import Sent, send, settings_on
from tests.postgres import Postgres
from threadkeep import Settings
from threadkeep.agents import Agent, OutcomeUnknown, Turn, agent, step_key
from threadkeep.domain.events import TurnEvent
from threadkeep.engine.journal import StepBegun, StepEnded
from threadkeep.runtime import heartbeat
from threadkeep.storage.database.bus import sending
from threadkeep.storage.database.connector import Statement
from threadkeep.testing import Gate, Recorded, Reply, Say, ScriptedModel, Wait, until
from threadkeep.testing.waiting import PATIENCE_S
from threadkeep.wire.programs import Effect

__all__ = ["mortality"]

pytestmark = pytest.mark.usefixtures("mortality")

LONG_AGO_MS = 60_000
UNFINISHED = Statement("SELECT code_key FROM tk_turns WHERE status = 'RUNNING'")

STARTED = threading.Event()
"""Until then, the programs that depend on timing wait: so all of them are cut off together."""
WRITES = Counter[str]()
MIXED_UP: list[object] = []


@pytest.fixture(params=["sqlite", "postgres"])
async def settings(
    request: pytest.FixtureRequest,
    model: ScriptedModel,
    tmp_path: Path,
    postgres: Postgres,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Settings]:
    """Nodes on one empty database, once of each kind, that lose no time."""
    monkeypatch.setattr(heartbeat, "BEAT_S", 0.05)
    monkeypatch.setattr(sending, "LAST_WORDS_S", 0.05)  # of a node that is dead
    for world in (WRITES, MIXED_UP):
        world.clear()
    async with settings_on(request.param, model, tmp_path, postgres, agents_pause_after_s=0.05) as settings:
        yield settings


async def started() -> None:
    while not STARTED.is_set():  # noqa: ASYNC110 - of another thread
        await asyncio.sleep(0.002)


async def look(place: str) -> str:
    await asyncio.sleep(random.random() / 200)
    return place


@agent()
async def branches(turn: Turn) -> str:
    """Each branch waits differently in every run, and must only ever receive its own results."""

    async def branch(number: int) -> list[str]:
        found: list[str] = []
        for round_ in range(4):
            await asyncio.sleep(random.random() / 100)
            found.append(await turn.step(look, f"{number}.{round_}", effect="read"))
            if found[-1] != f"{number}.{round_}":
                MIXED_UP.append((turn.id, number, round_, found[-1]))
        return found

    await started()
    all_found = await asyncio.gather(*map(branch, range(3)))
    return " ".join(it for found in all_found for it in found)


FOUND = " ".join(f"{number}.{round_}" for number in range(3) for round_ in range(4))


def waiting(it: Agent) -> Agent:
    """The same program, which begins with the others."""

    @agent(key=it.key, name=it.key)
    async def waits(turn: Turn) -> str:
        await started()
        return await it.fn(turn)

    return waits


PROGRAMS = [branches, *map(waiting, TIMING)]
AT_ONCE = ["Branches"] * 12 + [it.key for it in TIMING]
DEATHS = ([2, 14, 8], [25, 6, 14])
"""At which commit each node of a chain dies; a turn survives three losses in a row."""


@pytest.mark.usefixtures("piece_by_piece")
async def test_programs_receive_their_own_results_in_their_order_however_often_they_are_cut_off(
    settings: Settings,
):
    cut_off = Counter[str]()
    for deaths in DEATHS:
        STARTED.clear()
        sent: Sequence[Sent] = ()
        for at in deaths:
            async with dying_node(settings, PROGRAMS) as node:
                sent = sent or await asyncio.gather(*(send(node, name) for name in AT_ONCE))
                node.life.end_at(Point(at, Death.AFTER))
                await node.expire_leases(LONG_AGO_MS)
                STARTED.set()
                async with asyncio.timeout(PATIENCE_S):
                    await node.life.ended.wait()
                cut_off.update(await unfinished(node))
        async with dying_node(settings, PROGRAMS) as node:
            await node.expire_leases(LONG_AGO_MS)
            for it in sent:
                turn = await it.until(node)
                assert turn["status"] == "COMPLETED", (it.agent, turn)
                assert it.agent != "Branches" or (await it.reply(node))["content"] == FOUND
    assert MIXED_UP == []
    assert cut_off["branches"] >= 50
    assert set(cut_off) == {it.key for it in PROGRAMS}


async def unfinished(node: DyingNode) -> list[str]:
    """The programs of the turns that a dead node leaves."""
    assert node.life.database is not None
    return [key for (key,) in await node.life.database.fetch(UNFINISHED())]


HELD = threading.Event()
INSIDE = Counter[str]()
KEYS: dict[str, list[str]] = {}


async def hold(what: str) -> None:
    """A step that is inside what it does when its node dies."""
    INSIDE[what] += 1
    KEYS.setdefault(what, []).append(step_key())
    while not HELD.is_set():  # noqa: ASYNC110 - of another thread
        await asyncio.sleep(0.002)


async def pay(what: str) -> str:
    WRITES[what] += 1
    await hold(what)
    return "Paid."


@agent()
async def writes(turn: Turn) -> str:
    return await turn.step(pay, "writes")


@agent()
async def writes_and_looks(turn: Turn) -> str:
    try:
        return await turn.step(pay, "writes and looks")
    except OutcomeUnknown:
        return f"It was paid {await turn.step(count, 'writes and looks', effect='read')} time."


@agent()
async def writes_and_asks(turn: Turn) -> str:
    return await turn.step(pay, "writes and asks", unknown="ask")


def count(what: str) -> int:
    return WRITES[what]


@agent()
async def repeats(turn: Turn) -> str:
    return await turn.step(pay, "repeats", effect="idempotent")


@agent()
async def streams(turn: Turn) -> str:
    async def pieces() -> AsyncIterator[str]:
        yield "One, "
        await hold("streams")
        yield "two."

    return " " + await turn.step(pieces, effect="idempotent")


@agent()
async def asks_a_model(turn: Turn) -> None:
    await turn.model("Say a sentence.")


@agent()
async def asks(turn: Turn) -> str:
    answer = await turn.ask("Well?")
    return f"You said {answer} to {await turn.step(count_asked, turn.id)}."


@agent()
async def is_answered(turn: Turn) -> str:
    return f"You said {await turn.ask('Well?')}."


def count_asked(turn_id: str) -> str:
    WRITES[turn_id] += 1
    return "that"


CUT_OFF = [writes, writes_and_looks, writes_and_asks, repeats, streams, asks_a_model, asks, is_answered]


@pytest.mark.usefixtures("piece_by_piece")
async def test_program_that_is_cut_off_inside_of_what_it_does_ends_as_promised(
    settings: Settings, model: ScriptedModel
):
    gate = Gate()

    def sentence(request: Recorded) -> Reply:
        return [Say("Half "), Wait(gate), Say("a sentence.")]

    model.otherwise = sentence
    HELD.clear()
    INSIDE.clear()
    KEYS.clear()
    async with dying_node(settings, CUT_OFF) as node:
        sent = {it.key: await send(node, it.declaration.name) for it in CUT_OFF}
        await gate.reached()
        await until(lambda: len(INSIDE) == 5)
        for key in ("asks", "is-answered"):
            await sent[key].until(node, "WAITING")
        node.life.end_at(Point(1, Death.AFTER))  # the answer is stored, and nobody hears of it
        answering = asyncio.create_task(sent["is-answered"].answer(node))
        await node.life.ended.wait()
        answering.cancel()
    HELD.set()
    gate.open()
    async with dying_node(settings, CUT_OFF) as node:
        await node.expire_leases(LONG_AGO_MS)
        for key in ("asks", "writes-and-asks"):
            await sent[key].answer(node)
        ended = {key: await it.until(node) for key, it in sent.items()}
        said = {key: (await it.reply(node))["content"] for key, it in sent.items()}
        failed = ended.pop("writes")
        assert (failed["status"], failed["error"]["code"]) == ("FAILED", "OUTCOME_UNKNOWN")
        assert {it["status"] for it in ended.values()} == {"COMPLETED"}
        assert said == {
            "writes": "",
            "writes-and-looks": "It was paid 1 time.",
            "writes-and-asks": "Paid.",
            "repeats": "Paid.",
            "streams": "One, two.\n\n One, two.",
            "asks-a-model": "Half a sentence.",
            "asks": "You said yes to that.",
            "is-answered": "You said yes.",
        }
        assert [WRITES[it] for it in ("writes", "writes and looks", sent["asks"].turn_id)] == [1, 1, 1]
        assert {it: len(keys) for it, keys in KEYS.items() if len(keys) > 1} == {
            "repeats": 2,
            "streams": 2,
            "writes and asks": 2,
        }
        assert all(len(set(keys)) == 1 for keys in KEYS.values())


KINDS: Sequence[Literal["model"] | Effect] = ("model", "read", "write", "idempotent")
STORED: list[bool] = []
"""For each step that ran: whether the database had its begin, and all results that the code had before it."""


async def test_write_begins_only_once_the_database_has_its_begin_and_what_led_to_it(
    settings: Settings, model: ScriptedModel
):
    """Beside model calls and other steps, in any interleaving."""
    model.otherwise = half_a_sentence
    server = asyncio.get_running_loop()

    async def stored() -> Sequence[object]:
        reading = asyncio.run_coroutine_threadsafe(node.stored_log(sent.conversation), server)
        return await asyncio.wrap_future(reading)

    @agent()
    async def does_all_at_once(turn: Turn) -> str:
        received = Counter[str]()

        async def write(number: str, before: Mapping[str, int]) -> str:
            entries = await stored()
            begun = {it.name for it in entries if isinstance(it, StepBegun)}
            ended = Counter(
                it.key.split("/")[1].rpartition(":")[2] for it in entries if isinstance(it, StepEnded)
            )
            STORED.append(f"write-{number}" in begun and Counter(before) <= ended)
            await asyncio.sleep(random.random() / 100)
            return number

        async def one(number: int) -> None:
            for round_ in range(3):
                name = f"write-{number}.{round_}"
                await asyncio.sleep(random.random() / 100)
                kind = random.choice(KINDS)
                if kind == "model":
                    name = "model"
                    await turn.model(f"{number}.{round_}", show=False)
                elif kind == "read":
                    await turn.step(look, name, effect="read", name=name)
                else:
                    step = functools.partial(write, f"{number}.{round_}", dict(received))
                    await turn.step(step, effect=kind, name=name, key=name)
                received[name] += 1

        await asyncio.gather(*map(one, range(8)))
        return "Done."

    STORED.clear()
    async with dying_node(settings, [does_all_at_once]) as node:
        for _ in range(3):
            sent = await send(node, "Does all at once")
            assert (await sent.until(node))["status"] == "COMPLETED"
            entries = await node.stored_log(sent.conversation)
            seqs = [it.seq for it in entries if isinstance(it, TurnEvent)]
            assert seqs == [*range(1, len(seqs) + 1)]
    assert len(STORED) > 10 and all(STORED)


def half_a_sentence(request: Recorded) -> Reply:
    return [Say("Half "), Say("a sentence.")]
