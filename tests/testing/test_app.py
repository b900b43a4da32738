"""The Threadkeep that hosts use in their tests."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from threadkeep.client import Client, ClientError
from threadkeep.testing import Say, ScriptedModel, listening, running_app


async def test_app_replies_as_the_script_says_and_asks_for_nothing_else():
    with ScriptedModel([Say("One.")], [Say("Two.")]) as model:
        async with running_app(model) as app:
            conversation = await app.conversation(system_prompt="Be brief.")
            replies = [(await app.client.ask(conversation.id, it)).content for it in ("First?", "Second?")]
        assert replies == ["One.", "Two."]
        assert [request.outcome for request in model.requests] == ["finished", "finished"]
        assert "Be brief." in model.requests[0].body["messages"][0]["content"]


async def test_app_without_a_model_of_ones_own_has_one():
    async with running_app() as app:
        conversation = await app.conversation()
        assert (await app.client.ask(conversation.id, "Hi")).content == "OK."
        assert len(app.model.requests) == 1


async def test_users_see_only_their_own():
    async with running_app() as app, app.as_user("alice") as alice:
        conversation = await app.conversation()
        assert [(await it.me()).role for it in (app.client, alice)] == ["admin", "user"]
        with pytest.raises(ClientError) as refused:
            await alice.conversation(conversation.id)
        assert refused.value.status == 404


async def test_two_apps_share_nothing():
    async with running_app() as one, running_app() as other:
        conversation = await one.conversation()
        with pytest.raises(ClientError):
            await other.client.conversation(conversation.id)


async def test_settings_are_those_of_the_test_and_not_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "threadkeep.toml").write_text('database_url = "postgresql://production/everything"')
    monkeypatch.setenv("THREADKEEP_DATABASE_URL", "postgresql://production/everything")
    monkeypatch.chdir(tmp_path)
    async with running_app(data=tmp_path / "kept") as app:
        assert (await app.client.me()).id == "local"
    assert (tmp_path / "kept" / "threadkeep.db").exists()


async def test_app_can_be_put_on_a_port():
    async with running_app() as app, listening(app.app, lifespan="off") as url, Client(url) as outside:
        assert await outside.is_there()


def test_fakes_need_nothing_that_only_developers_have():
    groups = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["dependency-groups"]
    named = {re.split(r"[^A-Za-z0-9_-]", it)[0].replace("-", "_") for it in groups["dev"]}
    program = "import sys, threadkeep.testing; print(*{name.split('.')[0] for name in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert "pytest" in named
    assert not named & set(loaded.stdout.split())
