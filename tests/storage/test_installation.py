"""The id by which front ends know a database."""

from pathlib import Path

from tests.conftest import Api
from threadkeep.storage.database.backup import back_up, restore
from threadkeep.storage.database.connector import Database
from threadkeep.storage.store import open_store, store_on, store_reading


async def test_nodes_of_one_database_have_one_id(database: Database):
    first, second, reading = await store_on(database), await store_on(database), await store_reading(database)
    assert first.installation
    assert first.installation == second.installation == reading.installation


async def test_the_api_tells_it(api: Api):
    me = (await api.as_user("alice").get("/api/me")).json()
    assert me["installation"] == api.store.installation


async def test_another_database_has_another_id_and_a_restored_one_keeps_it(tmp_path: Path):
    ids: list[str] = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir(mode=0o700)
        store = await open_store(f"sqlite:///{tmp_path}/{name}/threadkeep.db")
        ids.append(store.installation)
        await store.close()
    back_up(tmp_path / "a", tmp_path / "backup.tar")
    restore(tmp_path / "backup.tar", tmp_path / "again")
    store = await open_store(f"sqlite:///{tmp_path}/again/threadkeep.db")
    await store.close()
    assert store.installation == ids[0] != ids[1]
