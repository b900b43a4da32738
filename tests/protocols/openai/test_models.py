"""Which agent a client of OpenAI's API means by a name."""

import httpx

from tests.conftest import ONLY_SQLITE, Api
from tests.http.calls import new_agent
from threadkeep.testing import ScriptedModel


async def asked_by_name(client: httpx.AsyncClient, name: str) -> str:
    """The agent that gets a message to this name."""
    response = await client.post("/v1/responses", json={"model": name, "input": "Hi"})
    assert response.status_code == 200, response.text
    newest = (await client.get("/api/conversations?limit=1")).json()["items"][0]
    return newest["agentId"]


@ONLY_SQLITE
async def test_agent_published_under_the_name_of_another_neither_gets_nor_blocks_its_messages(
    api: Api, model: ScriptedModel
):
    account = {"name": "work", "kind": "openai", "url": model.url, "apiKey": "sk-scripted", "models": ["m"]}
    await api.as_user("root", admin=True).post("/api/admin/gateways", json=account)
    support, stranger, customer = (api.as_user(name) for name in ("support", "stranger", "customer"))
    first = await new_agent(support, name="Support", visibility="public")
    await new_agent(stranger, name="SUPPORT", visibility="public")
    assert await asked_by_name(customer, "Support") == first["id"]
    own = await new_agent(customer, name="support")
    assert await asked_by_name(customer, "Support") == own["id"]


@ONLY_SQLITE
async def test_name_of_several_own_agents_is_refused_instead_of_guessed(api: Api):
    customer = api.as_user("customer")
    for name in ("Twin", "twin"):
        await new_agent(customer, name=name)
    refused = await customer.get("/v1/models/Twin")
    assert refused.status_code == 404
    assert "Several of your agents" in refused.json()["error"]["message"]
