"""What servers run and keep for single users goes when the users go, however they go."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.making import ALICE, BOB, NOW, make_agent
from tests.mcp.running import Limits, Pooled, chaos, is_alive, pooled
from threadkeep.domain.ids import UserId
from threadkeep.domain.mcp import ServerScope
from threadkeep.mcp.personal import FOLDER, PersonalServers, _remove, prepare  # pyright: ignore[reportPrivateUsage]
from threadkeep.storage import users
from threadkeep.storage.database.connector import Database, Statement
from threadkeep.storage.store import Store

SERVER = chaos(scope=ServerScope.USER)


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Pooled]:
    async with pooled(tmp_path, Limits()) as here:
        yield here


@pytest.fixture
def personal(here: Pooled) -> PersonalServers:
    return PersonalServers(here.pool, here.workspaces)


async def begin(here: Pooled, *user_ids: UserId) -> dict[UserId, list[Path]]:
    """Has a server of their own run for each user, and folders in two workspaces."""
    folders: dict[UserId, list[Path]] = {}
    for user_id in user_ids:
        await here.tools(SERVER, user_id)
        workspaces = [here.workspaces.of(agent.id) for agent in (make_agent(), make_agent())]
        folders[user_id] = [prepare(workspace, user_id) for workspace in workspaces]
    return folders


async def test_user_who_is_deleted_leaves_no_process_and_no_folder(here: Pooled, personal: PersonalServers):
    folders = await begin(here, ALICE, BOB)
    role = folders[ALICE][0].parents[1] / ".promptx/resource/role/lawyer.role.md"
    role.write_text("of all users of the agent")
    await personal.forget(ALICE)
    assert [is_alive(pid) for pid in here.pids()] == [False, True]
    assert not any(folder.exists() for folder in folders[ALICE])
    assert all(folder.exists() for folder in folders[BOB])
    assert role.exists()
    await personal.forget(UserId("nobody"))


async def test_sweep_finds_what_is_left_of_users_whom_the_host_deleted(
    store: Store, database: Database, here: Pooled, personal: PersonalServers, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(users, "IDS_AT_ONCE", 2)
    everyone = [UserId(name) for name in ("ann", "ben", "cem", "dan", "eve")]
    for user_id in everyone:
        await database.execute(users.ENSURE_USER(id=user_id, now=NOW))
    assert [id_ async for id_ in store.users.ids()] == everyone
    folders = await begin(here, *everyone)
    await database.execute(Statement("DELETE FROM tk_users WHERE id IN ('ben', 'eve')")())
    await personal.keep_only(store.users.ids())
    assert [is_alive(pid) for pid in here.pids()] == [True, False, True, True, False]
    left = {user_id for user_id in everyone if any(folder.exists() for folder in folders[user_id])}
    assert left == {"ann", "cem", "dan"}


async def test_folder_that_cannot_be_removed_harms_nothing(
    here: Pooled, personal: PersonalServers, caplog: pytest.LogCaptureFixture
):
    stray = here.workspaces.of(make_agent().id) / FOLDER / "stray"
    stray.parent.mkdir(parents=True)
    stray.write_text("a file, where folders are")

    async def nobody() -> AsyncIterator[UserId]:
        return
        yield

    await personal.keep_only(nobody())
    assert "stray: Not a directory" in caplog.text


async def test_link_that_a_program_puts_in_the_place_of_users_folders_is_not_followed(
    here: Pooled, personal: PersonalServers
):
    """Programs write in their agent's folder; what such a link leads to is another's, or ours."""
    other = here.workspaces.of(make_agent().id)
    (other / "notes").mkdir(parents=True)
    link = here.workspaces.of(make_agent().id) / FOLDER
    link.parent.mkdir()
    link.symlink_to(here.workspaces.root)

    async def nobody() -> AsyncIterator[UserId]:
        return
        yield

    await personal.keep_only(nobody())
    _remove([link / other.name])  # also where it was put there only now
    assert (other / "notes").exists()
