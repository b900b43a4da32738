"""Agents of other servers over HTTP: saved, masked, refused, shown to others, copied, deleted."""

import logging
from typing import Any

import httpx
import pytest

from tests.conftest import Api
from tests.http.calls import Json, new_agent, refusal
from threadkeep.domain.secret import MASK

VALUE = "Bearer value-of-a-header-4711"
URL = "https://agents.example.com/ag-ui"
ENGINE: Json = {"kind": "ag-ui", "url": URL, "headers": {"Authorization": VALUE}, "repeat": True}
SHOWN: Json = {
    "kind": "ag-ui",
    "status": "ready",
    "host": "agents.example.com",
    "url": URL,
    "headers": {"Authorization": MASK},
    "repeat": True,
}


async def remote(client: httpx.AsyncClient, **fields: Any) -> str:
    """The path of an agent that another server runs."""
    return f"/api/agents/{(await new_agent(client, engine=ENGINE, **fields))['id']}"


async def engine_of(client: httpx.AsyncClient, path: str) -> Json:
    return (await client.get(path)).json()["engine"]


async def test_owner_sees_the_address_and_masked_headers_and_others_only_the_host(
    api: Api, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG)
    alice, bob, root = api.as_user("alice"), api.as_user("bob"), api.as_user("root", admin=True)
    path = await remote(alice, visibility="public")
    assert await engine_of(alice, path) == await engine_of(root, path) == SHOWN
    assert await engine_of(bob, path) == {"kind": "ag-ui", "status": "ready", "host": "agents.example.com"}
    listed = [it for it in (await bob.get("/api/agents")).json()["items"] if it["engine"]["kind"] == "ag-ui"]
    assert "url" not in listed[0]["engine"]
    for client in (alice, bob, root):
        assert VALUE not in (await client.get(path)).text
    assert VALUE not in (await root.get("/api/admin/audit")).text
    assert "value-of-a-header" not in caplog.text
    assert (await bob.patch(path, json={"engine": {"repeat": False}})).status_code == 403


async def test_mask_keeps_a_header_until_the_origin_changes(alice: httpx.AsyncClient):
    path = await remote(alice)
    for change in ({"repeat": False}, {"url": f"{URL}/v2"}, {"headers": {"Authorization": MASK}}):
        assert (await alice.patch(path, json={"engine": change})).status_code == 200
    assert (await engine_of(alice, path))["headers"] == {"Authorization": MASK}
    preview = await alice.post(f"{path}/preview", json={"engine": {"headers": {"Authorization": VALUE}}})
    assert preview.json()["changes"] == []
    added = {"headers": {"X-Key": MASK}}
    refused = await alice.patch(path, json={"engine": added})
    refusal(refused, 422, "INVALID_REQUEST", "engine.headers.X-Key")
    for url in ("https://agents.example.com:8443/ag-ui", "http://agents.example.com/ag-ui"):
        path = await remote(alice)
        assert (await alice.patch(path, json={"engine": {"url": url}})).status_code == 200
        assert (await engine_of(alice, path))["headers"] == {}


async def test_engine_can_be_given_and_taken_back(alice: httpx.AsyncClient):
    path = f"/api/agents/{(await new_agent(alice))['id']}"
    assert await engine_of(alice, path) == {"kind": "config"}
    assert (await alice.patch(path, json={"engine": {"kind": "ag-ui", "url": URL}})).status_code == 200
    assert (await engine_of(alice, path))["repeat"] is False
    assert (await alice.patch(path, json={"engine": None})).json()["engine"] == {"kind": "config"}


@pytest.mark.parametrize(
    ("engine", "param"),
    [
        ({"kind": "ag-ui"}, "engine.url"),
        ({"kind": "code", "url": URL}, "engine.kind"),
        ({"kind": "ag-ui", "url": "ftp://a.example/"}, "engine.url"),
        ({"kind": "ag-ui", "url": "http://127.0.0.1:8000/"}, "engine.url"),
        ({"kind": "ag-ui", "url": "http://169.254.169.254/latest"}, "engine.url"),
        ({"kind": "ag-ui", "url": "https://user:pass@a.example/"}, "engine.url"),
        ({"kind": "ag-ui", "url": URL, "headers": {"Host": "b.example"}}, "engine.headers.Host"),
        ({"kind": "ag-ui", "url": URL, "headers": {"X-Key": "a\nb"}}, "engine.headers.X-Key"),
        ({"kind": "ag-ui", "url": URL, "repeat": "yes"}, "engine.repeat"),
        ({"kind": "ag-ui", "url": URL, "retry": True}, "engine.retry"),
    ],
)
async def test_bad_engine_is_refused_by_its_field(alice: httpx.AsyncClient, engine: Json, param: str):
    refused = await alice.post("/api/agents", json={"name": "Remote", "engine": engine})
    refusal(refused, 422, "INVALID_REQUEST", param)


async def test_admins_copy_has_no_secrets_and_the_owners_has(api: Api):
    alice, root = api.as_user("alice"), api.as_user("root", admin=True)
    path = await remote(alice)
    own, admins = [(await it.post(f"{path}/duplicate")).json()["engine"] for it in (alice, root)]
    assert own == SHOWN
    assert admins == SHOWN | {"headers": {}}
    assert (await alice.delete(path)).status_code == 204
