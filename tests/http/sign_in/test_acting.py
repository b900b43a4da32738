"""A key that acts for an application's users: whom a request is for, and what such a key can't do."""

from typing import Any
from urllib.parse import quote

import httpx
import msgspec
import pytest

from tests.conftest import ONLY_SQLITE, SECRET, Api
from tests.http.calls import Json, items, new_agent, new_conversation, refusal
from tests.http.signing_in import ROOT
from tests.protocols.agentx.client import agentx
from tests.talking import Talk, talking
from threadkeep import Settings
from threadkeep.client.client import Client
from threadkeep.http.sign_in.access_tokens import issue_token

TEN_KILOBYTES = "x" * 10 * 1024
NAME = "Threadkeep-User"


@pytest.fixture
def root(api: Api) -> httpx.AsyncClient:
    return api.as_user("root", admin=True)


async def make(admin: httpx.AsyncClient, realm: str = "shop", **body: Any) -> Json:
    given = {"name": "the shop", "scopes": ["chat"], "actAs": {"realm": realm}} | body
    response = await admin.post("/api/keys", json=given)
    assert response.status_code == 201, response.text
    return response.json()


def acting(api: Api, key: Json, user: str | None = None) -> httpx.AsyncClient:
    named = {} if user is None else {NAME: quote(user, safe="")}
    return api.client(**{"x-api-key": key["key"]}, **named)


async def test_request_is_for_the_user_whom_it_names(api: Api, root: httpx.AsyncClient):
    key = await make(root)
    assert (key["actAs"], key["mayDelete"]) == ({"realm": "shop"}, False)
    for name in ("42", "Jürgen Müller", "张三", "a:b|c", "100%"):
        me = (await acting(api, key, name).get("/api/me")).json()
        assert (me["id"], me["role"]) == (f"shop:{name}", "user")
    known = [it["id"] for it in await items(root, "/api/admin/users")]
    assert "shop:42" in known
    # What one of them has, nobody else has: not another, not the one who made the key.
    agent = await new_agent(root, visibility="public")
    first = acting(api, key, "42")
    conversation = await new_conversation(first, agent["id"])
    assert conversation["userId"] == "shop:42"
    for other in (acting(api, key, "43"), acting(api, await make(root, "bank"), "42"), root):
        response = await other.get(f"/api/conversations/{conversation['id']}")
        refusal(response, 404, "CONVERSATION_NOT_FOUND")
    (listed,) = [it for it in await items(root, "/api/keys") if it["id"] == key["id"]]
    assert listed["actAs"] == {"realm": "shop"} and listed["lastUsedAt"]


@ONLY_SQLITE
async def test_request_without_a_user_is_refused(api: Api, root: httpx.AsyncClient):
    key = await make(root)
    for value in (None, "", "   ", "%20", "%E2%80%8B"):
        client = api.client(**{"x-api-key": key["key"]}, **({} if value is None else {NAME: value}))
        for path in ("/api/me", "/api/agents", "/v1/models"):
            response = await client.get(path)
            assert response.status_code == 401, response.text
            assert response.json()["error"]["code"].upper() == "USER_REQUIRED"


async def test_name_that_is_none_is_refused(api: Api, root: httpx.AsyncClient):
    key = (await make(root))["key"]
    bad = ("%", "%4", "%zz", "%FF", "%C3", "%ED%A0%80", "a%00b", "x" * 251, TEN_KILOBYTES, "%41" * 251)
    for value in bad:
        client = api.client(**{"x-api-key": key, NAME: value})
        error = refusal(await client.get("/api/me"), 401, "USER_REQUIRED", NAME)
        assert TEN_KILOBYTES not in error["message"]


@ONLY_SQLITE
async def test_raw_bytes_and_two_names_are_refused(api: Api, root: httpx.AsyncClient):
    key = (await make(root))["key"].encode()
    for named in ([(NAME.encode(), "Jürgen".encode())], [(NAME.encode(), b"1"), (NAME.encode(), b"2")]):
        response = await api.client().get("/api/me", headers=[(b"x-api-key", key), *named])
        refusal(response, 401, "USER_REQUIRED", NAME)


@ONLY_SQLITE
async def test_header_with_any_other_sign_in_is_refused(api: Api, root: httpx.AsyncClient):
    """Ignored, it would put what is meant for many users into one account."""
    plain = (await root.post("/api/keys", json={"name": "mine", "scopes": ["chat"]})).json()
    for client in (acting(api, plain, "42"), api.as_user("alice"), root):
        response = await client.get("/api/me", headers={NAME: "42"})
        refusal(response, 403, "FORBIDDEN", NAME)
    refusal(await api.client().get("/api/me", headers={NAME: "42"}), 403, "FORBIDDEN", NAME)


@ONLY_SQLITE
async def test_admins_id_is_an_ordinary_user_of_the_realm(api: Api, root: httpx.AsyncClient):
    for name in ("root", "shop:root", "local"):
        client = acting(api, await make(root), name)
        me = (await client.get("/api/me")).json()
        assert (me["id"], me["role"]) == (f"shop:{name}", "user")
        refusal(await client.get("/api/admin/users"), 403, "FORBIDDEN")


@ONLY_SQLITE
async def test_acting_key_makes_no_keys_and_keeps_no_sessions(api: Api, root: httpx.AsyncClient):
    client = acting(api, await make(root, mayDelete=True), "42")
    body = {"name": "another", "scopes": ["read"]}
    for response in (
        await client.post("/api/keys", json=body),
        await client.get("/api/keys"),
        await client.get("/api/me/sessions"),
        await client.delete("/api/me/sessions"),
        await client.post("/api/agents", json={"name": "mine"}),
        await client.get("/api/admin/audit"),
    ):
        refusal(response, 403, "FORBIDDEN")


@ONLY_SQLITE
async def test_who_makes_acting_keys_and_how(api: Api, root: httpx.AsyncClient):
    body = {"name": "the shop", "scopes": ["chat"], "actAs": {"realm": "shop"}}
    refusal(await api.as_user("alice").post("/api/keys", json=body), 403, "FORBIDDEN")
    bad: list[tuple[Json, str]] = [
        ({"scopes": ["admin"]}, "scopes"),
        ({"scopes": ["read", "admin"]}, "scopes"),
        *(({"actAs": {"realm": it}}, "actAs.realm") for it in ("Shop", "1", "a_b", "x" * 33, "café", "a b")),
        *(({"actAs": {"realm": it}}, "actAs.realm") for it in ("invited", "guest", "local")),
        ({"actAs": {"realm": ""}}, "actAs.realm"),
        ({"actAs": None, "mayDelete": True}, "mayDelete"),
        ({"agents": ["00000000-0000-7000-8000-000000000000"], "mayDelete": True}, "mayDelete"),
    ]
    for change, param in bad:
        refusal(await root.post("/api/keys", json=body | change), 422, "INVALID_REQUEST", param)
    made = await make(root)
    (entry, *_) = await items(root, "/api/admin/audit")
    assert entry["details"]["actAs"] == {"realm": "shop"} and entry["details"]["keyId"] == made["id"]


@ONLY_SQLITE
async def test_key_falls_with_the_role_of_its_maker(api: Api, root: httpx.AsyncClient):
    client = acting(api, await make(root), "42")
    assert (await client.get("/api/me")).status_code == 200
    await api.as_user("root").get("/api/me")
    error = refusal(await client.get("/api/me"), 401, "UNAUTHENTICATED")
    assert "no longer an admin" in error["message"]


@ONLY_SQLITE
async def test_suspended_user_is_kept_out_and_so_is_the_key_of_a_suspended_admin(
    api: Api, root: httpx.AsyncClient
):
    ops = api.as_user("ops", admin=True)
    key = await make(ops)
    client, other = acting(api, key, "42"), acting(api, key, "43")
    for it in (client, other):
        assert (await it.get("/api/me")).status_code == 200
    assert (await root.post("/api/admin/users/shop:42/suspend")).status_code == 200
    refusal(await client.get("/api/me"), 401, "UNAUTHENTICATED")
    assert (await other.get("/api/me")).status_code == 200
    assert (await root.post("/api/admin/users/ops/suspend")).status_code == 200
    refusal(await other.get("/api/me"), 401, "UNAUTHENTICATED")


async def test_key_deletes_users_of_its_own_realm_if_it_may(api: Api, root: httpx.AsyncClient):
    agent = await new_agent(root, visibility="public")
    key = await make(root, mayDelete=True)
    gone, stays = acting(api, key, "42"), acting(api, key, "43")
    for client in (gone, stays, acting(api, await make(root, "bank"), "42")):
        await new_conversation(client, agent["id"])
    refusal(await acting(api, await make(root), "42").delete("/api/users/shop:42"), 403, "FORBIDDEN")
    for other in ("bank:42", "root", "shop", "shopping:42", "shop:nobody", "42"):
        refusal(await stays.delete(f"/api/users/{other}"), 404, "USER_NOT_FOUND")
    assert (await stays.delete("/api/users/shop:42")).status_code == 204
    assert await items(gone, "/api/conversations") == []  # the application still has this user: it comes back
    assert len(await items(stays, "/api/conversations")) == 1
    deletions = [it for it in await items(root, "/api/admin/audit") if it["action"] == "delete_user"]
    ours = [it for it in deletions if it["details"]["userId"].startswith("deleted-")]
    assert len(ours) == 1
    assert (ours[0]["actorId"], ours[0]["details"]["keyId"]) == ("root", key["id"])


@ONLY_SQLITE
async def test_repeated_request_of_another_user_is_another_request(api: Api, root: httpx.AsyncClient):
    agent, key = await new_agent(root, visibility="public"), await make(root)
    made: set[str] = set()
    for name in ("1", "2"):
        response = await acting(api, key, name).post(
            f"/api/agents/{agent['id']}/conversations", json={}, headers={"Idempotency-Key": "same"}
        )
        made.add(response.json()["id"])
    assert len(made) == 2


@ONLY_SQLITE
async def test_limited_key_reaches_its_agents_for_every_user(api: Api, root: httpx.AsyncClient):
    one, other = [await new_agent(root, visibility="public") for _ in range(2)]
    client = acting(api, await make(root, agents=[one["id"]]), "42")
    await new_conversation(client, one["id"])
    response = await client.post(f"/api/agents/{other['id']}/conversations", json={})
    refusal(response, 404, "AGENT_NOT_FOUND")


@ONLY_SQLITE
async def test_socket_is_for_the_user_whom_its_handshake_names(talk: Talk):
    """Without sign-in, too: whoever has the machine makes such a key to try it out."""
    key = (await make(talk.client))["key"]
    async with agentx(talk, additional_headers={"x-api-key": key, NAME: "42"}) as socket:
        created = await socket.request("image_create", containerId="default")
        assert "error" not in created
    bearer = {"Authorization": f"Bearer {key}"}
    (conversation,) = (await talk.client.get("/api/conversations", headers={**bearer, NAME: "42"})).json()[
        "items"
    ]
    assert conversation["userId"] == "shop:42"
    async with agentx(talk, additional_headers=bearer) as socket:
        assert (await socket.request("container_list"))["errorCode"] == "USER_REQUIRED"


@ONLY_SQLITE
async def test_key_for_every_user_acts_only_while_the_operator_allows_it(
    talk_settings: Settings, monkeypatch: pytest.MonkeyPatch
):
    settings = msgspec.structs.replace(talk_settings, jwt_secret=SECRET, act_as_anyone=True)
    async with talking(settings) as talk:
        root = {"Authorization": f"Bearer {issue_token(SECRET, ROOT, 600)}"}
        talk.client.headers.update(root)
        key = await make(talk.client, "", mayDelete=True)
        named = {"Authorization": f"Bearer {key['key']}"}
        for name in ("alice", "root"):
            me = (await talk.client.get("/api/me", headers={**named, NAME: name})).json()
            assert (me["id"], me["role"]) == (name, "user")
        # It deletes only the user whom the request names, and not who made it.
        for name, other in (("alice", "root"), ("alice", "bob"), ("root", "root")):
            response = await talk.client.delete(f"/api/users/{other}", headers={**named, NAME: name})
            refusal(response, 404, "USER_NOT_FOUND")
        response = await talk.client.delete("/api/users/alice", headers={**named, NAME: "alice"})
        assert response.status_code == 204
        monkeypatch.setattr((await talk.app.services()).keys, "_act_as_anyone", False)
        refusal(await talk.client.get("/api/me", headers={**named, NAME: "bob"}), 403, "FORBIDDEN")


@ONLY_SQLITE
async def test_clients_name_the_user(talk: Talk):
    key = (await make(talk.client, mayDelete=True))["key"]
    async with Client(talk.url, token=key, user="Jürgen") as client:
        assert (await client.me()).id == "shop:Jürgen"
        other = client.acting_for("a/b")
        assert (await other.me()).id == "shop:a/b"
        await other.close()  # the connections are the first one's
        assert (await client.me()).id == "shop:Jürgen"
        await client.delete_user("shop:Jürgen")
