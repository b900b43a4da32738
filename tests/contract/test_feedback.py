"""What every store of feedback does, on each database."""

import asyncio
from dataclasses import replace

import pytest

from tests.making import (
    ALICE,
    BOB,
    NOW,
    keep_agent,
    keep_conversation,
    keep_feedback,
    keep_turn,
)
from threadkeep.domain.agent import Agent
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.errors import InvalidRequest
from threadkeep.domain.feedback import MOST_NOTE_CHARACTERS, Feedback, FeedbackFilter, RatedReply, Rating
from threadkeep.domain.ids import ConversationId, MessageId, UserId, new_uuid
from threadkeep.domain.message import MessageWindow
from threadkeep.storage.feedback import SharedTurn
from threadkeep.storage.store import Store

ALL = FeedbackFilter()


async def talked(store: Store, agent: Agent, user: UserId = ALICE, asked: str = "Why?") -> Conversation:
    return await keep_turn(store, await keep_conversation(store, agent, user), asked, f"Because: {asked}")


async def listed(
    store: Store,
    agent: Agent,
    which: FeedbackFilter = ALL,
    *,
    reads_shared: bool = True,
    before: tuple[int, str] | None = None,
    limit: int = 10,
) -> list[RatedReply]:
    which = replace(which, agent_id=agent.id)
    page = await store.feedback.page(
        which, reader=ALICE, reads_shared=reads_shared, before=before, offset=0, limit=limit
    )
    return [*page]


async def test_later_feedback_replaces_the_earlier_one(store: Store):
    conversation = await talked(store, await keep_agent(store))
    first = await keep_feedback(store, conversation, note="Good.", now=NOW)
    later = replace(
        first, rating=Rating.DOWN, note="", share_text=True, created_at=NOW + 5, updated_at=NOW + 5
    )
    assert await store.feedback.put(later) == replace(later, created_at=NOW)
    assert await store.feedback.of_conversation(conversation.id) == [replace(later, created_at=NOW)]
    await store.feedback.remove(first.message_id)
    await store.feedback.remove(first.message_id)
    assert await store.feedback.of_conversation(conversation.id) == []


async def test_feedback_at_the_same_time_leaves_one(store: Store):
    conversation = await talked(store, await keep_agent(store))
    ratings = [Rating.UP, Rating.DOWN] * 5
    await asyncio.gather(*(keep_rating(store, conversation, rating) for rating in ratings))
    (kept,) = await store.feedback.of_conversation(conversation.id)
    assert kept.rating in Rating


async def keep_rating(store: Store, conversation: Conversation, rating: Rating) -> None:
    assert conversation.tip_id
    await store.feedback.put(Feedback(conversation.tip_id, conversation.id, rating, "", False, NOW, NOW))


async def test_feedback_on_a_reply_that_is_gone_is_not_kept(store: Store):
    gone = Feedback(MessageId(new_uuid()), ConversationId(new_uuid()), Rating.UP, "", False, NOW, NOW)
    assert await store.feedback.put(gone) is None


async def test_page_of_messages_has_the_feedback_on_them(store: Store):
    conversation = await talked(store, await keep_agent(store))
    first = await keep_feedback(store, conversation)
    conversation = await keep_turn(store, conversation, "And?", "So.")
    second = await keep_feedback(store, conversation, Rating.DOWN, note="Wrong.", share_text=True)
    window = MessageWindow()
    whole = await store.messages.page_of(ALICE, conversation.id, window, offset=0, limit=10)
    assert whole and whole.feedback == {first.message_id: first, second.message_id: second}
    page = await store.messages.page_of(ALICE, conversation.id, window, offset=0, limit=3)
    assert page and page.feedback == {first.message_id: first}


async def test_feedback_is_found_by_agent_newest_first_page_by_page(store: Store):
    agent, other = await keep_agent(store), await keep_agent(store)
    kept = [
        await keep_feedback(store, await talked(store, agent), now=NOW + number // 2) for number in range(5)
    ]
    await keep_feedback(store, await talked(store, other))
    expected = sorted(kept, key=lambda it: (it.updated_at, it.message_id), reverse=True)
    found: list[Feedback] = []
    before = None
    while page := await listed(store, agent, before=before, limit=2):
        found += [it.feedback for it in page]
        before = (found[-1].updated_at, found[-1].message_id)
    assert found == expected


async def test_feedback_is_filtered(store: Store):
    agent = await keep_agent(store)
    up = await keep_feedback(store, await talked(store, agent), now=NOW)
    down = await keep_feedback(store, await talked(store, agent), Rating.DOWN, now=NOW + 10)
    for which, expected in (
        (FeedbackFilter(rating=Rating.UP), [up]),
        (FeedbackFilter(rating=Rating.DOWN, model="scripted"), [down]),
        (FeedbackFilter(model="another"), []),
        (FeedbackFilter(since=NOW + 10), [down]),
        (FeedbackFilter(until=NOW + 10), [up]),
        (FeedbackFilter(since=NOW, until=NOW + 11), [down, up]),
    ):
        assert [it.feedback for it in await listed(store, agent, which)] == expected


@pytest.mark.parametrize("reads_shared", [False, True])
async def test_texts_are_ones_own_and_those_that_others_share_with_the_owner(
    store: Store, reads_shared: bool
):
    agent = await keep_agent(store)
    shared = await talked(store, agent, BOB, "Shared?")
    await keep_feedback(store, shared, share_text=True)
    await keep_feedback(store, await talked(store, agent, BOB, "Secret?"))
    await keep_feedback(store, await talked(store, agent, ALICE, "Own?"))
    found = {(it.question, it.reply) for it in await listed(store, agent, reads_shared=reads_shared)}
    theirs = {("Shared?", "Because: Shared?")} if reads_shared else set[tuple[str, str]]()
    assert found == {("Own?", "Because: Own?"), (None, None), *theirs}
    (it,) = (it for it in await listed(store, agent) if it.question == "Shared?")
    assert it.turn_id and await store.feedback.shared_turn(it.turn_id) == SharedTurn(agent.id, BOB)
    (own,) = (it for it in await listed(store, agent, FeedbackFilter(user_id=ALICE)))
    assert own.turn_id and await store.feedback.shared_turn(own.turn_id) is None


async def test_feedback_is_hidden_with_its_conversation_and_goes_with_it(store: Store):
    agent = await keep_agent(store)
    conversation = await talked(store, agent, BOB)
    await keep_feedback(store, conversation, share_text=True)
    (it,) = await listed(store, agent)
    assert it.turn_id
    await store.conversations.delete(BOB, conversation.id, NOW)
    assert await listed(store, agent) == []
    assert await store.feedback.shared_turn(it.turn_id) is None
    await store.conversations.restore(BOB, conversation.id)
    assert len(await listed(store, agent)) == 1
    await store.conversations.purge(BOB, conversation.id)
    assert await listed(store, agent) == []
    assert await store.feedback.of_conversation(conversation.id) == []


@pytest.mark.parametrize("note", ["x" * (MOST_NOTE_CHARACTERS + 1), "a\x00b", "\ud800"])
def test_note_that_cannot_be_kept_is_refused(note: str):
    with pytest.raises(InvalidRequest):
        Feedback(MessageId(new_uuid()), ConversationId(new_uuid()), Rating.UP, note, False, NOW, NOW)
