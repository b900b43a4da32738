"""Branches in every store: the tree is kept whole, and the active path is one way through it."""

import asyncio
from dataclasses import replace
from itertools import product

import pytest

from tests.making import (
    ALICE,
    NOW,
    all_messages,
    keep_agent,
    keep_begun,
    keep_conversation,
    keep_ended,
    keep_tree,
    keep_turn,
    make_compaction,
    regenerated,
    said,
)
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.errors import StorageConflict
from threadkeep.domain.ids import MessageId, new_uuid
from threadkeep.domain.message import Message, MessageStatus, MessageWindow
from threadkeep.storage import messages as stored_messages
from threadkeep.storage import siblings as stored_siblings
from threadkeep.storage.store import Store


async def path_of(store: Store, conversation: Conversation) -> list[str]:
    page = await store.messages.page(conversation.id, MessageWindow(), offset=0, limit=999)
    return [it.text for it in page]


async def current(store: Store, conversation: Conversation) -> Conversation:
    found = await store.conversations.get(ALICE, conversation.id)
    assert found is not None
    return found


async def keep_straight(store: Store, turns: int = 2) -> Conversation:
    """Questions q1, q2 … with replies a1, a2 …"""
    conversation = await keep_conversation(store, await keep_agent(store))
    for number in range(1, turns + 1):
        conversation = await keep_turn(store, conversation, f"q{number}", f"a{number}")
    return conversation


async def keep_edited(
    store: Store, conversation: Conversation, parent_id: MessageId | None, asked: str, replied: str
) -> Conversation:
    """A turn that follows a message, wherever that is."""
    branch = await store.branches.up_to(conversation.id, parent_id)
    assert branch is not None
    begun = conversation.begin_turn(asked, NOW, branch=branch)
    await keep_begun(store, begun)
    reply = begun.assistant_message.finish(MessageStatus.COMPLETED, said(replied), NOW)
    ended = begun.conversation.end_turn(begun.turn, reply, NOW)
    await keep_ended(store, ended)
    return ended.conversation


async def choose(store: Store, conversation: Conversation, message_id: MessageId) -> Conversation:
    branch = await store.branches.through(conversation.id, message_id)
    assert branch is not None
    await store.branches.follow(conversation, branch)
    return conversation.following(branch)


async def by_text(store: Store, conversation: Conversation) -> dict[str, Message]:
    return {it.text: it for it in await all_messages(store, conversation)}


async def test_edited_message_starts_a_branch_and_nothing_is_lost(store: Store):
    conversation = await keep_straight(store)
    known = await by_text(store, conversation)
    conversation = await keep_edited(store, conversation, known["a1"].id, "q2 again", "a2 again")
    assert await path_of(store, conversation) == ["q1", "a1", "q2 again", "a2 again"]
    assert set(await by_text(store, conversation)) == {"q1", "a1", "q2", "a2", "q2 again", "a2 again"}
    assert await current(store, conversation) == conversation
    assert (conversation.message_count, conversation.last_seq) == (4, 6)


async def test_first_message_can_be_edited(store: Store):
    conversation = await keep_straight(store)
    conversation = await keep_edited(store, conversation, None, "other", "answer")
    assert await path_of(store, conversation) == ["other", "answer"]
    assert await current(store, conversation) == conversation


async def test_chosen_branch_goes_on_along_the_newest_message_at_each_step(store: Store):
    conversation = await keep_straight(store)
    known = await by_text(store, conversation)
    conversation = await keep_edited(store, conversation, known["a1"].id, "q2 again", "a2 again")
    conversation = await keep_turn(store, conversation, "q3", "a3")
    conversation = await choose(store, conversation, known["q2"].id)
    assert await path_of(store, conversation) == ["q1", "a1", "q2", "a2"]
    assert await current(store, conversation) == conversation
    known = await by_text(store, conversation)
    conversation = await choose(store, conversation, known["q2 again"].id)
    assert await path_of(store, conversation) == ["q1", "a1", "q2 again", "a2 again", "q3", "a3"]
    # From a message that both share, the newest way is taken.
    conversation = await choose(store, conversation, known["a2"].id)
    conversation = await choose(store, conversation, known["q1"].id)
    assert await path_of(store, conversation) == ["q1", "a1", "q2 again", "a2 again", "q3", "a3"]
    assert await current(store, conversation) == conversation


async def test_message_follows_a_branch_that_is_not_the_active_one(store: Store):
    conversation = await keep_straight(store)
    known = await by_text(store, conversation)
    conversation = await keep_edited(store, conversation, known["a1"].id, "q2 again", "a2 again")
    conversation = await keep_edited(store, conversation, known["a2"].id, "q3", "a3")
    assert await path_of(store, conversation) == ["q1", "a1", "q2", "a2", "q3", "a3"]
    assert await current(store, conversation) == conversation


async def test_append_that_was_prepared_on_another_path_is_refused(store: Store):
    conversation = await keep_straight(store)
    known = await by_text(store, conversation)
    conversation = await keep_edited(store, conversation, known["a1"].id, "q2 again", "a2 again")
    stale = conversation
    conversation = await choose(store, conversation, known["a2"].id)
    with pytest.raises(StorageConflict):
        await keep_begun(store, stale.begin_turn("too late", NOW))
    assert await path_of(store, conversation) == ["q1", "a1", "q2", "a2"]
    assert await current(store, conversation) == conversation


async def test_path_cannot_be_chosen_while_a_turn_runs(store: Store):
    conversation = await keep_straight(store)
    known = await by_text(store, conversation)
    conversation = await keep_edited(store, conversation, known["a1"].id, "q2 again", "a2 again")
    branch = await store.branches.through(conversation.id, known["a2"].id)
    assert branch is not None
    begun = conversation.begin_turn("?", NOW)
    await keep_begun(store, begun)
    for before in (conversation, begun.conversation):
        with pytest.raises(StorageConflict):
            await store.branches.follow(before, branch)
    assert await current(store, conversation) == begun.conversation


async def test_of_two_who_branch_at_once_one_wins_and_nothing_is_lost(store: Store):
    conversation = await keep_straight(store)
    known = await by_text(store, conversation)
    branch = await store.branches.up_to(conversation.id, known["a1"].id)
    edits = [conversation.begin_turn(f"{n}", NOW, branch=branch) for n in range(8)]
    again = [await regenerated(store, conversation, known["q1"]) for _ in range(8)]
    asked = await asyncio.gather(*(keep_begun(store, it) for it in edits + again), return_exceptions=True)
    assert asked.count(None) == 1
    assert all(isinstance(it, StorageConflict) for it in asked if it is not None)
    texts = set(await by_text(store, conversation))
    assert {"q1", "a1", "q2", "a2"} <= texts


async def test_siblings_are_known_where_there_are_several(store: Store):
    conversation = await keep_straight(store)
    known = await by_text(store, conversation)
    page = await store.messages.page_of(ALICE, conversation.id, MessageWindow(), offset=0, limit=9)
    assert page and page.siblings == {}
    conversation = await keep_edited(store, conversation, known["a1"].id, "q2 again", "a2 again")
    conversation = await keep_edited(store, conversation, None, "q1 again", "a1 again")
    conversation = await choose(store, conversation, known["a2"].id)
    known = await by_text(store, conversation)
    page = await store.messages.page_of(ALICE, conversation.id, MessageWindow(), offset=0, limit=9)
    assert page and page.siblings == {
        known["q1"].id: [known["q1"].id, known["q1 again"].id],
        known["q2"].id: [known["q2"].id, known["q2 again"].id],
    }


MOST, MOST_A_PAGE, LIMIT = 8, 20, 12
TREES: dict[str, list[int | None]] = {
    "many first messages": [None] * 40,
    "many answers": [None] + [0] * 40,
    "as many answers as are shown": [None] + [0] * MOST,
    "one more": [None] + [0] * (MOST + 1),
    "a conversation behind the last of many": [None] + [0] * 20 + list(range(20, 40)),
    "a few of each": [None] * 3 + [at - 1 - at % 3 for at in range(3, 45)],
    "many everywhere, mixed": [None] * 2 + [None if at % 3 else at % 2 for at in range(2, 50)],
}


@pytest.mark.parametrize("follows", TREES.values(), ids=TREES)
async def test_siblings_of_a_message_and_of_a_page_are_bounded_and_paging_loses_nothing(
    store: Store, follows: list[int | None], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(stored_siblings, "MOST_SIBLINGS", MOST)
    monkeypatch.setattr(stored_messages, "MOST_SIBLINGS_A_PAGE", MOST_A_PAGE)
    conversation = await keep_tree(store, (await keep_agent(store)).id, follows)
    known = await all_messages(store, conversation)
    families: dict[str | None, list[str]] = {}
    for it in known:
        families.setdefault(it.parent_id, []).append(it.id)
    for newest_first, with_overwritten in product((False, True), repeat=2):
        window = MessageWindow(newest_first=newest_first, with_overwritten=with_overwritten)
        read: list[Message] = []
        while True:
            page = await store.messages.page_of(ALICE, conversation.id, window, offset=0, limit=LIMIT)
            assert page and page.messages
            read += page.messages
            assert len(page.messages) == 1 or sum(map(len, page.siblings.values())) <= MOST_A_PAGE
            for it in page.messages:
                family, shown = families[it.parent_id], page.siblings.get(it.id, ())
                assert len(shown) == (min(len(family), MOST) if len(family) > 1 else 0)
                if shown:
                    at, first = family.index(it.id), family.index(shown[0])
                    assert shown == family[first : first + len(shown)]
                    assert set(family[max(at - 1, 0) : at + 2]) <= set(shown), "both neighbours"
                assert dict(await store.branches.siblings(conversation.id, [it])).get(it.id, ()) == shown
            if len(page.messages) < LIMIT and not page.is_cut:
                break
            at = page.messages[-1].seq
            window = replace(window, before_seq=at) if newest_first else replace(window, after_seq=at)
            if not await store.messages.page(conversation.id, window, offset=0, limit=1):
                break
        expected = known if with_overwritten else [it for it in known if it.on_path]
        assert read == (expected[::-1] if newest_first else expected)


async def test_compaction_is_in_force_while_its_last_message_is_on_the_path(store: Store):
    conversation = await keep_straight(store, turns=3)
    known = await by_text(store, conversation)
    await store.compactions.add(make_compaction(conversation.id, 1, known["a2"].seq))
    conversation = await current(store, conversation)
    assert conversation.archived_to_seq == known["a2"].seq
    # Before its last message: all that it stood for counts again.
    conversation = await keep_edited(store, conversation, known["a1"].id, "q2 again", "a2 again")
    assert (await current(store, conversation)).archived_to_seq == conversation.archived_to_seq == 0
    # A summary of this branch, then back to the other one.
    known = await by_text(store, conversation)
    await store.compactions.add(make_compaction(conversation.id, 1, known["a2 again"].seq))
    conversation = await choose(store, await current(store, conversation), known["a3"].id)
    assert (await current(store, conversation)).archived_to_seq == known["a2"].seq
    assert conversation.archived_to_seq == known["a2"].seq
    conversation = await choose(store, conversation, known["a2 again"].id)
    assert conversation.archived_to_seq == known["a2 again"].seq
    found = await store.compactions.current(conversation.id)
    assert found and await store.compactions.undo(found)
    assert (await current(store, conversation)).archived_to_seq == 0


async def test_compaction_of_a_branch_that_was_left_meanwhile_is_refused(store: Store):
    conversation = await keep_straight(store)
    known = await by_text(store, conversation)
    conversation = await keep_edited(store, conversation, known["a1"].id, "q2 again", "a2 again")
    with pytest.raises(StorageConflict):
        await store.compactions.add(make_compaction(conversation.id, 1, known["a2"].seq))
    assert await store.compactions.page(conversation.id, before=None, offset=0, limit=9) == []


async def test_there_is_no_branch_through_a_message_of_another_conversation(store: Store):
    conversation, other = await keep_straight(store), await keep_straight(store)
    theirs = (await all_messages(store, other))[0].id
    for id_ in (theirs, MessageId(new_uuid())):
        assert await store.branches.up_to(conversation.id, id_) is None
        assert await store.branches.through(conversation.id, id_) is None


@pytest.mark.parametrize("what", ["chosen", "edited"])
async def test_branch_that_was_read_on_another_path_is_refused_although_the_first_is_back(
    store: Store, what: str
):
    conversation = await keep_straight(store)
    known = await by_text(store, conversation)
    edited = await keep_edited(store, conversation, known["a1"].id, "q2 again", "a2 again")
    known = await by_text(store, edited)
    first = await choose(store, edited, known["a2"].id)
    other = await choose(store, first, known["a2 again"].id)
    branch = await store.branches.up_to(first.id, known["a2 again"].id)  # as seen from the other path
    assert branch is not None
    back = await choose(store, other, known["a2"].id)
    with pytest.raises(StorageConflict):
        if what == "chosen":
            await store.branches.follow(first, branch)
        else:
            await keep_begun(store, first.begin_turn("q3", NOW, branch=branch))
    assert await current(store, first) == back
    assert await path_of(store, first) == ["q1", "a1", "q2", "a2"]
