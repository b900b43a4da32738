"""Agents that are programs, in the database: their rows, who runs their turns, and what they keep."""

import asyncio
from dataclasses import replace

import pytest

from tests.making import (
    ALICE,
    NOW,
    chunk_of,
    keep_agent,
    keep_conversation,
    make_agent,
    opened,
    regenerated,
    said,
)
from threadkeep.clock import system_clock
from threadkeep.domain.agent import (
    Agent,
    AgentCode,
    AgentIcon,
    AgentSettings,
    AuditEntry,
    Code,
    Visibility,
    WorkerState,
)
from threadkeep.domain.conversation import BegunTurn, Conversation
from threadkeep.domain.errors import StorageConflict, StorageError, StorageRefused
from threadkeep.domain.events import Done, Text
from threadkeep.domain.ids import MessageId, new_uuid
from threadkeep.domain.message import MessageStatus, Usage
from threadkeep.domain.turn import ALL_ACTIVE, Lease, OpenStep, TurnCode, TurnStatus
from threadkeep.storage.code.states import MOST_STATE_BYTES
from threadkeep.storage.database.connector import Database, Statement
from threadkeep.storage.store import Store
from threadkeep.storage.turns import LOG_VERSION, PLAIN_LOG_VERSION

ORDERS = Code("orders", 2)
# How a node of the version before sweeps agents whose owner is gone.
FORMER_EMPTY = Statement(
    """UPDATE tk_agents SET owner_id = NULL, description = '', system_prompt = '', settings = '{}',
        deleted_at = COALESCE(deleted_at, :now), updated_at = :now, version = version + 1
    WHERE id IN (SELECT id FROM tk_agents WHERE owner_id IS NULL AND NOT is_default) RETURNING id"""
)
FORMER_DELETE = Statement(
    """DELETE FROM tk_agents WHERE id IN (SELECT id FROM tk_agents WHERE owner_id IS NULL AND NOT is_default
        AND NOT EXISTS (SELECT 1 FROM tk_conversations WHERE tk_conversations.agent_id = tk_agents.id))
    RETURNING id"""
)
LOG_VERSION_OF = Statement("SELECT log_version FROM tk_turns WHERE id = :id")
MAKE_OLD = Statement("UPDATE tk_turns SET lease_until = lease_until - :ms WHERE id = :id")


def in_code(version: int = 1, key: str = "orders", **changes: object) -> Agent:
    code = AgentCode(key, version, ("name", "description", "settings.starters"))
    settings = AgentSettings(starters=("Where is my order?",))
    return make_agent(None, **({"name": f"Orders {version}", "code": code, "settings": settings} | changes))


async def keep_in_code(store: Store, version: int = 1, key: str = "orders") -> Agent:
    agent = await store.agents.declare(in_code(version, key))
    assert agent is not None
    return agent


async def begin_in_code(
    store: Store, conversation: Conversation, lease: Lease | None = None, version: int | None = 2
) -> BegunTurn:
    begun = conversation.begin_turn("Where is it?", NOW)
    turn = replace(begun.turn, code=TurnCode("orders", version))
    await store.turns.begin(opened(replace(begun, turn=turn), lease))
    return replace(begun, turn=turn)


async def end_with(store: Store, begun: BegunTurn, state: bytes | None) -> Conversation:
    reply = begun.assistant_message.finish(MessageStatus.COMPLETED, said("Here."), NOW + 1)
    ended = begun.conversation.end_turn(begun.turn, reply, NOW + 1)
    done = Done("COMPLETED", reply.id, Usage(0, 0), "end_turn")
    await store.turns.end(ended, chunk_of(begun.turn.id, 2, Text("Here."), done), 1, state=state)
    return ended.conversation


async def test_newest_code_declares_the_agent_and_leaves_what_an_admin_has_set(store: Store):
    first = await keep_in_code(store)
    assert (first.name, first.owner_id, first.code) == ("Orders 1", None, in_code().code)

    def change(agent: Agent) -> Agent:
        settings = replace(agent.settings, icon=AgentIcon.ANCHOR)
        return replace(agent, visibility=Visibility.PUBLIC, settings=settings, version=2)

    await store.agents.update(first.id, change, lambda it: entry_of(it, "update"))
    newer = in_code(3, settings=AgentSettings(starters=("Refund it.",)))
    third = await store.agents.declare(newer)
    assert third == await store.agents.get(first.id)
    assert third is not None and third.code == newer.code
    assert (third.name, third.visibility, third.settings) == (
        "Orders 3",
        Visibility.PUBLIC,
        AgentSettings(starters=("Refund it.",), icon=AgentIcon.ANCHOR),
    )
    assert await store.agents.declare(in_code(2)) == third  # an old process during a deploy
    assert await store.agents.declare(in_code(3, settings=newer.settings)) == third


async def test_program_that_declares_another_time_limit_changes_it_and_an_admins_stays(store: Store):
    code = AgentCode("orders", 1, timeout_s=900)
    agent = await store.agents.declare(in_code(code=code, settings=AgentSettings(generation_timeout_s=900)))
    assert agent is not None

    def shorten(agent: Agent) -> Agent:
        return replace(agent, settings=replace(agent.settings, generation_timeout_s=60))

    await store.agents.update(agent.id, shorten, lambda it: entry_of(it, "update"))
    again = await store.agents.declare(in_code(code=replace(code, version=2)))
    assert again is not None and again.settings.generation_timeout_s == 60
    longer = await store.agents.declare(in_code(code=replace(code, version=3, timeout_s=1200)))
    assert longer is not None and longer.settings.generation_timeout_s == 1200


async def test_agent_that_an_admin_has_deleted_stays_deleted(store: Store):
    agent = await keep_in_code(store)
    await store.agents.update(agent.id, lambda it: it.delete(NOW), lambda it: entry_of(it, "delete"))
    assert await store.agents.declare(in_code(9)) is None
    kept = await store.agents.get(agent.id)
    assert kept is not None and (kept.deleted_at, kept.code) == (NOW, None)


async def test_two_nodes_that_declare_an_agent_at_once_make_one(store: Store):
    agents = await asyncio.gather(*(store.agents.declare(in_code(n)) for n in range(1, 6)))
    newest = await store.agents.declare(in_code(1))
    assert newest is not None and newest.name == "Orders 5"
    assert {it.id for it in agents if it} == {newest.id}


async def test_agents_without_an_owner_are_swept_and_those_in_code_are_not(store: Store, database: Database):
    agent = await keep_in_code(store)
    orphan = make_agent(None)
    await store.agents.add_shipped(orphan)
    await store.users.sweep(NOW)
    await store.users.sweep(NOW + 1)
    assert await store.agents.get(orphan.id) is None
    assert await store.agents.get(agent.id) == agent
    # Nor by a node of the version before.
    orphan = make_agent(None)
    await store.agents.add_shipped(orphan)
    emptied = await database.execute(FORMER_EMPTY(now=NOW))
    deleted = await database.execute(FORMER_DELETE())
    assert [str(id_) for (id_,) in (*emptied, *deleted)] == [orphan.id, orphan.id]
    assert await store.agents.get(agent.id) == agent


async def test_node_of_the_version_before_cannot_begin_a_turn_of_a_program(store: Store, database: Database):
    conversation = await keep_conversation(store, await keep_in_code(store))
    begun = conversation.begin_turn("Where is it?", NOW, model="scripted")  # as for a configured agent
    with pytest.raises(StorageError):
        await store.turns.begin(opened(begun))
    assert await store.turns.status(begun.turn.id) is None
    begun = await begin_in_code(store, conversation)
    plain = (await keep_conversation(store, await keep_agent(store))).begin_turn("?", NOW)
    await store.turns.begin(opened(plain))
    versions = [(await database.fetch(LOG_VERSION_OF(id=it.turn.id)))[0][0] for it in (begun, plain)]
    assert versions == [LOG_VERSION, PLAIN_LOG_VERSION]
    assert await store.turns.get(ALICE, begun.turn.id) == begun.turn


async def test_thousand_turns_without_a_program_delay_no_other_and_each_can_be_stopped(
    store: Store, database: Database
):
    agent, node = await keep_in_code(store), Lease("a-node", 1, 10**9)
    gone = Lease("a-node-without-it", 1, -60_000)
    absent = [
        await begin_in_code(store, await keep_conversation(store, agent), gone, version)
        for version in (None, 2) * 500
    ]
    plain = (await keep_conversation(store, await keep_agent(store))).begin_turn("?", NOW)
    await store.turns.begin(opened(plain, Lease("a-dead-node", 1, -1)))
    assert await store.log.abandoned("a-node", alone=False, limit=20) == [plain.turn.id]
    assert (await store.log.abandoned("a-node", alone=False, limit=20, codes=[ORDERS]))[0] == plain.turn.id
    for begun in absent[:3]:
        assert await store.log.adopt(begun.turn.id, node, alone=False) is None
        held = await store.log.adopt_ownerless(begun.turn.id, node)
        assert held is not None and (held.turn.code, held.fence) == (begun.turn.code, 2)
        assert await store.log.adopt_ownerless(begun.turn.id, node) is None  # it has an owner now
    # Where the stop arrived at a node of the version before, any other finds it.
    for begun in absent[-2:]:
        await store.log.request_abort(begun.turn.id)
    found = await store.log.abandoned("a-node", alone=False, limit=20)
    assert (found[0], set(found)) == (plain.turn.id, {it.turn.id for it in (plain, *absent[-2:])})
    held = await store.log.adopt(absent[-1].turn.id, node, alone=False)
    assert held is not None and held.is_aborting


async def test_turn_runs_where_its_code_is_or_newer_code_and_never_on_older(store: Store):
    conversation = await keep_conversation(store, await keep_in_code(store))
    begun = await begin_in_code(store, conversation, Lease("a-dead-node", 1, -1))
    node = Lease("a-node", 1, 10**9)

    async def finds(*codes: Code) -> bool:
        found = await store.log.abandoned("a-node", alone=False, limit=20, codes=codes)
        return found == [begun.turn.id]

    assert not await finds(Code("orders", 1), Code("billing", 2))
    assert await store.log.adopt(begun.turn.id, node, alone=False, codes=[Code("orders", 1)]) is None
    assert await finds(Code("orders", 1), Code("orders", 2))
    assert await finds(Code("orders", 3))
    await store.programs.note_seen("another", [ORDERS])
    assert not await finds(Code("orders", 3))  # the other one has the code that began it
    assert await finds(ORDERS)
    newer = [Code("orders", 3)]
    assert await store.log.abandoned("a-node", alone=True, limit=20, codes=newer) == [begun.turn.id]
    await store.programs.close("another")
    held = await store.log.adopt(begun.turn.id, node, alone=False, codes=[Code("orders", 3)])
    assert held is not None and (held.turn.code, held.attempts) == (TurnCode("orders", 2), 1)


async def test_turn_that_nobody_could_begin_belongs_to_the_first_code_that_runs_it(
    store: Store, database: Database
):
    conversation = await keep_conversation(store, await keep_in_code(store))
    begun = await begin_in_code(store, conversation, version=None)
    await store.log.release(begun.turn.id, 1)
    held = await store.log.adopt(begun.turn.id, Lease("a-node", 1, 0), alone=False, codes=[Code("orders", 4)])
    assert held is not None and (held.turn.code, held.attempts) == (TurnCode("orders", 4), 0)
    assert (await database.fetch(LOG_VERSION_OF(id=begun.turn.id)))[0][0] == LOG_VERSION


@pytest.mark.parametrize(("version", "minutes"), [(None, 6), (2, 61)])
async def test_turn_whose_program_stays_away_is_found_by_any_node_to_end_it(
    store: Store, database: Database, version: int | None, minutes: int
):
    conversation = await keep_conversation(store, await keep_in_code(store))
    begun = await begin_in_code(store, conversation, Lease("a-dead-node", 1, -60_000), version)
    hour_ms = 60 * 60_000
    assert not await store.log.abandoned("a-node", alone=False, limit=20, within_ms=hour_ms)
    await database.execute(MAKE_OLD(id=begun.turn.id, ms=(minutes - 1) * 60_000))
    found = await store.log.abandoned("a-node", alone=False, limit=20, within_ms=hour_ms)
    assert found == [begun.turn.id]
    held = await store.log.adopt(begun.turn.id, Lease("a-node", 1, 0), alone=False, within_ms=hour_ms)
    assert held is not None and held.turn.code == TurnCode("orders", version)


async def test_program_is_ready_on_the_nodes_that_say_so_and_awaited_after_they_close(store: Store):
    await store.programs.note_seen("a", [Code("orders", 1), Code("billing", 1)])
    await store.programs.note_seen("b", [ORDERS])
    await store.programs.note_seen("b", [ORDERS])
    served = await store.programs.served(["orders", "billing", "other"])
    assert {key: (it.workers, it.is_ready, it.is_awaited) for key, it in served.items()} == {
        "orders": (2, True, True),
        "billing": (1, True, True),
    }
    await store.programs.close("a")
    served = await store.programs.served(["orders", "billing"])
    assert [(served[key].workers, served[key].is_awaited) for key in ("orders", "billing")] == [
        (1, True),
        (0, True),
    ]
    assert [(it.key, it.version, it.node, it.is_ready) for it in await store.programs.all()] == [
        ("billing", 1, "a", False),
        ("orders", 1, "a", False),
        ("orders", 2, "b", True),
    ]
    assert await store.programs.served([]) == {}


async def test_state_is_that_of_the_nearest_reply_on_the_path(store: Store):
    conversation = await keep_conversation(store, await keep_in_code(store))
    begun = [await begin_in_code(store, conversation)]
    conversation = await end_with(store, begun[0], b"one")
    begun.append(await begin_in_code(store, conversation))
    conversation = await end_with(store, begun[1], None)
    begun.append(await begin_in_code(store, conversation))
    conversation = await end_with(store, begun[2], b"three")
    asked = [it.user_message for it in begun]

    async def state_before(message_id: MessageId | None) -> bytes | None:
        return await store.states.before(conversation.id, message_id)

    parents = [it.parent_id for it in asked if it]
    assert [await state_before(it) for it in parents] == [None, b"one", b"one"]
    assert await state_before(begun[2].assistant_message.id) == b"three"
    # Regenerating the last answer takes the state before it.
    assert asked[2] is not None
    again = await regenerated(store, conversation, asked[2])
    assert again.assistant_message.parent_id == asked[2].id
    assert await state_before(asked[2].parent_id) == b"one"
    other = await keep_conversation(store, await keep_agent(store))
    assert await store.states.before(other.id, begun[2].assistant_message.id) is None


async def test_state_that_is_too_large_stores_nothing(store: Store):
    begun = await begin_in_code(store, await keep_conversation(store, await keep_in_code(store)))
    with pytest.raises(StorageRefused):
        await end_with(store, begun, bytes(MOST_STATE_BYTES + 1))
    assert await store.turns.status(begun.turn.id) is TurnStatus.RUNNING
    await end_with(store, begun, bytes(MOST_STATE_BYTES))
    state = await store.states.before(begun.conversation.id, begun.assistant_message.id)
    assert state == bytes(MOST_STATE_BYTES)
    with pytest.raises(StorageConflict):
        await end_with(store, begun, b"late")


async def test_values_of_steps_go_with_the_log(store: Store):
    begun = await begin_in_code(store, await keep_conversation(store, await keep_in_code(store)))
    id_ = new_uuid()
    for _ in range(2):
        await store.states.add_value(begun.turn.id, begun.conversation.id, id_, b"large")
    assert await store.states.value(begun.turn.id, id_) == b"large"
    await end_with(store, begun, None)
    await store.log.trim(NOW + 2)
    assert await store.states.value(begun.turn.id, id_) is None


def entry_of(agent: Agent, action: str) -> AuditEntry:
    return AuditEntry(new_uuid(), NOW, ALICE, action, agent.id, {})


async def test_workers_say_how_they_are_each_time_they_are_seen(store: Store):
    running = {"orders": 2, "billing": 1}
    first = WorkerState(name="host", sdk="threadkeep 1", capacity=20, running=running)
    await store.programs.note_seen("b", [Code("orders", 2), Code("billing", 1)], first)
    await store.programs.note_seen("a", [Code("orders", 1)], WorkerState(name="other"))
    (before,) = [it for it in await store.programs.workers() if it.node == "b"]
    assert (before.id, before.name, before.sdk, before.capacity) == ("b", "host", "threadkeep 1", 20)
    assert (before.running, before.codes) == (3, [Code("billing", 1), Code("orders", 2)])
    assert (before.is_open, before.is_draining, before.blocked_ms) == (True, False, 0)
    blocked = replace(first, running={}, blocked_ms=11_000, is_open=False)
    await store.programs.note_seen("b", before.codes, blocked)
    served = await store.programs.served(["orders", "billing"])
    assert (served["orders"].workers, served["billing"].workers) == (1, 0)
    (after,) = [it for it in await store.programs.workers() if it.node == "b"]
    assert (after.running, after.blocked_ms, after.is_draining) == (0, 11_000, False)
    assert after.connected_at == before.connected_at <= after.seen_at
    await store.programs.close("a")
    assert {it.node for it in await store.programs.workers() if it.is_draining} == {"a"}


async def test_active_turns_are_listed_by_program_step_age_and_what_they_wait_for(store: Store):
    agent, plain = await keep_in_code(store), await keep_agent(store)
    node = Lease("a-node", 1, 10**9)
    begun = [await begin_in_code(store, await keep_conversation(store, agent), node) for _ in range(4)]
    runs, waits, released, other = (it.turn.id for it in begun)
    config = (await keep_conversation(store, plain)).begin_turn("?", system_clock() - 60_000)
    await store.turns.begin(opened(config, node))
    refunds, asks = OpenStep("refund", NOW + 1), OpenStep("ask", NOW + 2)
    assert await store.log.renew_noting("a-node", {runs: refunds, other: None}, 9_000) == {
        runs: False,
        other: False,
    }
    assert await store.log.renew_noting("another", {runs: asks}, 9_000) == {}
    assert await store.log.pause(waits, 1, (), asks) == "paused"
    await store.log.release(released, 1)

    async def found(**only: object) -> list[str]:
        wanted = replace(ALL_ACTIVE, **only)
        seen = await store.active.page(after=None, offset=0, limit=9, only=wanted)
        assert [await store.active.get(it.id) for it in seen] == list(seen)
        return [it.id for it in seen]

    every = [runs, waits, released, other, config.turn.id]
    assert await found() == every
    assert await found(code_key="orders") == every[:4] and await found(code_key="billing") == []
    assert await found(step="refund") == [runs] and await found(step="ask") == [waits]
    assert await found(older_than_ms=10**10) == []
    assert await found(older_than_ms=30_000) == [config.turn.id]
    assert await found(waits_for="person") == [waits] and await found(waits_for="worker") == [released]
    assert await found(waits_for="nothing") == [runs, other, config.turn.id]
    seen = {it.id: it for it in await store.active.page(after=runs, offset=0, limit=2)}
    assert list(seen) == [waits, released]
    assert (seen[waits].step, seen[waits].waits_for, seen[waits].is_stalled) == (asks, "person", False)
    assert (seen[released].step, seen[released].waits_for) == (None, "worker")
    running = await store.active.get(runs)
    assert running is not None and (running.step, running.waits_for) == (refunds, None)
    # Its step is that of the run that has it.
    held = await store.log.adopt(released, Lease("b", 1, 9_000), alone=False, codes=[ORDERS])
    assert held is not None and await found(waits_for="worker") == []
