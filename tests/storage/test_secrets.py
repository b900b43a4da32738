"""Secrets at rest: encrypted, with a key that is made, lost, changed."""

import json
import logging
import stat
from pathlib import Path

import pytest

from tests.making import ALICE, NOW, keep_agent
from threadkeep.domain.agent import Agent, AgentSettings, AuditEntry
from threadkeep.domain.data_folder import SECRET_KEY
from threadkeep.domain.errors import SecretKeyRequired, SecretUnreadable, SettingsError, StorageRefused
from threadkeep.domain.ids import new_uuid
from threadkeep.domain.mcp import RemoteServer, StdioServer
from threadkeep.domain.secret import Secret
from threadkeep.storage.database.connector import Database, Statement
from threadkeep.storage.secrets import SecretBox
from threadkeep.storage.store import store_on

VALUE = "sk-the-value-itself-密钥"
OLD, NEW = "the-old-key-" * 3, "the-new-key-" * 3
SETTINGS = Statement("SELECT settings FROM tk_agents WHERE id = :id")


def entry(agent: Agent) -> AuditEntry:
    return AuditEntry(new_uuid(), NOW, ALICE, "update", agent.id, {})


def with_secrets(value: str = VALUE) -> AgentSettings:
    return AgentSettings(
        mcp_servers={
            "web": StdioServer("npx", ("x",), {"KEY": Secret(value)}),
            "docs": RemoteServer("https://mcp.example.com", {"Authorization": Secret(f"Bearer {value}")}),
        }
    )


async def keep(database: Database, *keys: str, value: str = VALUE) -> Agent:
    """An agent with secrets, written by a Threadkeep with these keys."""
    return await keep_agent(await store_on(database, SecretBox(keys)), settings=with_secrets(value))


async def read(database: Database, agent: Agent, *keys: str) -> list[str]:
    """What a Threadkeep with these keys reads of the agent's secrets."""
    found = await (await store_on(database, SecretBox(keys))).agents.get(agent.id)
    assert found
    return [
        secret.reveal()
        for server in found.settings.mcp_servers.values()
        for secret in server.secrets.values()
    ]


async def column(database: Database, agent: Agent) -> str:
    ((settings,),) = await database.fetch(SETTINGS(id=agent.id))
    return settings


async def test_secrets_are_kept_encrypted_and_read_back(database: Database):
    agent = await keep(database, OLD)
    assert await read(database, agent, OLD) == [VALUE, f"Bearer {VALUE}"]
    kept = await column(database, agent)
    assert VALUE not in kept and "sk-the" not in kept
    assert "npx" in kept and "Authorization" in kept


async def test_value_that_did_not_change_stays_as_it_was_written(database: Database):
    agent = await keep(database, OLD)
    before = json.loads(await column(database, agent))
    store = await store_on(database, SecretBox([OLD]))
    await store.agents.update(agent.id, lambda it: it, entry)
    assert json.loads(await column(database, agent)) == before
    one, two = [await store.agents.get(agent.id) for _ in range(2)]
    assert one == two


async def test_nothing_is_kept_where_there_is_no_key(database: Database):
    store = await store_on(database)
    with pytest.raises(SecretKeyRequired, match="THREADKEEP_SECRET_KEY"):
        await keep_agent(store, settings=with_secrets())
    assert await store.agents.page(ALICE, after=None, offset=0, limit=9) == []
    without = AgentSettings(mcp_servers={"docs": RemoteServer("https://mcp.example.com")})
    assert await store.agents.get((await keep_agent(store, settings=without)).id)


async def test_key_is_required_once_a_secret_is_stored(database: Database):
    await store_on(database)
    await keep(database, OLD)
    with pytest.raises(SettingsError, match="THREADKEEP_SECRET_KEY"):
        await store_on(database)


async def test_first_key_encrypts_everything_anew_at_the_start(database: Database):
    agents = [await keep(database, OLD, value=f"value-{number}") for number in range(3)]
    plain = await keep_agent(await store_on(database, SecretBox([OLD])))
    before = [await column(database, agent) for agent in agents]
    await store_on(database, SecretBox([NEW, OLD]))
    after = [await column(database, agent) for agent in agents]
    assert not set(before) & set(after)
    # From now on the old key is not needed any more.
    for number, agent in enumerate(agents):
        assert await read(database, agent, NEW) == [f"value-{number}", f"Bearer value-{number}"]
    assert await read(database, plain, NEW) == []
    # And nothing is written a second time.
    await store_on(database, SecretBox([NEW, OLD]))
    assert [await column(database, agent) for agent in agents] == after


async def test_node_that_still_has_the_old_key_first_does_no_harm(database: Database):
    """While the key is changed node by node, both orders are in use."""
    await store_on(database, SecretBox([OLD, NEW]))
    await keep(database, OLD, NEW)
    await store_on(database, SecretBox([NEW, OLD]))
    late = await keep(database, OLD, NEW)
    assert await read(database, late, NEW, OLD) == [VALUE, f"Bearer {VALUE}"]
    assert await read(database, late, NEW) == [VALUE, f"Bearer {VALUE}"]


async def test_lost_key_leaves_agents_readable_and_only_their_secrets_not(
    database: Database, caplog: pytest.LogCaptureFixture
):
    agent = await keep(database, OLD)
    before = json.loads(await column(database, agent))
    with caplog.at_level(logging.ERROR):
        store = await store_on(database, SecretBox([NEW]))
    assert "can't decrypt 2 stored secrets" in caplog.text
    found = await store.agents.get(agent.id)
    assert found and found.settings.mcp_servers.keys() == {"web", "docs"}
    with pytest.raises(SecretUnreadable):
        await read(database, agent, NEW)
    # Saving it for another reason loses nothing either.
    await store.agents.update(agent.id, lambda it: it, entry)
    assert json.loads(await column(database, agent)) == before
    # Brought back, everything is as it was.
    assert await read(database, agent, NEW, OLD) == [VALUE, f"Bearer {VALUE}"]


@pytest.mark.parametrize(
    "damaged", ["", "x", "00000000.x", "gAAAAA", "{name}.", "{name}.gAAAAA", "{name}.密"]
)
def test_damaged_secret_is_told_without_what_it_held(damaged: str):
    box = SecretBox([OLD])
    token = box.seal(Secret(VALUE))
    with pytest.raises(SecretUnreadable) as told:
        box.kept(damaged.format(name=token.partition(".")[0])).reveal()
    assert VALUE not in told.value.message and token not in told.value.message
    with pytest.raises(SecretUnreadable):
        box.open(token[:-8] + "AAAAAAA=")


def test_key_file_is_made_once_for_the_first_secret_and_for_nobody_else(tmp_path: Path):
    file = tmp_path / "data" / SECRET_KEY
    box = SecretBox(key_file=file)
    assert not file.exists()
    token = box.seal(Secret(VALUE))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    key = file.read_text()
    assert len(key.strip()) >= 43
    assert SecretBox(key_file=file).open(token) == VALUE
    SecretBox(key_file=file).seal(Secret(VALUE))
    assert file.read_text() == key
    assert sorted(it.name for it in file.parent.iterdir()) == [".gitignore", SECRET_KEY]


def test_key_of_the_settings_takes_over_from_the_file(tmp_path: Path):
    file = tmp_path / SECRET_KEY
    token = SecretBox(key_file=file).seal(Secret(VALUE))
    both = SecretBox([NEW], file)
    assert both.open(token) == VALUE
    assert SecretBox([NEW]).open(both.seal(both.kept(token))) == VALUE


def test_key_file_that_cannot_be_used_is_told(tmp_path: Path):
    with pytest.raises(StorageRefused, match="Can't read"):
        SecretBox(key_file=tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(StorageRefused, match="Can't"):
        SecretBox(key_file=tmp_path / "file" / SECRET_KEY).seal(Secret(VALUE))


def test_same_secret_is_never_written_twice_the_same_way():
    box = SecretBox([OLD])
    assert box.seal(Secret(VALUE)) != box.seal(Secret(VALUE))


def test_secret_shows_nothing_of_itself():
    box = SecretBox([OLD])
    token = box.seal(Secret(VALUE))
    for secret in (Secret(VALUE), box.kept(token)):
        for shown in (
            repr(secret),
            str(secret),
            f"{secret}",
            f"{secret!r:>40}",
            repr([secret]),
        ):
            assert VALUE not in shown and token not in shown
    assert VALUE not in repr(with_secrets())
    assert Secret("a") == Secret("a") != Secret("b")
    assert Secret(token) != box.kept(token) == box.kept(token)
