"""What every store of gateways does, on each database."""

import asyncio
from dataclasses import replace

import pytest

from tests.making import ALICE, NOW
from threadkeep.domain.agent import AuditEntry
from threadkeep.domain.errors import Conflict, Forbidden, SecretUnreadable
from threadkeep.domain.ids import new_uuid
from threadkeep.domain.model import GatewayConfig, GatewayKind, ListedModel
from threadkeep.domain.money import Price
from threadkeep.domain.secret import Secret
from threadkeep.ports.gateways import SavedGateway
from threadkeep.storage.database.connector import Database, Statement
from threadkeep.storage.secrets import SecretBox
from threadkeep.storage.store import Store, store_on

KEY = "sk-the-key-itself-密钥"
OLD, NEW = "the-old-key-" * 3, "the-new-key-" * 3
LISTED = (
    ListedModel(name="small"),
    ListedModel(
        name="large", context_tokens=1000, takes_images=False, price=Price(input=3, output=15, cached_input=0)
    ),
)


def gateway(name: str = "work", *, key: str | None = KEY, at: int = NOW) -> SavedGateway:
    config = GatewayConfig(
        name=name,
        kind=GatewayKind.OPENAI,
        url="http://127.0.0.1:11434/v1",
        api_key=None if key is None else Secret(key),
        models=LISTED,
        default_model="small",
    )
    return SavedGateway(config=config, version=1, created_at=at, updated_at=at)


def entry(action: str = "create_gateway") -> AuditEntry:
    return AuditEntry(new_uuid(), NOW, ALICE, action, None, {"gateway": "work"})


def with_url(url: str) -> SavedGateway:
    return replace(gateway(), config=replace(gateway().config, url=url), version=2)


@pytest.fixture
async def store(database: Database) -> Store:
    return await store_on(database, SecretBox([OLD]))


async def add(store: Store, *gateways: SavedGateway) -> None:
    for it in gateways:
        await store.gateways.add(it, entry(), most=10)


async def keys(store: Store) -> list[str]:
    return [it.config.api_key.reveal() for it in await store.gateways.all() if it.config.api_key]


async def test_gateway_comes_back_as_it_was_saved_oldest_first(store: Store):
    await add(store, gateway("b"), gateway("a", key=None, at=NOW + 1))
    first, second = await store.gateways.all()
    assert replace(first.config, api_key=None) == replace(gateway("b").config, api_key=None)
    assert await keys(store) == [KEY]
    assert second == gateway("a", key=None, at=NOW + 1)


async def test_key_is_encrypted_at_rest_and_equal_while_it_is_unchanged(store: Store, database: Database):
    await add(store, gateway())
    ((kept,),) = await database.fetch(Statement("SELECT api_key FROM tk_gateways")())
    assert KEY not in kept
    before = await store.gateways.all()
    await store.gateways.update("work", lambda it: it, lambda _: entry("update_gateway"))
    assert await store.gateways.all() == before


async def test_name_is_taken_once_and_the_limit_holds(store: Store):
    await add(store, gateway())
    with pytest.raises(Conflict):
        await add(store, gateway())
    with pytest.raises(Conflict):
        await store.gateways.add(gateway("other"), entry(), most=1)
    assert [it.action for it in await store.agents.audit_page(before=None, offset=0, limit=9)] == [
        "create_gateway"
    ]


async def test_one_of_two_admins_who_take_a_name_at_once_gets_it(store: Store):
    outcomes = await asyncio.gather(*(add(store, gateway()) for _ in range(2)), return_exceptions=True)
    assert sorted(map(type, outcomes), key=str) == sorted([type(None), Conflict], key=str)


async def test_change_and_removal_are_audited_and_a_missing_one_is_none(store: Store):
    await add(store, gateway())
    changed = await store.gateways.update(
        "work", lambda it: with_url("https://models.example"), lambda _: entry("update_gateway")
    )
    assert changed is not None
    assert [it.config.url for it in await store.gateways.all()] == ["https://models.example"]
    assert await store.gateways.remove("work", lambda _: None, entry("delete_gateway"))
    assert await store.gateways.all() == []
    assert not await store.gateways.remove("work", lambda _: None, entry())
    assert await store.gateways.update("work", lambda it: it, lambda _: entry()) is None
    found = await store.agents.audit_page(before=None, offset=0, limit=9)
    assert [it.action for it in found] == ["delete_gateway", "update_gateway", "create_gateway"]


async def test_refused_change_and_refused_removal_leave_everything_as_it_was(store: Store):
    await add(store, gateway())
    before = await store.gateways.all()

    def refuse(it: SavedGateway) -> SavedGateway:
        raise Forbidden("no")

    with pytest.raises(Forbidden):
        await store.gateways.update("work", refuse, lambda _: entry())
    with pytest.raises(Forbidden):
        await store.gateways.remove("work", lambda it: (refuse(it), None)[1], entry())
    assert await store.gateways.all() == before


async def test_key_is_encrypted_again_with_a_new_secret_key(store: Store, database: Database):
    await add(store, gateway())
    assert await keys(await store_on(database, SecretBox([NEW, OLD]))) == [KEY]
    assert await keys(await store_on(database, SecretBox([NEW]))) == [KEY]


async def test_key_that_can_no_longer_be_decrypted_keeps_the_rest_readable(store: Store, database: Database):
    await add(store, gateway("lost"), gateway("keyless", key=None, at=NOW + 1))
    other = await store_on(database, SecretBox([NEW]))
    first, second = await other.gateways.all()
    assert first.config.url and second.config.api_key is None
    assert first.config.api_key is not None
    with pytest.raises(SecretUnreadable):
        first.config.api_key.reveal()
    await other.gateways.update("lost", lambda it: replace(it, version=2), lambda _: entry())
    assert await keys(await store_on(database, SecretBox([NEW, OLD]))) == [KEY]
