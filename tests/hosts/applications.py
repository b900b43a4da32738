"""Applications that somebody else wrote, with a sign-in of their own, and Threadkeep mounted in them."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import fastapi
import httpx
from starlette.applications import Starlette
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route
from starlette.types import ASGIApp

from threadkeep import Settings, create_app
from threadkeep.http.app import Threadkeep

Mounting = Callable[[Threadkeep, str], ASGIApp]


def session_user(request: HTTPConnection) -> str | None:
    """The host's sign-in: a cookie."""
    return request.cookies.get("session")


def in_starlette(chat: Threadkeep, path: str) -> Starlette:
    """A Starlette application that runs Threadkeep while it runs itself."""

    async def home(request: object) -> PlainTextResponse:
        return PlainTextResponse("the host's own page")

    routes = [Mount(path, chat), Route("/", home)]
    return Starlette(routes=routes, lifespan=lambda app: chat.lifespan())


def in_fastapi(chat: Threadkeep, path: str) -> fastapi.FastAPI:
    """A FastAPI application that does not care for our lifespan."""
    app = fastapi.FastAPI()

    async def home() -> fastapi.Response:
        return fastapi.Response("the host's own page")

    app.add_api_route("/", home)
    app.mount(path, chat)
    return app


def new_chat(folder: Path, current_user: Any = session_user, **settings: Any) -> Threadkeep:
    """Threadkeep with the host's sign-in."""
    settings.setdefault("gateway", "openai")
    return create_app(Settings.load({}, data=folder / "chat", **settings), current_user=current_user)


@asynccontextmanager
async def visiting(host: ASGIApp, user: str | None = "alice") -> AsyncGenerator[httpx.AsyncClient]:
    """A person who is signed in to the host."""
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(host),
        base_url="https://host.example",
        cookies={"session": user} if user else None,
    ) as client:
        yield client
