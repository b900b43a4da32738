"""What every store of memories does: the database's rooms here, on each database."""

import asyncio

import pytest

from tests.making import ALICE, BOB, NOW, keep_agent
from threadkeep.domain.errors import InvalidRequest, StorageConflict
from threadkeep.domain.ids import AgentId, MemoryId, UserId, new_uuid
from threadkeep.domain.memory import MOST_CHARACTERS, MOST_TAGS, Memory
from threadkeep.storage.store import Store


def memory(content: str, *tags: str, at: int = NOW) -> Memory:
    return Memory(MemoryId(new_uuid()), content, tags, at)


async def contents(store: Store, user_id: UserId, agent_id: AgentId, limit: int = 100) -> list[str]:
    return [it.content for it in await store.memories.latest(user_id, agent_id, limit=limit)]


async def test_memory_comes_back_as_it_was_kept_newest_first(store: Store):
    agent = await keep_agent(store)
    kept = [memory("喜欢喝茶", "口味", "茶"), memory("lives in Lyon")]
    for it in kept:
        await store.memories.add(ALICE, agent.id, it, most=10)
    assert await store.memories.latest(ALICE, agent.id, limit=10) == kept[::-1]
    assert await store.memories.latest(ALICE, agent.id, limit=1) == kept[1:]


async def test_each_agent_has_memories_of_its_own_of_each_user(store: Store):
    agent, other = await keep_agent(store), await keep_agent(store)
    await store.memories.add(ALICE, agent.id, memory("alice's"), most=10)
    await store.memories.add(BOB, agent.id, memory("bob's"), most=10)
    await store.memories.add(ALICE, other.id, memory("elsewhere"), most=10)
    assert await contents(store, ALICE, agent.id) == ["alice's"]
    assert await contents(store, BOB, agent.id) == ["bob's"]
    assert await contents(store, ALICE, other.id) == ["elsewhere"]
    assert await contents(store, BOB, other.id) == []


async def test_same_content_is_kept_once_as_the_newest(store: Store):
    agent = await keep_agent(store)
    for content in ("a", "b", "a"):
        await store.memories.add(ALICE, agent.id, memory(content), most=10)
    assert await contents(store, ALICE, agent.id) == ["a", "b"]


async def test_oldest_are_forgotten_beyond_the_limit(store: Store):
    agent = await keep_agent(store)
    await store.memories.add(BOB, agent.id, memory("bob's"), most=3)
    for number in range(5):
        await store.memories.add(ALICE, agent.id, memory(str(number)), most=3)
    assert await contents(store, ALICE, agent.id) == ["4", "3", "2"]
    assert await contents(store, BOB, agent.id) == ["bob's"]


async def test_many_at_once_all_succeed(store: Store):
    agent = await keep_agent(store)
    await asyncio.gather(
        *(store.memories.add(ALICE, agent.id, memory(str(number % 7)), most=5) for number in range(40))
    )
    await store.memories.add(ALICE, agent.id, memory("last"), most=5)
    left = await contents(store, ALICE, agent.id)
    assert len(left) == 5
    assert left[0] == "last"


async def test_memories_go_with_their_user_and_stay_for_others(store: Store):
    agent = await keep_agent(store, BOB)
    for user in (ALICE, BOB):
        await store.memories.add(user, agent.id, memory("said"), most=10)
    assert await store.users.delete(ALICE, NOW) is not None
    assert await contents(store, ALICE, agent.id) == []
    assert await contents(store, BOB, agent.id) == ["said"]


async def test_memory_of_no_agent_is_refused(store: Store):
    with pytest.raises(StorageConflict):
        await store.memories.add(ALICE, AgentId(new_uuid()), memory("lost"), most=10)


@pytest.mark.parametrize(
    ("content", "tags"),
    [
        ("", ()),
        ("\u3000\n", ()),
        ("x" * (MOST_CHARACTERS + 1), ()),
        ("a\x00b", ()),
        ("fine", tuple(map(str, range(MOST_TAGS + 1)))),
        ("fine", (" ",)),
        ("fine", ("x" * 101,)),
    ],
)
def test_memory_that_cannot_be_kept_is_refused(content: str, tags: tuple[str, ...]):
    with pytest.raises(InvalidRequest):
        memory(content, *tags)
