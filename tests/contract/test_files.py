"""What every store of files does, in a folder and in a table, on both databases."""

import asyncio
import os
import time
from contextlib import aclosing
from pathlib import Path

import pytest

from tests.contract.stored import Stored
from tests.making import ALICE, BOB, NOW, chunk_of, keep_agent, keep_begun, keep_conversation, keep_file
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.errors import LimitNotAllowed, StorageRefused
from threadkeep.domain.events import ToolResultStored
from threadkeep.domain.ids import PayloadId, UserId, new_uuid
from threadkeep.domain.payload import Lost, content_hash
from threadkeep.domain.queued import QueuedMessage
from threadkeep.domain.uploaded_file import ORIGINAL, PreparedFile, UploadedFile
from threadkeep.storage import file_contents, file_folder
from threadkeep.storage.database.connector import Statement
from threadkeep.storage.files import Room
from threadkeep.storage.payloads import folder
from threadkeep.storage.payloads.folder import HOUR_S

_ROWS = Statement("SELECT COUNT(*) FROM tk_contents")
_PIECES = Statement("SELECT COUNT(DISTINCT content_id) FROM tk_content_pieces")


class Kept(Stored):
    """A store of files, and what lies where it keeps their bytes."""

    async def count(self) -> int:
        """How many contents there are; each is named by a row."""
        ((rows,),) = await self.database.fetch(_ROWS())
        lying = len(self.files()) if self.folder else (await self.database.fetch(_PIECES()))[0][0]
        assert lying == rows
        return rows

    async def conversation_with(self, *file_ids: PayloadId) -> Conversation:
        """A conversation of the files' user in which a message has them."""
        conversation = await keep_conversation(self.store, await keep_agent(self.store))
        files = await self.store.files.visible(ALICE, file_ids)
        begun = conversation.begin_turn("Look.", NOW, files=tuple(files[it].part for it in file_ids))
        await keep_begun(self.store, begun)
        return conversation

    async def read(self, file_id: PayloadId, user_id: UserId = ALICE) -> bytes | None:
        file = (await self.store.files.visible(user_id, [file_id])).get(file_id)
        opened = await self.store.files.open(file.id, file.size) if file else None
        if opened is None:
            return None
        async with aclosing(opened.read(0, opened.size)) as pieces:
            return b"".join([piece async for piece in pieces])


@pytest.fixture
def kept(stored: Stored) -> Kept:
    return Kept(stored.store, stored.database, stored.folder)


def prepared(folder: Path, *texts: str) -> list[PreparedFile]:
    """Files as they come from their preparation."""
    made: list[PreparedFile] = []
    for text in texts:
        content = text.encode()
        path = folder / new_uuid()
        path.write_bytes(content)
        file = UploadedFile(
            id=PayloadId(new_uuid()),
            file_name="a.txt",
            media_type="text/plain",
            size=len(content),
            sha256=content_hash(content),
            created_at=NOW,
        )
        made.append(PreparedFile(file, {ORIGINAL: path}))
    return made


def anything(room: Room) -> None:
    """No limit."""


def at_most(most_bytes: int):
    def check(room: Room) -> None:
        if room.total_bytes > most_bytes:
            raise LimitNotAllowed("Too much.")

    return check


async def test_files_are_listed_in_order_and_forgotten_while_no_message_has_them(kept: Kept):
    files = kept.store.files
    ids = [await keep_file(kept.store, words=words) for words in ("one", "two", "two")]
    await keep_file(kept.store, BOB)

    async def listed(after: PayloadId | None = None, *, newest_first: bool = False, limit: int = 9):
        return [it.id for it in await files.page(ALICE, after=after, newest_first=newest_first, limit=limit)]

    assert await listed() == ids
    assert await listed(newest_first=True, limit=2) == ids[:0:-1]
    assert await listed(ids[1]) == ids[2:]
    assert await listed(ids[1], newest_first=True) == ids[:1]
    conversation = await kept.conversation_with(ids[0])
    assert not await files.forget(ALICE, ids[0])
    assert not await files.forget(BOB, ids[1])
    assert await files.forget(ALICE, ids[1])
    assert await kept.read(ids[2]) == b"two"  # the same bytes
    assert await files.forget(ALICE, ids[2])
    assert not await files.forget(ALICE, ids[2])
    assert await listed() == ids[:1]
    assert await kept.count() == 1 + 1  # bob has the other
    await kept.store.conversations.delete(ALICE, conversation.id, NOW)
    assert await listed() == []


async def test_same_bytes_of_one_user_are_kept_once_even_if_sent_at_the_same_time(kept: Kept, tmp_path: Path):
    same = [prepared(tmp_path, "the same", f"and {number}") for number in range(8)]
    await asyncio.gather(*(kept.store.files.add(ALICE, it, anything) for it in same))
    assert await kept.count() == 1 + 8
    for it in same:
        assert await kept.read(it[0].file.id) == b"the same"


async def test_users_share_nothing(kept: Kept):
    mine, theirs = await keep_file(kept.store, ALICE), await keep_file(kept.store, BOB)
    assert await kept.count() == 2
    assert await kept.read(theirs, ALICE) is None
    await kept.store.users.delete(BOB, NOW)
    assert await kept.count() == 1
    assert await kept.read(mine) == b"words"


async def test_purge_frees_what_nothing_uses_any_more_and_nothing_else(kept: Kept):
    shared, own = await keep_file(kept.store), await keep_file(kept.store, words="own", renditions=("model",))
    again = await keep_file(kept.store, words="own")  # the same bytes under another name
    first = await kept.conversation_with(shared, own)
    second = await kept.conversation_with(shared, again)
    assert await kept.count() == 3
    await kept.store.conversations.purge(ALICE, first.id)
    assert await kept.count() == 2
    assert await kept.read(own) is None
    assert [await kept.read(it) for it in (shared, again)] == [b"words", b"own"]
    loaded = await kept.store.payloads.load(second.id, [shared])
    assert loaded[shared] == b"words"
    assert isinstance((await kept.store.payloads.load(first.id, [shared]))[shared], Lost)
    await kept.store.conversations.delete(ALICE, second.id, NOW)
    await kept.store.conversations.purge_deleted_before(NOW + 1)
    assert await kept.count() == 0


async def test_upload_while_the_last_reference_goes_keeps_its_bytes(kept: Kept, tmp_path: Path):
    for _ in range(5):
        conversation = await kept.conversation_with(await keep_file(kept.store))
        (fresh,) = prepared(tmp_path, "words")
        await asyncio.gather(
            kept.store.conversations.purge(ALICE, conversation.id),
            kept.store.files.add(ALICE, [fresh], anything),
        )
        assert await kept.read(fresh.file.id) == b"words"
        assert await kept.count() == 1
        await kept.store.files.forget_unsent(NOW + 1)
        assert await kept.count() == 0


async def test_quota_that_the_third_of_five_files_passes_leaves_none_of_them(kept: Kept, tmp_path: Path):
    five = prepared(tmp_path, *(str(number) * 10 for number in range(5)))
    with pytest.raises(LimitNotAllowed):
        await kept.store.files.add(ALICE, five, at_most(29))
    assert await kept.count() == 0
    assert await kept.store.files.visible(ALICE, [it.file.id for it in five]) == {}
    await kept.store.files.add(ALICE, five[:2], at_most(29))


async def test_uploads_at_the_same_time_do_not_pass_the_quota(kept: Kept, tmp_path: Path):
    uploads = [prepared(tmp_path, str(number) * 10) for number in range(8)]
    sent = (kept.store.files.add(ALICE, it, at_most(35)) for it in uploads)
    results = await asyncio.gather(*sent, return_exceptions=True)
    assert sum(it is None for it in results) == 3
    assert await kept.count() == 3


async def test_quota_counts_sent_files_and_equal_bytes_once(kept: Kept, tmp_path: Path):
    rooms: list[Room] = []
    await kept.conversation_with(await keep_file(kept.store, words="0123456789", renditions=("model",)))
    await kept.store.files.add(ALICE, prepared(tmp_path, "0123456789", "new", "new"), rooms.append)
    (room,) = rooms
    renditions, texts = len("0123456789: model"), await kept.store.whole_conversations.text_bytes(ALICE)
    assert room == Room(unsent=3, unsent_bytes=10 + 3, total_bytes=10 + renditions + 3 + texts)


async def test_any_part_of_a_file_is_read_in_pieces(kept: Kept, monkeypatch: pytest.MonkeyPatch):
    for module in (file_contents, folder):
        monkeypatch.setattr(module, "PIECE_BYTES", 4)
    words = "0123456789ab"
    file_id = await keep_file(kept.store, words=words)
    opened = await kept.store.files.open(file_id, len(words))
    assert opened
    for start, stop in ((0, 12), (3, 5), (4, 8), (11, 12), (0, 1)):
        async with aclosing(opened.read(start, stop)) as pieces:
            read = [piece async for piece in pieces]
        assert b"".join(read).decode() == words[start:stop]
        assert max(map(len, read)) <= 4


@pytest.mark.parametrize("stored", ["folder"], indirect=True)
async def test_lost_bytes_are_noticed_and_come_back_with_the_next_upload(kept: Kept, tmp_path: Path):
    lost = await keep_file(kept.store)
    conversation = await kept.conversation_with(lost)
    (file,) = kept.files()
    for damage in (lambda: file.write_bytes(b"wor"), file.unlink):
        damage()
        assert await kept.read(lost) is None
        assert isinstance((await kept.store.payloads.load(conversation.id, [lost]))[lost], Lost)
        await kept.store.files.add(ALICE, prepared(tmp_path, "words"), anything)
        assert await kept.read(lost) == b"words"
        assert await kept.count() == 1


@pytest.mark.parametrize("stored", ["folder"], indirect=True)
async def test_what_a_killed_node_has_staged_is_removed_after_an_hour(
    kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    wanted = await keep_file(kept.store)

    async def killed(plan: object) -> None:
        raise StorageRefused("killed before the commit")

    with monkeypatch.context() as broken:
        broken.setattr(kept.database, "write", killed)
        with pytest.raises(StorageRefused):
            await kept.store.files.add(ALICE, prepared(tmp_path, "left"), anything)
    assert len(kept.files()) == 2
    assert await kept.store.files.forget_unsent(0) == 0  # its row may still be on its way
    for file in kept.files():
        os.utime(file, (0, time.time() - HOUR_S - 1))
    assert await kept.store.files.forget_unsent(0) == 1
    assert await kept.count() == 1
    assert await kept.read(wanted) == b"words"


@pytest.mark.parametrize("stored", ["folder"], indirect=True)
async def test_disk_that_fills_up_leaves_nothing(kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    link = file_folder.link_or_copy

    def full(source: Path, folder: Path, name: str) -> None:
        link(source, folder, name)
        if len(kept.files()) == 2:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(file_folder, "link_or_copy", full)
    with pytest.raises(StorageRefused, match="No space left"):
        await kept.store.files.add(ALICE, prepared(tmp_path, "a", "b", "c"), anything)
    assert await kept.count() == 0


async def test_image_of_a_tool_that_is_kept_again_after_a_lost_answer_is_there_once(
    kept: Kept, tmp_path: Path
):
    conversation = await keep_conversation(kept.store, await keep_agent(kept.store))
    (image,) = prepared(tmp_path, "pixels")
    for _ in range(2):
        await kept.store.files.add_returned(conversation, image)
    assert await kept.count() == 1
    artifact = await kept.store.payloads.file(ALICE, image.file.id)
    assert artifact and artifact.conversation_id == conversation.id
    assert await kept.store.files.latest(conversation.id, limit=9) == [image.file]


async def test_image_of_a_running_turn_stays_when_a_queued_message_with_it_is_removed(
    kept: Kept, tmp_path: Path
):
    conversation = await keep_conversation(kept.store, await keep_agent(kept.store))
    begun = conversation.begin_turn("Draw.", NOW)
    await keep_begun(kept.store, begun)
    image, own = prepared(tmp_path, "pixels", "own")
    await kept.store.files.add_returned(conversation, image)
    await kept.store.files.add(ALICE, [own], anything)
    resulted = ToolResultStored("call", "draw", "ok", artifact_ids=(image.file.id,))
    await kept.store.log.append([(chunk_of(begun.turn.id, 2, resulted), 1)])
    queued = QueuedMessage.of(conversation.id, "This?", NOW, files=(image.file.part, own.file.part))
    await kept.store.queue.add(queued, begun.turn.id)
    assert await kept.store.queue.remove(conversation.id, queued.id, NOW)
    assert await kept.read(image.file.id) == b"pixels"  # the reply that is being written shows it
    assert await kept.read(own.file.id) is None


async def test_files_given_to_somebody_else_share_the_bytes_that_both_have(kept: Kept):
    given, own = await keep_file(kept.store, BOB), await keep_file(kept.store, ALICE)
    other = await keep_file(kept.store, BOB, words="Bob's own")
    await kept.store.whole_conversations.reassign(BOB, ALICE, NOW, alone=True)
    assert [await kept.read(it) for it in (given, own, other)] == [b"words", b"words", b"Bob's own"]
    ((rows,),) = await kept.database.fetch(_ROWS())
    assert rows == 2
