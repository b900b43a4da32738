"""What every store of shares does: the database's rooms here, on each database."""

from typing import Any

from tests.making import ALICE, BOB, NOW, keep_agent, keep_conversation
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.ids import MessageId, PayloadId, ShareId, new_uuid
from threadkeep.domain.sharing.share import Share, SharePreview, new_token, token_hash
from threadkeep.storage.store import Store


def make_share(conversation: Conversation, **changes: Any) -> Share:
    values: dict[str, Any] = {
        "id": ShareId(new_uuid()),
        "conversation_id": conversation.id,
        "message_id": MessageId(new_uuid()),
        "title": "渡轮",
        "runs": ((1, 2), (5, 6)),
        "files": frozenset({PayloadId(new_uuid()), PayloadId(new_uuid())}),
        "with_tools": True,
        "created_at": NOW,
        "expires_at": None,
    }
    return Share(**values | changes)


async def keep_share(store: Store, share: Share, *, most: int = 10) -> str:
    """Stores a share; returns the hash of its token."""
    hashed = token_hash(new_token())
    assert await store.shares.add(share, hashed, most=most)
    return hashed


async def test_share_comes_back_as_it_was_kept(store: Store):
    conversation = await keep_conversation(store, await keep_agent(store))
    other = await keep_conversation(store, await keep_agent(store))
    full = make_share(conversation, expires_at=NOW + 1)
    plain = make_share(conversation, with_tools=False, files=frozenset(), created_at=NOW + 1)
    hashes = [await keep_share(store, it) for it in (full, plain, make_share(other))]
    assert [await store.shares.find(it) for it in hashes[:2]] == [full, plain]
    assert await store.shares.of_conversation(conversation.id) == [plain, full]
    assert await store.shares.find(token_hash(new_token())) is None


async def test_preview_is_what_was_kept_or_added(store: Store):
    conversation = await keep_conversation(store, await keep_agent(store))
    kept, older = make_share(conversation, preview="At noon", expires_at=NOW), make_share(conversation)
    hashes = [await keep_share(store, it) for it in (kept, older)]
    assert await store.shares.preview(hashes[0]) == SharePreview("渡轮", "At noon", NOW)
    assert await store.shares.preview(hashes[1]) == SharePreview("渡轮", None, None)
    await store.shares.keep_preview(older.id, "At one")
    assert await store.shares.preview(hashes[1]) == SharePreview("渡轮", "At one", None)
    assert await store.shares.preview(token_hash(new_token())) is None
    await store.conversations.delete(ALICE, conversation.id, NOW)
    assert await store.shares.preview(hashes[0]) is None


async def test_only_the_owner_removes_a_share(store: Store):
    conversation = await keep_conversation(store, await keep_agent(store))
    share = make_share(conversation)
    hashed = await keep_share(store, share)
    assert not await store.shares.remove(BOB, share.id)
    assert not await store.shares.remove(ALICE, ShareId(new_uuid()))
    assert await store.shares.find(hashed) == share
    assert await store.shares.remove(ALICE, share.id)
    assert await store.shares.find(hashed) is None
    assert not await store.shares.remove(ALICE, share.id)


async def test_shares_hide_with_their_conversation_return_with_it_and_go_with_it(store: Store):
    conversation = await keep_conversation(store, await keep_agent(store))
    share = make_share(conversation)
    hashed = await keep_share(store, share)
    await store.conversations.delete(ALICE, conversation.id, NOW)
    assert await store.shares.find(hashed) is None
    assert await store.shares.of_conversation(conversation.id) == []
    assert not await store.shares.remove(ALICE, share.id)
    assert not await store.shares.add(make_share(conversation), token_hash(new_token()), most=10)
    await store.conversations.restore(ALICE, conversation.id)
    assert await store.shares.find(hashed) == share
    await store.conversations.purge(ALICE, conversation.id)
    assert await store.shares.find(hashed) is None


async def test_conversation_has_a_limited_number_of_shares(store: Store):
    conversation = await keep_conversation(store, await keep_agent(store))
    await keep_share(store, make_share(conversation), most=2)
    await keep_share(store, make_share(conversation), most=2)
    assert not await store.shares.add(make_share(conversation), token_hash(new_token()), most=2)
    assert len(await store.shares.of_conversation(conversation.id)) == 2
