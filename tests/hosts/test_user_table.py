"""Users that a host application keeps in its own table, in the same PostgreSQL database: they go together."""

import asyncio
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, LiteralString

import httpx
import psycopg
import pytest

from tests.conftest import secret_key_for
from tests.http.calls import refusal
from tests.making import NOW
from tests.postgres import Postgres
from threadkeep import Settings, User, create_app
from threadkeep.domain.errors import SettingsError, StorageRefused
from threadkeep.domain.ids import UserId
from threadkeep.domain.key import KeyDraft, Scope
from threadkeep.domain.user import UserRole
from threadkeep.http.app import Threadkeep
from threadkeep.storage.store import open_database
from threadkeep.testing import Gate, Say, ScriptedModel, Wait
from threadkeep.testing.waiting import until

JSON = {"Accept": "application/json"}
UUIDS = ("0190c5a0-0000-7000-8000-000000000001", "0190c5a0-0000-7000-8000-000000000002")
KEYS = {
    "text": ("alice", "bob"),
    "varchar(40)": ("alice", "bob"),
    "integer": ("1", "2"),
    "bigint": ("9007199254740993", "-2"),
    "uuid": UUIDS,
}
# What the host has, and what hangs on it; a key's own triggers are the database's.
CATALOG: tuple[LiteralString, ...] = (
    """SELECT table_schema, table_name, column_name, ordinal_position, data_type, is_nullable, column_default
    FROM information_schema.columns WHERE table_schema NOT IN ('pg_catalog', 'information_schema')
        AND table_name NOT LIKE 'tk\\_%' ORDER BY 1, 2, 3""",
    """SELECT conrelid::regclass, conname, pg_get_constraintdef(oid) FROM pg_constraint
    WHERE conrelid::regclass::text !~ 'tk_' AND contypid = 0 ORDER BY 1, 2""",
    "SELECT indexdef FROM pg_indexes WHERE tablename !~ '^(tk|pg)_' ORDER BY 1",
    """SELECT tgrelid::regclass, tgname FROM pg_trigger
    WHERE NOT tgisinternal AND tgrelid::regclass::text !~ 'tk_' ORDER BY 1, 2""",
    "SELECT xmin::text, ctid::text, * FROM users ORDER BY name",
    "SELECT xmin::text, ctid::text, * FROM tasks ORDER BY id",
)


def run(url: str, *statements: str) -> list[list[Any]]:
    """What the host application does in its own database."""
    with psycopg.connect(url, autocommit=True) as connection:
        cursors = [connection.execute(statement.encode()) for statement in statements]
        return [cursor.fetchall() if cursor.description else [] for cursor in cursors]


async def host_runs(url: str, statement: str) -> None:
    """The same beside a Threadkeep that runs: what it has begun it can end, so that no lock is waited for."""
    await asyncio.to_thread(run, url, statement)


def host_database(postgres: Postgres, kind: str = "text", names: tuple[str, str] = ("alice", "bob")) -> str:
    """The database of an application that has users and tasks."""
    url = postgres.create_database()
    run(
        url,
        f"CREATE TABLE users (id {kind} PRIMARY KEY, name text NOT NULL)",
        f"""CREATE TABLE tasks (
            id integer PRIMARY KEY, user_id {kind} REFERENCES users (id) ON DELETE CASCADE, title text)""",
        *(f"INSERT INTO users VALUES ('{key}', 'user {number}')" for number, key in enumerate(names)),
        *(f"INSERT INTO tasks VALUES ({number}, '{key}', 'milk')" for number, key in enumerate(names)),
    )
    return url


@asynccontextmanager
async def hosted(
    url: str, folder: Path, **settings: Any
) -> AsyncGenerator[tuple[Threadkeep, httpx.AsyncClient]]:
    """Threadkeep in an application whose sign-in is a header."""
    given: dict[str, Any] = {"user_table": "users.id", "secret_key": secret_key_for(url), "gateway": "openai"}
    loaded = Settings.load({}, data=folder, database_url=url, database_pool_size=2, **(given | settings))
    app = create_app(loaded, current_user=lambda request: User(UserId(request.headers["x-user"])))
    transport = httpx.ASGITransport(app)
    async with app.lifespan(), httpx.AsyncClient(transport=transport, base_url="http://host") as client:
        yield app, client


async def own_chat(client: httpx.AsyncClient, user: str) -> str:
    """The path of the user's main conversation with the default agent."""
    headers = {"x-user": user}
    agents = (await client.get("/api/agents", headers=headers)).json()["items"]
    default = next(agent for agent in agents if agent["isDefault"])
    made = await client.put(f"/api/agents/{default['id']}/conversation", headers=headers)
    assert made.status_code == 201, made.text
    return made.headers["location"]


def rows_of(url: str, schema: str = "public") -> dict[str, int]:
    """How many rows each table of ours has."""
    tables = run(url, f"SELECT tablename FROM pg_tables WHERE schemaname = '{schema}' AND tablename ~ '^tk_'")
    return {table: run(url, f"SELECT count(*) FROM {schema}.{table}")[0][0][0] for (table,) in tables[0]}


@pytest.mark.parametrize(("kind", "keys"), KEYS.items(), ids=KEYS)
async def test_conversations_go_with_the_hosts_user(
    postgres: Postgres, tmp_path: Path, model: ScriptedModel, kind: str, keys: tuple[str, str]
):
    url = host_database(postgres, kind, keys)
    alice, bob = keys
    async with hosted(url, tmp_path, gateway_url=model.url, model="scripted") as (_, client):
        paths = {user: await own_chat(client, user) for user in keys}
        for user, path in paths.items():
            sent = await client.post(
                f"{path}/messages?wait=true", json={"content": "Hi"}, headers={"x-user": user, **JSON}
            )
            assert sent.status_code == 200, sent.text
        await host_runs(url, f"DELETE FROM users WHERE id = '{alice}'")
        refusal(await client.get(paths[alice], headers={"x-user": alice}), 404, "CONVERSATION_NOT_FOUND")
        kept = (await client.get(paths[bob], headers={"x-user": bob})).json()
        assert [message["content"] for message in kept["messages"]] == ["Hi", "OK."]
    left = rows_of(url)
    assert (left["tk_users"], left["tk_conversations"], left["tk_turns"], left["tk_messages"]) == (1, 1, 1, 2)
    run(url, f"DELETE FROM users WHERE id = '{bob}'")
    left = rows_of(url)
    # The default agent stays, and what belongs to no user.
    own = {"tk_agents", "tk_meta", "tk_migrations", "tk_counters", "tk_jobs", "tk_signals"}
    own |= {"tk_prompt_texts", "tk_let_go_texts"}  # until the next cleanup
    assert {table for table, count in left.items() if count} <= own


async def test_nothing_of_the_host_is_changed(postgres: Postgres, tmp_path: Path):
    url = host_database(postgres)
    before = run(url, *CATALOG)
    async with hosted(url, tmp_path) as (app, client):
        await own_chat(client, "alice")
        await own_chat(client, "bob")
        await app.delete_user("bob")
        assert (await asyncio.to_thread(rows_of, url))["tk_users"] == 1
    assert run(url, *CATALOG) == before
    # And it can be as if we had never been there.
    run(url, *(f"DROP TABLE {table} CASCADE" for table in rows_of(url)))
    assert run(url, "SELECT count(*) FROM pg_trigger WHERE tgrelid = 'users'::regclass") == [[(2,)]]


async def test_turn_that_runs_while_its_user_is_deleted_ends_and_disturbs_nobody(
    postgres: Postgres, tmp_path: Path, model: ScriptedModel
):
    url, gate = host_database(postgres), Gate()
    model.script([Say("Once"), Wait(gate), Say(" upon a time")])
    async with hosted(url, tmp_path, gateway_url=model.url, model="scripted") as (_, client):
        path = await own_chat(client, "alice")
        begun = await client.post(
            f"{path}/messages", json={"content": "Hi"}, headers={"x-user": "alice", **JSON}
        )
        assert begun.status_code == 202
        await until(lambda: model.requests[0].sent_text == ["Once"] if model.requests else False)
        await host_runs(url, "DELETE FROM users WHERE id = 'alice'")
        gate.open()
        path = await own_chat(client, "bob")
        sent = await client.post(
            f"{path}/messages?wait=true", json={"content": "Hi"}, headers={"x-user": "bob", **JSON}
        )
        assert sent.json()["content"] == "OK."
    assert rows_of(url)["tk_turns"] == 1


@pytest.mark.parametrize("kind", ["text", "integer", "uuid"])
async def test_user_whom_the_host_does_not_have_is_turned_away(postgres: Postgres, tmp_path: Path, kind: str):
    keys = KEYS[kind]
    url = host_database(postgres, kind, keys)
    unknown = {"text": "mallory", "integer": "3", "uuid": "0190c5a0-0000-7000-8000-000000000003"}[kind]
    misspelled = {"text": "Alice", "integer": "01", "uuid": UUIDS[0].upper()}[kind]
    async with hosted(url, tmp_path) as (_, client):
        default = (await client.get("/api/agents", headers={"x-user": unknown})).json()["items"][0]["id"]
        for user in (unknown, misspelled, "no such key", "99999999999999999999"):
            headers = {"x-user": user}
            for response in (
                await client.post("/api/agents", json={"name": "x"}, headers=headers),
                await client.put(f"/api/agents/{default}/conversation", headers=headers),
            ):
                told = refusal(response, 403, "FORBIDDEN")
                assert told["message"] == "The application doesn't have this user."
        await own_chat(client, keys[0])
    assert rows_of(url)["tk_users"] == 1


async def test_agents_of_a_deleted_user_are_emptied_then_removed(postgres: Postgres, tmp_path: Path):
    url = host_database(postgres)
    async with hosted(url, tmp_path) as (app, client):
        alice, bob = {"x-user": "alice"}, {"x-user": "bob"}
        body = {"name": "Shared", "systemPrompt": "secret", "visibility": "public"}
        shared = (await client.post("/api/agents", json=body, headers=alice)).json()["id"]
        own = (await client.post("/api/agents", json={"name": "Own"}, headers=alice)).json()["id"]
        chat = await client.put(f"/api/agents/{shared}/conversation", headers=bob)
        await host_runs(url, "DELETE FROM users WHERE id = 'alice'")
        store = (await app.services()).store
        await store.users.sweep(NOW)
        refusal(await client.get(f"/api/agents/{shared}", headers=bob), 404, "AGENT_NOT_FOUND")
        assert (await client.get(chat.headers["location"], headers=bob)).status_code == 200
        await store.users.sweep(NOW + 1)
    agents = run(url, "SELECT id::text, owner_id, system_prompt FROM tk_agents WHERE NOT is_default")[0]
    assert agents == [(shared, None, "")]
    assert own not in str(agents)


async def test_key_is_made_once_and_follows_the_setting(postgres: Postgres, tmp_path: Path):
    url = host_database(postgres)
    run(url, "CREATE SCHEMA app", 'CREATE TABLE app."People" ("personId" uuid UNIQUE)')
    key = "SELECT oid, pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 'tk_users_host'"
    seen: list[Any] = []
    for user_table in ("users.id", "public.users.id", None, "app.People.personId"):
        await (await open_database(url, pool_size=1, user_table=user_table)).close()
        seen.append(run(url, key)[0])
    assert seen[0] == seen[1] == seen[2]
    assert [definition for _, definition in seen[0]] == [
        "FOREIGN KEY (host_id) REFERENCES users(id) ON DELETE CASCADE"
    ]
    assert 'REFERENCES app."People"("personId")' in seen[3][0][1]


async def test_our_own_schema_can_point_at_the_hosts_table(postgres: Postgres, tmp_path: Path):
    url = host_database(postgres, "integer", ("1", "2"))
    async with hosted(url, tmp_path, database_schema="threads") as (_, client):
        await own_chat(client, "1")
        assert (await asyncio.to_thread(rows_of, url, "threads"))["tk_conversations"] == 1
        await host_runs(url, "DELETE FROM users WHERE id = 1")
        assert (await asyncio.to_thread(rows_of, url, "threads"))["tk_conversations"] == 0


async def test_acting_key_serves_only_users_whom_the_host_has(postgres: Postgres, tmp_path: Path):
    url = host_database(postgres, "bigint", ("1", "42"))
    async with hosted(url, tmp_path, act_as_anyone=True) as (app, client):
        keys, admin = (await app.services()).keys, User(UserId("1"), UserRole.ADMIN)
        made = {it: await keys.create(admin, KeyDraft("k", (Scope.CHAT,), act_as=it)) for it in ("", "shop")}
        for realm, name, is_there in (
            ("", "42", True),
            ("", "43", False),
            ("", "x", False),
            ("shop", "42", False),
        ):
            named = {"x-api-key": made[realm][1], "Threadkeep-User": name}
            response = await client.get("/api/conversations", headers=named)
            if is_there:
                assert response.status_code == 200, response.text
            else:
                refusal(response, 404, "USER_NOT_FOUND")


@pytest.mark.parametrize(
    ("user_table", "told"),
    [
        ("people.id", "the table doesn't exist"),
        ("elsewhere.users.id", "the table doesn't exist"),
        ("users.uid", "the column doesn't exist"),
        ("users.ctid", "the column doesn't exist"),
        ("users.name", "must be the primary key or unique"),
        ("odd.id", "has type numeric"),
    ],
)
async def test_column_that_no_key_can_point_at_is_refused(postgres: Postgres, user_table: str, told: str):
    url = host_database(postgres)
    run(url, "CREATE TABLE odd (id numeric PRIMARY KEY)")
    before = run(url, *CATALOG)
    with pytest.raises(SettingsError, match=told) as caught:
        await open_database(url, pool_size=1, user_table=user_table)
    assert f"THREADKEEP_USER_TABLE={user_table}" in caught.value.message
    assert run(url, *CATALOG) == before
    assert rows_of(url) == {}


@pytest.mark.parametrize("kind", ["text", "integer"])
async def test_users_of_ours_whom_the_host_does_not_have_are_kept_and_told(postgres: Postgres, kind: str):
    url = host_database(postgres, kind, KEYS[kind])
    await (await open_database(url, pool_size=1)).close()
    run(url, f"INSERT INTO tk_users VALUES ('local', {NOW})")
    with pytest.raises(SettingsError, match="contains users that the table doesn't"):
        await open_database(url, pool_size=1, user_table="users.id")
    assert rows_of(url)["tk_users"] == 1
    run(url, "DELETE FROM tk_users")
    await (await open_database(url, pool_size=1, user_table="users.id")).close()


async def test_role_that_may_not_point_at_the_table_is_told(postgres: Postgres):
    url = host_database(postgres)
    role = f"guest_{secrets.token_hex(4)}"
    run(url, f"CREATE ROLE {role} LOGIN PASSWORD 'x'", f"GRANT CREATE, USAGE ON SCHEMA public TO {role}")
    try:
        guest = url.replace(url.partition("://")[2].partition("@")[0], f"{role}:x")
        with pytest.raises(StorageRefused, match="permission denied for table users"):
            await open_database(guest, pool_size=1, user_table="users.id")
    finally:
        run(url, f"DROP OWNED BY {role}", f"DROP ROLE {role}")


def test_setting_needs_postgresql_and_a_column():
    with pytest.raises(SettingsError, match="delete_user"):
        Settings.load({}, user_table="users.id")
    for wrong in ("users", "a.b.c.d", "users.id; drop", 'us"ers.id', "users."):
        with pytest.raises(SettingsError, match="THREADKEEP_USER_TABLE"):
            Settings.load({}, user_table=wrong, database_url="postgresql://host/app")
