"""Sending documents to a Threadkeep, and waiting until they have been read."""

import asyncio
from typing import Any

import httpx

Json = dict[str, Any]


async def send(client: httpx.AsyncClient, agent_id: str, **files: bytes | str) -> list[Json]:
    """Sends files; in names `__` stands for the dot."""
    named = [("files", (name.replace("__", "."), content)) for name, content in files.items()]
    response = await client.post(f"/api/agents/{agent_id}/documents", files=named)
    assert response.status_code == 202, response.text
    return response.json()["items"]


async def read(client: httpx.AsyncClient, document: Json) -> Json:
    """A document, once it is no longer worked on."""
    path = f"/api/agents/{document['agentId']}/documents/{document['id']}"
    while (found := (await client.get(path)).json())["status"] == "processing":  # noqa: ASYNC110
        await asyncio.sleep(0.02)
    return found


async def send_and_read(client: httpx.AsyncClient, agent_id: str, **files: bytes | str) -> list[Json]:
    """Sends files and waits until all have been read."""
    return [await read(client, document) for document in await send(client, agent_id, **files)]


async def search(client: httpx.AsyncClient, agent_id: str, q: str, **more: Any) -> list[Json]:
    """What an agent's documents say to a query."""
    response = await client.get(f"/api/agents/{agent_id}/search", params={"q": q, **more})
    assert response.status_code == 200, response.text
    return response.json()["items"]
