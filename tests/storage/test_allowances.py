"""What one user may ask for, counted in PostgreSQL for all nodes together."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.conftest import TEMPLATE
from tests.making import ALICE, BOB, NOW, keep_agent, keep_begun, keep_conversation, keep_ended
from tests.postgres import Postgres
from threadkeep.domain.caps import TurnCaps
from threadkeep.domain.conversation import BegunTurn
from threadkeep.domain.errors import RateLimited
from threadkeep.domain.ids import TurnId, UserId, new_uuid
from threadkeep.domain.message import MessageStatus
from threadkeep.ports.allowances import ReplyPlace
from threadkeep.storage.allowances import TAKEN_LATELY_MS, SqlAllowances
from threadkeep.storage.database.connector import Database, Statement
from threadkeep.storage.store import Store, open_database, store_on

PASS_TIME = Statement("UPDATE tk_allowances SET paced_to = paced_to - :us")
TAKEN_LONG_AGO = Statement("UPDATE tk_allowances SET beginning = :beginning")


@pytest.fixture
async def nodes(postgres: Postgres) -> AsyncIterator[list[Database]]:
    """Two connections' worth of nodes on one database."""
    url = postgres.borrow_database(TEMPLATE)
    nodes = [await open_database(url, pool_size=4) for _ in range(2)]
    yield nodes
    for node in nodes:
        await node.close()
    postgres.give_back(url)


@pytest.fixture
async def store(nodes: list[Database]) -> Store:
    store = await store_on(nodes[0])
    for user in (ALICE, BOB):
        await keep_agent(store, user)
    return store


async def take(limits: SqlAllowances, user: UserId = ALICE, turn_id: str | None = None) -> bool:
    try:
        await limits.take_turn(user, TurnId(turn_id or new_uuid()), 0)
    except RateLimited:
        return False
    return True


async def begin(store: Store, turn_count: int) -> list[BegunTurn]:
    agent = await keep_agent(store)
    conversations = [await keep_conversation(store, agent) for _ in range(turn_count)]
    begun = [it.begin_turn("Why?", NOW, model="scripted", title=None) for it in conversations]
    for it in begun:
        await keep_begun(store, it)
    return begun


@pytest.mark.usefixtures("store")
async def test_nodes_share_the_minute_of_a_user(nodes: list[Database]):
    here, there = (SqlAllowances(node, TurnCaps(per_minute=5)) for node in nodes)
    taken = await asyncio.gather(*(take(limits) for limits in (here, there) * 10))
    assert sum(taken) == 5
    assert await take(there, BOB)  # one user's haste is nobody else's


@pytest.mark.usefixtures("store")
async def test_refusal_says_when_the_next_turn_may_begin(nodes: list[Database]):
    limits = SqlAllowances(nodes[0], TurnCaps(per_minute=1))
    assert await take(limits)
    with pytest.raises(RateLimited) as refused:
        await limits.take_turn(ALICE, TurnId(new_uuid()), 0)
    assert refused.value.details == {"limit": "turnsPerMinute", "most": 1}
    assert 0 < refused.value.retry_after_s <= 60
    await nodes[0].execute(PASS_TIME(us=60_000_000))
    assert await take(limits)


@pytest.mark.usefixtures("store")
async def test_rest_saves_up_no_more_than_a_minute(nodes: list[Database]):
    limits = SqlAllowances(nodes[0], TurnCaps(per_minute=2))
    assert await take(limits)
    await nodes[0].execute(PASS_TIME(us=3600_000_000))
    assert [await take(limits) for _ in range(3)] == [True, True, False]


@pytest.mark.usefixtures("store")
async def test_what_is_given_back_can_be_taken_again(nodes: list[Database]):
    limits = SqlAllowances(nodes[0], TurnCaps(at_once=1, per_minute=1))
    turn_id = TurnId(new_uuid())
    assert await take(limits, turn_id=turn_id)
    await limits.give_turn_back(ALICE, turn_id)
    assert [await take(limits) for _ in range(2)] == [True, False]


@pytest.mark.usefixtures("store")
async def test_nodes_share_the_places_of_a_user(nodes: list[Database]):
    here, there = (SqlAllowances(node, TurnCaps(at_once=3)) for node in nodes)
    taken = await asyncio.gather(*(take(limits) for limits in (here, there) * 10))
    assert sum(taken) == 3
    assert await take(there, BOB)


async def test_running_turns_take_places_until_they_end(nodes: list[Database], store: Store):
    limits = SqlAllowances(nodes[1], TurnCaps(at_once=2))
    first, _ = await begin(store, 2)
    with pytest.raises(RateLimited) as refused:
        await limits.take_turn(ALICE, TurnId(new_uuid()), 0)
    assert refused.value.details == {"limit": "runningTurns", "most": 2}
    reply = first.assistant_message.become(MessageStatus.CANCELLED)
    await keep_ended(store, first.conversation.end_turn(first.turn, reply, NOW + 1))
    assert await take(limits)
    assert not await take(limits)


async def test_turn_that_was_taken_and_runs_is_counted_once(nodes: list[Database], store: Store):
    limits = SqlAllowances(nodes[0], TurnCaps(at_once=2))
    (begun,) = await begin(store, 1)
    assert await take(limits, turn_id=begun.turn.id) is True
    assert [await take(limits) for _ in range(2)] == [True, False]


@pytest.mark.usefixtures("store")
async def test_place_of_a_node_that_died_is_free_again(nodes: list[Database]):
    limits = SqlAllowances(nodes[0], TurnCaps(at_once=1))
    assert await take(limits)
    assert not await take(limits)
    ((now,),) = await nodes[0].fetch(Statement("SELECT CAST(extract(epoch FROM now()) * 1000 AS bigint)")())
    old = f'{{"{new_uuid()}": {now - TAKEN_LATELY_MS - 1}}}'
    await nodes[0].execute(TAKEN_LONG_AGO(beginning=old))
    assert await take(limits)


@pytest.mark.usefixtures("store")
async def test_call_outside_a_turn_counts_in_the_minute_only(nodes: list[Database]):
    limits = SqlAllowances(nodes[0], TurnCaps(at_once=1, per_minute=3))
    assert await take(limits)
    await limits.take_call(ALICE)
    await limits.take_call(ALICE)
    with pytest.raises(RateLimited, match="per minute"):
        await limits.take_call(ALICE)


@pytest.mark.usefixtures("store")
async def test_reply_outside_a_conversation_counts_beside_the_turns_of_all_nodes(nodes: list[Database]):
    here, there = (SqlAllowances(node, TurnCaps(at_once=3)) for node in nodes)
    places = [ReplyPlace(ALICE, new_uuid()) for _ in range(10)]
    results = await asyncio.gather(
        *(limits.take_reply(it, 0) for it, limits in zip(places, (here, there) * 5, strict=True)),
        return_exceptions=True,
    )
    taken = [it for it, result in zip(places, results, strict=True) if result is None]
    assert len(taken) == 3
    assert not await take(here) and not await take(there)
    assert await take(there, BOB)
    await there.give_reply_back(taken[0])  # of whichever node
    assert [await take(here), await take(there)] == [True, False]


@pytest.mark.usefixtures("store")
async def test_reply_of_a_process_that_was_killed_gives_its_place_back(nodes: list[Database]):
    here, there = (SqlAllowances(node, TurnCaps(at_once=2)) for node in nodes)
    killed, running = (ReplyPlace(ALICE, new_uuid()) for _ in range(2))
    for place in (killed, running):
        await here.take_reply(place, 0)
    expired = f'{{"{killed.id}": 1, "{running.id}": 1}}'
    await nodes[0].execute(Statement("UPDATE tk_allowances SET replies = :replies")(replies=expired))
    await here.renew_replies([running])
    assert [await take(there), await take(there)] == [True, False]
    await here.renew_replies([killed])  # too late: it comes back to nothing
    await here.give_reply_back(running)
    assert [await take(there), await take(there)] == [True, False]


@pytest.mark.usefixtures("store")
async def test_writes_are_counted_for_all_nodes_together(nodes: list[Database]):
    here, there = (SqlAllowances(node, TurnCaps(writes_per_minute=5)) for node in nodes)
    results = await asyncio.gather(
        *(limits.take_write(ALICE) for limits in (here, there) * 5), return_exceptions=True
    )
    assert sum(it is None for it in results) == 5
    (refused, *_) = [it for it in results if isinstance(it, RateLimited)]
    assert refused.details == {"limit": "writesPerMinute", "most": 5} and 1 <= refused.retry_after_s <= 12
    assert await take(here)


@pytest.mark.usefixtures("store")
async def test_without_caps_nothing_is_written(nodes: list[Database]):
    limits = SqlAllowances(nodes[0], TurnCaps())
    for _ in range(3):
        assert await take(limits)
    await limits.take_call(ALICE)
    assert not await nodes[0].fetch(Statement("SELECT 1 FROM tk_allowances")())


async def test_turn_that_runs_in_the_place_of_another_takes_no_further_place(
    store: Store, nodes: list[Database]
):
    limits = SqlAllowances(nodes[1], TurnCaps(at_once=1))
    (running,) = await begin(store, 1)
    assert not await take(limits)
    await limits.take_turn(ALICE, TurnId(new_uuid()), 1, after=running.turn.id)


async def test_uploads_are_counted_for_all_nodes_together(nodes: list[Database]):
    caps = TurnCaps(uploads_per_minute=6)
    here, there = (SqlAllowances(node, caps) for node in nodes)
    fresh = UserId("fresh")  # whom nobody has seen before
    results = await asyncio.gather(
        *(limits.take_uploads(fresh, 2) for limits in (here, there) * 3), return_exceptions=True
    )
    assert sum(it is None for it in results) == 3
    (refused, *_) = [it for it in results if isinstance(it, RateLimited)]
    assert 1 <= refused.retry_after_s <= 20
    await here.take_uploads(BOB, 100)
    with pytest.raises(RateLimited):
        await there.take_uploads(BOB, 1)
