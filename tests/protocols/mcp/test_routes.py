"""Requests to `/mcp` that no client of the SDKs sends, sign-in, and what stands between it and strangers."""

import asyncio
import json
import logging
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from tests.conftest import SECRET
from tests.talking import Talk, talking
from threadkeep.testing import Gate, Say, ScriptedModel, Wait, scripted_settings, until
from threadkeep.testing.waiting import PATIENCE_S

ISSUER = "https://id.example.org/realms/team"
NEWEST = "2026-07-28"
ACCEPT = {"accept": "application/json, text/event-stream"}
EACH_ERA = pytest.mark.parametrize("era", [NEWEST, HANDSHAKE_PROTOCOL_VERSIONS[-1]])

Json = dict[str, Any]


@pytest.fixture
async def talk(model: ScriptedModel, tmp_path: Path) -> AsyncIterator[Talk]:
    """Threadkeep with an issuer, and alice's client of it. None of this depends on the database."""
    settings = scripted_settings(
        model,
        data=tmp_path / "data",
        embedding_url="off",
        jwt_secret=SECRET,
        jwt_issuer=ISSUER,
        cors_origins=("https://app.example.org",),
        max_body_bytes=100_000,
    )
    async with talking(settings) as talk:
        token = jwt.encode({"sub": "alice", "iss": ISSUER, "exp": int(time.time()) + 600}, SECRET, "HS256")
        talk.client.headers.update({"authorization": f"Bearer {token}", **ACCEPT})
        yield talk


def request(method: str, era: str = NEWEST, **params: Any) -> Json:
    """A request, in the newest version with what it says about its client."""
    meta: Json = {
        "io.modelcontextprotocol/protocolVersion": era,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}


def headers(method: str, era: str = NEWEST, name: str | None = None) -> dict[str, str]:
    """The headers that go with it."""
    named = {"mcp-name": name} if name else {}
    return {"mcp-protocol-version": era, "mcp-method": method, **named}


async def call_tool(talk: Talk, tool: str, era: str = NEWEST, **arguments: Any) -> httpx.Response:
    body = request("tools/call", era, name=tool, arguments=arguments)
    return await talk.client.post("/mcp", json=body, headers=headers("tools/call", era, tool))


def answered(response: httpx.Response) -> Json:
    """The message of a response, whether it is a stream or not."""
    if response.headers["content-type"].startswith("application/json"):
        return response.json()
    (data,) = (line for line in response.text.splitlines() if line.startswith("data: {"))
    return json.loads(data.removeprefix("data: "))


def refused(response: httpx.Response, status: int, code: int) -> str:
    """Why a request was refused, as JSON-RPC says it."""
    assert response.status_code == status, response.text
    body = response.json()
    assert (body["jsonrpc"], body["id"], body["error"]["code"]) == ("2.0", None, code)
    return body["error"]["message"]


@EACH_ERA
async def test_requests_that_are_none(talk: Talk, era: str):
    async def post(content: bytes) -> httpx.Response:
        sent = {"content-type": "application/json", **headers("tools/list", era)}
        return await talk.client.post("/mcp", content=content, headers=sent)

    one = json.dumps(request("tools/list", era)).encode()
    assert "no batches" in refused(await post(b"[" + one + b"," + one + b"]"), 422, -32600)
    for content in (b"[]", b'"tools/list"', b"1", b"null"):
        refused(await post(content), 422, -32600)
    refused(await post(one[:-2]), 422, -32600)
    refused(await post(b"{" * 5000), 422, -32600)
    refused(await post(b'{"jsonrpc": "2.0", "id": 1, "method": "x\\u0000"}'), 422, -32600)
    too_large = await post(b'{"jsonrpc": "' + b"2" * 100_000 + b'"}')
    assert "97.7 KB" in refused(too_large, 413, -32600)
    assert (await post(b"{}")).status_code == 400
    unknown = await talk.client.post(
        "/mcp", json=request("tools/burn", era), headers=headers("tools/burn", era)
    )
    assert answered(unknown)["error"]["code"] == -32601
    for method in ("GET", "DELETE", "PUT"):
        refused(await talk.client.request(method, "/mcp"), 405, -32600)


@EACH_ERA
async def test_arguments_of_every_wrong_kind_are_the_tools_own_errors(talk: Talk, era: str):
    for tool, arguments in (
        ("send_message", {}),
        ("send_message", {"content": ["Hi"]}),
        ("send_message", {"content": "Hi", "conversationId": "none"}),
        ("send_message", {"content": "Hi", "agentId": "../secret"}),
        ("send_message", {"content": "Hi", "model": "nobody's"}),
        ("read_conversation", {"conversationId": "none", "limit": 5}),
        ("read_conversation", {"conversationId": "none", "limit": 1_000_000}),
        ("search_conversations", {"query": ""}),
        ("search_conversations", {"query": "x", "cursor": "forged"}),
        ("search_conversations", {"query": "x", "from": "yesterday"}),
        ("search_conversations", {"query": "x", "agentId": "none"}),
        ("answer_approval", {"turnId": "x", "requestId": "y", "action": "allow"}),
        ("answer_approval", {"turnId": "x", "requestId": "y", "action": "expire"}),
    ):
        response = await call_tool(talk, tool, era, **arguments)
        assert answered(response)["result"]["isError"], (tool, arguments)


@EACH_ERA
async def test_mistake_of_ours_is_logged_and_not_told(
    talk: Talk, era: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    async def fail(*_: object, **__: object) -> None:
        raise RuntimeError("a secret")

    services = await talk.app.services()
    monkeypatch.setattr(services.conversations, "page", fail)
    monkeypatch.setattr(services.agents, "page", fail)
    listing = await talk.client.post(
        "/mcp", json=request("resources/list", era), headers=headers("resources/list", era)
    )
    assert answered(listing)["error"]["code"] == -32603
    tool = await call_tool(talk, "list_agents", era)
    assert answered(tool)["result"]["isError"]
    for response in (listing, tool):
        assert "failed unexpectedly" in response.text
        assert "a secret" not in response.text
    assert caplog.text.count("RuntimeError: a secret") == 2


async def test_client_without_sign_in_learns_where_to_get_it(talk: Talk):
    talk.client.headers.pop("authorization")
    response = await talk.client.post("/mcp", json=request("tools/list"), headers=headers("tools/list"))
    refused(response, 401, -32600)
    address = f"{talk.url}/.well-known/oauth-protected-resource/mcp"
    assert response.headers["www-authenticate"] == f'Bearer resource_metadata="{address}"'
    metadata = (await talk.client.get(address)).json()
    assert metadata["resource"] == f"{talk.url}/mcp"
    assert metadata["authorization_servers"] == [ISSUER]
    secure = await talk.client.get(address, headers={"x-forwarded-proto": "https"})
    assert secure.json()["resource"].startswith("https://")
    assert (await talk.client.get("/api/me")).headers["www-authenticate"] == "Bearer"


async def test_without_an_issuer_there_is_no_metadata(model: ScriptedModel, tmp_path: Path):
    async with talking(scripted_settings(model, data=tmp_path / "data", jwt_secret=SECRET)) as talk:
        talk.client.headers.pop("authorization", None)
        response = await talk.client.post("/mcp", json=request("tools/list"), headers=ACCEPT)
        assert (response.status_code, response.headers["www-authenticate"]) == (401, "Bearer")
        missing = await talk.client.get("/.well-known/oauth-protected-resource/mcp")
        assert missing.status_code == 404


async def test_expired_and_revoked_keys(talk: Talk, monkeypatch: pytest.MonkeyPatch):
    body = {"name": "Key", "scopes": ["chat"], "expiresAt": "2100-01-01T00:00:00Z"}
    key = (await talk.client.post("/api/keys", json=body)).json()

    async def listed() -> httpx.Response:
        sent = {**headers("tools/list"), "authorization": f"Bearer {key['key']}"}
        return await talk.client.post("/mcp", json=request("tools/list"), headers=sent)

    assert (await listed()).status_code == 200
    services = await talk.app.services()
    with monkeypatch.context() as later:
        later.setattr(services.keys, "_clock", lambda: 2**45)
        assert "expired" in refused(await listed(), 401, -32600)
    await talk.client.delete(f"/api/keys/{key['id']}")
    refused(await listed(), 401, -32600)


async def test_other_sites_and_other_names_are_kept_out(talk: Talk):
    async def status(method: str = "POST", **sent: str) -> int:
        given = {**headers("tools/list"), **{name.replace("_", "-"): value for name, value in sent.items()}}
        response = await talk.client.request(method, "/mcp", json=request("tools/list"), headers=given)
        return response.status_code

    assert await status() == 200
    assert await status(origin="https://app.example.org") == 200
    assert await status(origin="https://evil.example") == 403
    assert await status(origin="null") == 403
    assert await status(host="evil.example") == 403
    assert await status("GET", sec_fetch_site="cross-site") == 403


async def test_page_of_an_allowed_origin_may_send_what_clients_send(talk: Talk):
    asked = "authorization,content-type,mcp-method,mcp-name,mcp-protocol-version,mcp-session-id"
    sent = {
        "origin": "https://app.example.org",
        "access-control-request-method": "POST",
        "access-control-request-headers": asked,
    }
    assert (await talk.client.options("/mcp", headers=sent)).status_code == 200


@EACH_ERA
async def test_client_that_disconnects_leaves_nothing_behind(talk: Talk, model: ScriptedModel, era: str):
    gate = Gate()
    model.script([Say("One "), Wait(gate), Say("two.")])
    body = request("tools/call", era, name="send_message", arguments={"content": "Count"})
    body["params"]["_meta"]["progressToken"] = "p"
    sent = headers("tools/call", era, "send_message")
    async with talk.client.stream("POST", "/mcp", json=body, headers=sent) as response:
        async for line in response.aiter_lines():
            if "One " in line:
                break
    gate.open()
    (conversation,) = (await talk.client.get("/api/conversations")).json()["items"]
    await reply_of(talk, conversation["id"], "One two.")
    await nothing_runs()


async def reply_of(talk: Talk, conversation_id: str, expected: str) -> None:
    while True:
        if (await talk.messages(conversation_id))[-1]["content"] == expected:
            return
        await asyncio.sleep(0.02)


async def nothing_runs() -> None:
    """Waits until no task of the SDK or of a response is left."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            shown = map(repr, asyncio.all_tasks())
            if not any("site-packages/mcp" in it or "protocols/mcp/response" in it for it in shown):
                return
            await asyncio.sleep(0.02)


async def test_client_that_stops_reading_is_dropped_and_the_turn_goes_on(
    talk: Talk, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO, "threadkeep")
    agent_id = (await talk.client.post("/api/agents", json={"name": "Advisor"})).json()["id"]
    model.script([*[Say("0123456789" * 50_000)] * 20, Say("end")])
    monkeypatch.setattr("threadkeep.protocols.mcp.response.SLOWEST_READ_S", 0.1)
    body = request("tools/call", name="send_message", arguments={"content": "Hi", "agentId": agent_id})
    body["params"]["_meta"]["progressToken"] = 1
    sent = headers("tools/call", name="send_message")
    async with talk.client.stream("POST", "/mcp", json=body, headers=sent) as response:
        assert response.status_code == 200
        await until(lambda: "client that stopped reading" in caplog.text)
    await nothing_runs()
    (conversation,) = (await talk.client.get("/api/conversations")).json()["items"]
    await reply_of(talk, conversation["id"], "0123456789" * 1_000_000 + "end")


def test_server_starts_without_the_sdk():
    loaded = "import sys, threadkeep.http.app; print(*(it for it in sys.modules if it.startswith('mcp')))"
    found = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert found.stdout.split() == []
