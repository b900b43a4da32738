"""What every test can ask for: a real database of each kind, empty and its own."""

import asyncio
import os
import shutil
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
from hypothesis import settings

from tests.engine.in_memory import InMemoryTools
from tests.making import NODE_ID
from tests.postgres import Postgres, open_postgres
from tests.talking import Talk, talking
from threadkeep import Settings, User, UserRole, create_app
from threadkeep.domain.ids import UserId
from threadkeep.gateways.http import ReplyReader
from threadkeep.http.app import Threadkeep
from threadkeep.http.sign_in.access_tokens import issue_token
from threadkeep.log.writer import TurnLog, Written
from threadkeep.ports.gateway import ModelEvent
from threadkeep.services.equipment import Equipment
from threadkeep.services.replies.model_replies import ModelReplies
from threadkeep.sse import ServerSentEvent
from threadkeep.storage.database.connector import Database
from threadkeep.storage.store import Store, open_database, store_on
from threadkeep.testing import ScriptedModel, scripted_settings
from threadkeep.testing.waiting import PATIENCE_S

SECRET = "a-secret-for-tests-that-is-long-enough"

pytest_plugins = [
    "tests.machine",
    "tests.signals",
    "tests.conformance.plugin",
    "tests.compat",
    "tests.garbage",
]

TEMPLATE = "tk_test_template"

# Every run tries the same examples, so that it fails only for what was changed.
# --hypothesis-profile=default tries others.
settings.register_profile("repeatable", derandomize=True, deadline=None, database=None, max_examples=50)
settings.load_profile("repeatable")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest tests begin first, so that no processor waits for the last of them.

    Each worker begins with its share of the list: the first one with the browser, which keeps a processor
    busy, the second with the faults, which mostly wait. Whoever is done takes over from the others' ends.
    """
    browser = [item for item in items if item.nodeid.startswith("tests/browser/")]
    faults = [item for item in items if item.nodeid.startswith("tests/faults/")]
    long = {*browser, *faults}
    others = [item for item in items if item not in long]
    share = max(len(items) // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")) - len(browser), 0)
    items[:] = [*browser, *others[:share], *faults, *others[share:]]


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A real PostgreSQL with one migrated database, of which each test gets a copy."""
    server = open_postgres()
    server.drop_database(TEMPLATE)
    asyncio.run(migrate(server.create_database(TEMPLATE)))
    yield server
    server.close()


async def migrate(url: str) -> None:
    """Makes the tables of a new database."""
    await (await open_database(url, pool_size=1)).close()


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    """A command that a test runs in this process leaves no mask behind for the next test."""
    before = os.umask(0o022)
    os.umask(before)
    yield
    os.umask(before)


# For tests of what does not depend on the database, and of what only one of them does.
ONLY_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
ONLY_POSTGRES = pytest.mark.parametrize("database_url", ["postgres"], indirect=True)


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated SQLite file, of which each test gets a copy: migrating takes longer than most tests."""
    path = tmp_path_factory.mktemp("template") / "threadkeep.db"
    asyncio.run(migrate(f"sqlite:///{path}"))
    return path


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of an empty, migrated database, once of each kind."""
    if request.param == "sqlite":
        copy = tmp_path / "data" / "threadkeep.db"
        copy.parent.mkdir(mode=0o700)
        shutil.copy(request.getfixturevalue("sqlite_template"), copy)
        yield f"sqlite:///{copy}"
        return
    server: Postgres = request.getfixturevalue("postgres")
    url = server.borrow_database(TEMPLATE)
    yield url
    server.give_back(url)


@pytest.fixture
def crowded(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests with many more callers than connections: on a busy machine these wait longer than people."""
    monkeypatch.setattr("threadkeep.storage.database.postgres.WAIT_FOR_CONNECTION_S", PATIENCE_S)


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """An open database."""
    database = await open_database(database_url, pool_size=4)
    yield database
    await database.close()


@pytest.fixture
async def store(database: Database) -> Store:
    """The store on an open database."""
    return await store_on(database)


def secret_key_for(database_url: str) -> str | None:
    """What an operator must set: with SQLite a key is made in the data folder."""
    return None if database_url.startswith("sqlite") else "a-key-for-secrets-that-is-long-enough"


@dataclass(frozen=True)
class Api:
    """A running Threadkeep, and a way to be anybody in it."""

    app: Threadkeep
    store: Store
    clients: list[httpx.AsyncClient]

    def as_user(self, user: str, *, admin: bool = False) -> httpx.AsyncClient:
        """A client that is signed in."""
        token = issue_token(SECRET, User(UserId(user), UserRole.ADMIN if admin else UserRole.USER), 600)
        return self.client(Authorization=f"Bearer {token}")

    def as_new_user(self, user: str) -> httpx.AsyncClient:
        """A client with a token of a later second than now: what was deleted before does not concern it."""
        claims = {"sub": user, "iat": int(time.time()) + 1, "exp": int(time.time()) + 600}
        return self.client(Authorization=f"Bearer {jwt.encode(claims, SECRET, 'HS256')}")

    def client(self, **headers: str) -> httpx.AsyncClient:
        """A client with these headers."""
        client = httpx.AsyncClient(
            transport=httpx.ASGITransport(self.app), base_url="http://localhost", headers=headers
        )
        self.clients.append(client)
        return client


@pytest.fixture
async def api(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Api]:
    """Threadkeep with sign-in and without a model on an empty database; `api.store` is the store it uses."""
    # The turns that tests keep in the store are this node's own: it does not take them for abandoned.
    monkeypatch.setattr("threadkeep.runtime.node.new_uuid", lambda: NODE_ID)
    # Nobody runs them, so that nobody need be waited for who would stop them.
    monkeypatch.setattr("threadkeep.runtime.node.ABORT_S", 0.2)
    # These clients get an answer when it is whole: a stream that goes on for ever ends at once.
    monkeypatch.setattr("threadkeep.runtime.user_events.MOST_OPEN_S", 0)
    settings = Settings.load(
        {},
        data=tmp_path / "data",
        database_url=database_url,
        database_pool_size=4,
        secret_key=secret_key_for(database_url),
        jwt_secret=SECRET,
        gateway="openai",
        embedding_url="off",
        user_writes_per_minute=0,  # tests write more in a minute than people do
    )
    app = create_app(settings)
    async with app.lifespan():
        api = Api(app, (await app.services()).store, [])
        yield api
        for client in api.clients:
            await client.aclose()


@pytest.fixture
def alice(api: Api) -> httpx.AsyncClient:
    """A client signed in as alice."""
    return api.as_user("alice")


@pytest.fixture
def bob(api: Api) -> httpx.AsyncClient:
    """A client signed in as bob."""
    return api.as_user("bob")


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    """A model that does what the test writes down."""
    with ScriptedModel() as model:
        yield model


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> InMemoryTools:
    """The tools of every agent, for tests that name this fixture before `talk`: functions of the test."""
    tools = InMemoryTools()

    def build(store: Store, equipment: Equipment, *others: Any) -> ModelReplies:
        return ModelReplies(store, replace(equipment, tools=tools), *others)

    monkeypatch.setattr("threadkeep.bootstrap.services.ModelReplies", build)
    return tools


@pytest.fixture
def piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every piece that a model says is an event of its own; else those that come together are one."""
    add = TurnLog.add

    async def add_at_once(turn_log: TurnLog, *together: Written, **how_soon: bool) -> None:
        await add(turn_log, *together, at_once=True)

    def read_apart(events: Sequence[ServerSentEvent], reply: ReplyReader) -> Iterator[ModelEvent]:
        for event in events:
            if not reply.is_complete:
                yield from reply.read(event)

    monkeypatch.setattr(TurnLog, "add", add_at_once)
    monkeypatch.setattr("threadkeep.gateways.http._read_piece", read_apart)


@pytest.fixture
def talk_settings(database_url: str, model: ScriptedModel, tmp_path: Path) -> Settings:
    """Those of a Threadkeep on an empty database that talks to the scripted model; everyone is `local`."""
    return scripted_settings(
        model,
        data=tmp_path / "data",
        database_url=database_url,
        secret_key=secret_key_for(database_url),
        embedding_url="off",
    )


@pytest.fixture
async def talk(talk_settings: Settings) -> AsyncIterator[Talk]:
    """Threadkeep on a real port, talking to the scripted model; everyone is `local`."""
    async with talking(talk_settings) as talk:
        yield talk
