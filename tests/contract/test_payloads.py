"""What every payload store does, in a folder and in a table, on both databases."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.contract.stored import Stored
from tests.making import ALICE, BOB, NOW, keep_agent, keep_conversation
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.errors import StorageConflict, StorageRefused
from threadkeep.domain.ids import ConversationId, PayloadId, new_uuid
from threadkeep.domain.payload import Lost, Payload, PayloadKind, content_hash
from threadkeep.storage.database.connector import Database, Statement
from threadkeep.storage.payloads import database as payloads
from threadkeep.storage.payloads.database import HOUR_MS, READ_BYTES
from threadkeep.storage.payloads.folder import HOUR_S
from threadkeep.storage.store import store_on

CONTENT = b'"large"' * 10_000
_CHANGE = Statement("UPDATE tk_payload_contents SET content = :content")
_REMOVE = Statement("DELETE FROM tk_payload_contents")
_AGE = Statement(f"UPDATE tk_payload_contents SET written_at = written_at - {HOUR_MS + 1000}")
_COUNT = Statement("SELECT COUNT(*) FROM tk_payload_contents")


class Kept(Stored):
    """A store, and what a test does to its contents behind its back."""

    async def count(self) -> int:
        """How many contents lie there."""
        if self.folder:
            return len(self.files())
        return (await self.database.fetch(_COUNT()))[0][0]

    async def change(self, change: Callable[[bytes], bytes]) -> None:
        """Does something to all contents."""
        if self.folder:
            for file in self.files():
                file.write_bytes(change(file.read_bytes()))
        else:
            await self.database.execute(_CHANGE(content=change(CONTENT)))

    async def remove(self) -> None:
        """Loses all contents."""
        if self.folder:
            for file in self.files():
                file.unlink()
        else:
            await self.database.execute(_REMOVE())

    async def age(self) -> None:
        """Makes all contents an hour older."""
        if self.folder:
            for file in self.files():
                os.utime(file, (0, time.time() - HOUR_S - 1))
        else:
            await self.database.execute(_AGE())


@pytest.fixture
def kept(stored: Stored) -> Kept:
    return Kept(stored.store, stored.database, stored.folder)


async def talk(kept: Kept) -> Conversation:
    return await keep_conversation(kept.store, await keep_agent(kept.store))


async def add(kept: Kept, conversation: Conversation, content: bytes = CONTENT) -> PayloadId:
    payload = Payload.of(content, conversation.id, PayloadKind.FILE, "text/plain", NOW, file_name="a.txt")
    await kept.store.payloads.add(payload, content)
    return payload.id


async def load(kept: Kept, conversation: Conversation, payload_id: PayloadId) -> bytes | Lost:
    return (await kept.store.payloads.load(conversation.id, [payload_id]))[payload_id]


async def test_contents_come_back_and_equal_ones_of_a_conversation_are_kept_once(kept: Kept):
    here, there = await talk(kept), await talk(kept)
    first, second = await add(kept, here), await add(kept, here)
    other, small = await add(kept, there), await add(kept, here, b"")
    found = await kept.store.payloads.load(here.id, [first, second, small])
    assert found == {first: CONTENT, second: CONTENT, small: b""}
    assert await load(kept, there, other) == CONTENT
    assert await kept.count() == 3


async def test_content_of_another_conversation_is_answered_like_what_is_missing(kept: Kept):
    here, there = await talk(kept), await talk(kept)
    own, others = await add(kept, here), await add(kept, there)
    payloads = kept.store.payloads
    found = await payloads.load(here.id, [own, others])
    assert found == {own: CONTENT, others: Lost("The content is missing.")}
    assert list(await payloads.files(here.id, [own, others])) == [own]


async def test_contents_beyond_a_limit_are_left_out(kept: Kept):
    here = await talk(kept)
    ids = [await add(kept, here, bytes([number]) * 100) for number in range(5)]
    assert await kept.store.payloads.sizes(here.id, [*ids, PayloadId(new_uuid())]) == dict.fromkeys(ids, 100)
    found = await kept.store.payloads.load(here.id, ids, most_bytes=250)
    assert sorted(isinstance(it, Lost) for it in found.values()) == [False, False, True, True, True]
    assert "too large" in next(it.reason for it in found.values() if isinstance(it, Lost))


@pytest.mark.parametrize("size", [0, 10, READ_BYTES, 2 * READ_BYTES + 10])
async def test_opened_content_comes_in_pieces_from_any_byte_to_any_other(kept: Kept, size: int):
    conversation, others = await talk(kept), await talk(kept)
    content = bytes(number % 251 for number in range(size))
    payload_id = await add(kept, conversation, content)
    opened = await kept.store.payloads.open(conversation.id, payload_id)
    assert not isinstance(opened, Lost)
    assert (opened.size, opened.sha256) == (size, content_hash(content))
    for start, stop in ((0, size), (size // 3, size // 2), (size - size // 4, size)):
        pieces = [piece async for piece in opened.read(start, stop)]
        assert b"".join(pieces) == content[start:stop]
        assert max(map(len, pieces), default=0) <= READ_BYTES
    await kept.change(lambda content: content[: size // 2])
    if size:
        with pytest.raises(StorageRefused):
            _ = [piece async for piece in opened.read(0, size)]
    assert isinstance(await kept.store.payloads.open(others.id, payload_id), Lost)


async def test_payload_that_is_kept_again_after_a_lost_answer_is_there_once(kept: Kept):
    conversation = await talk(kept)
    payload = Payload.of(CONTENT, conversation.id, PayloadKind.FILE, "text/plain", NOW)
    for _ in range(2):
        await kept.store.payloads.add(payload, CONTENT)
    assert await load(kept, conversation, payload.id) == CONTENT
    assert await kept.count() == 1


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "truncated": lambda content: content[:-1],
    "longer": lambda content: content + b"!",
    "empty": lambda content: b"",
    "changed": lambda content: b"x" + content[1:],
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
async def test_damaged_content_is_noticed(kept: Kept, damage: Callable[[bytes], bytes]):
    conversation = await talk(kept)
    payload_id = await add(kept, conversation)
    await kept.change(damage)
    assert await load(kept, conversation, payload_id) == Lost("The content is damaged.")
    assert await kept.store.payloads.open(conversation.id, payload_id) == Lost("The content is damaged.")


async def test_missing_content_and_missing_payload_are_noticed_and_others_load(kept: Kept):
    conversation, unknown = await talk(kept), PayloadId(new_uuid())
    lost = await add(kept, conversation)
    await kept.remove()
    for payload_id in (lost, unknown):
        opened = await kept.store.payloads.open(conversation.id, payload_id)
        assert opened == Lost("The content is missing.")
    fine = await add(kept, conversation, b"fine")
    missing = Lost("The content is missing.")
    assert await kept.store.payloads.load(conversation.id, [lost, fine, unknown]) == {
        lost: missing,
        fine: b"fine",
        unknown: missing,
    }


async def test_writing_a_damaged_content_again_heals_it(kept: Kept):
    conversation = await talk(kept)
    first = await add(kept, conversation)
    await kept.change(lambda content: content[::-1])
    await add(kept, conversation)
    assert await load(kept, conversation, first) == CONTENT


async def test_artifact_is_found_by_its_owner_while_the_conversation_is_there(kept: Kept):
    conversation = await talk(kept)
    payload_id = await add(kept, conversation)
    payloads = kept.store.payloads
    found = await payloads.file(ALICE, payload_id)
    assert found
    assert (found.file_name, found.media_type, found.size) == ("a.txt", "text/plain", len(CONTENT))
    assert await payloads.files(conversation.id, [payload_id]) == {payload_id: found}
    assert await payloads.file(BOB, payload_id) is None
    await kept.store.conversations.delete(ALICE, conversation.id, NOW)
    assert await payloads.file(ALICE, payload_id) is None


async def test_value_is_no_artifact(kept: Kept):
    conversation = await talk(kept)
    payload = Payload.of(b"1", conversation.id, PayloadKind.VALUE, "application/json", NOW)
    await kept.store.payloads.add(payload, b"1")
    assert await kept.store.payloads.file(ALICE, payload.id) is None
    assert not await kept.store.payloads.files(conversation.id, [payload.id])


async def test_payload_of_a_conversation_that_is_no_more_is_refused(kept: Kept):
    payload = Payload.of(b"1", ConversationId(new_uuid()), PayloadKind.VALUE, "application/json", NOW)
    with pytest.raises(StorageConflict):
        await kept.store.payloads.add(payload, b"1")


async def test_purge_takes_the_contents_along_and_no_others(kept: Kept):
    gone, stays = await talk(kept), await talk(kept)
    await add(kept, gone)
    left = await add(kept, stays)
    await kept.store.conversations.purge(ALICE, gone.id)
    await kept.store.payloads.forget([gone.id, ConversationId(new_uuid())])
    assert await kept.count() == 1
    assert await load(kept, stays, left) == CONTENT


async def test_deleting_a_user_tells_whose_contents_are_to_go(kept: Kept):
    conversation = await talk(kept)
    await add(kept, conversation)
    purged = await kept.store.users.delete(ALICE, NOW)
    assert purged and purged.conversation_ids == [conversation.id]
    await kept.store.payloads.forget([conversation.id])
    assert await kept.count() == 0
    assert await kept.store.users.delete(ALICE, NOW) is None


async def test_content_without_a_payload_is_collected_after_an_hour_and_no_other(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
):
    """As it is left by a process that is killed between the content and its row."""
    monkeypatch.setattr(payloads, "COLLECTED_AT_ONCE", 1)
    conversation = await talk(kept)
    named = await add(kept, conversation)
    await leave_behind(kept, conversation, b"nobody names this")
    assert await kept.store.payloads.collect() == 0
    await kept.age()
    await leave_behind(kept, conversation, b"just being written")
    assert await kept.store.payloads.collect() == 1
    assert await kept.count() == 2
    assert await load(kept, conversation, named) == CONTENT


async def test_collecting_removes_folders_of_conversations_that_are_no_more(
    database: Database, tmp_path: Path
):
    kept = Kept(await store_on(database, payload_folder=tmp_path), database, tmp_path)
    conversation = await talk(kept)
    await add(kept, conversation)
    half = tmp_path / conversation.id / f"{new_uuid()}.part"
    half.write_bytes(b"hal")
    (tmp_path / "README").write_text("not ours")
    await kept.store.conversations.purge(ALICE, conversation.id)
    await kept.age()
    assert await kept.store.payloads.collect() == 2
    assert not (tmp_path / conversation.id).exists()
    assert (tmp_path / "README").exists()


async def leave_behind(kept: Kept, conversation: Conversation, content: bytes) -> None:
    """Writes a content and dies before its row."""
    payload_id = await add(kept, conversation, content)
    await kept.database.execute(Statement("DELETE FROM tk_payloads WHERE id = :id")(id=payload_id))
