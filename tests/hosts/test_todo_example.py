"""The to-do application: its chat changes the tasks of the one who is signed in, and of nobody else."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import httpx
import pytest

from tests.browser.conftest import Replying
from tests.hosts.todo_example import running_todo
from threadkeep.testing import Say, ScriptedModel, UseTool

JSON = {"Accept": "application/json"}


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    """A model that does what the test writes down, and gives titles in between."""
    with Replying() as model:
        yield model


@pytest.fixture
def url(tmp_path: Path, model: ScriptedModel) -> Iterator[str]:
    """The application, whose agent is a scripted model."""
    with running_todo(tmp_path, gateway="openai", gateway_url=model.url, model="scripted") as url:
        yield url


class Person:
    """Somebody who is signed in to the application, and talks with its agent."""

    def __init__(self, url: str, name: str) -> None:
        self.client = httpx.Client(base_url=url, timeout=60, trust_env=False)
        self.client.post("/register", data={"name": name, "password": "correct horse"})
        agent = self.client.get("/me").json()["chat"].rpartition("/")[2]
        chat = self.client.put(f"/chat/api/agents/{agent}/conversation")
        assert chat.status_code == 201, chat.text
        self._chat = chat.headers["location"]

    def ask(self, model: ScriptedModel, tool: str, **arguments: Any) -> dict[str, Any]:
        """Has the model use a tool; how the call ended."""
        model.script([UseTool(f"tasks__{tool}", arguments)], [Say("There you are.")])
        reply = self.client.post(
            f"{self._chat}/messages?wait=true", json={"content": "Please"}, headers=JSON
        ).json()
        assert reply["content"] == "There you are.", reply
        (call,) = reply["toolCalls"]
        return call

    def tasks(self) -> list[tuple[str, bool]]:
        """What the application's own page shows."""
        return [(task["title"], task["done"]) for task in self.client.get("/tasks").json()]


def test_agent_keeps_the_list_of_the_one_who_is_signed_in(url: str, model: ScriptedModel):
    alice, bob = Person(url, "alice"), Person(url, "bob")
    with closing(alice.client), closing(bob.client):
        bob.client.post("/tasks", json={"title": "bob's own"})
        added = alice.ask(model, "add_task", title="buy milk")
        assert added["status"] == "ok"
        assert alice.tasks() == [("buy milk", False)]
        own = alice.client.get("/tasks").json()[0]["id"]
        alice.ask(model, "update_task", task_id=own, title="buy oat milk")
        alice.ask(model, "complete_task", task_id=own)
        assert alice.tasks() == [("buy oat milk", True)]
        assert "buy oat milk" in str(alice.ask(model, "list_tasks")["result"])
        # Each has a server of their own, which knows no other tasks
        assert "buy oat milk" not in str(bob.ask(model, "list_tasks")["result"])
        for tool, more in (("complete_task", {}), ("update_task", {"title": "mine"}), ("delete_task", {})):
            refused = bob.ask(model, tool, task_id=own, **more)
            assert refused["status"] == "error"
            assert "no such task" in str(refused)
        assert alice.tasks() == [("buy oat milk", True)]
        alice.ask(model, "delete_task", task_id=own)
        assert alice.tasks() == []
        assert bob.tasks() == [("bob's own", False)]


def test_account_that_is_deleted_takes_its_conversations_along(
    url: str, tmp_path: Path, model: ScriptedModel
):
    alice, bob = Person(url, "alice"), Person(url, "bob")
    with closing(alice.client), closing(bob.client):
        alice.ask(model, "add_task", title="buy milk")
        assert alice.client.post("/delete-account").status_code == 303
        with closing(sqlite3.connect(tmp_path / "data" / "chat" / "threadkeep.db")) as chats:
            owners = chats.execute("SELECT DISTINCT user_id FROM tk_conversations").fetchall()
            assert owners == [("2",)]
            assert chats.execute("SELECT count(*) FROM tk_messages").fetchone() == (0,)
        assert alice.client.get("/chat/api/me").status_code == 401
        assert bob.client.get("/chat/api/me").json() == {"id": "2", "role": "user", "installation": ANY}


def test_nobody_becomes_the_application_itself(url: str):
    with httpx.Client(base_url=url, trust_env=False) as client:
        for key in ("", "x", "todo"):
            response = client.get("/chat/api/me", headers={"x-own-key": key, "Authorization": "Bearer todo"})
            assert response.status_code == 401
