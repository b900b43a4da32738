"""The Python client, connected to a running server."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from tests.talking import Talk
from threadkeep.testing.waiting import PATIENCE_S

ERAS = {"2026-07-28": "auto", "2025-11-25": "legacy"}
"""How a client is told to speak a version."""


@asynccontextmanager
async def connected(
    url: str, headers: dict[str, str], era: str = "2026-07-28", **options: Any
) -> AsyncGenerator[Client]:
    """A client that speaks a version."""
    async with httpx2.AsyncClient(headers=headers, timeout=PATIENCE_S) as http:
        transport = streamable_http_client(f"{url}/mcp", http_client=http)
        async with Client(transport, mode=ERAS[era], **options) as client:
            assert client.protocol_version == era
            yield client


async def new_key(talk: Talk, *scopes: str, **options: Any) -> dict[str, Any]:
    """An API key of alice's."""
    made = await talk.client.post("/api/keys", json={"name": "Key", "scopes": list(scopes), **options})
    assert made.status_code == 201, made.text
    return made.json()
