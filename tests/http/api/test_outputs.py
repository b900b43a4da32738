"""`settings.output`: a schema that every reply of an agent must fit, over the API and in every dialect."""

from typing import Any

import pytest

from tests.conftest import ONLY_SQLITE
from tests.talking import JSON, Talk
from threadkeep.testing import Say, ScriptedModel

pytestmark = ONLY_SQLITE

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "people": {"type": ["integer", "null"], "default": None}},
    "required": ["name", "people"],
}
OSLO = '{"name": "Oslo", "people": 7}'
VALUE = {"name": "Oslo", "people": 7}


async def made(talk: Talk, output: Any) -> dict[str, Any]:
    body = {"name": "Cities", "settings": {"output": output}}
    response = await talk.client.post("/api/agents", json=body)
    return {"status": response.status_code, **response.json()}


@pytest.mark.parametrize(
    ("output", "param", "words"),
    [
        ({"type": "objekt"}, "settings.output.type", "is one of"),
        ({"properties": {"a": {"items": 3}}}, "settings.output.properties.a.items", "a JSON schema"),
        ({"required": "name"}, "settings.output.required", "names of properties"),
        ({"$ref": "https://example.com/city.json"}, "settings.output.$ref", "the schema itself"),
        ({"$ref": "#/$defs/City"}, "settings.output.$ref", "doesn't have"),
        ({"enum": ["x" * 65_536]}, "settings.output", "65536 bytes"),
        ({"anyOf": [{"type": "string"}] * 2_001}, "settings.output", "2000 parts"),
        ({}, "settings.output", "JSON schema"),
    ],
)
async def test_a_schema_that_is_wrong_is_refused_where_it_is_wrong(
    talk: Talk, output: Any, param: str, words: str
):
    refused = await made(talk, output)
    assert refused["status"] == 422
    assert refused["error"]["param"] == param and words in refused["error"]["message"]


async def test_a_schema_is_replaced_as_a_whole_and_null_removes_it(talk: Talk):
    agent = await made(talk, SCHEMA)
    assert agent["settings"]["output"] == SCHEMA  # with its nulls
    other = {"type": "object", "properties": {"a": {"default": None}}}
    for output in (other, None):
        patched = await talk.client.patch(f"/api/agents/{agent['id']}", json={"settings": {"output": output}})
        assert patched.json()["settings"]["output"] == output


async def conversation(talk: Talk) -> str:
    agent = await made(talk, SCHEMA)
    return (await talk.client.post(f"/api/agents/{agent['id']}/conversations")).json()["id"]


async def test_every_reply_fits_and_its_message_has_the_value(talk: Talk, model: ScriptedModel):
    model.script([Say("Oslo.")], [Say(OSLO)])
    id_ = await conversation(talk)
    path = f"/api/conversations/{id_}"
    reply = (
        await talk.client.post(f"{path}/messages?wait=true", json={"content": "Hi"}, headers=JSON)
    ).json()
    assert (reply["output"], reply["content"]) == (VALUE, OSLO)
    turn = reply["turnId"]
    events = (await talk.client.get(f"/api/turns/{turn}/events")).text
    assert '"is_checked":true' in events and '"type":"iteration_restart"' in events
    assert '"stop_reason":"end_turn","output":{"name":"Oslo","people":7}}' in events
    # This dialect can't take a text back.
    text = (await talk.client.get(f"/api/turns/{turn}/events?dialect=text")).text
    assert text == f"data: {OSLO}\n\ndata: [DONE]\n\n"
    fork = (await talk.client.post(f"{path}/fork", json={"messageId": reply["id"]})).json()["id"]
    copied = (await talk.client.get(f"/api/conversations/{fork}/messages")).json()["items"][-1]
    assert copied["output"] == VALUE
    model.script([Say(OSLO)])
    again = await talk.client.post(f"{path}/regenerate?wait=true", json={}, headers=JSON)
    assert again.json()["output"] == VALUE
    receipt = (await talk.client.get(f"/api/turns/{turn}/context")).json()
    assert receipt["components"][-1]["name"] == "output"


async def test_a_reply_that_never_fits_fails_the_turn_and_keeps_what_was_said(
    talk: Talk, model: ScriptedModel
):
    model.script([Say("Oslo.")], [Say('{"name": 7, "people": 1}')])
    path = f"/api/conversations/{await conversation(talk)}/messages"
    failed = await talk.client.post(f"{path}?wait=true", json={"content": "Hi"}, headers=JSON)
    assert failed.status_code == 502 and failed.json()["error"]["code"] == "OUTPUT_INVALID"
    assert "name" in failed.json()["error"]["message"]
    reply = (await talk.client.get(path)).json()["items"][-1]
    assert (reply["status"], reply["content"]) == ("FAILED", '{"name": 7, "people": 1}')
    assert "output" not in reply
    assert [it.get("superseded", False) for it in reply["parts"]] == [True, False]
