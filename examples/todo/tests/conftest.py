"""The application on an empty store. With TODO_CHAT=on it has the chat, and somebody has used it.

TODO_CHAT_DATABASE is where the chat keeps its own; by default a file beside the application's.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from todo.app import create_todo
from todo.chat import add_chat
from todo.store import Store

from threadkeep import Settings


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store."""
    return Store(tmp_path / "todo.db")


@pytest.fixture
def client(store: Store, tmp_path: Path) -> Iterator[TestClient]:
    """A browser that is not signed in."""
    app = create_todo(store)
    if os.environ.get("TODO_CHAT") == "on":
        settings = Settings.load(
            {},
            data=tmp_path / "chat",
            database_url=os.environ.get("TODO_CHAT_DATABASE"),
            mcp_allowed_commands="python",
        )
        add_chat(app, store, settings)
    with TestClient(app, follow_redirects=False) as client:
        if app.state.chat:
            talk_once(client, store)
        yield client


def talk_once(client: TestClient, store: Store) -> None:
    """Somebody signs in, begins a conversation, and signs out."""
    client.cookies.set("todo_session", store.open_session(store.register("talker", "a long password")))
    agent = client.get("/chat/api/agents").json()["items"][0]["id"]
    assert client.post(f"/chat/api/agents/{agent}/conversations").status_code == 201
    client.cookies.clear()
