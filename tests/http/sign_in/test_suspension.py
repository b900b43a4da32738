"""A suspended user's agents stop working for them, too."""

from pathlib import Path
from typing import Any

import httpx

from tests.conftest import SECRET, secret_key_for
from tests.http.calls import refusal
from tests.talking import JSON, Talk, talking
from threadkeep import User, UserRole
from threadkeep.domain.ids import UserId
from threadkeep.http.sign_in.access_tokens import issue_token
from threadkeep.testing import Gate, Say, ScriptedModel, Wait, scripted_settings, until


def as_user(name: str, role: UserRole = UserRole.USER) -> dict[str, str]:
    return {**JSON, "Authorization": f"Bearer {issue_token(SECRET, User(UserId(name), role), 600)}"}


async def test_turns_and_queued_messages_of_a_suspended_user_stop(
    model: ScriptedModel, database_url: str, tmp_path: Path
):
    gate = Gate()
    model.script([Say("Half an"), Wait(gate), Say(" answer.")])
    model.otherwise = [Say("Nobody may ask for this.")]
    settings = scripted_settings(
        model,
        data=tmp_path / "data",
        database_url=database_url,
        secret_key=secret_key_for(database_url),
        jwt_secret=SECRET,
        embedding_url="off",
    )
    async with talking(settings) as talk:
        talk.client.headers.update(as_user("alice"))
        conversation = await talk.titled_conversation()
        path = f"/api/conversations/{conversation}"
        turn = await talk.begin(conversation)
        await gate.reached()
        queued = await talk.client.post(f"{path}/messages", json={"content": "And?", "whenBusy": "queue"})
        assert queued.status_code == 202
        root = as_user("root", UserRole.ADMIN)
        suspended = await talk.client.post("/api/admin/users/alice/suspend", headers=root)
        assert suspended.status_code == 200
        refusal(await talk.client.get(path), 401, "UNAUTHENTICATED")

        async def has_ended() -> bool:
            running = (await talk.client.get("/api/admin/turns", headers=root)).json()["items"]
            return turn not in {it["id"] for it in running}

        await until(has_ended)
        gate.open()
        assert (await talk.client.get("/api/admin/turns", headers=root)).json()["items"] == []
        await talk.client.post("/api/admin/users/alice/unsuspend", headers=root)
        left = await detail(talk, path)
        assert left["activeTurnId"] is None
        assert [it["content"] for it in left["queued"]] == ["And?"], "it waits until she sends it"
        assert [it["content"] for it in await talk.messages(conversation)] == ["Why?", "Half an"]
        assert len(model.requests) == 1


async def detail(talk: Talk, path: str) -> dict[str, Any]:
    response: httpx.Response = await talk.client.get(path)
    assert response.status_code == 200, response.text
    return response.json()
