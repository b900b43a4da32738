"""OpenAI's own package as the client of a server."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from openai import AsyncOpenAI

from tests.clients.conftest import signed_in
from tests.talking import Talk


def token(user: str) -> str:
    """What signs a user in."""
    return signed_in(user)["authorization"].removeprefix("Bearer ")


def client_of(talk: Talk, key: str, **options: Any) -> AsyncOpenAI:
    """OpenAI's client with a key; the two lines that change."""
    return AsyncOpenAI(base_url=f"{talk.url}/v1", api_key=key, max_retries=0, **options)


@pytest.fixture
async def openai(talk: Talk) -> AsyncIterator[AsyncOpenAI]:
    """Alice's client."""
    async with client_of(talk, token("alice")) as client:
        yield client


async def agent(talk: Talk, name: str = "Advisor", **settings: Any) -> str:
    """A new agent of alice's; its id."""
    body = {"name": name, "visibility": "public", "settings": settings}
    response = await talk.client.post("/api/agents", json=body)
    assert response.status_code == 201, response.text
    return response.json()["id"]
