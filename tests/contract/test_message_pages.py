"""Pages of messages: they end where they are large, and their cursors lose nothing."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.making import NOW, keep_agent, keep_begun, keep_conversation, keep_ended, keep_turn
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.message import Message, MessageStatus, MessageWindow
from threadkeep.domain.parts import TextPart, ToolCallPart
from threadkeep.domain.tool_call import ToolCall, ToolCallStatus
from threadkeep.storage import messages as stored_messages
from threadkeep.storage.messages import MessageRun
from threadkeep.storage.store import Store

MOST = 1_000
SIZES = [(10, 20), (10, 900), (400, 400), (5_000, 3), (3, 5_000), (1, 1), (1_000, 1_000), (250, 250)]


async def read_all(
    store: Store, conversation: Conversation, window: MessageWindow, limit: int
) -> list[MessageRun]:
    """All pages of a window."""
    pages: list[MessageRun] = []
    while page := await store.messages.page(conversation.id, window, offset=0, limit=limit):
        pages.append(page)
        last = page[-1].seq
        window = replace(window, before_seq=last) if window.newest_first else replace(window, after_seq=last)
    return pages


def size_of(messages: Sequence[Message]) -> int:
    return sum(len(it.text.encode()) for it in messages)


@pytest.mark.parametrize("newest_first", [True, False])
@pytest.mark.parametrize("with_overwritten", [True, False])
@pytest.mark.parametrize("limit", [1, 3, 100])
async def test_page_ends_with_the_message_that_reaches_its_size(
    store: Store, monkeypatch: pytest.MonkeyPatch, newest_first: bool, with_overwritten: bool, limit: int
):
    conversation = await keep_conversation(store, await keep_agent(store))
    for asked, replied in SIZES:
        conversation = await keep_turn(store, conversation, "é" * (asked // 2) + "?", "x" * replied)
    window = MessageWindow(newest_first=newest_first, with_overwritten=with_overwritten)
    (everything,) = await read_all(store, conversation, window, 100)
    assert len(everything) == 2 * len(SIZES) and not everything.is_cut
    monkeypatch.setattr(stored_messages, "MOST_PAGE_BYTES", MOST)
    pages = await read_all(store, conversation, window, limit)
    assert [it for page in pages for it in page] == everything
    for number, page in enumerate(pages, 1):
        assert size_of(page[:-1]) < MOST
        is_last = number == len(pages)
        assert page.is_cut == (len(page) < limit and not is_last)


async def test_page_ends_before_too_many_tool_calls(store: Store, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(stored_messages, "MOST_CALLS_A_PAGE", 5)
    conversation = await keep_conversation(store, await keep_agent(store))
    for number, count in enumerate((2, 3, 7, 0, 4)):
        conversation = await keep_turn_with_calls(store, conversation, f"Question {number}", count)
    pages = await read_all(store, conversation, MessageWindow(), 100)
    counts = [[len(it.tool_calls) for it in page] for page in pages]
    # The third reply has more than a page may have, and is a page of its own with all of them.
    assert counts == [[0, 2, 0, 3, 0], [7], [0, 0, 0, 4]]
    assert [page.is_cut for page in pages] == [True, True, False]


async def keep_turn_with_calls(
    store: Store, conversation: Conversation, asked: str, count: int
) -> Conversation:
    begun = conversation.begin_turn(asked, NOW, model="scripted")
    await keep_begun(store, begun)
    calls = tuple(
        ToolCallPart(
            call=ToolCall(
                begun.turn.id,
                f"{begun.turn.id}-{number}",
                begun.assistant_message.id,
                "echo",
                "",
                {"n": number},
                ToolCallStatus.OK,
                NOW,
                model_name="echo",
            ),
            iteration=1,
        )
        for number in range(count)
    )
    said = TextPart(text="Done.", iteration=1)
    reply = begun.assistant_message.finish(MessageStatus.COMPLETED, (*calls, said), NOW + 1)
    ended = begun.conversation.end_turn(begun.turn, reply, NOW + 1)
    await keep_ended(store, ended)
    return ended.conversation
