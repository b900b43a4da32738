"""What agents in code need is deleted, damaged, used up or gone while their turns run."""

import asyncio
import logging
import threading
import zipfile
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from tests.faults.dying import DyingNode, dying_node, mortality
from tests.faults.programs import Sent, agent_ids, ask, send, settings_on
from tests.http.api.test_budgets import REPLY, with_prices
from tests.making import NOW, keep_conversation, opened
from tests.postgres import Postgres
from tests.runtime.nodes import DEAD
from tests.talking import JSON
from threadkeep import Settings
from threadkeep.agents import BudgetExceeded, Turn, agent
from threadkeep.bootstrap import opened_jobs_and_store
from threadkeep.cli.moving import export_user, import_file
from threadkeep.domain.conversation import BegunTurn
from threadkeep.domain.ids import AgentId, ConversationId, UserId
from threadkeep.domain.turn import TurnCode
from threadkeep.runtime import heartbeat
from threadkeep.storage.database.backup import back_up, restore
from threadkeep.storage.database.bus import sending
from threadkeep.storage.database.connector import Statement
from threadkeep.storage.turn_log import SqlTurnLog
from threadkeep.testing import Gate, Recorded, Reply, Say, ScriptedModel, Wait, until

__all__ = ["mortality"]

pytestmark = pytest.mark.usefixtures("mortality", "piece_by_piece")

LONG_AGO_MS = 60_000

WRITES = Counter[str]()
GATES = defaultdict[str, threading.Event](threading.Event)


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
    WRITES.clear()
    GATES.clear()
    async with settings_on(request.param, model, tmp_path, postgres, agents_pause_after_s=0.05) as settings:
        yield settings


async def write(what: str) -> str:
    WRITES[what] += 1
    return what


async def write_much(what: str) -> str:
    WRITES[what] += 1
    return what * 10_000


async def wait(what: str) -> None:
    WRITES[f"{what} waits"] += 1
    while not GATES[what].is_set():  # noqa: ASYNC110 - of another thread
        await asyncio.sleep(0.002)


@agent()
async def works(turn: Turn) -> str:
    """Its third step waits until the test says so."""
    await turn.step(write, turn.text)
    much = await turn.step(write_much, turn.text)
    await turn.step(wait, turn.text, effect="read")
    await turn.step(write, f"{turn.text} later")
    return f"Done, {len(much)}."


async def until_waiting(*texts: str) -> None:
    await until(lambda: all(WRITES[f"{it} waits"] for it in texts))


async def test_what_is_deleted_ends_its_turns_and_they_do_nothing_more(
    settings: Settings, caplog: pytest.LogCaptureFixture
):
    async with dying_node(settings, [works]) as node:
        deleted, purged, agent_gone, user_gone = [
            await send(node, "Works", it) for it in ("deleted", "purged", "agent", "user")
        ]
        await until_waiting("deleted", "purged", "agent", "user")
        client = node.client
        await client.delete(f"/api/conversations/{deleted.conversation}")
        await client.delete(f"/api/conversations/{purged.conversation}?purge=true")
        await client.delete(f"/api/agents/{(await agent_ids(node))['Works']}")
        # The turn of a deleted agent goes on, as that of any agent; no other one begins.
        GATES["agent"].set()
        assert (await agent_gone.until(node))["status"] == "COMPLETED"
        refused = await client.post(
            f"/api/conversations/{agent_gone.conversation}/messages", json={"content": "again"}
        )
        assert refused.status_code in (404, 409), refused.text
        assert (await client.delete("/api/users/local")).status_code == 204
        for gate in ("deleted", "purged", "user"):
            GATES[gate].set()
        await until(lambda: node.is_idle)
        for it in (deleted, purged, user_gone):
            assert (await client.get(f"/api/turns/{it.turn_id}")).status_code == 404
            assert (WRITES[it.text], WRITES[f"{it.text} later"]) == (2, 0)
        assert WRITES["agent later"] == 1
    assert [it.getMessage() for it in caplog.records if it.levelno >= logging.ERROR] == []


DAMAGES: Mapping[str, str | None] = {
    "not at all": None,
    "garbage": "UPDATE tk_turn_chunks SET events = 'garbage' WHERE turn_id = :id AND first_seq = (LAST)",
    "half of it": """UPDATE tk_turn_chunks SET events = SUBSTR(events, 1, LENGTH(events) / 2)
        WHERE turn_id = :id AND first_seq = (LAST)""",
    "from elsewhere": """UPDATE tk_turn_chunks SET events = events || '\n\t{"type":"nobody_knows"}'
        WHERE turn_id = :id AND first_seq = (LAST)""",
    "a row is missing": "DELETE FROM tk_turn_chunks WHERE turn_id = :id AND first_seq = 3",
    "a value is missing": "DELETE FROM tk_step_values WHERE turn_id = :id",
    "a value is damaged": "UPDATE tk_step_values SET content = :garbage WHERE turn_id = :id",
    "a value is another's": """UPDATE tk_turn_chunks
        SET events = REPLACE(events, '"value":"', '"value":7,"was":"') WHERE turn_id = :id""",
    "lost three times": "UPDATE tk_turns SET attempts = 3 WHERE id = :id",
}
"""What happens to a turn and its journal while no node has it."""
ENDS = ("INTERRUPTED", "INTERNAL_ERROR", "AGENT_FAILED", "REPLAY_DIVERGED")
LAST = "SELECT MAX(first_seq) FROM tk_turn_chunks WHERE turn_id = :id"


async def test_damaged_journal_ends_its_turn_with_a_sentence_and_nothing_is_repeated(settings: Settings):
    async with dying_node(settings, [works]) as node:
        sent = {it: await send(node, "Works", it) for it in DAMAGES}
        await until_waiting(*DAMAGES)
        node.life.end()
        await damage(node, sent)
    for name in DAMAGES:
        GATES[name].set()
    async with dying_node(settings, [works]) as node:
        await node.expire_leases(LONG_AGO_MS)
        for name, it in sent.items():
            turn = await it.until(node)
            seen = f"{turn} {await it.reply(node)}"
            assert not any(never in seen for never in ("Traceback", "garbage", "Error:", ".py")), name
            assert WRITES[name] == 2, name
            if name == "not at all":
                assert (await it.reply(node))["content"] == f"Done, {10_000 * len(name)}."
                continue
            assert (turn["status"], WRITES[f"{name} later"]) == ("FAILED", 0), name
            assert turn["error"]["code"] in ENDS, name
            # Whoever looks at it gets an answer, and its conversation goes on.
            assert (await node.client.get(f"/api/turns/{it.turn_id}/steps")).status_code == 200
            again = await node.client.post(
                f"/api/conversations/{it.conversation}/messages", json={"content": name}
            )
            assert again.status_code < 300, again.text
        await until(lambda: node.is_idle)


async def damage(node: DyingNode, sent: Mapping[str, Sent]) -> None:
    database = node.life.database
    assert database is not None
    for name, it in sent.items():
        if (sql := DAMAGES[name]) is not None:
            values: dict[str, Any] = {"id": it.turn_id, "garbage": b"garbage"}
            statement = Statement(sql.replace("LAST", LAST))
            await database.execute(statement(**{it: at for it, at in values.items() if f":{it}" in sql}))


@agent()
async def waits_for_its_user(turn: Turn) -> str:
    much = await turn.step(write_much, turn.text)
    await turn.say("I ask. ")
    await turn.ask("Well?")
    return f"Done, {len(much)}."


@pytest.mark.parametrize("is_over", [False, True], ids=["while it waits", "when it is over"])
async def test_turn_whose_log_is_damaged_can_be_read_and_ended(settings: Settings, is_over: bool):
    async with dying_node(settings, [waits_for_its_user]) as node:
        turns = await asyncio.gather(*(send(node, "Waits for its user", it) for it in DAMAGES))
        await asyncio.gather(*(it.answer(node) if is_over else it.until(node, "WAITING") for it in turns))
        if is_over:
            await asyncio.gather(*(it.until(node) for it in turns))
        await damage(node, {it.text: it for it in turns})
        await asyncio.gather(*(check_damaged(node, it, is_over=is_over) for it in turns))


async def check_damaged(node: DyingNode, sent: Sent, *, is_over: bool) -> None:
    """What is left of a turn is shown, and nothing of it keeps the rest of its conversation away."""
    conversation = f"/api/conversations/{sent.conversation}"
    turn = f"/api/turns/{sent.turn_id}"
    for path in (
        turn,
        f"{turn}/steps?values=true",
        f"/api/admin{turn[4:]}/steps",
        f"{conversation}/messages",
    ):
        seen = await node.client.get(path)
        assert seen.status_code == 200 and seen.json(), (path, seen.text)
    response = await node.client.get(f"/v1/responses/resp_{sent.turn_id.replace('-', '')}")
    assert response.status_code in (200, 410), response.text
    if is_over:
        assert (await sent.reply(node))["content"].startswith("I ask. Done")
    else:
        await node.client.post(f"{conversation}/abort")
        assert (await sent.until(node))["status"] in ("CANCELLED", "FAILED")


STATE = "what only the program knows"


@agent(visibility="public")
async def remembers(turn: Turn) -> str:
    """Replies with all that it was told on the path that leads here."""
    told = [*turn.state.get("told", ()), turn.text]
    turn.state = {"told": told, "secret": STATE}
    return " ".join(told)


async def test_state_follows_its_branch_and_no_export_has_it(settings: Settings, tmp_path: Path):
    async with dying_node(settings, [remembers]) as node:
        first = await send(node, "Remembers", "one")
        conversation = f"/api/conversations/{first.conversation}"
        await first.until(node)

        async def say(text: str, into: str = conversation, **place: str) -> dict[str, Any]:
            asked = {"content": text, **place}
            replied = await node.client.post(f"{into}/messages?wait=true", json=asked, headers=JSON)
            assert replied.status_code == 200, replied.text
            return replied.json()

        one = await first.reply(node)
        two = await say("two")
        three = await say("three")
        edited = await say("deux", parentId=one["id"])
        again = await node.client.post(
            f"{conversation}/regenerate?wait=true", json={"messageId": two["id"]}, headers=JSON
        )
        fork = (await node.client.post(f"{conversation}/fork", json={"messageId": two["id"]})).json()["id"]
        forked = await say("elsewhere", f"/api/conversations/{fork}")
        later = await say("four", parentId=three["id"])
        said = [it["content"] for it in (one, two, three, edited, again.json(), forked, later)]
        assert said == [
            "one",
            "one two",
            "one two three",
            "one deux",
            "one two",
            "one two elsewhere",
            "one two three four",
        ]
        exported = (await node.client.get(f"{conversation}/export?format=json")).text
        assert "one two three four" in exported and STATE not in exported
    file = tmp_path / "export.zip"
    assert await export_user(settings, UserId("local"), file) == 0
    with zipfile.ZipFile(file) as archive:
        assert not any(STATE.encode() in archive.read(it) for it in archive.namelist())
    if str(settings.database_url).startswith("sqlite"):
        await check_backup(settings, tmp_path, conversation)
    async with opened_jobs_and_store(settings) as (_, store):
        for id_ in (first.conversation, fork):
            await store.conversations.purge(UserId("local"), ConversationId(id_))
    assert await import_file(settings, file, UserId("local"), None) == 0
    async with dying_node(settings, [remembers]) as node:
        path = f"{conversation}/messages?wait=true"
        brought = await node.client.post(path, json={"content": "after all"}, headers=JSON)
        assert (brought.status_code, brought.json()["content"]) == (200, "after all"), brought.text


async def check_backup(settings: Settings, folder: Path, conversation: str) -> None:
    """A folder that is made from a backup goes on with the state."""
    file, data = folder / "backup.tar", folder / "restored"
    await asyncio.to_thread(back_up, settings.data, file)
    await asyncio.to_thread(restore, file, data)
    restored = structs.replace(settings, data=data, database_url=f"sqlite:///{data}/threadkeep.db")
    async with dying_node(restored, [remembers]) as node:
        path = f"{conversation}/messages?wait=true"
        replied = await node.client.post(path, json={"content": "five"}, headers=JSON)
        assert replied.json()["content"] == "one two three four five", replied.text


HEARD: list[list[str]] = []


@agent(model="priced/scripted")
async def asks_two_models(turn: Turn) -> str:
    """Only one of the calls is within the budget."""
    calls = (turn.model(f"Say yes, {it}.", show=False) for it in ("please", "at once"))
    found = await asyncio.gather(*calls, return_exceptions=True)
    HEARD.append(sorted(type(it).__name__ for it in found))
    if turn.text == "Let it fail.":
        raise next(it for it in found if isinstance(it, BudgetExceeded))
    return "Half of it."


async def test_budget_that_ends_between_two_parallel_calls_is_never_passed(
    settings: Settings, model: ScriptedModel
):
    gate = Gate()

    def reply(request: Recorded) -> Reply:
        return [Wait(gate), *REPLY]

    model.otherwise = reply
    HEARD.clear()
    priced = with_prices(settings, model, user_budget_month="0.015")
    async with dying_node(priced, [asks_two_models]) as node:
        sent = await send(node, "Asks two models", "Let it fail.")
        await gate.reached()
        gate.open()
        turn = await sent.until(node)
        assert (turn["status"], turn["error"]["code"]) == ("FAILED", "BUDGET_EXCEEDED")
        other = await ask(node, "Asks two models", "Go on.")
        assert other["status"] == "COMPLETED"
        assert HEARD == [["BudgetExceeded", "Reply"], ["BudgetExceeded", "BudgetExceeded"]]
        (budget,) = (await node.client.get("/api/usage")).json()["budgets"]
        assert (budget["spent"], budget["reserved"]) == ("0.01", "0.00")


TURNS = 200
"""Ten times what a node takes over at once. By hand: 1,000, each stopped within 0.1 s."""
LOOKS = 3
"""How often a node may look for abandoned turns before it finds one."""


STATUSES = Statement("SELECT status, COUNT(*) FROM tk_turns GROUP BY status")


async def test_turns_whose_program_is_gone_delay_no_other_and_any_node_stops_them(
    settings: Settings, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
):
    gate, found = Gate(), list[list[str]]()
    look = SqlTurnLog.abandoned

    async def look_and_note(log: SqlTurnLog, *arguments: Any, **named: Any) -> list[Any]:
        found.append([*await look(log, *arguments, **named)])
        return found[-1]

    monkeypatch.setattr(SqlTurnLog, "abandoned", look_and_note)
    model.script([Say("I begin "), Wait(gate)], [Say("and end.")])
    async with dying_node(settings, [works]):
        pass  # there was a program once
    async with dying_node(settings) as node:
        await node.client.post("/api/agents", json={"name": "Ordinary"})
        ordinary = await send(node, "Ordinary")
        await gate.reached()
        gone = await keep_turns(node)
        node.life.end()
    gate.open()
    found.clear()
    async with AsyncExitStack() as stack:
        at_once = 2 if str(settings.database_url).startswith("postgres") else 1
        nodes = [await stack.enter_async_context(dying_node(settings)) for _ in range(at_once)]
        await nodes[0].expire_leases()
        before = len(found)
        assert (await ordinary.until(nodes[-1]))["status"] == "COMPLETED"
        assert any(ordinary.turn_id in it for it in found[: before + LOOKS * at_once])
        assert set[str]().union(*found) == {ordinary.turn_id}
        limit = asyncio.Semaphore(20)

        async def stop(number: int, begun: BegunTurn) -> None:
            async with limit:
                path = f"/api/conversations/{begun.conversation.id}/abort"
                stopped = await nodes[number % at_once].client.post(path)
                assert stopped.json()["status"] == "GENERATION_ABORTED", stopped.text

        async with asyncio.TaskGroup() as stopping:
            for number, begun in enumerate(gone):
                stopping.create_task(stop(number, begun))
        assert nodes[0].life.database is not None
        counted = await nodes[0].life.database.fetch(STATUSES())
        assert dict(map(tuple, counted)) == {"CANCELLED": TURNS, "COMPLETED": 1}


async def keep_turns(node: DyingNode) -> list[BegunTurn]:
    """Turns of a program that has begun some of them."""
    program = await node.store.agents.get(AgentId((await agent_ids(node))["Works"]))
    assert program is not None
    kept: list[BegunTurn] = []
    for number in range(TURNS):
        conversation = await keep_conversation(node.store, program, UserId("local"))
        begun = conversation.begin_turn("Where is it?", NOW)
        code = TurnCode("works", 1 if number % 2 else None)
        begun = opened(replace(begun, turn=replace(begun.turn, code=code)), replace(DEAD, length_ms=-10))
        await node.store.turns.begin(begun)
        kept.append(begun)
    return kept
