"""What every store of whole conversations does: the database's here, on each database."""

import threading

import pytest

from tests.contract.stored import Stored
from tests.making import ALICE, BOB, NOW, keep_agent
from threadkeep.domain.errors import LimitNotAllowed
from threadkeep.domain.payload import Payload
from threadkeep.imports.conversion import convert_conversation
from threadkeep.imports.foreign import (
    ForeignCall,
    ForeignConversation,
    ForeignMessage,
    ForeignText,
    ForeignThought,
)
from threadkeep.storage.database.columns import to_json
from threadkeep.storage.text_bytes import ROW_BYTES

LARGE = "x" * 100_000


def foreign(number: int) -> ForeignConversation:
    """A conversation with a tool call whose result is kept beside it."""
    parts = (ForeignThought("渡轮?"), ForeignCall("look", {"q": "渡轮"}, LARGE), ForeignText("中午。"))
    messages = (
        ForeignMessage("q", True, (ForeignText("When does the ferry leave?"),), NOW),
        ForeignMessage("a", False, parts, NOW, follows="q"),
    )
    return ForeignConversation("other", f"c{number}", "Ferries", NOW, NOW, messages, "a")


async def test_contents_are_read_off_the_event_loop(stored: Stored):
    agent = await keep_agent(stored.store)
    whole, contents = convert_conversation(foreign(1), ALICE, agent.id, NOW, {})
    threads: set[threading.Thread] = set()

    def content(payload: Payload) -> bytes:
        threads.add(threading.current_thread())
        return contents[payload.sha256]

    await stored.store.whole_conversations.add(whole, content)
    assert threads and threading.current_thread() not in threads


async def test_size_of_a_conversation_is_checked_before_its_contents_are_written(stored: Stored):
    agent = await keep_agent(stored.store)
    wholes = stored.store.whole_conversations
    before = await wholes.text_bytes(ALICE)
    checked: list[int] = []
    for number in (1, 2):
        whole, contents = convert_conversation(foreign(number), ALICE, agent.id, NOW, {})
        assert sum(len(it) for it in contents.values()) > len(LARGE)
        added = await wholes.add(whole, lambda it, own=contents: own[it.sha256], checked.append)
        assert checked.pop() == added.text_bytes > len(LARGE)
        row = ROW_BYTES + len(to_json(whole.conversation.metadata))
        assert await wholes.text_bytes(ALICE) == before + number * (added.text_bytes + row)
    await stored.store.conversations.delete(ALICE, whole.conversation.id, NOW)
    assert await wholes.text_bytes(ALICE) == before + 2 * (added.text_bytes + row)  # until it is purged
    assert await wholes.text_bytes(BOB) == 0

    def refuse(size: int) -> None:
        raise LimitNotAllowed(f"{size} are too many.")

    def content(payload: Payload) -> bytes:
        raise AssertionError("It has been refused.")

    refused, _ = convert_conversation(foreign(3), ALICE, agent.id, NOW, {})
    with pytest.raises(LimitNotAllowed):
        await wholes.add(refused, content, refuse)
    assert await wholes.owner_of("conversation", refused.conversation.id) is None
    assert await wholes.text_bytes(ALICE) == before + 2 * (added.text_bytes + row)
    assert await stored.store.conversations.purge(ALICE, whole.conversation.id)
    assert await wholes.text_bytes(ALICE) == before + added.text_bytes + row
