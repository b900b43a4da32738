"""The Python client signs its user in by itself: from the first refusal to a conversation."""

import base64
import hashlib
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import httpx2
import jwt
from mcp.client.auth import OAuthClientProvider
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from pydantic import AnyUrl
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from tests.clients.conftest import new_agent
from tests.conftest import SECRET
from tests.talking import talking
from threadkeep.testing import Say, ScriptedModel, listening, scripted_settings
from threadkeep.testing.waiting import PATIENCE_S

BACK = "http://127.0.0.1:1/back"
AUDIENCE = "threadkeep"


class AuthorizationServer:
    """Signs alice in, whoever asks, if the client proves that it is the one that asked."""

    def __init__(self) -> None:
        self.issuer = ""
        self.asked: dict[str, str] = {}
        self.app = Starlette(
            routes=[
                Route("/.well-known/oauth-authorization-server/team", self._metadata),
                Route("/team/register", self._register, methods=["POST"]),
                Route("/team/authorize", self._authorize),
                Route("/team/token", self._token, methods=["POST"]),
            ]
        )

    async def _metadata(self, _: Request) -> Response:
        return JSONResponse(
            {
                "issuer": self.issuer,
                "authorization_endpoint": f"{self.issuer}/authorize",
                "token_endpoint": f"{self.issuer}/token",
                "registration_endpoint": f"{self.issuer}/register",
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none"],
            }
        )

    async def _register(self, request: Request) -> Response:
        return JSONResponse({**await request.json(), "client_id": "a-client"}, 201)

    async def _authorize(self, request: Request) -> Response:
        self.asked = dict(request.query_params)
        return RedirectResponse(f"{BACK}?code=once&state={self.asked['state']}")

    async def _token(self, request: Request) -> Response:
        form: Any = await request.form()
        proof = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest())
        assert proof.rstrip(b"=").decode() == self.asked["code_challenge"]
        assert (form["code"], form["resource"]) == ("once", self.asked["resource"])
        claims = {"sub": "alice", "iss": self.issuer, "aud": AUDIENCE, "exp": int(time.time()) + 600}
        token = jwt.encode(claims, SECRET, "HS256")
        return JSONResponse({"access_token": token, "token_type": "Bearer", "expires_in": 600})


class Memory:
    """What a client remembers of its sign-in."""

    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


@asynccontextmanager
async def signing_in(url: str, memory: Memory) -> AsyncGenerator[Client]:
    """A client that has no token, and a user who opens what it shows them."""
    back: list[httpx.URL] = []

    async def open_page(page: str) -> None:
        async with httpx.AsyncClient(trust_env=False) as browser:
            back.append(httpx.URL((await browser.get(page)).headers["location"]))

    async def come_back() -> AuthorizationCodeResult:
        return AuthorizationCodeResult.model_validate(dict(back[-1].params))

    about = OAuthClientMetadata(
        client_name="Test", redirect_uris=[AnyUrl(BACK)], token_endpoint_auth_method="none"
    )
    auth = OAuthClientProvider(f"{url}/mcp", about, memory, open_page, come_back)
    async with (
        httpx2.AsyncClient(auth=auth, timeout=PATIENCE_S) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client,
    ):
        yield client


async def test_client_without_a_token_finds_its_way(model: ScriptedModel, tmp_path: Path):
    server, memory = AuthorizationServer(), Memory()
    async with listening(server.app) as at:
        server.issuer = f"{at}/team"
        settings = scripted_settings(
            model,
            data=tmp_path / "data",
            embedding_url="off",
            jwt_secret=SECRET,
            jwt_issuer=server.issuer,
            jwt_audience=AUDIENCE,
        )
        async with talking(settings) as talk:
            model.script([Say("Hello.")])
            async with signing_in(talk.url, memory) as client:
                assert memory.tokens is not None
                talk.client.headers["authorization"] = f"Bearer {memory.tokens.access_token}"
                arguments = {"content": "Hi", "agentId": await new_agent(talk)}
                said = await client.call_tool("send_message", arguments)
                assert said.structured_content["content"] == "Hello."
            assert server.asked["resource"] == f"{talk.url}/mcp"
            assert (await talk.client.get("/api/me")).json()["id"] == "alice"
