"""The store's contract: every test runs on every database."""

import asyncio
from dataclasses import replace
from typing import Any, cast

import pytest

from tests.making import (
    ALICE,
    BOB,
    NOW,
    all_messages,
    chunk_of,
    keep_agent,
    keep_begun,
    keep_call,
    keep_conversation,
    keep_ended,
    keep_file,
    keep_receipt,
    keep_turn,
    make_agent,
    make_receipt,
    opened,
    opening_of,
    regenerated,
    said,
)
from threadkeep.domain.agent import AuditEntry
from threadkeep.domain.briefing import Briefing, Priority
from threadkeep.domain.conversation import (
    NOT_OURS,
    AddedMessage,
    Conversation,
    ConversationFilter,
    ConversationStatus,
    ListedStatus,
)
from threadkeep.domain.errors import StorageConflict, StorageError
from threadkeep.domain.events import LogChunk, Text
from threadkeep.domain.ids import (
    AgentId,
    BriefingId,
    ConversationId,
    IdempotencyKey,
    PayloadId,
    TurnId,
    new_uuid,
)
from threadkeep.domain.message import ContentType, Failure, MessageRole, MessageStatus, MessageWindow, Usage
from threadkeep.domain.parts import (
    FilePart,
    NoticePart,
    Parts,
    RetrievalPart,
    TextPart,
    ThoughtPart,
    ToolCallPart,
    text_parts,
)
from threadkeep.domain.receipt import Receipt
from threadkeep.domain.retrieval import RetrievalHit
from threadkeep.domain.tool_call import ToolCall, ToolCallFilter, ToolCallStatus, ToolRecord
from threadkeep.domain.turn import Lease, TurnStatus
from threadkeep.storage import turn_log
from threadkeep.storage.receipts import PriorReceipt
from threadkeep.storage.store import Store

EVERYTHING = ConversationFilter()


async def test_agent_comes_back_as_it_was_kept(store: Store):
    agent = await keep_agent(
        store, description="懂合同", system_prompt="Be brief.", model="some-model", applied_version=1
    )
    assert await store.agents.get(agent.id) == agent


async def test_agent_update_is_recorded_with_its_actor(store: Store):
    agent = await keep_agent(store)
    entry = AuditEntry(new_uuid(), NOW + 1, BOB, "update", agent.id, {"fields": ["name"]})
    changed = await store.agents.update(
        agent.id, lambda it: replace(it, name="New", applied_version=2), lambda _: entry
    )
    assert changed and changed.name == "New"
    assert await store.agents.get(agent.id) == changed
    assert (await store.agents.audit_page(before=None, offset=0, limit=1))[0] == entry


async def test_refused_agent_update_changes_nothing(store: Store):
    agent = await keep_agent(store)

    def refuse(_: object):
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await store.agents.update(agent.id, refuse, refuse)
    assert await store.agents.get(agent.id) == agent
    assert len(await store.agents.audit_page(before=None, offset=0, limit=10)) == 1


async def test_agents_page_shows_own_and_public_ones_once(store: Store):
    own = await keep_agent(store, ALICE, name="own", visibility="public")
    public = await keep_agent(store, BOB, name="public", visibility="public")
    await keep_agent(store, BOB, name="secret")
    assert [a.id for a in await store.agents.page(ALICE, after=None, offset=0, limit=20)] == [
        own.id,
        public.id,
    ]
    assert [a.id for a in await store.agents.page(ALICE, after=own.id, offset=0, limit=20)] == [public.id]
    assert [a.id for a in await store.agents.page(ALICE, after=None, offset=1, limit=1)] == [public.id]


async def test_default_agent_is_kept_once(store: Store):
    first = make_agent(owner=None, is_default=True)
    await asyncio.gather(
        *(store.agents.add_shipped(replace(first, id=AgentId(new_uuid()))) for _ in range(10))
    )
    assert (await store.agents.get_default()).is_default


async def test_conversation_comes_back_as_it_was_kept(store: Store):
    agent = await keep_agent(store)
    conversation = Conversation.start(ALICE, agent.id, NOW, title="合同咨询", metadata={"a": [1, None, "x"]})
    await store.conversations.add(conversation)
    assert await store.conversations.get(ALICE, conversation.id) == conversation
    assert await store.conversations.get(BOB, conversation.id) is None


@pytest.mark.usefixtures("crowded")
async def test_main_conversation_is_made_once_by_two_hundred_callers(store: Store):
    agent = await keep_agent(store)
    answers = await asyncio.gather(
        *(
            store.conversations.get_or_add_main(Conversation.start(ALICE, agent.id, NOW, is_main=True))
            for _ in range(200)
        )
    )
    assert len({conversation.id for conversation, _ in answers}) == 1
    assert sum(made for _, made in answers) == 1


async def test_conversations_page_by_last_activity_without_gap_or_repeat(store: Store):
    agent, other = await keep_agent(store), await keep_agent(store)
    kept = [await keep_conversation(store, agent, now=NOW + number % 3) for number in range(7)]
    elsewhere = await keep_conversation(store, other, now=NOW + 9)
    await keep_conversation(store, agent, BOB)
    expected = sorted(kept, key=lambda it: (it.updated_at, it.id), reverse=True)

    seen: list[Conversation] = []
    while page := await store.conversations.page(
        ALICE,
        ConversationFilter(agent.id),
        after=(seen[-1].updated_at, seen[-1].id) if seen else None,
        offset=0,
        limit=3,
    ):
        seen += page
    assert seen == expected
    everything = await store.conversations.page(ALICE, EVERYTHING, after=None, offset=0, limit=50)
    assert everything == [elsewhere, *expected]
    assert (
        await store.conversations.page(ALICE, EVERYTHING, after=None, offset=2, limit=2)
        == [elsewhere, *expected][2:4]
    )


async def test_conversations_page_by_status(store: Store):
    agent = await keep_agent(store)
    one, two = await keep_conversation(store, agent), await keep_conversation(store, agent)
    archived = await store.conversations.update(
        ALICE, one.id, lambda it: replace(it, status=ConversationStatus.ARCHIVED)
    )
    for status, expected in ((ListedStatus.ARCHIVED, archived), (ListedStatus.ACTIVE, two)):
        page = await store.conversations.page(
            ALICE, ConversationFilter(status=status), after=None, offset=0, limit=5
        )
        assert page == [expected]


async def test_deleted_conversations_page_by_their_deletion(store: Store):
    agent, other = await keep_agent(store), await keep_agent(store)
    kept = [await keep_conversation(store, agent, now=NOW + number) for number in range(5)]
    elsewhere = await keep_conversation(store, other)
    theirs = await keep_conversation(store, agent, BOB)
    await store.conversations.delete(BOB, theirs.id, NOW)
    await store.conversations.update(
        ALICE, kept[1].id, lambda it: replace(it, status=ConversationStatus.ARCHIVED, is_pinned=True)
    )
    for at, it in enumerate((elsewhere, kept[3], kept[1], kept[2]), NOW):
        await store.conversations.delete(ALICE, it.id, at // 2)

    seen: list[Conversation] = []
    while page := await store.conversations.page(
        ALICE,
        ConversationFilter(status=ListedStatus.DELETED),
        after=(seen[-1].deleted_at or 0, seen[-1].id) if seen else None,
        offset=0,
        limit=1,
    ):
        seen += page
    assert {it.id for it in seen} == {elsewhere.id, *(it.id for it in kept[1:4])}
    assert seen == sorted(seen, key=lambda it: (it.deleted_at, it.id), reverse=True)
    assert {it.listed_status for it in seen} == {ListedStatus.DELETED}

    cases = {
        ConversationFilter(other.id, ListedStatus.DELETED): [elsewhere.id],
        ConversationFilter(status=ListedStatus.DELETED, pinned=True): [kept[1].id],
        ConversationFilter(agent.id): [kept[4].id, kept[0].id],
        ConversationFilter(status=ListedStatus.ARCHIVED): [],
    }
    for which, expected in cases.items():
        page = await store.conversations.page(ALICE, which, after=None, offset=0, limit=9)
        assert [it.id for it in page] == expected, which
    restored = await store.conversations.restore(ALICE, kept[1].id)
    assert restored is not None and restored.listed_status is ListedStatus.ARCHIVED
    await store.conversations.purge(ALICE, kept[2].id)
    page = await store.conversations.page(
        ALICE, ConversationFilter(agent.id, ListedStatus.DELETED), after=None, offset=0, limit=9
    )
    assert [it.id for it in page] == [kept[3].id]


async def test_conversations_page_by_pin(store: Store):
    agent, other = await keep_agent(store), await keep_agent(store)
    pinned = [await keep_conversation(store, it, now=NOW + 1) for it in (agent, other)]
    rest = await keep_conversation(store, agent, now=NOW + 2)
    pinned = [
        await store.conversations.update(ALICE, it.id, lambda it: replace(it, is_pinned=True))
        for it in pinned
    ]
    cases = {
        ConversationFilter(pinned=True): pinned[::-1],
        ConversationFilter(agent.id, pinned=True): pinned[:1],
        ConversationFilter(other.id, ListedStatus.ACTIVE, pinned=True): pinned[1:],
        ConversationFilter(status=ListedStatus.ARCHIVED, pinned=True): [],
        ConversationFilter(pinned=False): [rest],
        ConversationFilter(): [rest, *pinned[::-1]],
    }
    for which, expected in cases.items():
        page = await store.conversations.page(ALICE, which, after=None, offset=0, limit=5)
        assert page == expected, which


async def test_renaming_does_not_lose_what_a_turn_writes_at_the_same_time(store: Store):
    conversation = await keep_conversation(store, await keep_agent(store))
    moved = await keep_turn(store, conversation, "a", "b", NOW + 5)
    await store.conversations.update(ALICE, conversation.id, lambda _: conversation.rename("mine"))
    found = await store.conversations.get(ALICE, conversation.id)
    assert found == replace(moved, title="mine", title_source="user")


async def test_twenty_concurrent_changes_of_metadata_are_all_kept(store: Store):
    conversation = await keep_conversation(store, await keep_agent(store))
    await asyncio.gather(
        *(
            store.conversations.update(
                ALICE,
                conversation.id,
                lambda it, n=number: replace(it, metadata={**it.metadata, str(n): n}),
            )
            for number in range(20)
        )
    )
    found = await store.conversations.get(ALICE, conversation.id)
    assert found and found.metadata == {str(number): number for number in range(20)}


async def test_turn_keeps_question_and_reply_in_order(store: Store):
    conversation = await keep_conversation(store, await keep_agent(store))
    for number in range(3):
        conversation = await keep_turn(store, conversation, f"问 {number}", f"答 {number}", NOW + number)
    messages = await all_messages(store, conversation)
    assert [m.seq for m in messages] == [1, 2, 3, 4, 5, 6]
    assert [m.content for m in messages] == ["问 0", "答 0", "问 1", "答 1", "问 2", "答 2"]
    assert [m.role for m in messages] == [MessageRole.USER, MessageRole.ASSISTANT] * 3
    assert await store.conversations.get(ALICE, conversation.id) == conversation
    assert conversation.message_count == 6


async def test_rich_reply_comes_back_as_it_was_kept(store: Store):
    conversation = await keep_conversation(store, await keep_agent(store))
    begun = conversation.begin_turn("?", NOW)
    await keep_begun(store, begun)
    call = ToolCall(
        turn_id=begun.turn.id,
        tool_call_id="call_1",
        message_id=begun.assistant_message.id,
        tool_name="search",
        server="web",
        arguments={"q": "x"},
        status=ToolCallStatus.RUNNING,
        created_at=NOW,
        model_name="web__search",
    ).end(
        ToolCallStatus.OK,
        result=123,
        chart_data={"series": [1, 2]},
        duration_ms=7,
        artifact_ids=(PayloadId(new_uuid()),),
        refs={"arguments": PayloadId(new_uuid())},
    )
    hit = RetrievalHit("Contract", "…" * 1000, 0.5, page=3, document_id=new_uuid(), url="https://example.org")
    parts = (
        RetrievalPart(query="x", hits=(hit, hit), at=NOW),
        ThoughtPart(text="Hm. 🤔", started_at=NOW, duration_ms=3, iteration=1),
        TextPart(text="First 你好 🌱.", iteration=1),
        ToolCallPart(call=call, iteration=1),
        RetrievalPart(query="y", hits=(hit,), at=NOW, tool_call_id="call_1", iteration=1),
        NoticePart(code="SLOW", message="Slow.", at=NOW + 1, iteration=1),
        TextPart(text="cut o", iteration=2, superseded=True),
        ThoughtPart(text="", title="a step", started_at=NOW, iteration=2),
        TextPart(text="Then ", iteration=2),
        TextPart(text="", iteration=2),
        TextPart(text="more.", iteration=2),
        FilePart(file_id=PayloadId(new_uuid()), file_name="a.png", media_type="image/png", size=9, width=3),
    )
    reply = begun.assistant_message.finish(
        MessageStatus.FAILED,
        parts,
        NOW + 9,
        usage=Usage(1, 2, estimated=True),
        error=Failure("AGENTX_ERROR", "The model is away.", retryable=True),
    )
    assert reply.content == "First 你好 🌱.\n\nThen more."
    await keep_ended(store, begun.conversation.end_turn(begun.turn, reply, NOW + 9))
    assert (await all_messages(store, conversation))[1] == reply
    turn = await store.turns.get(ALICE, begun.turn.id)
    assert turn and turn.status is TurnStatus.FAILED and turn.error == reply.error
    assert await store.turns.get(BOB, begun.turn.id) is None
    of_search = ToolCallFilter(tool_name="search")
    assert await store.messages.tool_calls(ALICE, of_search, before=None, offset=0, limit=9) == [
        ToolRecord(call, conversation.id)
    ]
    assert await store.messages.tool_calls(BOB, of_search, before=None, offset=0, limit=9) == []
    await store.conversations.delete(ALICE, conversation.id, NOW)
    assert await store.messages.tool_calls(ALICE, of_search, before=None, offset=0, limit=9) == []


@pytest.mark.parametrize(
    "parts",
    [
        text_parts("From another product."),
        said("One call."),
        (TextPart(text="The second call.", iteration=2),),
        (TextPart(text="a", iteration=1), TextPart(text="b", iteration=1)),
        (ThoughtPart(text="Only a thought.", started_at=NOW, iteration=1), TextPart(text="x")),
    ],
)
async def test_reply_comes_back_with_its_texts_and_the_calls_that_wrote_them(store: Store, parts: Parts):
    conversation = await keep_conversation(store, await keep_agent(store))
    begun = conversation.begin_turn("?", NOW)
    await keep_begun(store, begun)
    reply = begun.assistant_message.finish(MessageStatus.COMPLETED, parts, NOW + 1)
    await keep_ended(store, begun.conversation.end_turn(begun.turn, reply, NOW + 1))
    assert (await all_messages(store, conversation))[1].parts == parts


async def test_messages_know_what_they_answer_and_the_conversation_its_tip(store: Store):
    conversation = await keep_conversation(store, await keep_agent(store))
    assert conversation.tip_id is None
    for _ in range(2):
        conversation = await keep_turn(store, conversation, "q", "a")
    messages = await all_messages(store, conversation)
    assert [it.parent_id for it in messages] == [None, *(it.id for it in messages[:-1])]
    assert all(it.on_path for it in messages)
    assert conversation.tip_id == messages[-1].id
    assert await store.conversations.get(ALICE, conversation.id) == conversation


async def test_regenerated_reply_leaves_the_path_and_keeps_how_it_ended(store: Store):
    conversation = await keep_turn(store, await keep_conversation(store, await keep_agent(store)), "q", "a")
    asked, reply = await all_messages(store, conversation)
    begun = await regenerated(store, conversation, asked, NOW + 2)
    await keep_begun(store, begun)
    page = await store.messages.page(conversation.id, MessageWindow(), offset=0, limit=9)
    assert [it.id for it in page] == [asked.id, begun.assistant_message.id]
    _, overwritten, fresh = await all_messages(store, conversation)
    assert overwritten == replace(reply, on_path=False)
    assert overwritten.status is MessageStatus.COMPLETED
    assert overwritten.shown_status is MessageStatus.OVERWRITTEN
    assert fresh.parent_id == overwritten.parent_id == asked.id
    again = await store.conversations.get(ALICE, conversation.id)
    assert again == begun.conversation
    assert (begun.conversation.tip_id, begun.conversation.message_count) == (fresh.id, 2)


async def keep_regenerated(store: Store, conversation: Conversation, now: int) -> Conversation:
    """The last question answered again, without a tool."""
    *_, asked, _ = await store.messages.page(conversation.id, MessageWindow(), offset=0, limit=99)
    begun = await regenerated(store, conversation, asked, now)
    await keep_begun(store, begun)
    fresh = begun.assistant_message.finish(MessageStatus.COMPLETED, said("Again."), now)
    ended = begun.conversation.end_turn(begun.turn, fresh, now)
    await keep_ended(store, ended)
    return ended.conversation


async def test_ids_of_tool_calls_that_a_conversation_has_used_are_known(store: Store):
    agent = await keep_agent(store)
    conversation, other = await keep_conversation(store, agent), await keep_conversation(store, agent)
    for id_ in ("call_1", "call_2", "call_1"):
        conversation, _ = await keep_call(store, conversation, id_)
    conversation = await keep_regenerated(store, conversation, NOW)
    await keep_call(store, other, "call_9")
    ids = ["call_1", "call_2", "call_3", "call_9", "'"]
    assert await store.messages.ids_in_use(conversation.id, ids) == {"call_1", "call_2"}
    assert await store.messages.ids_in_use(other.id, ids) == {"call_9"}
    assert await store.messages.ids_in_use(conversation.id, []) == set()


async def test_newest_tool_call_with_an_id_is_found_in_its_conversation_only(store: Store):
    agent = await keep_agent(store)
    conversation, other = await keep_conversation(store, agent), await keep_conversation(store, agent)
    conversation, _ = await keep_call(store, conversation, "call_1", NOW, result="old")
    conversation, newest = await keep_call(store, conversation, "call_1", NOW + 5, result="new")
    assert await store.messages.tool_call(conversation.id, "call_1") == newest
    await keep_regenerated(store, conversation, NOW + 9)
    assert await store.messages.tool_call(conversation.id, "call_1") == newest  # on whichever branch
    assert await store.messages.tool_call(conversation.id, "call_2") is None
    assert await store.messages.tool_call(other.id, "call_1") is None


async def test_tool_calls_of_the_same_id_are_found_under_the_ids_that_models_are_sent(store: Store):
    agent = await keep_agent(store)
    conversation, other = await keep_conversation(store, agent), await keep_conversation(store, agent)
    conversation, first = await keep_call(store, conversation, "call_0", NOW)
    conversation, second = await keep_call(store, conversation, "call_0", NOW + 5)
    conversation, settled = await keep_call(store, conversation, "call_9", NOW + 9, model_name="role")
    for call in (first, second, settled):
        assert await store.messages.tool_call(conversation.id, call.sent_id) == call
    assert (first.sent_id == second.sent_id, settled.sent_id) == (False, "call_9")
    assert await store.messages.tool_call(other.id, first.sent_id) is None


async def test_role_is_the_one_activated_last_on_the_path(store: Store):
    agent = await keep_agent(store)
    conversation, other = await keep_conversation(store, agent), await keep_conversation(store, agent)
    assert await store.messages.activated_role(conversation.id, since=0) is None
    conversation, lawyer = await keep_call(store, conversation, "lawyer", NOW)
    for changes in (
        {"status": ToolCallStatus.ERROR},
        {"server": "somebody's"},
        {"tool_name": "promptx_recall"},
    ):
        conversation, _ = await keep_call(store, conversation, "other", NOW + 1, **changes)
    assert await store.messages.activated_role(conversation.id, since=NOW) == lawyer
    assert await store.messages.activated_role(conversation.id, since=NOW + 1) is None
    conversation, poet = await keep_call(store, conversation, "poet", NOW + 2)
    assert await store.messages.activated_role(conversation.id, since=0) == poet
    await keep_regenerated(store, conversation, NOW + 3)
    assert await store.messages.activated_role(conversation.id, since=0) == lawyer
    assert await store.messages.activated_role(other.id, since=0) is None


async def test_newest_receipt_is_of_the_last_reply_on_the_path(store: Store):
    agent = await keep_agent(store)
    conversation, other = await keep_conversation(store, agent), await keep_conversation(store, agent)
    assert await store.receipts.newest(conversation.id) is None
    receipts: list[Receipt] = []
    for number in range(3):
        begun = conversation.begin_turn("?", NOW)
        await keep_begun(store, begun)
        receipts.append(make_receipt(message_ids=(f"{number}",)))
        await keep_receipt(store, begun.turn, receipts[-1], {f"{number:064}": f"text {number}"})
        reply = begun.assistant_message.finish(MessageStatus.COMPLETED, said("."), NOW)
        ended = begun.conversation.end_turn(begun.turn, reply, NOW)
        await keep_ended(store, ended)
        conversation = ended.conversation
    assert await store.receipts.newest(conversation.id) == PriorReceipt(receipts[2], is_current=True)
    assert await store.receipts.newest(other.id) is None
    await keep_regenerated(store, conversation, NOW)  # which has no receipt
    assert await store.receipts.newest(conversation.id) == PriorReceipt(receipts[1], is_current=False)


async def test_second_turn_is_refused_while_one_runs(store: Store):
    conversation = await keep_conversation(store, await keep_agent(store))
    results = await asyncio.gather(
        *(keep_begun(store, conversation.begin_turn(f"{n}", NOW)) for n in range(20)),
        return_exceptions=True,
    )
    assert results.count(None) == 1
    assert all(isinstance(result, StorageConflict) for result in results if result is not None)
    assert len(await all_messages(store, conversation)) == 2


async def test_turn_ends_once(store: Store):
    conversation = await keep_conversation(store, await keep_agent(store))
    begun = conversation.begin_turn("?", NOW)
    await keep_begun(store, begun)
    ends = [
        begun.conversation.end_turn(
            begun.turn, begun.assistant_message.finish(MessageStatus.COMPLETED, said(text), NOW + 1), NOW + 1
        )
        for text in ("first", "second")
    ]
    await keep_ended(store, ends[0])
    with pytest.raises(StorageConflict):
        await keep_ended(store, ends[1])
    assert (await all_messages(store, conversation))[1].content == "first"


@pytest.mark.parametrize("key", [None, IdempotencyKey("once", "hash")], ids=["without-key", "with-key"])
async def test_turn_whose_first_event_cannot_be_stored_is_not_begun(store: Store, key: IdempotencyKey | None):
    conversation = await keep_conversation(store, await keep_agent(store))
    begun = conversation.begin_turn("?", NOW)
    unstorable = LogChunk(begun.turn.id, 1, 1, cast("Any", None))
    with pytest.raises(StorageError):
        await store.turns.begin(opened(replace(begun, key=key), Lease("a-node", 1, 10**9), unstorable))
    assert await store.turns.status(begun.turn.id) is None
    assert await all_messages(store, conversation) == []
    assert await store.conversations.get(ALICE, conversation.id) == conversation
    await store.turns.begin(opened(replace(begun, key=key), Lease("a-node", 1, 10**9)))
    assert await store.log.read(begun.turn.id, 0) == [opening_of(begun)]


@pytest.mark.parametrize("uses_tool", [False, True], ids=["without-tool", "with-tool"])
async def test_turn_whose_last_events_cannot_be_stored_runs_on(store: Store, uses_tool: bool):
    conversation = await keep_conversation(store, await keep_agent(store))
    begun = conversation.begin_turn("?", NOW)
    await keep_begun(store, begun)
    parts = said("Said.")
    if uses_tool:
        call = ToolCall(
            begun.turn.id, "call_1", begun.assistant_message.id, "search", "web", {}, ToolCallStatus.OK, NOW
        )
        parts = (ToolCallPart(call=call, iteration=1), *parts)
    reply = begun.assistant_message.finish(MessageStatus.COMPLETED, parts, NOW + 1)
    ended = begun.conversation.end_turn(begun.turn, reply, NOW + 1)
    with pytest.raises(StorageError):
        await store.turns.end(ended, LogChunk(begun.turn.id, 2, 2, cast("Any", None)), 1)
    assert await store.turns.status(begun.turn.id) is TurnStatus.RUNNING
    assert (await all_messages(store, conversation))[1].status is MessageStatus.PENDING
    assert await store.conversations.get(ALICE, conversation.id) == begun.conversation
    await keep_ended(store, ended)
    assert (await all_messages(store, conversation))[1] == reply


async def test_turn_that_was_taken_over_is_neither_written_nor_ended_by_who_lost_it(store: Store):
    conversation = await keep_conversation(store, await keep_agent(store))
    begun = conversation.begin_turn("?", NOW)
    await store.turns.begin(opened(begun, Lease("a-stalled-node", 1, -1)))
    held = await store.log.adopt(begun.turn.id, Lease("another", 1, 10**9), alone=False)
    assert held
    assert await store.log.adopt(begun.turn.id, Lease("a-third", 1, 10**9), alone=False) is None
    reply = held.reply.finish(MessageStatus.COMPLETED, said("Said."), NOW + 1)
    ended = held.conversation.end_turn(held.turn, reply, NOW + 1)
    with pytest.raises(StorageConflict):
        await keep_ended(store, ended)
    assert await store.log.append([(LogChunk(begun.turn.id, 2, 2, "{}"), 1)]) == set()
    assert await store.log.read(begun.turn.id, 0) == [opening_of(begun)]
    assert (await all_messages(store, conversation))[1].status is MessageStatus.PENDING
    await keep_ended(store, ended, fence=held.fence)
    after_the_end = LogChunk(begun.turn.id, 4, 4, "{}")
    assert await store.log.append([(after_the_end, held.fence)]) == set()


async def test_long_log_is_read_in_pages(store: Store, monkeypatch: pytest.MonkeyPatch):
    conversation = await keep_conversation(store, await keep_agent(store))
    begun = conversation.begin_turn("?", NOW)
    await keep_begun(store, begun)
    chunks = [chunk_of(begun.turn.id, 2 * n, Text("é" * 100), Text("y")) for n in range(1, 30)]
    for chunk in chunks:
        assert await store.log.append([(chunk, 1)])
    whole = [opening_of(begun), *chunks]
    for limit, most in ((7, 10**6), (100, 2_000), (1, 1), (30, 10**6)):
        monkeypatch.setattr(turn_log, "MOST_CHUNKS", limit)
        monkeypatch.setattr(turn_log, "MOST_PAGE_BYTES", most)
        for after in (0, 1, 2, 30, 31, 58):  # within a chunk, too
            left = [chunk for chunk in whole if chunk.last_seq > after]
            pages = [page async for page in store.log.pages(begun.turn.id, after)]
            assert [chunk for page in pages for chunk in page] == left
            assert list(await store.log.read(begun.turn.id, after)) == left
            for page in pages:
                assert 0 < len(page) <= limit
                assert sum(len(it.events.encode()) for it in page[:-1]) < most
    assert [it async for it in store.log.pages(begun.turn.id, 59)] == []
    assert await store.log.last_seq(begun.turn.id) == 59
    assert await store.log.last_seq(TurnId(new_uuid())) == 0


async def test_idempotency_key_lives_as_long_as_its_conversation(store: Store):
    conversation = await keep_conversation(store, await keep_agent(store))
    key, lease = IdempotencyKey("once", "hash"), Lease("a-node", 1, 10**9)
    first = conversation.begin_turn("?", NOW)
    await store.turns.begin(opened(replace(first, key=key), lease))
    reply = first.assistant_message.finish(MessageStatus.COMPLETED, said("Said."), NOW + 1)
    ended = first.conversation.end_turn(first.turn, reply, NOW + 1)
    await keep_ended(store, ended)
    a_year_later = ended.conversation.begin_turn("?", NOW + 365 * 24 * 60 * 60 * 1000)
    with pytest.raises(StorageConflict):
        await store.turns.begin(opened(replace(a_year_later, key=key), lease))
    found = await store.turns.find_by_key(conversation.id, "once")
    assert found
    assert (found[0].id, found[1]) == (first.turn.id, "hash")
    assert await store.conversations.purge(ALICE, conversation.id)
    assert await store.turns.find_by_key(conversation.id, "once") is None


async def test_key_creates_one_conversation_of_its_user(store: Store):
    agent = await keep_agent(store)
    made = [Conversation.start(user, agent.id, NOW) for user in (ALICE, ALICE, BOB)]
    key = IdempotencyKey("once", "hash")
    await store.conversations.add_once(made[0], key)
    with pytest.raises(StorageConflict):
        await store.conversations.add_once(made[1], key)
    await store.conversations.add_once(made[2], key)
    assert await store.conversations.get(ALICE, made[1].id) is None
    assert await store.conversations.find_by_key(ALICE, "once") == (made[0], "hash")
    assert await store.conversations.find_by_key(BOB, "once") == (made[2], "hash")
    await store.conversations.delete(ALICE, made[0].id, NOW)
    found = await store.conversations.find_by_key(ALICE, "once")
    assert found
    assert found[0].deleted_at == NOW
    assert await store.conversations.purge(ALICE, made[0].id)
    assert await store.conversations.find_by_key(ALICE, "once") is None


async def test_turns_that_run_are_told_with_whose_they_are_and_how_they_stand(store: Store):
    agent = await keep_agent(store)
    begun = [
        (await keep_conversation(store, agent, user)).begin_turn("Why?", NOW, model="m")
        for user in (ALICE, BOB, ALICE)
    ]
    for number, it in enumerate(begun):
        lease_ms = -1 if number == 2 else 10**9
        await store.turns.begin(opened(it, Lease("a-node", 1, lease_ms)))
    await store.log.request_abort(begun[1].turn.id)
    ended = await keep_turn(store, await keep_conversation(store, agent), "a", "b")
    assert ended.active_turn_id is None
    told = await store.active.page(after=None, offset=0, limit=10)
    assert [it.id for it in told] == [it.turn.id for it in begun]
    assert [(it.user_id, it.is_aborting, it.is_stalled) for it in told] == [
        (ALICE, False, False), (BOB, True, False), (ALICE, False, True),
    ]  # fmt: skip
    assert {(it.agent_id, it.node_id, it.model, it.started_at) for it in told} == {
        (agent.id, "a-node", "m", NOW)
    }
    assert await store.active.page(after=told[0].id, offset=1, limit=10) == told[2:]
    assert await store.active.get(told[1].id) == told[1]
    assert await store.active.get(TurnId(new_uuid())) is None


async def test_messages_window_by_seq_order_and_offset(store: Store):
    conversation = await keep_conversation(store, await keep_agent(store))
    for number in range(5):
        conversation = await keep_turn(store, conversation, f"q{number}", f"a{number}")

    async def seqs(window: MessageWindow, offset: int = 0, limit: int = 3) -> list[int]:
        page = await store.messages.page(conversation.id, window, offset=offset, limit=limit)
        return [message.seq for message in page]

    assert await seqs(MessageWindow()) == [1, 2, 3]
    assert await seqs(MessageWindow(), offset=8) == [9, 10]
    assert await seqs(MessageWindow(newest_first=True)) == [10, 9, 8]
    assert await seqs(MessageWindow(newest_first=True, before_seq=8)) == [7, 6, 5]
    assert await seqs(MessageWindow(after_seq=4, before_seq=7), limit=9) == [5, 6]


async def test_briefing_card_stands_in_the_conversation(store: Store):
    agent = await keep_agent(store)
    conversation = await keep_conversation(store, agent)
    briefing = Briefing(
        BriefingId(new_uuid()),
        agent.id,
        ALICE,
        "代码返工率50%",
        "最近7天...",
        Priority.P1,
        {"rate": 0.5},
        (),
        NOW,
    )
    await store.briefings.add(briefing)
    grown, message = conversation.add_card(briefing, NOW + 1)
    await store.messages.add_card(grown, message)
    (kept,) = await all_messages(store, conversation)
    assert kept == message
    assert (kept.role, kept.content_type) == (MessageRole.SYSTEM, ContentType.BRIEFING_CARD)
    assert await store.conversations.get(ALICE, conversation.id) == grown
    with pytest.raises(StorageConflict):
        await store.messages.add_card(*conversation.add_card(briefing, NOW + 2))
    for unread in (False, True):
        assert await store.briefings.page(ALICE, unread=unread, before=None, limit=5) == [briefing]
    assert await store.briefings.page(BOB, unread=False, before=None, limit=5) == []


async def test_messages_are_added_without_a_turn(store: Store):
    conversation = await keep_conversation(store, await keep_agent(store))
    file_id = await keep_file(store)
    file = (await store.files.visible(ALICE, [file_id]))[file_id]
    said = [
        AddedMessage(MessageRole.USER, "Look.", (file.part,)),
        AddedMessage(MessageRole.ASSISTANT, "Seen."),
    ]
    grown, added = conversation.add(said, NOW + 1, title="Look")
    await store.messages.add(grown, added)
    assert await all_messages(store, conversation) == added
    assert await store.conversations.get(ALICE, conversation.id) == grown
    assert [it.turn_id for it in added] == [None, None]
    assert [it.code for it in added[1].parts if isinstance(it, NoticePart)] == [NOT_OURS]
    assert not await store.files.forget(ALICE, file_id)  # the message has it
    with pytest.raises(StorageConflict):  # prepared on what was there before
        await store.messages.add(*conversation.add(said[1:], NOW + 2))
    begun = grown.begin_turn("q", NOW + 3)
    await keep_begun(store, begun)
    with pytest.raises(StorageConflict):  # a turn has begun
        await store.messages.add(*replace(begun.conversation, active_turn_id=None).add(said[1:], NOW + 4))
    assert len(await all_messages(store, conversation)) == 4


async def test_conversation_has_the_agent_of_its_first_turn(store: Store):
    agent, other = await keep_agent(store), await keep_agent(store)
    conversation = await keep_conversation(store, agent)
    added, messages = conversation.add([AddedMessage(MessageRole.USER, "q")], NOW)
    await store.messages.add(added, messages)
    assert not await store.conversations.change_agent(conversation, other.id)  # it has changed since
    assert await store.conversations.change_agent(added, other.id)
    moved = await store.conversations.get(ALICE, conversation.id)
    assert moved is not None and moved == replace(added, agent_id=other.id)
    with pytest.raises(StorageConflict):  # begun while it had the other agent
        await keep_begun(store, added.begin_turn("q", NOW))
    after_turn = await keep_turn(store, moved, "q", "a")
    assert not await store.conversations.change_agent(after_turn, agent.id)
    main, _ = await store.conversations.get_or_add_main(
        Conversation.start(ALICE, agent.id, NOW, is_main=True)
    )
    assert not await store.conversations.change_agent(main, other.id)


async def test_conversations_that_begin_with_a_question(store: Store):
    agent = await keep_agent(store)
    old, new, long = [await keep_conversation(store, agent) for _ in range(3)]
    for conversation, at in ((old, NOW), (new, NOW + 5), (long, NOW + 6)):
        begun = await keep_turn(store, conversation, "Hi", "Hello.", at)
    await keep_turn(store, begun, "Again", "Yes.", NOW + 7)

    async def found(question: str, since: int, limit: int = 9) -> list[str]:
        conversations = store.conversations
        given = await conversations.begun_with(ALICE, question, since, but_by="session", limit=limit)
        return [it.id for it in given]

    assert await found("Hi", NOW) == [long.id, new.id, old.id]
    assert await found("Again", NOW) == []
    assert await found("Hi", NOW, limit=2) == await found("Hi", NOW + 2) == [long.id, new.id]
    assert await found("Hello.", NOW) == await found("Hi", NOW + 9) == []
    assert await store.conversations.begun_with(BOB, "Hi", NOW, but_by="session", limit=9) == []
    await store.outside_ids.bind(old, "another session")
    await store.outside_ids.bind(new, "session")
    assert await found("Hi", NOW) == [long.id, new.id]


async def test_deleted_conversation_is_gone_until_restored(store: Store):
    agent = await keep_agent(store)
    conversation = await keep_turn(store, await keep_conversation(store, agent), "q", "a")
    assert not await store.conversations.delete(BOB, conversation.id, NOW)
    assert await store.conversations.delete(ALICE, conversation.id, NOW)
    assert not await store.conversations.delete(ALICE, conversation.id, NOW)
    assert await store.conversations.get(ALICE, conversation.id) is None
    assert await store.conversations.page(ALICE, EVERYTHING, after=None, offset=0, limit=5) == []
    assert await store.conversations.restore(BOB, conversation.id) is None
    assert await store.conversations.restore(ALICE, conversation.id) == conversation
    assert len(await all_messages(store, conversation)) == 2


async def test_restored_main_conversation_gives_way_to_its_successor(store: Store):
    agent = await keep_agent(store)
    first, _ = await store.conversations.get_or_add_main(
        Conversation.start(ALICE, agent.id, NOW, is_main=True)
    )
    await store.conversations.delete(ALICE, first.id, NOW)
    second, made = await store.conversations.get_or_add_main(
        Conversation.start(ALICE, agent.id, NOW, is_main=True)
    )
    assert made
    restored = await store.conversations.restore(ALICE, first.id)
    assert restored and not restored.is_main
    again, made = await store.conversations.get_or_add_main(
        Conversation.start(ALICE, agent.id, NOW, is_main=True)
    )
    assert (again.id, made) == (second.id, False)


async def test_purge_removes_deleted_conversations_after_their_time(store: Store):
    agent = await keep_agent(store)
    old, young, kept = [await keep_conversation(store, agent) for _ in range(3)]
    await store.conversations.delete(ALICE, old.id, NOW)
    await store.conversations.delete(ALICE, young.id, NOW + 10)
    assert len(await store.conversations.purge_deleted_before(NOW + 5)) == 1
    assert await store.conversations.restore(ALICE, old.id) is None
    assert await store.conversations.restore(ALICE, young.id)
    assert await store.conversations.get(ALICE, kept.id)


async def test_deleting_a_user_keeps_what_others_said_to_their_agents(store: Store):
    shared = await keep_agent(store, ALICE, name="shared", visibility="public", system_prompt="secret")
    lonely = await keep_agent(store, ALICE, name="lonely")
    others = await keep_turn(store, await keep_conversation(store, shared, BOB), "q", "a")
    own = await keep_turn(store, await keep_conversation(store, shared, ALICE), "q", "a")
    purged = await store.users.delete(ALICE, NOW)
    assert purged and set(purged.agent_ids) == {shared.id, lonely.id}
    assert purged.conversation_ids == [own.id]
    assert not await store.users.delete(ALICE, NOW)
    assert await store.agents.get(lonely.id) is None
    emptied = await store.agents.get(shared.id)
    assert emptied and emptied.system_prompt == "" and emptied.deleted_at and emptied.owner_id is None
    assert await store.conversations.get(BOB, others.id) == others
    assert len(await all_messages(store, others)) == 2
    assert await store.conversations.get(ALICE, own.id) is None
    assert await all_messages(store, own) == []


async def test_unknown_ids_find_nothing(store: Store):
    assert await store.conversations.get(ALICE, ConversationId(new_uuid())) is None
    assert await store.turns.get(ALICE, TurnId(new_uuid())) is None
    assert await store.conversations.update(ALICE, ConversationId(new_uuid()), lambda it: it) is None
    assert not await store.conversations.purge(ALICE, ConversationId(new_uuid()))


async def test_one_bad_unit_among_many_fails_alone(store: Store):
    agent = await keep_agent(store)
    good = [Conversation.start(ALICE, agent.id, NOW) for _ in range(30)]
    bad = replace(Conversation.start(ALICE, agent.id, NOW), id=good[0].id)
    results = await asyncio.gather(
        *(store.conversations.add(it) for it in [*good, bad]), return_exceptions=True
    )
    assert [type(result) for result in results if result is not None] == [StorageConflict]
    assert len(await store.conversations.page(ALICE, EVERYTHING, after=None, offset=0, limit=99)) == 30


async def test_store_has_a_key_that_stays(store: Store):
    assert len(store.key) == 32
    await store.ping()


async def test_message_and_receipt_are_found_in_their_own_conversation_only(store: Store):
    here = await keep_conversation(store, await keep_agent(store))
    there = await keep_conversation(store, await keep_agent(store), BOB)
    begun = here.begin_turn("?", NOW)
    await keep_begun(store, begun)
    await keep_receipt(store, begun.turn, make_receipt(), {})
    assert await store.messages.get(here.id, begun.assistant_message.id)
    assert await store.messages.get(there.id, begun.assistant_message.id) is None
    assert await store.receipts.get(here.id, begun.turn.id)
    assert await store.receipts.get(there.id, begun.turn.id) is None
