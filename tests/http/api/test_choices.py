"""A value that is none of a few is refused with those that there are, wherever it stands."""

from typing import Any

import httpx
import pytest

from tests.conftest import ONLY_SQLITE
from tests.http.calls import refusal

EVENT = {"id": "1", "runId": "r", "at": 0, "type": "Begun"}
SERVER = {"url": "https://example.com", "scope": "world"}


@ONLY_SQLITE
@pytest.mark.parametrize(
    ("method", "path", "body", "code", "param", "told"),
    [
        ("POST", "/api/agents", {"name": "A", "visibility": "secret"}, 422, "visibility", "private, public"),
        ("POST", "/api/agents", {"name": "A", "settings": {"retrievalMode": "x"}}, 422,
         "settings.retrievalMode", "auto, tool"),
        ("POST", "/api/agents", {"name": "A", "settings": {"mcpServers": {"s": SERVER}}}, 400,
         "settings.mcpServers.s.scope", "agent, conversation, user"),
        ("POST", "/api/conversations/{id}/executions", {"events": [EVENT]}, 422, "events[0].type",
         "ExecutionCancelled, ExecutionCompleted, ExecutionFailed, ExecutionStarted, NodeCompleted"),
        ("GET", "/api/conversations/{id}/messages?order=random", None, 422, "order", "asc, desc"),
    ],
)  # fmt: skip
async def test_value_that_is_none_of_a_few_is_told_which_there_are(
    alice: httpx.AsyncClient, method: str, path: str, body: Any, code: int, param: str, told: str
):
    agent = (await alice.get("/api/agents")).json()["items"][0]
    conversation = (await alice.put(f"/api/agents/{agent['id']}/conversation")).json()
    response = await alice.request(method, path.format(id=conversation["id"]), json=body)
    named = {400: "MCP_CONFIG_INVALID", 422: "INVALID_REQUEST"}[code]
    assert refusal(response, code, named, param)["message"].endswith(f"; expected one of: {told}.")


@ONLY_SQLITE
@pytest.mark.parametrize(
    ("body", "param", "told"),
    [
        ({"nme": "A"}, "nme", " Perhaps you mean `name`."),
        ({"name": "A", "settings": {"maxIteration": 3}}, "settings.maxIteration",
         " Perhaps you mean `maxIterations`."),
        ({"name": "A", "colour": "red"}, "colour", ""),
    ],
)  # fmt: skip
async def test_misspelt_field_is_told_the_one_that_exists(
    alice: httpx.AsyncClient, body: Any, param: str, told: str
):
    message = refusal(await alice.post("/api/agents", json=body), 422, "INVALID_REQUEST", param)["message"]
    assert message == f"Object contains unknown field `{param.rpartition('.')[2]}`.{told}"
