"""Files of versions before 0012 opened by this one: all are there, and their bytes once."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Literal

import pytest

from tests.making import ALICE, BOB, NOW, keep_agent, keep_conversation
from tests.postgres import Postgres
from tests.storage.test_constraints import insert
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.errors import StorageRefused
from threadkeep.domain.ids import PayloadId, new_uuid
from threadkeep.domain.payload import content_hash
from threadkeep.domain.uploaded_file import KeptRendition
from threadkeep.ports.store import Store
from threadkeep.storage import old_files
from threadkeep.storage.columns import to_json
from threadkeep.storage.database.connector import Database, Statement
from threadkeep.storage.database.migrate import Migration, migrations
from threadkeep.storage.store import open_database, open_snapshot, store_on

_TABLES = Statement(
    "SELECT name FROM sqlite_master WHERE name LIKE '%_before'",
    postgres="SELECT relname FROM pg_class WHERE relname LIKE 'tk%_before'",
)
_PAYLOADS = Statement("SELECT COUNT(*) FROM tk_payloads")
_CONTENTS = Statement("SELECT COUNT(*) FROM tk_contents")


@dataclass
class OldFiles:
    """Writes files as a version before 0012 did."""

    database: Database
    folder: Path | None
    conversation: Conversation

    async def waiting(self, words: str) -> PayloadId:
        id_ = await self._add(words, None)
        if self.folder:
            staged = self.folder / "staged" / id_
            staged.mkdir(parents=True)
            (staged / "original").write_bytes(words.encode())
            (staged / "preview").write_bytes(f"{words}: preview".encode())
        else:
            for name, text in (("original", words), ("preview", f"{words}: preview")):
                for number, piece in enumerate((text[:3], text[3:])):
                    row = {"file_id": id_, "name": name, "number": number, "content": piece.encode()}
                    await self.database.execute(insert("tk_file_pieces", row))
        return id_

    async def sent(self, words: str) -> PayloadId:
        id_ = await self._add(words, self.conversation.id)
        for text in (words, f"{words}: preview"):
            content = text.encode()
            sha256 = content_hash(content)
            if self.folder:
                (self.folder / self.conversation.id).mkdir(parents=True, exist_ok=True)
                (self.folder / self.conversation.id / sha256).write_bytes(content)
            else:
                row = {"conversation_id": self.conversation.id, "sha256": sha256, "content": content}
                await self.database.execute(insert("tk_payload_contents", {**row, "written_at": NOW}))
        return id_

    async def _add(self, words: str, conversation_id: str | None) -> PayloadId:
        id_, content, small = PayloadId(new_uuid()), words.encode(), f"{words}: preview".encode()
        preview = KeptRendition(
            id=PayloadId(new_uuid()), media_type="image/webp", size=len(small), sha256=content_hash(small)
        )
        about = {"media_type": "image/png", "size": len(content), "sha256": content_hash(content)}
        row = {
            "id": id_, "user_id": self.conversation.user_id, "conversation_id": conversation_id,
            "file_name": "a.png", **about, "renditions": to_json({"preview": preview}), "created_at": NOW,
        }  # fmt: skip
        await self.database.execute(insert("tk_files", row))
        if conversation_id:
            own = {"id": id_, "conversation_id": conversation_id, "kind": "artifact", **about}
            await self.database.execute(insert("tk_payloads", {**own, "created_at": NOW}))
            own |= {"id": preview.id, "kind": "value", "sha256": preview.sha256, "size": preview.size}
            await self.database.execute(insert("tk_payloads", {**own, "created_at": NOW}))
        return id_


@pytest.fixture(params=["sqlite", "postgres"])
def fresh_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database in which nothing is yet."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/data/threadkeep.db"
    server: Postgres = request.getfixturevalue("postgres")
    return server.create_database()


def up_to_8(dialect: Literal["sqlite", "postgres"]) -> list[Migration]:
    return [it for it in migrations(dialect) if it.version <= 8]


async def read(store: Store, file_id: PayloadId, *, preview: bool = False) -> bytes | None:
    file = (await store.files.visible(ALICE, [file_id]))[file_id]
    form = file.renditions["preview"] if preview else file
    opened = await store.files.open(form.id, form.size)
    return b"".join([piece async for piece in opened.read(0, opened.size)]) if opened else None


@pytest.mark.parametrize("where", ["folder", "table"])
async def test_old_files_are_read_sent_again_and_kept_once(
    fresh_url: str, where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = tmp_path / "payloads" if where == "folder" else None
    with monkeypatch.context() as old:
        for module in ("sqlite", "postgres"):
            old.setattr(f"threadkeep.storage.{module}.migrations", up_to_8)
        database = await open_database(fresh_url, pool_size=2)
        old.setattr("threadkeep.storage.store.convert_files", nothing)
        store = await store_on(database)
        conversation = await keep_conversation(store, await keep_agent(store))
        files = OldFiles(database, folder, conversation)
        waiting, sent = await files.waiting("waiting"), await files.sent("sent")
        twice, lost = [await files.waiting("sent"), await files.sent("lost")]
        purged, deleted = [
            await keep_conversation(store, await keep_agent(store), user_id) for user_id in (ALICE, BOB)
        ]
        await OldFiles(database, folder, purged).sent("purged")
        await OldFiles(database, folder, deleted).waiting("deleted")
        if folder:
            (folder / conversation.id / content_hash(b"lost")).unlink()
        await database.close()

    database = await open_database(fresh_url, pool_size=2)
    with pytest.raises(StorageRefused):
        await open_snapshot(fresh_url)  # not before the server has moved them
    with monkeypatch.context() as old:  # a node of the earlier version still runs, and deletes
        old.setattr("threadkeep.storage.store.convert_files", nothing)
        store = await store_on(database)
        await store.conversations.purge(ALICE, purged.id)
        await store.users.delete(BOB, NOW)

    monkeypatch.setattr(old_files, "BATCH", 1)
    with monkeypatch.context() as killed:
        killed.setattr(type(database), "write", dies_at(3, type(database).write))
        with pytest.raises(KeyboardInterrupt):
            await store_on(database, payload_folder=folder)
    store = await store_on(database, payload_folder=folder)
    try:
        assert [await read(store, it) for it in (waiting, sent, twice)] == [b"waiting", b"sent", b"sent"]
        assert await read(store, sent, preview=True) == b"sent: preview"
        assert (await read(store, lost) is None) == (folder is not None)
        assert list(await store.files.used(conversation.id, [waiting, sent])) == [sent]
        assert (await store.payloads.load(conversation.id, [sent]))[sent] == b"sent"
        assert await store.files.forget_unsent(NOW + 1) == 2
        assert await read(store, sent) == b"sent"
        assert await database.fetch(_TABLES()) == []
        assert await database.fetch(_PAYLOADS()) == [(0,)]
        assert await database.fetch(_CONTENTS()) == [(4,)]  # two files with their previews
        assert not folder or not (folder / "staged").exists()
    finally:
        await database.close()


async def nothing(*_: object) -> None:
    """Moves no file: an older version does not."""


def dies_at(number: int, write: Callable[..., Awaitable[object]]) -> Callable[..., Awaitable[object]]:
    """The process is killed in the middle."""
    calls = count(1)

    async def dying(*arguments: object) -> object:
        if next(calls) == number:
            raise KeyboardInterrupt
        return await write(*arguments)

    return dying
