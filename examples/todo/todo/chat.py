"""Adds the chat to the application: the only file here that knows of Threadkeep."""

import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool
from starlette.requests import HTTPConnection

from threadkeep import Client, Settings, User, UserId, UserRole, create_app
from todo import store as todo
from todo.app import COOKIE

TASKS_SERVER = Path(__file__).parents[1] / "tasks_server.py"
AGENT = "Todo"
OWNER = UserId("todo")  # no number, as the ids of people are
PROMPT = "You help people with their to-do list. Use the tools to see and change it, and tell what you did."


def add_chat(app: FastAPI, store: todo.Store, settings: Settings) -> None:
    """Mounts Threadkeep at /chat: whoever is signed in to the application is signed in to it."""
    own_key = secrets.token_urlsafe(32)  # by which the application itself signs in, to make its agent

    async def current_user(request: HTTPConnection) -> User | str | None:
        if secrets.compare_digest(request.headers.get("x-own-key", "").encode(), own_key.encode()):
            return User(OWNER, UserRole.ADMIN)
        user = await run_in_threadpool(store.user_of, request.cookies.get(COOKIE))
        return str(user.id) if user else None

    chat = create_app(settings, current_user=current_user)

    async def forget(user: todo.User) -> None:
        await chat.delete_user(str(user.id))

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        async with (
            chat.lifespan(),
            Client("http://localhost", app=chat, headers={"x-own-key": own_key}) as own,
        ):
            app.state.chat = f"chat/#/new/{await _agent(own, store)}"
            yield

    app.mount("/chat", chat)
    app.router.lifespan_context = lifespan
    app.state.when_deleted.append(forget)


async def _agent(own: Client, store: todo.Store) -> str:
    """The id of the agent that everybody talks to; made at the first start."""
    mine = [agent async for agent in own.agents() if agent.owner_id == OWNER]
    agent = mine[0] if mine else await own.create_agent(AGENT, system_prompt=PROMPT, visibility="public")
    server = {"command": "python", "args": [str(TASKS_SERVER), str(store.path.absolute())], "scope": "user"}
    await own.update_agent(agent.id, {"settings": {"mcpServers": {"tasks": server}}})
    return agent.id
