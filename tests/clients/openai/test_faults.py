"""Crashes, keys that no longer open, and requests that can't be meant, with the `openai` package."""

import asyncio
from pathlib import Path
from typing import Any

import openai as sdk
import pytest
from openai import AsyncOpenAI

from tests.clients.openai.conftest import agent, client_of, token
from tests.conftest import ONLY_SQLITE, secret_key_for
from tests.serving import Server
from tests.talking import Talk
from threadkeep.testing import Gate, Say, ScriptedModel, Wait

MIB = 1024 * 1024


async def test_killed_server_and_the_rest_of_the_response(
    model: ScriptedModel, database_url: str, tmp_path: Path
):
    settings = {
        "gateway": "openai",
        "gateway_url": model.url,
        "model": "scripted",
        "database_url": database_url,
    }
    if key := secret_key_for(database_url):
        settings["secret_key"] = key
    gate = Gate()
    model.script([Say("One "), Wait(gate), Say("lost")], [Say("One two three.")])

    def client(server: Server) -> AsyncOpenAI:
        key = server.headers["Authorization"].removeprefix("Bearer ")
        return AsyncOpenAI(base_url=f"{server.url}/v1", api_key=key, max_retries=0)

    seen: list[Any] = []
    with Server(tmp_path, **settings) as server:
        async with client(server) as openai:
            stream = await openai.responses.create(input="Count", stream=True)
            with pytest.raises(sdk.APIConnectionError):
                async for event in stream:
                    seen.append(event)
                    if event.type == "response.output_text.delta":
                        await asyncio.to_thread(server.kill)
    id_, last = seen[0].response.id, seen[-1].sequence_number
    with Server(tmp_path, **settings) as server:
        async with client(server) as openai:
            rest = await openai.responses.retrieve(id_, stream=True, starting_after=last)
            events = [*seen, *[event async for event in rest]]
            assert [it.sequence_number for it in events] == list(range(len(events)))
            assert events[-1].type == "response.completed"
            final = await openai.responses.retrieve(id_)
            assert final.output_text == "One two three."
            assert final.to_dict() == events[-1].response.to_dict()
            whole = await openai.responses.retrieve(id_, stream=True)
            assert [it.to_dict() async for it in whole] == [it.to_dict() for it in events]
    gate.open()


@ONLY_SQLITE
async def test_keys_that_no_longer_open(talk: Talk, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch):
    await agent(talk)
    body = {"name": "Key", "scopes": ["chat"], "expiresAt": "2100-01-01T00:00:00Z"}
    key = (await talk.client.post("/api/keys", json=body)).json()
    gate = Gate()
    model.script([Say("One "), Wait(gate), Say("two.")])
    async with client_of(talk, key["key"]) as openai:
        with monkeypatch.context() as later:
            later.setattr((await talk.app.services()).keys, "_clock", lambda: 2**45)
            with pytest.raises(sdk.AuthenticationError, match="expired") as expired:
                await openai.models.list()
        assert (expired.value.type, expired.value.code) == ("authentication_error", "invalid_api_key")
        stream = await openai.responses.create(model="Advisor", input="Count", stream=True)
        types: list[str] = []
        with pytest.raises(sdk.APIConnectionError):  # or the part would look like the whole
            async for event in stream:
                types.append(event.type)
                if event.type == "response.output_text.delta":
                    await talk.client.delete(f"/api/keys/{key['id']}")
        assert types[-1] == "response.output_text.delta"
        with pytest.raises(sdk.AuthenticationError):
            await openai.models.list()
    gate.open()


@ONLY_SQLITE
async def test_requests_that_cannot_be_meant(talk: Talk, openai: AsyncOpenAI, model: ScriptedModel):
    await agent(talk, clientTools=True)
    cycle = {"type": "object", "$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}
    huge = {"type": "object", "description": "x" * MIB}
    deep: Any = {}
    for _ in range(100):
        deep = {"type": "object", "properties": {"a": deep}}
    for parameters in (cycle, huge, deep):
        function: Any = {"type": "function", "name": "f", "parameters": parameters, "strict": False}
        with pytest.raises(sdk.BadRequestError) as refused:
            await openai.responses.create(model="Advisor", input="Hi", tools=[function])
        assert refused.value.type == "invalid_request_error"
    for count in (1, 20):
        items: Any = [{"role": "user", "content": "x" * (20 * MIB // count)} for _ in range(count)]
        with pytest.raises(sdk.BadRequestError) as too_long:
            await openai.responses.create(model="Advisor", input=items)
        assert (too_long.value.code, too_long.value.param) == ("message_too_long", "input")
    many = [{"role": "user", "content": "x" * 20} for _ in range(400_000)]  # the package would need minutes
    too_many = await talk.client.post("/v1/responses", json={"model": "Advisor", "input": many})
    assert (too_many.status_code, too_many.json()["error"]["code"]) == (413, "payload_too_large")
    for metadata in ({"a": "x" * 513}, {str(it): "" for it in range(17)}):
        with pytest.raises(sdk.BadRequestError):
            await openai.responses.create(model="Advisor", input="Hi", metadata=metadata)
    # Nothing of it was begun, and nothing is broken.
    assert (await talk.client.get("/api/conversations")).json()["items"] == []
    model.script([Say("Hello.")])
    alone = await openai.responses.create(model="Advisor", input="Hi")
    with pytest.raises(sdk.BadRequestError):
        await openai.responses.retrieve(alone.id, stream=True, starting_after=-2)
    for after in (10**9, 2**70):
        beyond = await openai.responses.retrieve(alone.id, stream=True, starting_after=after)
        assert [it async for it in beyond] == []
    for unknown in ("resp_1", f"{alone.id}_2", f"{alone.id}_1", "resp_" + "0" * 32):
        with pytest.raises(sdk.NotFoundError) as missing:
            await openai.responses.retrieve(unknown)
        assert missing.value.code == "response_not_found"


@ONLY_SQLITE
async def test_every_refusal_has_openais_shape(talk: Talk):
    await agent(talk)
    talk.client.headers["authorization"] = f"Bearer {token('alice')}"
    deep = b'{"input":' + b"[" * 5000 + b"]" * 5000 + b"}"
    sent: list[tuple[str, str, dict[str, Any], int]] = [
        ("POST", "/v1/responses", {"content": b"{"}, 400),
        ("POST", "/v1/responses", {"content": b"[]"}, 400),
        ("POST", "/v1/responses", {"content": b'{"input": "\\ud800"}'}, 400),
        ("POST", "/v1/responses", {"content": deep}, 400),
        ("POST", "/v1/responses", {"json": {"model": 7, "input": "Hi"}}, 400),
        ("POST", "/v1/responses", {"json": {"model": "Advisor", "input": "\0"}}, 400),
        ("POST", "/v1/responses", {"json": {"model": "Advisor", "input": [{"type": "computer_call"}]}}, 400),
        ("POST", "/v1/conversations", {"json": {"metadata": 1}}, 400),
        ("POST", "/v1/files", {"json": {}}, 400),
        ("GET", "/v1/responses/resp_1?stream=perhaps", {}, 400),
        ("GET", "/v1/conversations/conv_1/items?limit=0", {}, 400),
        ("GET", "/v1/nothing", {}, 404),
        ("GET", "/v1", {}, 404),
        ("GET", "/v1/", {}, 404),
        ("POST", "/v1/embeddings", {"json": {}}, 404),
        ("GET", "/v1/responses", {}, 404),
        ("PUT", "/v1/models", {}, 404),
        ("GET", "/v1/models", {"headers": {"authorization": "Bearer wrong"}}, 401),
    ]
    for method, path, options, status in sent:
        response = await talk.client.request(method, path, **options)
        assert response.status_code == status, (method, path, options, response.text)
        assert set(response.json()) == {"error"}, (path, response.text)
        assert set(response.json()["error"]) == {"message", "type", "param", "code"}
        assert response.json()["error"]["message"]
