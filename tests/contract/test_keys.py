"""What every store of API keys does: the database's rooms here, on each database."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from tests.making import ALICE, BOB, NODE_ID, NOW, keep_agent, keep_begun, keep_conversation, opened
from threadkeep.domain.agent import AuditEntry
from threadkeep.domain.errors import StorageConflict
from threadkeep.domain.ids import AgentId, KeyId, UserId, new_uuid
from threadkeep.domain.key import Key, Scope, hash_of, new_key_value
from threadkeep.domain.queued import QueueChange, QueuedMessage
from threadkeep.domain.turn import Lease
from threadkeep.storage.store import Store


def make_key(user: UserId = ALICE, **changes: Any) -> Key:
    values: dict[str, Any] = {
        "id": KeyId(new_uuid()),
        "user_id": user,
        "name": "构建服务器",
        "prefix": "tk_AbCdEfGh",
        "scopes": (Scope.CHAT,),
        "agents": None,
        "is_admin": False,
        "may_run_programs": False,
        "budget_month": None,
        "created_at": NOW,
        "expires_at": None,
    }
    return Key(**values | changes)


def entry(key: Key) -> AuditEntry:
    return AuditEntry(new_uuid(), NOW, key.user_id, "create_key", None, {"keyId": key.id})


async def keep_key(store: Store, key: Key, *, most: int = 10) -> str:
    """Stores a key; returns the hash of its value."""
    key_hash = hash_of(new_key_value())
    assert await store.keys.add(key, key_hash, entry(key), most=most)
    return key_hash


async def test_key_comes_back_as_it_was_kept(store: Store):
    full = make_key(
        scopes=(Scope.READ, Scope.ADMIN),
        agents=frozenset({AgentId(new_uuid()), AgentId(new_uuid())}),
        is_admin=True,
        may_run_programs=True,
        budget_month=12_500_000_000_000,
        expires_at=NOW + 1,
        act_as="shop",
        may_delete=True,
    )
    plain = make_key(created_at=NOW + 1)
    hashes = [await keep_key(store, key) for key in (full, plain)]
    assert [await store.keys.find(it) for it in hashes] == [full, plain]
    assert await store.keys.of_user(ALICE) == [plain, full]
    assert await store.keys.of_user(BOB) == []
    assert await store.keys.get(full.id) == full
    assert await store.keys.get(KeyId(new_uuid())) is None
    assert await store.keys.find(hash_of(new_key_value())) is None


async def test_only_its_user_removes_a_key_and_only_once(store: Store):
    key = make_key()
    key_hash = await keep_key(store, key)
    assert not await store.keys.remove(BOB, key.id, entry(key))
    assert await store.keys.find(key_hash) == key
    removed = await asyncio.gather(*(store.keys.remove(ALICE, key.id, entry(key)) for _ in range(5)))
    assert sorted(removed) == [False] * 4 + [True]
    assert await store.keys.find(key_hash) is None


async def test_each_change_is_in_the_audit_log_once(store: Store):
    key = make_key()
    await keep_key(store, key)
    await store.keys.remove(ALICE, key.id, replace(entry(key), id=new_uuid(), action="revoke_key"))
    await store.keys.remove(ALICE, key.id, replace(entry(key), id=new_uuid(), action="revoke_key"))
    listed = await store.agents.audit_page(before=None, offset=0, limit=10)
    assert [(it.action, it.agent_id, it.details) for it in listed] == [
        ("revoke_key", None, {"keyId": key.id}),
        ("create_key", None, {"keyId": key.id}),
    ]


async def test_user_has_only_so_many_keys_even_if_made_at_once(store: Store):
    keys = [make_key() for _ in range(6)]
    made = await asyncio.gather(
        *(store.keys.add(key, hash_of(new_key_value()), entry(key), most=3) for key in keys)
    )
    assert made.count(True) == 3 == len(await store.keys.of_user(ALICE))
    await keep_key(store, make_key(BOB), most=1)


async def test_two_keys_never_share_a_value(store: Store):
    key_hash = await keep_key(store, make_key())
    with pytest.raises(StorageConflict):
        await store.keys.add(make_key(), key_hash, entry(make_key()), most=10)


async def test_latest_use_counts(store: Store):
    key = make_key()
    key_hash = await keep_key(store, key)
    for now in (NOW + 5, NOW + 3):
        await store.keys.note_use(key.id, now)
    assert await store.keys.find(key_hash) == replace(key, last_used_at=NOW + 5)


async def test_admin_role_is_taken_from_all_keys_of_the_user(store: Store):
    admin, other = make_key(is_admin=True), make_key(BOB, is_admin=True)
    hashes = [await keep_key(store, key) for key in (admin, make_key(), other)]
    assert await store.keys.has_admin_keys(ALICE)
    await store.keys.take_admin_role(ALICE)
    assert not await store.keys.has_admin_keys(ALICE)
    assert await store.keys.find(hashes[0]) == replace(admin, is_admin=False)
    assert await store.keys.find(hashes[2]) == other


async def test_keys_go_with_their_user(store: Store):
    key_hash = await keep_key(store, make_key())
    await store.users.delete(ALICE, NOW)
    assert await store.keys.find(key_hash) is None


async def test_turn_keeps_the_key_that_began_it_even_on_another_node(store: Store):
    conversation = await keep_conversation(store, await keep_agent(store))
    key_id = KeyId(new_uuid())
    begun = conversation.begin_turn("?", NOW, key_id=key_id)
    await keep_begun(store, begun)
    turn = await store.turns.get(ALICE, begun.turn.id)
    assert turn is not None and turn.key_id == key_id
    held = await store.log.adopt(begun.turn.id, Lease("another-node", 2, 1000), alone=True)
    assert held is not None and held.turn.key_id == key_id


async def test_turn_of_a_queued_message_has_the_key_it_was_queued_with(store: Store):
    conversation = await keep_conversation(store, await keep_agent(store))
    first = conversation.begin_turn("?", NOW)
    await keep_begun(store, first)
    key_id = KeyId(new_uuid())
    await store.queue.add(QueuedMessage.of(conversation.id, "Next.", NOW, key_id=key_id), first.turn.id)
    (queued,) = await store.queue.waiting(conversation.id)
    assert queued.key_id == key_id
    idle = await keep_conversation(store, await keep_agent(store))
    begun = idle.begin_turn("Next.", NOW, message_id=queued.id, key_id=queued.key_id)
    await store.turns.begin(opened(replace(begun, queue=QueueChange(queued)), Lease(NODE_ID, 1, 10**9)))
    turn = await store.turns.get(ALICE, begun.turn.id)
    assert turn is not None and turn.key_id == key_id
