"""What providers give for their users: kept encrypted, used by one node at a time, and by nobody too late."""

import asyncio
from collections.abc import Sequence

import pytest

from tests.making import ALICE, NOW
from threadkeep.domain.agent import AuditEntry
from threadkeep.domain.errors import SecretUnreadable
from threadkeep.domain.ids import UserId, new_uuid
from threadkeep.domain.secret import Secret
from threadkeep.domain.sign_in.session import DAY_MS, LONGEST_MS, Session, SignedIn, required_hash
from threadkeep.domain.user import UserRole
from threadkeep.services.sign_in.sessions import new_session
from threadkeep.storage.database.connector import Database, Statement
from threadkeep.storage.secrets import SecretBox
from threadkeep.storage.sign_in.grants import Grant
from threadkeep.storage.store import Store, store_on

TOKEN = "refresh-me"
OLD, NEW = "the-old-key-" * 3, "the-new-key-" * 3
STORED = Statement("SELECT refresh_token FROM tk_sign_in_grants")
LATER = NOW + DAY_MS


def entry() -> AuditEntry:
    return AuditEntry(new_uuid(), NOW, ALICE, "suspend_user", None, {"userId": "work|1"})


async def sign_in(store: Store, token: str | None = TOKEN, subject: str = "1") -> Session:
    user = SignedIn(id=UserId(f"work|{subject}"), role=UserRole.USER, name="Ann", groups=("staff",))
    session, value = new_session(user.id, "oidc:work", "browser", NOW)
    given = Secret(token) if token else None
    return await store.grants.start(session, required_hash(value), user, "work", given, due_at=NOW)


async def due(store: Store, provider: str = "work") -> Grant | None:
    return await store.grants.take_due(provider, LATER, again_at=LATER + 1)


async def sessions(store: Store, subject: str = "1") -> Sequence[Session]:
    return await store.sessions.of_user(UserId(f"work|{subject}"), NOW)


async def test_refresh_token_is_encrypted_and_follows_the_first_key(database: Database):
    await sign_in(await store_on(database, SecretBox([OLD])))
    ((before,),) = await database.fetch(STORED())
    assert TOKEN not in before
    await store_on(database, SecretBox([NEW, OLD]))
    ((after,),) = await database.fetch(STORED())
    assert before != after
    grant = await due(await store_on(database, SecretBox([NEW])))
    assert grant and grant.refresh_token.reveal() == TOKEN


async def test_grant_whose_key_is_lost_ends_with_its_sessions(database: Database):
    await sign_in(await store_on(database, SecretBox([OLD])))
    store = await store_on(database, SecretBox([NEW]))
    grant = await due(store)
    assert grant
    with pytest.raises(SecretUnreadable):
        grant.refresh_token.reveal()
    await store.grants.forget(grant, "oidc:work")
    assert await sessions(store) == []
    assert await database.fetch(STORED()) == []


async def test_session_lasts_only_if_the_provider_can_be_asked_again(database: Database):
    store = await store_on(database, SecretBox([OLD]))
    assert (await sign_in(store, token=None)).ends_at == NOW + DAY_MS
    assert (await sign_in(store)).ends_at == NOW + LONGEST_MS
    assert (await sign_in(store, token=None)).ends_at == NOW + LONGEST_MS  # as Google: with the first only
    assert {it.ends_at for it in await sessions(store)} == {NOW + DAY_MS, NOW + LONGEST_MS}


async def test_two_nodes_never_use_the_same_token(database: Database):
    store = await store_on(database, SecretBox([OLD]))
    for subject in ("1", "2", "3"):
        await sign_in(store, subject=subject)
    assert await due(store, "other") is None
    taken = [it.user_id for it in await asyncio.gather(*(due(store) for _ in range(6))) if it]
    assert sorted(taken) == ["work|1", "work|2", "work|3"]
    assert await due(store) is None


async def test_answer_about_an_earlier_sign_in_changes_nothing(database: Database):
    store = await store_on(database, SecretBox([OLD]))
    await sign_in(store)
    grant = await due(store)
    assert grant
    await sign_in(store, token="another")
    admin = SignedIn(id=grant.user_id, role=UserRole.ADMIN)
    assert not await store.grants.renew(grant, admin, Secret("rotated"), LATER, due_at=LATER)
    assert not await store.grants.lose(grant, LATER, entry())
    found = await store.known_users.find(grant.user_id)
    assert found and (found.role, found.suspended_at) == (UserRole.USER, None)
    assert len(await sessions(store)) == 2
    again = await due(store)
    assert again and again.refresh_token.reveal() == "another"
    # What is said about this one counts.
    assert await store.grants.renew(again, admin, None, LATER, due_at=LATER)
    assert (await due(store) or again).refresh_token.reveal() == "another"
    found = await store.known_users.find(grant.user_id)
    assert found and found.role == UserRole.ADMIN


async def test_users_whom_nobody_has_confirmed_lose_their_sessions_with_that_provider(database: Database):
    store = await store_on(database, SecretBox([OLD]))
    await sign_in(store)
    await sign_in(store, token=None, subject="2")
    other, value = new_session(UserId("work|1"), "invitation", "browser", NOW)
    await store.sessions.start(other, required_hash(value), SignedIn(id=other.user_id, role=UserRole.USER))
    await store.grants.end_unchecked(NOW - 1)
    assert len(await sessions(store)) == 2
    await store.grants.end_unchecked(NOW)
    assert [it.way for it in await sessions(store)] == ["invitation"]
    assert len(await sessions(store, "2")) == 1  # that one ends by itself


async def test_user_whose_token_is_refused_is_suspended_in_time_unless_they_sign_in(database: Database):
    store = await store_on(database, SecretBox([OLD]))
    for subject in ("1", "2", "3"):
        await sign_in(store, subject=subject)
        grant = await due(store)
        assert grant
        assert await store.grants.refuse(grant, "oidc:work", ends_after=DAY_MS)
        assert await sessions(store, subject) == []
        assert await due(store) is None, "nobody asks with it again"
        assert not await store.grants.refuse(grant, "oidc:work", ends_after=DAY_MS)
    await sign_in(store, subject="1")
    again = await sign_in(store, token=None, subject="2")
    assert again.ends_at == NOW + DAY_MS, "there is nothing to ask with"
    assert await store.grants.refused_for_long("work", LATER - 1) == []
    assert await store.grants.refused_for_long("other", LATER) == []
    (grant,) = await store.grants.refused_for_long("work", LATER)
    assert grant.user_id == "work|3"
    await store_on(database, SecretBox([NEW, OLD]))  # another key changes nothing about that
    assert await store.grants.refused_for_long("work", LATER) == [grant]
    assert await store.grants.lose(grant, LATER, entry())
    assert await store.grants.refused_for_long("work", LATER) == []
    found = await store.known_users.find(grant.user_id)
    assert found and found.suspended_at == LATER
