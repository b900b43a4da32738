"""MCP servers of agents over HTTP: saved, merged, masked, refused, tested."""

import logging
import os
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from tests.conftest import ONLY_SQLITE, SECRET, TEMPLATE, Api, secret_key_for
from tests.http.calls import Json, items, new_agent, refusal
from tests.http.checked import CheckedApi
from tests.mcp import other_promptx
from tests.mcp.remote_servers import greeter
from tests.postgres import Postgres
from threadkeep import Settings, create_app
from threadkeep.domain.data_folder import SECRET_KEY
from threadkeep.domain.ids import AgentId
from threadkeep.domain.secret import MASK
from threadkeep.storage.store import sqlite_path

VALUES = ["sk-first-value-4711", "Bearer second-value-0815"]
SEARCH: Json = {
    "command": "npx",
    "args": ["@anthropic/mcp-server-web-search"],
    "env": {"SEARCH_API_KEY": VALUES[0]},
}
DOCS: Json = {"url": "https://mcp.example.com/mcp", "headers": {"Authorization": VALUES[1]}}
USUAL: Json = {"disabled": False, "timeoutS": 60, "scope": "agent", "trustAnnotations": False}
SHOWN_SEARCH: Json = SEARCH | {"env": {"SEARCH_API_KEY": MASK}} | USUAL
SHOWN_DOCS: Json = DOCS | {"headers": {"Authorization": MASK}} | USUAL


@pytest.fixture
def admin(api: Api) -> httpx.AsyncClient:
    return api.as_user("root", admin=True)


async def with_servers(client: httpx.AsyncClient, **servers: Any) -> str:
    """The path of an agent with these servers."""
    return f"/api/agents/{(await new_agent(client, settings={'mcpServers': servers}))['id']}"


async def save(client: httpx.AsyncClient, path: str, **servers: Any) -> httpx.Response:
    return await client.patch(path, json={"settings": {"mcpServers": servers}})


async def servers_of(client: httpx.AsyncClient, path: str) -> Json:
    return (await client.get(path)).json()["settings"]["mcpServers"]


async def listed(client: httpx.AsyncClient, path: str) -> dict[str, Json]:
    return {server["name"]: server for server in (await client.get(path)).json()["mcpServers"]}


async def secrets_of(api: Api, path: str, name: str) -> dict[str, str]:
    """What is kept of a server's secrets."""
    agent = await api.store.agents.get(AgentId(path.rpartition("/")[2]))
    assert agent
    return {key: secret.reveal() for key, secret in agent.settings.mcp_servers[name].secrets.items()}


# Copying them


async def test_owners_copy_of_an_agent_has_its_servers_with_their_secrets(api: Api, admin: httpx.AsyncClient):
    path = await with_servers(admin, search=SEARCH, docs=DOCS)
    copied = await admin.post(f"{path}/duplicate")
    assert all(value not in copied.text for value in VALUES)
    copy = f"/api/agents/{copied.json()['id']}"
    assert await servers_of(admin, copy) == {"search": SHOWN_SEARCH, "docs": SHOWN_DOCS}
    assert await secrets_of(api, copy, "search") == {"SEARCH_API_KEY": VALUES[0]}
    assert await secrets_of(api, copy, "docs") == {"Authorization": VALUES[1]}


async def test_admins_copy_of_somebody_elses_agent_has_none_of_their_secrets(
    api: Api, alice: httpx.AsyncClient, admin: httpx.AsyncClient
):
    path = await with_servers(alice, docs=DOCS, open={"url": "https://open.example.com/mcp"})
    copy = f"/api/agents/{(await admin.post(f'{path}/duplicate')).json()['id']}"
    servers = await servers_of(admin, copy)
    assert (servers["docs"]["headers"], servers["docs"]["disabled"]) == ({}, True)
    assert servers["open"]["disabled"] is False
    assert await secrets_of(api, copy, "docs") == {}
    assert await secrets_of(api, path, "docs") == {"Authorization": VALUES[1]}


async def test_copy_with_a_program_is_refused_to_those_who_may_not_save_one(
    alice: httpx.AsyncClient, admin: httpx.AsyncClient
):
    path = f"/api/agents/{(await new_agent(alice))['id']}"
    assert (await save(admin, path, search=SEARCH)).status_code == 200
    refusal(await alice.post(f"{path}/duplicate"), 403, "FORBIDDEN", "settings.mcpServers.search")


# Seeing them


@ONLY_SQLITE
async def test_detail_merges_the_systems_the_builtin_and_the_owners_servers(admin: httpx.AsyncClient):
    made = await new_agent(admin, settings={"mcpServers": {"web-search": SEARCH, "docs": DOCS}})
    path = f"/api/agents/{made['id']}"
    read = (await admin.get(path)).json()
    assert read["settings"]["mcpServers"] == {"web-search": SHOWN_SEARCH, "docs": SHOWN_DOCS}
    own: Json = {"readOnly": True, "changed": False}
    users: Json = {"source": "user", "readOnly": False, "changed": False, "status": "idle"}
    promptx, retriever, *others = read["mcpServers"]
    assert promptx == own | {"name": "promptx", "source": "system", "status": "ready"}
    assert retriever == own | {"name": "retriever", "source": "builtin", "status": "inactive"}
    assert others == [
        SHOWN_SEARCH | users | {"name": "web-search"},
        SHOWN_DOCS | users | {"name": "docs"},
    ]
    assert (
        made
        == read
        == (await admin.patch(path, json={})).json() | {name: read[name] for name in ("version", "updatedAt")}
    )


async def test_every_field_of_a_server_is_kept(admin: httpx.AsyncClient):
    more = {"disabled": True, "timeoutS": 2.5, "scope": "conversation", "trustAnnotations": True}
    path = await with_servers(
        admin, one=SEARCH | more | {"cwd": "notes", "type": "stdio"}, two=DOCS | more | {"type": "http"}
    )
    assert await servers_of(admin, path) == {
        "one": SHOWN_SEARCH | more | {"cwd": "notes"},
        "two": SHOWN_DOCS | more,
    }
    assert {server["status"] for server in (await listed(admin, path)).values()} >= {"disabled"}


async def test_others_learn_nothing_of_the_servers_of_a_public_agent(
    api: Api, admin: httpx.AsyncClient, bob: httpx.AsyncClient
):
    path = await with_servers(admin, **{"hidden-search": SEARCH})
    await admin.patch(path, json={"visibility": "public"})
    for response in (await bob.get(path), await bob.get("/api/agents")):
        assert "hidden-search" not in response.text and "promptx" not in response.text
    refusal(await bob.post(f"{path}/mcp-servers/hidden-search/test"), 403, "FORBIDDEN")
    refusal(await bob.post(f"{path}/mcp-servers/none/test"), 403, "FORBIDDEN")


# Changing them


async def test_merge_patch_adds_changes_and_removes_single_servers(admin: httpx.AsyncClient):
    path = await with_servers(admin, search=SEARCH)
    await save(admin, path, docs=DOCS)
    assert (await servers_of(admin, path)).keys() == {"search", "docs"}
    change = {"timeoutS": 30.0, "disabled": True, "trustAnnotations": True}
    await save(admin, path, search=change)
    assert (await servers_of(admin, path))["search"] == SHOWN_SEARCH | change
    await save(admin, path, search=None)
    assert (await servers_of(admin, path)).keys() == {"docs"}
    await save(admin, path, docs={"url": None, "headers": None, "command": "uvx", "args": ["x"]})
    assert (await servers_of(admin, path))["docs"]["command"] == "uvx"
    await admin.patch(path, json={"settings": {"mcpServers": None}})
    assert await servers_of(admin, path) == {}


async def test_masked_value_that_is_sent_back_keeps_the_stored_one(api: Api, admin: httpx.AsyncClient):
    path = await with_servers(admin, search=SEARCH, docs=DOCS)
    seen = (await admin.get(path)).json()
    response = await admin.patch(path, json={"settings": seen["settings"]})
    assert response.status_code == 200, response.text
    assert await secrets_of(api, path, "search") == {"SEARCH_API_KEY": VALUES[0]}
    assert await secrets_of(api, path, "docs") == {"Authorization": VALUES[1]}
    await save(admin, path, search={"env": {"SEARCH_API_KEY": "new-value", "MORE": "more-value"}})
    assert await secrets_of(api, path, "search") == {"SEARCH_API_KEY": "new-value", "MORE": "more-value"}
    await save(admin, path, search={"env": {"SEARCH_API_KEY": "newer-value", "MORE": None}})
    assert await secrets_of(api, path, "search") == {"SEARCH_API_KEY": "newer-value"}


@ONLY_SQLITE
async def test_mask_keeps_nothing_where_there_is_nothing_to_keep(admin: httpx.AsyncClient):
    place = "settings.mcpServers.copy.env.SEARCH_API_KEY"
    path = await with_servers(admin, search=SEARCH, docs=DOCS)
    before = (await admin.get(path)).json()
    refusal(await save(admin, path, copy=SHOWN_SEARCH), 400, "MCP_CONFIG_INVALID", place)
    refusal(
        await save(admin, path, search={"env": {"OTHER": MASK}}),
        400,
        "MCP_CONFIG_INVALID",
        "settings.mcpServers.search.env.OTHER",
    )
    body = {"name": "copy", "settings": before["settings"]}
    refusal(
        await admin.post("/api/agents", json=body),
        400,
        "MCP_CONFIG_INVALID",
        "settings.mcpServers.search.env.SEARCH_API_KEY",
    )
    assert (await admin.get(path)).json() == before


@ONLY_SQLITE
@pytest.mark.parametrize(
    "change",
    [
        {"url": "https://evil.example/mcp"},
        {"url": "http://mcp.example.com/mcp"},
        {"url": "https://mcp.example.com:8443/mcp"},
        {"url": "https://mcp.example.com/echo"},
        {"url": "https://mcp.example.com/mcp?debug=1"},
        {"headers": {"X-Reply-To": "https://evil.example"}},
        {"scope": "user"},
    ],
)
async def test_kept_header_is_not_sent_where_anything_else_has_changed(
    api: Api, alice: httpx.AsyncClient, change: Json
):
    """Else who may change an agent could have a secret sent to themselves that they may not see."""
    path = await with_servers(alice, docs=DOCS)
    place = "settings.mcpServers.docs.headers.Authorization"
    refusal(await save(alice, path, docs=change), 400, "MCP_CONFIG_INVALID", place)
    assert await secrets_of(api, path, "docs") == {"Authorization": VALUES[1]}
    anew: Json = {**change, "headers": {**change.get("headers", {}), "Authorization": "new-value"}}
    assert (await save(alice, path, docs=anew)).status_code == 200


@ONLY_SQLITE
@pytest.mark.parametrize(
    "change",
    [
        {"command": "uvx"},
        {"args": ["another-package"]},
        {"args": ["@anthropic/mcp-server-web-search", "--verbose"]},
        {"cwd": "elsewhere"},
        {"env": {"BASE_URL": "https://evil.example"}},
        {"scope": "user"},
    ],
)
async def test_kept_variable_is_not_given_to_a_program_that_is_run_otherwise(
    api: Api, admin: httpx.AsyncClient, change: Json
):
    path = await with_servers(admin, search=SEARCH)
    place = "settings.mcpServers.search.env.SEARCH_API_KEY"
    refusal(await save(admin, path, search=change), 400, "MCP_CONFIG_INVALID", place)
    assert await secrets_of(api, path, "search") == {"SEARCH_API_KEY": VALUES[0]}


@ONLY_SQLITE
async def test_kept_variable_is_not_left_alone_with_a_program(api: Api, admin: httpx.AsyncClient):
    """What a variable said may be what kept another one from being told."""
    two = {**SEARCH, "env": {**SEARCH["env"], "ENDPOINT": "https://ours.example"}}
    path = await with_servers(admin, search=two)
    refused = await save(admin, path, search={"env": {"ENDPOINT": None}})
    refusal(refused, 400, "MCP_CONFIG_INVALID", "settings.mcpServers.search.env.SEARCH_API_KEY")


async def test_change_with_an_old_version_changes_no_server(admin: httpx.AsyncClient):
    path = await with_servers(admin, search=SEARCH)
    await save(admin, path, docs=DOCS)
    response = await admin.patch(
        path, json={"settings": {"mcpServers": {"docs": None}}}, headers={"If-Match": '"1"'}
    )
    refusal(response, 412, "PRECONDITION_FAILED")
    assert (await servers_of(admin, path)).keys() == {"search", "docs"}


# Who may


@ONLY_SQLITE
async def test_programs_are_saved_by_admins_and_addresses_by_owners(api: Api, alice: httpx.AsyncClient):
    admin = api.as_user("root", admin=True)
    path = await with_servers(alice, docs=DOCS)
    refused = await save(alice, path, search=SEARCH)
    refusal(refused, 403, "FORBIDDEN", "settings.mcpServers.search")
    body = {"name": "x", "settings": {"mcpServers": {"search": SEARCH}}}
    refusal(await alice.post("/api/agents", json=body), 403, "FORBIDDEN", "settings.mcpServers.search")
    assert (await servers_of(alice, path)).keys() == {"docs"}
    # What an admin has saved, the owner keeps, sees masked, and may remove, but not change.
    assert (await save(admin, path, search=SEARCH)).status_code == 200
    assert (await alice.patch(path, json={"name": "renamed"})).status_code == 200
    assert (await servers_of(alice, path))["search"] == SHOWN_SEARCH
    changed = await save(alice, path, search={"args": ["evil-package"], "env": {"SEARCH_API_KEY": "new"}})
    refusal(changed, 403, "FORBIDDEN", "settings.mcpServers.search")
    assert (await save(alice, path, search=None)).status_code == 200
    assert (await servers_of(alice, path)).keys() == {"docs"}


# Bad input

BAD: list[tuple[Any, str, str]] = [
    ({"command": "sh", "args": ["-c", "id"]}, "MCP_COMMAND_NOT_ALLOWED", ".command"),
    ({"command": "../npx", "args": ["x"]}, "MCP_COMMAND_NOT_ALLOWED", ".command"),
    ({"command": "npx;rm", "args": ["x"]}, "MCP_COMMAND_NOT_ALLOWED", ".command"),
    ({"command": "npx", "args": ["x", "a\nb"]}, "MCP_CONFIG_INVALID", ".args[1]"),
    ({"command": "npx", "args": ["-c", "id"]}, "MCP_CONFIG_INVALID", ".args[0]"),
    ({"command": "npx", "args": ["x"], "env": {"LD_PRELOAD": "v"}}, "MCP_CONFIG_INVALID", ".env.LD_PRELOAD"),
    ({"command": "npx", "args": ["x"], "env": {"PATH": "v"}}, "MCP_CONFIG_INVALID", ".env.PATH"),
    (
        {"command": "npx", "args": ["x"], "env": {"NODE_OPTIONS": "v"}},
        "MCP_CONFIG_INVALID",
        ".env.NODE_OPTIONS",
    ),
    ({"command": "uvx", "args": ["x"], "env": {"PYTHONPATH": "v"}}, "MCP_CONFIG_INVALID", ".env.PYTHONPATH"),
    ({"command": "npx", "args": ["x"], "cwd": "../.."}, "MCP_CONFIG_INVALID", ".cwd"),
    ({"url": "file:///etc/passwd"}, "MCP_CONFIG_INVALID", ".url"),
    ({"url": "http://[::ffff:127.0.0.1]/mcp"}, "MCP_CONFIG_INVALID", ".url"),
    ({"url": "http://2130706433/mcp"}, "MCP_CONFIG_INVALID", ".url"),
    ({"url": "http://169.254.169.254/latest/meta-data"}, "MCP_CONFIG_INVALID", ".url"),
    ({"url": "https://me:pass@example.com/mcp"}, "MCP_CONFIG_INVALID", ".url"),
    ({"url": "https://example.com", "headers": {"X": "a\r\nY: b"}}, "MCP_CONFIG_INVALID", ".headers.X"),
    # What does not even have the form
    ({}, "MCP_CONFIG_INVALID", ""),
    ([], "MCP_CONFIG_INVALID", ""),
    ("npx", "MCP_CONFIG_INVALID", ""),
    (7, "MCP_CONFIG_INVALID", ""),
    ({"command": "npx", "url": "https://example.com"}, "MCP_CONFIG_INVALID", ""),
    ({"command": 7}, "MCP_CONFIG_INVALID", ".command"),
    ({"command": "npx", "args": "x"}, "MCP_CONFIG_INVALID", ".args"),
    ({"command": "npx", "args": [7]}, "MCP_CONFIG_INVALID", ".args[0]"),
    ({"command": "npx", "args": ["x"], "env": ["A=1"]}, "MCP_CONFIG_INVALID", ".env"),
    ({"command": "npx", "args": ["x"], "env": {"A": 1}}, "MCP_CONFIG_INVALID", ".env[...]"),
    ({"command": "npx", "args": ["x"], "headers": {"A": "1"}}, "MCP_CONFIG_INVALID", ".headers"),
    ({"command": "npx", "args": ["x"], "type": "http"}, "MCP_CONFIG_INVALID", ".type"),
    ({"command": "npx", "args": ["x"], "shell": True}, "MCP_CONFIG_INVALID", ".shell"),
    ({"url": "https://example.com", "env": {"A": "1"}}, "MCP_CONFIG_INVALID", ".env"),
    ({"url": "https://example.com", "type": "sse"}, "MCP_CONFIG_INVALID", ".type"),
    ({"url": "https://example.com", "timeoutS": -1}, "MCP_CONFIG_INVALID", ".timeoutS"),
    ({"url": "https://example.com", "timeoutS": 3601}, "MCP_CONFIG_INVALID", ".timeoutS"),
    ({"url": "https://example.com", "scope": "world"}, "MCP_CONFIG_INVALID", ".scope"),
    ({"url": "https://example.com", "disabled": 1}, "MCP_CONFIG_INVALID", ".disabled"),
]


@ONLY_SQLITE
async def test_bad_server_is_refused_with_its_field_named_and_changes_nothing(admin: httpx.AsyncClient):
    path = await with_servers(admin, docs=DOCS)
    before = (await admin.get(path)).json()
    for server, code, field in BAD:
        place = f"settings.mcpServers.bad{field}"
        refusal(await save(admin, path, good=DOCS, bad=server), 400, code, place)
        body = {"name": "x", "settings": {"mcpServers": {"good": DOCS, "bad": server}}}
        refusal(await admin.post("/api/agents", json=body), 400, code, place)
    assert (await admin.get(path)).json() == before
    assert len(await items(admin, "/api/agents")) == 2


@ONLY_SQLITE
async def test_bad_names_and_too_many_servers_are_refused(admin: httpx.AsyncClient):
    path = await with_servers(admin, docs=DOCS)
    before = (await admin.get(path)).json()
    for name in (
        "",
        " ",
        "a b",
        "a.b",
        "a/b",
        "a__b" * 13,
        "-a",
        "_a",
        "服务器",
        "ｗｅｂ",
        "a\n",
        "a\u200b",
        "__proto__",
    ):
        refusal(await save(admin, path, **{name: DOCS}), 400, "MCP_CONFIG_INVALID", "settings.mcpServers")
    for name in ("promptx", "PromptX", "retriever"):
        for server in (SEARCH, DOCS):
            response = await save(admin, path, **{name: server})
            refusal(response, 400, "MCP_NAME_RESERVED", f"settings.mcpServers.{name}")
    many = {f"server-{number}": DOCS for number in range(1_000)}
    refusal(await save(admin, path, **many), 400, "MCP_CONFIG_INVALID", "settings.mcpServers")
    body = {"name": "x", "settings": {"mcpServers": many}}
    refusal(await admin.post("/api/agents", json=body), 400, "MCP_CONFIG_INVALID", "settings.mcpServers")
    for malformed in ("[]", '"x"', "7", "true"):
        content = f'{{"settings": {{"mcpServers": {malformed}}}}}'
        response = await admin.patch(path, content=content)
        refusal(response, 400, "MCP_CONFIG_INVALID", "settings.mcpServers")
    assert (await admin.get(path)).json() == before
    thirty_two = {f"server-{number}": DOCS for number in range(31)}
    assert (await save(admin, path, **thirty_two)).status_code == 200


# Tools that change


async def test_server_whose_tools_changed_since_the_last_save_is_flagged(api: Api, admin: httpx.AsyncClient):
    path = await with_servers(admin, one=DOCS, two=DOCS)
    agent_id = AgentId(path.rpartition("/")[2])

    async def flagged() -> set[str]:
        return {name for name, server in (await listed(admin, path)).items() if server["changed"]}

    for name in ("one", "two"):
        await api.store.seen_tools.record(agent_id, name, "first")
    assert await flagged() == set()
    await api.store.seen_tools.record(agent_id, "one", "second")
    assert await flagged() == {"one"}
    await api.store.seen_tools.record(agent_id, "one", "second")
    assert await flagged() == {"one"}
    # Saving accepts them; a server that is set anew begins anew.
    await admin.patch(path, json={"description": "seen"})
    assert await flagged() == set()
    await save(admin, path, two={"url": "https://mcp.example.com/another", "headers": None})
    await api.store.seen_tools.record(agent_id, "two", "others")
    assert await flagged() == set()
    # One that went back to what was accepted is flagged no more.
    for tools in ("third", "second"):
        await api.store.seen_tools.record(agent_id, "one", tools)
    assert await flagged() == set()
    await api.store.seen_tools.record(AgentId("0199aaaa-0000-7000-8000-000000000000"), "one", "nobody's")


# Testing one


@ONLY_SQLITE
async def test_only_servers_of_the_agent_can_be_tested(admin: httpx.AsyncClient, bob: httpx.AsyncClient):
    path = await with_servers(admin, docs=DOCS)
    for name in ("none", "DOCS", "%00", "a%2Fb", "..%2f..", "x" * 3000):
        response = await admin.post(f"{path}/mcp-servers/{name}/test")
        assert response.status_code == 404, name
    refusal(await admin.post(f"{path}/mcp-servers/none/test"), 404, "MCP_SERVER_NOT_FOUND")
    refusal(await bob.post(f"{path}/mcp-servers/docs/test"), 404, "AGENT_NOT_FOUND")
    tested = (await admin.post(f"{path}/mcp-servers/docs/test")).json()
    assert tested["name"] == "docs" and tested["status"] == "failed" and tested["error"]
    assert VALUES[1] not in str(tested)


@asynccontextmanager
async def open_to_admin(
    database_url: str, folder: Path, **settings: Any
) -> AsyncGenerator[httpx.AsyncClient]:
    """An admin of a Threadkeep that may run the Python of the tests and connect to loopback."""
    app = create_app(
        Settings.load(
            {},
            data=folder / "data",
            database_url=database_url,
            database_pool_size=2,
            secret_key=secret_key_for(database_url),
            jwt_secret=SECRET,
            gateway="openai",
            mcp_allowed_commands=("python",),
            mcp_allow_private=True,
            **settings,
        )
    )
    async with app.lifespan():
        api = CheckedApi(app, (await app.services()).store, [])
        async with api.as_user("root", admin=True) as admin:
            yield admin


@pytest.fixture
async def open_admin(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[httpx.AsyncClient]:
    monkeypatch.setenv("PATH", os.pathsep.join((str(Path(sys.executable).parent), os.defpath)))
    async with open_to_admin(database_url, tmp_path) as admin:
        yield admin


@ONLY_SQLITE
async def test_server_that_responds_is_shown_ready_with_its_tools(open_admin: httpx.AsyncClient):
    with greeter() as there:
        shown = {"url": there.url, "headers": {"Authorization": VALUES[1]}}
        path = await with_servers(open_admin, greeter=shown)
        tested = (await open_admin.post(f"{path}/mcp-servers/greeter/test")).json()
        assert tested["status"] == "ready" and "error" not in tested
        assert {"name": "greet", "description": "Greets somebody.", "effect": "write"} in tested["tools"]
        assert (await listed(open_admin, path))["greeter"] == tested
        # What the owner has turned off is not shown as ready any more.
        await save(open_admin, path, greeter={"disabled": True})
        assert (await listed(open_admin, path))["greeter"]["status"] == "disabled"


@ONLY_SQLITE
async def test_program_that_fails_is_shown_with_its_reason_and_without_its_secrets(
    open_admin: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG)
    program = "import os, sys; sys.exit('no such key: ' + os.environ['SEARCH_API_KEY'])"
    path = await with_servers(
        open_admin, search={"command": "python", "args": ["-c", program], "env": SEARCH["env"]}
    )
    for response in (await open_admin.post(f"{path}/mcp-servers/search/test"), await open_admin.get(path)):
        assert response.status_code == 200
        assert VALUES[0] not in response.text
    shown = (await listed(open_admin, path))["search"]
    assert shown["status"] == "failed" and shown["error"]
    assert f"no such key: {MASK}" in shown["stderr"]
    assert VALUES[0] not in caplog.text


@ONLY_SQLITE
async def test_promptx_of_the_operator_is_shown_as_it_is(database_url: str, tmp_path: Path):
    works = f"{sys.executable} {other_promptx.__file__}"
    fails = f"{sys.executable} -c 'raise SystemExit(\"no licence\")'"
    for number, (command, status, error) in enumerate(
        (
            (works, "ready", None),
            (fails, "failed", "It exited with code 1: no licence"),
            ("no-such-promptx", "failed", "The program `no-such-promptx` isn't installed on this machine."),
        )
    ):
        readable = (str(Path(other_promptx.__file__).parent),)
        async with open_to_admin(
            database_url, tmp_path / str(number), promptx_command=command, mcp_readable=readable
        ) as admin:
            path = await with_servers(admin)
            assert (await listed(admin, path))["promptx"]["status"] == "idle"
            tested = (await admin.post(f"{path}/mcp-servers/promptx/test")).json()
            assert (tested["status"], tested.get("error")) == (status, error)
            assert (await listed(admin, path))["promptx"] == tested


# Secrets


async def stored_bytes(database_url: str) -> bytes:
    """Everything that the database holds."""
    if database_url.startswith("sqlite"):
        return b"".join(file.read_bytes() for file in sqlite_path(database_url).parent.iterdir())
    tables: list[str] = []
    async with await psycopg.AsyncConnection.connect(database_url) as connection:
        names = await connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        for (name,) in await names.fetchall():
            rows = await connection.execute(f"SELECT t::text FROM {name} AS t".encode())
            tables += [row for (row,) in await rows.fetchall()]
    return "\n".join(tables).encode()


async def test_no_secret_is_found_in_the_database_a_response_an_error_or_a_log(
    api: Api, database_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG)
    admin = api.as_user("root", admin=True)
    path = await with_servers(admin, search=SEARCH, docs=DOCS)
    responses = [
        await admin.get(path),
        await admin.get("/api/agents"),
        await admin.patch(path, json={"name": "renamed"}),
        await save(admin, path, search={"disabled": True}),
        await save(admin, path, docs={"headers": {"Other": "X"}}),
        await admin.post(f"{path}/mcp-servers/docs/test"),
        await admin.get("/api/admin/audit"),
        await admin.get("/openapi.json"),
        await admin.get("/docs"),
        # Refusals, also of the very value
        await save(admin, path, bad=SEARCH | {"command": VALUES[0]}),
        await save(admin, path, bad=SEARCH | {"args": [f"{VALUES[0]}\n"]}),
        await save(admin, path, bad=SEARCH | {"env": {"PATH": VALUES[0]}}),
        await save(admin, path, bad=SEARCH | {"env": {"KEY": VALUES[0] * 1000}}),
        await save(admin, path, bad=SEARCH | {"env": VALUES[0]}),
        await save(admin, path, bad=DOCS | {"url": f"https://{VALUES[0]}@example.com"}),
        await save(admin, path, bad=DOCS | {"url": f"http://127.0.0.1/{VALUES[0]}"}),
        await save(admin, path, bad=DOCS | {"headers": {"X": f"{VALUES[1]}\r\n"}}),
        await save(admin, path, promptx=DOCS),
    ]
    for response in responses:
        for value in VALUES:
            assert value not in response.text, response.request.url
    assert [response.status_code for response in responses[-9:]] == [400] * 9
    kept = await stored_bytes(database_url)
    agent = await api.store.agents.get(AgentId(path.rpartition("/")[2]))
    for value in VALUES:
        assert value.encode() not in kept
        assert value not in caplog.text
        assert value not in repr(agent)
    # What was looked for could have been found.
    assert b"mcp.example.com" in kept and b"SEARCH_API_KEY" in kept
    assert await secrets_of(api, path, "search") == {"SEARCH_API_KEY": VALUES[0]}
    key_file = tmp_path / "data" / SECRET_KEY
    assert key_file.exists() == database_url.startswith("sqlite")


async def test_deleted_agent_keeps_no_server(api: Api, admin: httpx.AsyncClient, database_url: str):
    path = await with_servers(admin, search=SEARCH)
    assert (await admin.delete(path)).status_code == 204
    agent = await api.store.agents.get(AgentId(path.rpartition("/")[2]))
    assert agent and agent.settings.mcp_servers == {}


async def test_secret_is_not_stored_without_a_key_on_a_shared_database(postgres: Postgres, tmp_path: Path):
    database_url = postgres.create_database(template=TEMPLATE)
    settings = Settings.load(
        {},
        data=tmp_path,
        database_url=database_url,
        database_pool_size=2,
        jwt_secret=SECRET,
        gateway="openai",
    )
    app = create_app(settings)
    async with app.lifespan():
        api = Api(app, (await app.services()).store, [])
        async with api.as_user("root", admin=True) as admin:
            path = await with_servers(admin, docs={"url": DOCS["url"]})
            before = (await admin.get(path)).json()
            error = refusal(await save(admin, path, docs=DOCS), 409, "SECRET_KEY_REQUIRED")
            assert "THREADKEEP_SECRET_KEY" in error["message"]
            assert (await admin.get(path)).json() == before
