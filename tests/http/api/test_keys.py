"""API keys: made, listed and revoked by their user; what one may do, and where it ends."""

import logging
import re
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import ANY

import httpx
import pytest

from tests.conftest import ONLY_SQLITE, Api
from tests.http.calls import Json, items, new_agent, new_conversation, refusal
from tests.http.document import Operation, example, operations
from tests.http.test_isolation import SECRET_WORDS, Alice, bodies, code_for, her, ids_of, served_operations
from threadkeep.domain.agent import AuditEntry
from threadkeep.domain.ids import UserId, new_uuid
from threadkeep.domain.key import DAY_MS, Key
from threadkeep.domain.user import user_of_key
from threadkeep.handling.routing import Route
from threadkeep.http.routes import ROUTES
from threadkeep.services import keys as service
from threadkeep.services.reach import NOT_FOUND as LIMITED

__all__ = ["her"]

UNKNOWN = f"tk_{'A' * 43}"


async def make(client: httpx.AsyncClient, *scopes: str, **body: Any) -> Json:
    response = await client.post("/api/keys", json={"name": "a program", "scopes": scopes, **body})
    assert response.status_code == 201, response.text
    return response.json()


def in_days(days: int) -> str:
    return f"{datetime.now(UTC) + timedelta(days=days):%Y-%m-%dT%H:%M:%SZ}"


def entry_of(action: str, key: Key) -> AuditEntry:
    return AuditEntry(new_uuid(), key.created_at, key.user_id, action, None, {})


def using(api: Api, key: Json | str) -> httpx.AsyncClient:
    return api.client(**{"x-api-key": key if isinstance(key, str) else key["key"]})


async def test_key_is_shown_once_and_signs_in_until_it_is_revoked(api: Api, alice: httpx.AsyncClient):
    made = await make(alice, "chat", name="构建服务器", budgetMonth="12.5")
    value = made.pop("key")
    assert len(value) == 46 and value.startswith(made["prefix"]) and len(made["prefix"]) == 11
    assert made["scopes"] == ["chat"] and made["budgetMonth"] == "12.50"
    assert (made["agents"], made["expiresAt"], made["lastUsedAt"]) == (None, None, None)
    assert await items(alice, "/api/keys") == [made]
    client = using(api, value)
    assert (await client.get("/api/me")).json() == {"id": "alice", "role": "user", "installation": ANY}
    (listed,) = await items(alice, "/api/keys")
    assert listed["lastUsedAt"] is not None and value not in str(listed)
    assert (await alice.delete(f"/api/keys/{made['id']}")).status_code == 204
    refusal(await client.get("/api/me"), 401, "UNAUTHENTICATED")
    refusal(await alice.delete(f"/api/keys/{made['id']}"), 404, "KEY_NOT_FOUND")
    assert await items(alice, "/api/keys") == []


async def test_either_header_takes_a_key_or_a_token(api: Api, alice: httpx.AsyncClient):
    value = (await make(alice, "read"))["key"]
    token = alice.headers["authorization"]
    for headers in (
        {"Authorization": f"Bearer {value}"},
        {"x-api-key": value},
        {"x-api-key": token.removeprefix("Bearer ")},
        {"Authorization": f"Bearer {value}", "x-api-key": value},
        {"Authorization": "Basic QTpC", "x-api-key": value},  # of a proxy
    ):
        assert (await api.client(**headers).get("/api/me")).json()["id"] == "alice", headers
    # A key counts first, whatever comes beside it.
    client = api.client(Authorization=token, **{"x-api-key": UNKNOWN})
    refusal(await client.get("/api/me"), 401, "UNAUTHENTICATED")
    two = api.client(Authorization=f"Bearer {value}", **{"x-api-key": UNKNOWN})
    refusal(await two.get("/api/me"), 401, "UNAUTHENTICATED")


@ONLY_SQLITE
async def test_what_is_not_a_key_opens_nothing(api: Api, alice: httpx.AsyncClient):
    value = (await make(alice, "admin"))["key"]
    for wrong in (
        UNKNOWN, "tk_", "tk_x", value[:-1], value + "A", value.upper(), f"TK_{value[3:]}",
        f"tk_{'A' * 60_000}", f"{value} {value}", f"tk_{'/' * 43}", value.replace("tk_", "tk-"),
    ):  # fmt: skip
        for headers in ({"Authorization": f"Bearer {wrong}"}, {"x-api-key": wrong}):
            response = await api.client(**headers).get("/api/me")
            refusal(response, 401, "UNAUTHENTICATED")
            assert wrong not in response.text
    for name in ("key", "api_key", "apiKey", "x-api-key", "token", "access_token", "authorization"):
        response = await api.client().get("/api/conversations", params={name: value})
        assert response.status_code in {401, 422}, name


@ONLY_SQLITE
async def test_no_key_is_in_a_log_or_the_database(
    api: Api, alice: httpx.AsyncClient, caplog: pytest.LogCaptureFixture, tmp_path: Any
):
    caplog.set_level(logging.DEBUG)
    value = (await make(alice, "chat"))["key"]
    client = using(api, value)
    for path in ("/api/me", f"/api/conversations/{new_uuid()}", "/api/none", "/api/conversations?limit=x"):
        await client.get(path)
    await client.post("/api/agents", json={"name": "x"})
    await client.post("/api/chat", json={"content": "hi"})
    assert value not in caplog.text and value[11:] not in caplog.text
    for file in (tmp_path / "data").rglob("*"):
        if file.is_file():
            assert value[11:].encode() not in file.read_bytes(), file


WRONG: list[tuple[Json, str | None]] = [
    ({"scopes": []}, "scopes"),
    ({"scopes": ["write"]}, "scopes[0]"),
    ({"name": " "}, "name"),
    ({"name": "x" * 101}, "name"),
    ({"agents": []}, "agents"),
    ({"expiresAt": "2020-01-01T00:00:00Z"}, "expiresAt"),
    ({"expiresAt": "2027-01-01T00:00:00"}, "expiresAt"),
    ({"scopes": ["admin"], "expiresAt": "2999-01-01T00:00:00Z"}, "expiresAt"),
    ({"budgetMonth": "-1"}, "budgetMonth"),
    ({"budgetMonth": "a lot"}, "budgetMonth"),
    ({"budgetMonth": 1e300}, "budgetMonth"),
    ({"role": "admin"}, "role"),
]


@ONLY_SQLITE
async def test_malformed_key_is_refused(alice: httpx.AsyncClient):
    for changes, param in WRONG:
        body = {"name": "a program", "scopes": ["read"], **changes}
        refusal(await alice.post("/api/keys", json=body), 422, "INVALID_REQUEST", param)
    for agent_id in (new_uuid(), "none"):
        body = {"name": "a program", "scopes": ["read"], "agents": [agent_id]}
        refusal(await alice.post("/api/keys", json=body), 404, "AGENT_NOT_FOUND")
    assert await items(alice, "/api/keys") == []


async def test_user_has_a_limited_number_of_keys(alice: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(service, "MOST_KEYS", 2)
    for _ in range(2):
        await make(alice, "read")
    response = await alice.post("/api/keys", json={"name": "one more", "scopes": ["read"]})
    assert refusal(response, 422, "LIMIT_NOT_ALLOWED")["details"] == {"limit": "keys", "most": 2}


@ONLY_SQLITE
async def test_admin_key_expires_within_90_days(api: Api):
    admin = api.as_user("root", admin=True)
    made = await make(admin, "admin")
    (kept,) = await api.store.keys.of_user(UserId("root"))
    assert kept.expires_at == kept.created_at + 90 * DAY_MS
    assert (await using(api, made).get("/api/me")).json() == {
        "id": "root",
        "role": "admin",
        "installation": ANY,
    }


async def test_expired_key_signs_nobody_in(
    api: Api, alice: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
):
    client = using(api, await make(alice, "read", expiresAt="2999-01-01T00:00:00Z"))
    assert (await client.get("/api/me")).status_code == 200
    keys = (await api.app.services()).keys
    monkeypatch.setattr(keys, "_clock", lambda: 32_472_144_000_000)
    error = refusal(await client.get("/api/me"), 401, "UNAUTHENTICATED")
    assert "expired" in error["message"]


async def test_admin_role_of_a_key_falls_when_its_user_signs_in_without_it(api: Api):
    key = using(api, await make(api.as_user("root", admin=True), "admin"))
    assert (await key.get("/api/admin/turns")).status_code == 200
    assert (await api.as_user("root", admin=True).get("/api/me")).status_code == 200
    assert (await key.get("/api/me")).json()["role"] == "admin"
    assert (await api.as_user("root").get("/api/conversations")).status_code == 200
    assert (await key.get("/api/me")).json()["role"] == "user"
    refusal(await key.get("/api/admin/turns"), 403, "FORBIDDEN")
    # It doesn't rise again, and a key made now has the role of now.
    assert (await api.as_user("root", admin=True).get("/api/me")).status_code == 200
    assert (await key.get("/api/me")).json()["role"] == "user"
    assert (await make(key, "read"))["scopes"] == ["read"]
    again = using(api, await make(api.as_user("root", admin=True), "admin"))
    assert (await again.get("/api/me")).json()["role"] == "admin"


async def test_keys_are_gone_with_their_user(api: Api, alice: httpx.AsyncClient):
    key = using(api, await make(alice, "admin"))
    assert (await key.get("/api/me")).status_code == 200
    assert (await alice.delete("/api/users/alice")).status_code == 204
    refusal(await key.get("/api/me"), 401, "UNAUTHENTICATED")


@ONLY_SQLITE
async def test_audit_log_tells_who_made_and_revoked_keys_without_their_names(api: Api):
    admin = api.as_user("root", admin=True)
    made = await make(admin, "read", name=SECRET_WORDS)
    await admin.delete(f"/api/keys/{made['id']}")
    revoked, created = await items(admin, "/api/admin/audit")
    assert (created["action"], created["details"]) == (
        "create_key",
        {"keyId": made["id"], "scopes": ["read"]},
    )
    assert (revoked["action"], revoked["details"]) == ("revoke_key", {"keyId": made["id"]})


# Scopes

ORDER = ["read", "chat", "admin"]


def needed(operation: Operation) -> str:
    ((scope,),) = {tuple(it) for each in operation.spec["security"] for it in each.values()}
    return scope


def of_admins(route: Route) -> bool:
    """Whether a key needs the scope `admin` for it: others' concerns, and ending sessions."""
    ends_sessions = route.path.startswith("/api/me/sessions") and route.method != "GET"
    return route.path.startswith("/api/admin/") or ends_sessions


def test_every_route_declares_what_a_key_needs_for_it():
    """A route that changes something needs `admin`, unless the table says otherwise."""
    chat = {f"{it.method} {it.path}" for it in ROUTES if it.needed_scope == "chat"}
    assert len(chat) >= 23
    for route in ROUTES:
        if of_admins(route):
            assert route.needed_scope == "admin", route.path
        elif route.method == "GET":
            assert route.needed_scope == "read", route.path
        elif route.needed_scope != "admin":
            said = (
                "/conversation",
                "/api/chat",
                "/api/files",
                "/approvals/",
                "/api/briefings/",
                "/messages/",
                "/rerun",
                "/api/shares/",
                "/api/imports",
            )
            assert any(it in route.path for it in said), route.path


async def test_key_with_too_little_scope_is_refused_on_every_route(api: Api, her: Alice):
    before = await her.everything()
    tried = 0
    for scope in ("read", "chat"):
        client = using(api, await make(her.client, scope))
        before[-1] = await items(her.client, "/api/keys")
        for operation in await served_operations(client):
            if not operation.needs_sign_in or ORDER.index(needed(operation)) <= ORDER.index(scope):
                continue
            ids = {name: her.ids(name)[0] for name in ids_of(operation)}
            url = operation.url(**dict.fromkeys(operation.path_names, "none") | ids)
            for body in bodies(operation):
                error = refusal(await client.request(operation.method, url, json=body), 403, "FORBIDDEN")
                assert error["details"] == {"scope": needed(operation)}, operation
                assert f"`{needed(operation)}`" in error["message"]
                tried += 1
    assert tried > 60
    after = await her.everything()
    for listed in (before[-1], after[-1]):
        for key in listed:
            key.pop("lastUsedAt")
    assert after == before


async def test_key_with_enough_scope_gets_to_what_it_asks_for(api: Api, alice: httpx.AsyncClient):
    for scope in ORDER:
        client = using(api, await make(alice, scope))
        for operation in await served_operations(client):
            if not operation.needs_sign_in or ORDER.index(needed(operation)) > ORDER.index(scope):
                continue
            if operation.path in {"/api/keys", "/api/users/{user_id}", "/api/me/events"}:
                continue
            url = operation.url(**dict.fromkeys(operation.path_names, new_uuid()))
            body = None if operation.body is None else example(operation.body)
            response = await client.request(operation.method, url, json=body, params=operation.needed_query)
            assert response.status_code != 401, operation
            assert "API key" not in response.text, operation


async def test_only_people_and_admin_keys_make_and_revoke_keys(api: Api, alice: httpx.AsyncClient):
    kept = await make(alice, "read")
    for scope in ("read", "chat"):
        client = using(api, await make(alice, scope))
        refusal(await client.post("/api/keys", json={"name": "x", "scopes": ["read"]}), 403, "FORBIDDEN")
        refusal(await client.delete(f"/api/keys/{kept['id']}"), 403, "FORBIDDEN")
    client = using(api, await make(alice, "admin"))
    made = await make(client, "chat")
    assert (await using(api, made).get("/api/me")).json()["id"] == "alice"
    assert (await client.delete(f"/api/keys/{kept['id']}")).status_code == 204


# Keys that keys make

HARMLESS = {"scopes": ["read"], "name": "a child"}


async def test_what_a_key_makes_has_at_most_its_limits(api: Api, alice: httpx.AsyncClient):
    parent = await make(alice, "admin", budgetMonth="5", expiresAt=in_days(30))
    client = using(api, parent)
    child = await make(client, "admin")
    assert child["parentId"] == parent["id"] and parent["parentId"] is None
    assert (child["budgetMonth"], child["expiresAt"]) == ("5.00", parent["expiresAt"])
    grandchild = await make(using(api, child), "chat", expiresAt=in_days(1))
    assert grandchild["parentId"] == child["id"] and grandchild["expiresAt"] < child["expiresAt"]
    for maker in (client, using(api, child)):
        for changes, param in (
            ({"budgetMonth": "1"}, "budgetMonth"),
            ({"expiresAt": in_days(31)}, "expiresAt"),
            ({"scopes": ["admin"], "expiresAt": in_days(31)}, "expiresAt"),
        ):
            refusal(await maker.post("/api/keys", json=HARMLESS | changes), 422, "INVALID_REQUEST", param)
    # One family has one budget: all of them spend the same one.
    kept = {it.id: it for it in await api.store.keys.of_user(UserId("alice"))}
    assert {it.paid_by for it in kept.values()} == {parent["id"]}
    assert {user_of_key(it).key_id for it in kept.values()} == {parent["id"]}
    (budget,) = (await alice.get("/api/usage")).json()["budgets"]
    assert (budget["scope"], budget["limit"]) == ("key", "5.00")


async def test_keys_of_a_key_without_a_budget_have_their_own(api: Api, alice: httpx.AsyncClient):
    client = using(api, await make(alice, "admin"))
    made = [await make(client, "chat", budgetMonth=amount) for amount in ("1", "2")]
    kept = {it.id: it for it in await api.store.keys.of_user(UserId("alice"))}
    assert [kept[it["id"]].paid_by for it in made] == [it["id"] for it in made]
    assert [it["budgetMonth"] for it in made] == ["1.00", "2.00"]


@pytest.mark.parametrize("revoked", [0, 1, 2])
async def test_keys_go_with_the_key_that_made_them(api: Api, alice: httpx.AsyncClient, revoked: int):
    family, client = [await make(alice, "admin")], alice
    for _ in range(2):
        client = using(api, family[-1])
        family.append(await make(client, "admin"))
    unrelated = await make(alice, "read")
    clients = [using(api, it) for it in family]
    for it in clients:
        assert (await it.get("/api/me")).status_code == 200
    assert (await alice.delete(f"/api/keys/{family[revoked]['id']}")).status_code == 204
    for it in clients[:revoked]:
        assert (await it.get("/api/me")).status_code == 200
    for it in clients[revoked:]:
        refusal(await it.get("/api/me"), 401, "UNAUTHENTICATED")
    left = {it["id"] for it in await items(alice, "/api/keys")}
    assert left == {unrelated["id"], *(it["id"] for it in family[:revoked])}


async def test_key_that_was_revoked_meanwhile_makes_none(api: Api, alice: httpx.AsyncClient):
    parent = await make(alice, "admin")
    client = using(api, parent)
    assert (await client.get("/api/me")).status_code == 200  # this node knows it for a while
    (kept,) = await api.store.keys.of_user(UserId("alice"))
    assert await api.store.keys.remove(UserId("alice"), kept.id, entry_of("revoke_key", kept))
    refusal(await client.post("/api/keys", json=HARMLESS), 401, "UNAUTHENTICATED")
    assert await items(alice, "/api/keys") == []


async def test_admin_role_needs_the_scope_admin_on_every_route(api: Api, alice: httpx.AsyncClient):
    root = api.as_user("root", admin=True)
    private = await new_agent(alice, name="private")
    for scope in ("read", "chat"):
        client = using(api, await make(root, scope))
        assert (await client.get("/api/me")).json()["role"] == "user"
        for route in ROUTES:
            if of_admins(route):
                url = re.sub(r"{\w+}", new_uuid(), route.path)
                refusal(await client.request(route.method, url, json={}), 403, "FORBIDDEN")
        refusal(await client.get("/api/usage?by=user"), 403, "FORBIDDEN")
        for path in ("", "/prompt", "/documents", "/feedback", "/tools", "/search?q=x"):
            response = await client.get(f"/api/agents/{private['id']}{path}")
            refusal(response, 404, "AGENT_NOT_FOUND")
    client = using(api, await make(root, "admin"))
    assert (await client.get("/api/admin/audit")).status_code == 200
    assert (await client.get(f"/api/agents/{private['id']}/prompt")).status_code == 200


# Keys for some agents


@pytest.fixture
async def other(her: Alice) -> Json:
    """Another agent of alice's."""
    return await new_agent(her.client, name="another")


async def test_key_for_another_agent_finds_nothing_of_this_one_on_any_route(
    api: Api, her: Alice, other: Json
):
    client = using(api, await make(her.client, "admin", agents=[other["id"]]))
    before, tried = await her.everything(), 0
    for operation in await served_operations(client):
        for name in ids_of(operation):
            if name in {"key_id", "user_id", "session_id", "import_id"} or operation.path.startswith(
                "/api/admin"
            ):
                continue
            others = dict.fromkeys(operation.path_names, "none")
            for id_ in her.ids(name) if name != "file_id" else ():
                parents = {
                    "document_id": {"agent_id": her.agent["id"]},
                    "memory_id": {"agent_id": her.agent["id"]},
                    "compaction_id": {"conversation_id": her.conversation["id"]},
                    "request_id": {"turn_id": her.turn_ids[0]},
                }
                url = operation.url(**others | parents.get(name, {}) | {name: id_})
                for body in bodies(operation):
                    response = await client.request(
                        operation.method, url, json=body, params=operation.needed_query
                    )
                    if operation.path.endswith("/duplicate"):
                        refusal(response, 403, "FORBIDDEN")
                    else:
                        refusal(response, 404, code_for(operation, name))
                    assert SECRET_WORDS not in response.text
                    tried += 1
    assert tried > 60
    after = await her.everything()
    for listed in (before[-1], after[-1]):
        for key in listed:
            key.pop("lastUsedAt")
    assert after == before


def test_every_id_in_a_path_is_one_that_a_limited_key_is_held_against():
    """Those below others are found through them; users, keys and the like concern more than some agents."""
    below = {"document_id", "memory_id", "compaction_id", "request_id", "name", "component", "number"}
    beyond = {"user_id", "key_id", "import_id", "gateway", "session_id", "invitation_id"}
    names = {name for operation in operations() for name in operation.path_names}
    assert names - below - beyond <= LIMITED.keys() | {"agent_id"}


async def test_lists_and_search_show_a_limited_key_only_its_agents(api: Api, her: Alice, other: Json):
    own = await new_conversation(her.client, other["id"], title="alices-other-words")
    limited = using(api, await make(her.client, "chat", agents=[other["id"]]))
    whole = using(api, await make(her.client, "chat"))
    searches = {"/api/search": {"q": SECRET_WORDS}, "/api/usage": {"to": "2027-01-15"}}
    shown = 0
    for operation in await served_operations(limited):
        if operation.method != "GET" or operation.path_names or operation.path == "/api/me/events":
            continue
        query = searches.get(operation.path, operation.needed_query)
        response = await limited.get(operation.path, params=query)
        for theirs in (SECRET_WORDS, her.agent["id"], her.conversation["id"], her.turn_ids[0]):
            assert theirs not in response.text, operation
        shown += her.agent["id"] in (await whole.get(operation.path, params=query)).text
    assert shown >= 4  # what the test would see: agents, conversations, briefings, usage
    assert [it["id"] for it in await items(limited, "/api/agents")] == [other["id"]]
    assert [it["id"] for it in await items(limited, "/api/conversations", limit=1)] == [own["id"]]
    assert len(await items(limited, "/api/keys")) == 1
    refusal(await limited.post("/api/chat", json={"content": "?"}), 404, "AGENT_NOT_FOUND")
    refusal(await limited.get("/api/chat/messages"), 404, "AGENT_NOT_FOUND")


async def test_limited_key_does_nothing_beyond_its_agents(api: Api, her: Alice, other: Json):
    client = using(api, await make(her.client, "admin", agents=[other["id"]]))
    for method, path, body in (
        ("POST", "/api/keys", {"name": "x", "scopes": ["read"]}),
        ("DELETE", f"/api/keys/{her.key_id}", None),
        ("DELETE", "/api/users/alice", None),
        ("POST", "/api/agents", {"name": "x"}),
    ):
        refusal(await client.request(method, path, json=body), 403, "FORBIDDEN")
    briefing = {"userId": "alice", "title": "t", "summary": "s", "priority": "P1"}
    response = await client.post("/api/briefings", json={**briefing, "agentId": her.agent["id"]})
    refusal(response, 404, "AGENT_NOT_FOUND")
    response = await client.post("/api/briefings", json={**briefing, "agentId": other["id"]})
    assert response.status_code == 201
    renamed = await client.patch(f"/api/agents/{other['id']}", json={"name": "renamed"})
    assert renamed.json()["name"] == "renamed"


async def test_limited_key_of_an_admin_has_no_say_about_others(api: Api):
    admin = api.as_user("root", admin=True)
    agent = await new_agent(admin)
    client = using(api, await make(admin, "admin", agents=[agent["id"]]))
    assert (await client.get("/api/me")).json()["role"] == "user"
    refusal(await client.get("/api/admin/audit"), 403, "FORBIDDEN")
