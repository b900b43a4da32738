"""What the application does for its users, with and without a chat on its page."""

import pytest
from fastapi.testclient import TestClient
from todo.store import Store

PASSWORD = "correct horse"


def register(client: TestClient, name: str = "alice") -> None:
    client.cookies.clear()
    answer = client.post("/register", data={"name": name, "password": PASSWORD})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")


def titles(client: TestClient) -> list[str]:
    return [task["title"] for task in client.get("/tasks").json()]


def test_person_registers_and_sees_their_tasks(client: TestClient):
    assert "Sign in" in client.get("/").text
    register(client)
    assert "New task" in client.get("/").text
    assert client.get("/me").json()["name"] == "alice"
    assert titles(client) == []


def test_person_signs_in_again_with_their_password_only(client: TestClient):
    register(client)
    client.post("/sign-out")
    assert client.get("/tasks").status_code == 401
    for name, password in (("alice", "wrong password"), ("nobody", PASSWORD)):
        assert client.post("/sign-in", data={"name": name, "password": password}).status_code == 401
    assert client.post("/sign-in", data={"name": "alice", "password": PASSWORD}).status_code == 303
    assert client.get("/tasks").status_code == 200


def test_sign_out_ends_the_session_itself(client: TestClient):
    register(client)
    token = client.cookies["todo_session"]
    client.post("/sign-out")
    client.cookies.set("todo_session", token)
    assert client.get("/tasks").status_code == 401


def test_name_can_be_taken_once(client: TestClient):
    register(client)
    assert client.post("/register", data={"name": "alice", "password": PASSWORD}).status_code == 409


@pytest.mark.parametrize(("name", "password"), [("", PASSWORD), ("a" * 51, PASSWORD), ("alice", "short")])
def test_registration_that_is_not_complete_is_refused(client: TestClient, name: str, password: str):
    assert client.post("/register", data={"name": name, "password": password}).status_code == 422


def test_password_is_not_in_the_file(client: TestClient, store: Store):
    register(client)
    token = client.cookies["todo_session"]
    kept = b"".join(file.read_bytes() for file in store.path.parent.glob("todo.db*"))
    assert b"alice" in kept
    assert PASSWORD.encode() not in kept
    assert token.encode() not in kept


def test_task_is_added_completed_renamed_and_deleted(client: TestClient):
    register(client)
    task = client.post("/tasks", json={"title": "buy milk"}).json()
    assert (task["title"], task["done"]) == ("buy milk", False)
    path = f"/tasks/{task['id']}"
    assert client.patch(path, json={"done": True}).json() == task | {"done": True}
    assert client.patch(path, json={"title": "buy oat milk"}).json() == {
        **task,
        "title": "buy oat milk",
        "done": True,
    }
    assert titles(client) == ["buy oat milk"]
    assert client.delete(path).status_code == 204
    assert client.delete(path).status_code == 404
    assert titles(client) == []


@pytest.mark.parametrize("title", ["", "   ", "x" * 201])
def test_task_needs_a_title(client: TestClient, title: str):
    register(client)
    assert client.post("/tasks", json={"title": title}).status_code == 422


def test_nobody_sees_or_changes_the_tasks_of_another(client: TestClient):
    register(client)
    task = client.post("/tasks", json={"title": "buy milk"}).json()
    register(client, "bob")
    assert titles(client) == []
    path = f"/tasks/{task['id']}"
    assert client.patch(path, json={"done": True}).status_code == 404
    assert client.delete(path).status_code == 404


def test_account_goes_with_its_tasks(client: TestClient, store: Store):
    register(client)
    client.post("/tasks", json={"title": "buy milk"})
    user = store.user_of(client.cookies["todo_session"])
    assert user
    assert client.post("/delete-account").status_code == 303
    assert store.tasks(user.id) == []
    assert client.post("/sign-in", data={"name": "alice", "password": PASSWORD}).status_code == 401
