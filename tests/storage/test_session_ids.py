"""Session ids at rest: nobody who reads the database can follow a conversation with what stands there."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.making import ALICE, keep_agent, keep_conversation
from threadkeep.domain.conversation import Conversation, new_session_id
from threadkeep.domain.data_folder import SECRET_KEY
from threadkeep.storage.database.connector import Database, Statement
from threadkeep.storage.secrets import SecretBox
from threadkeep.storage.store import store_on

ROWS = Statement("SELECT session_id, session_hash FROM tk_conversations ORDER BY id")
# As the version before kept them.
AS_BEFORE = Statement(
    "UPDATE tk_conversations SET session_id = :session_id, session_hash = NULL WHERE id = :id"
)
FORGET_KEY = Statement("DELETE FROM tk_meta WHERE name = 'session_key'")
OLD, NEW = "o" * 40, "n" * 40


async def stored(database: Database) -> str:
    """All that the table has of session ids."""
    return str(await database.fetch(ROWS()))


async def begin(database: Database, box: SecretBox | None) -> Conversation:
    store = await store_on(database, box)
    return await keep_conversation(store, await keep_agent(store))


async def check_opens(
    database: Database, box: SecretBox, session_id: str, conversation: Conversation
) -> None:
    """The session id leads to its conversation, which shows it."""
    store = await store_on(database, box)
    found = await store.conversations.by_session(session_id)
    assert found and (found.id, found.session_id.reveal()) == (conversation.id, session_id)


async def test_session_id_is_not_in_the_database_and_opens_its_conversation(
    database: Database, tmp_path: Path
):
    box = SecretBox((), tmp_path / SECRET_KEY)
    conversation = await begin(database, box)
    session_id = conversation.session_id.reveal()
    assert session_id not in await stored(database)
    await check_opens(database, box, session_id, conversation)
    store = await store_on(database, box)
    kept = await stored(database)
    for wrong in (kept, session_id[:-1], "", f"{session_id}%"):
        assert await store.conversations.by_session(wrong) is None


async def test_session_id_that_is_replaced_opens_nothing_any_more(database: Database, tmp_path: Path):
    box = SecretBox((), tmp_path / SECRET_KEY)
    conversation = await begin(database, box)
    store, fresh = await store_on(database, box), new_session_id()
    await store.conversations.update(ALICE, conversation.id, lambda it: replace(it, session_id=fresh))
    assert await store.conversations.by_session(conversation.session_id.reveal()) is None
    await check_opens(database, box, fresh.reveal(), conversation)
    assert fresh.reveal() not in await stored(database)


async def test_session_ids_of_the_version_before_are_sealed_at_the_first_start(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("threadkeep.storage.session_ids._AT_ONCE", 2)
    conversations = [await begin(database, None) for _ in range(5)]
    ids = [it.session_id.reveal() for it in conversations]
    for conversation, session_id in zip(conversations, ids, strict=True):
        await database.execute(AS_BEFORE(id=conversation.id, session_id=session_id))
    await database.execute(FORGET_KEY())
    box = SecretBox((), tmp_path / SECRET_KEY)
    await store_on(database, box)
    kept = await stored(database)
    assert not [it for it in ids if it in kept]
    for session_id, conversation in zip(ids, conversations, strict=True):
        await check_opens(database, box, session_id, conversation)


async def test_without_a_key_they_are_found_by_their_hash_and_sealed_once_there_is_one(database: Database):
    """As on PostgreSQL before THREADKEEP_SECRET_KEY is set."""
    conversation = await begin(database, SecretBox())
    session_id = conversation.session_id.reveal()
    await check_opens(database, SecretBox(), session_id, conversation)
    await check_opens(database, SecretBox((OLD,)), session_id, conversation)
    assert session_id not in await stored(database)


async def test_new_key_seals_them_anew(database: Database):
    conversation = await begin(database, SecretBox((OLD,)))
    before = await stored(database)
    session_id = conversation.session_id.reveal()
    await check_opens(database, SecretBox((NEW, OLD)), session_id, conversation)
    assert await stored(database) != before
    await check_opens(database, SecretBox((NEW,)), session_id, conversation)


@pytest.mark.parametrize("left", [(NEW,), ()], ids=["another key", "no key"])
async def test_session_whose_key_is_lost_gets_a_new_id_and_nothing_else_is_lost(
    database: Database, left: tuple[str, ...], caplog: pytest.LogCaptureFixture
):
    conversation = await begin(database, SecretBox((OLD,)))
    store = await store_on(database, SecretBox(left))
    found = await store.conversations.get(ALICE, conversation.id)
    assert found and found.session_id.reveal() != conversation.session_id.reveal()
    assert "can't decrypt 1 session ids" in caplog.text
    assert await store.conversations.by_session(conversation.session_id.reveal()) is None
    await check_opens(database, SecretBox(left), found.session_id.reveal(), conversation)
