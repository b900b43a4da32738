"""Commands never make data that no server has: they would succeed with nothing, and leave secrets behind."""

import json
import sqlite3
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.test_terminal import closed_port
from tests.imports.foreign import claude
from tests.talking import talking_aside
from threadkeep.cli import main
from threadkeep.http.sign_in.local_token import make_token
from threadkeep.testing import ScriptedModel, scripted_settings

Captured = pytest.CaptureFixture[str]

OVER_THE_API = (
    "ingest note.txt",
    "rerun --agent Poet --model m --out results",
    "key create CI",
    "key list",
    "key revoke CI",
    "agent list",
    "agent show Poet",
    "agent create Poet",
    "agent change Poet --description x",
    "agent delete Poet --yes",
    "apply poet.toml --dry-run",
    "apply poet.toml --yes",
    "mcp list Poet",
    "mcp add Poet web https://mcp.example",
    "mcp remove Poet web",
    "mcp test Poet web",
    "model list",
    "model gateways",
    "model connect work --kind openai --key-env HOME",
    "model test work",
    "model disconnect work",
)
ON_THE_DATABASE = (
    "invite ann --admin",
    "invite ann --admin --first",
    "backup all.tar",
    "restore nothing.tar",
    "export ann.zip --user ann",
    "export ratings.jsonl --feedback --user ann",
    "import conversations.json --user ann",
    "reassign local ann",
    "token",
)


@pytest.fixture(autouse=True)
def nothing_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """A folder without data, on a machine without a server."""
    monkeypatch.chdir(tmp_path)
    Path("poet.toml").write_text('name = "Poet"\n')
    Path("note.txt").write_text("A note.")
    Path("conversations.json").write_text(json.dumps([claude()]))
    with closed_port() as url:
        monkeypatch.setenv("THREADKEEP_PORT", url.rpartition(":")[2])
        yield


@pytest.mark.parametrize("words", OVER_THE_API)
@pytest.mark.parametrize("key", ["", "tk_of_a_server"])
def test_command_without_a_server_fails_and_makes_no_data_folder(
    words: str, key: str, monkeypatch: pytest.MonkeyPatch, capsys: Captured
):
    monkeypatch.setenv("THREADKEEP_KEY", key)
    assert main(words.split()) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "No server at http://127.0.0.1:" in line
    assert ("THREADKEEP_KEY is set" in line) == bool(key)
    assert not Path(".threadkeep").exists()


@pytest.mark.parametrize("words", ON_THE_DATABASE)
def test_command_on_the_database_makes_none(words: str, monkeypatch: pytest.MonkeyPatch, capsys: Captured):
    monkeypatch.setenv("THREADKEEP_INVITATIONS", "on")
    monkeypatch.setenv("THREADKEEP_JWT_SECRET", "s3cret-" * 8)
    assert main(words.split()) == 1
    told = capsys.readouterr()
    assert told.err.startswith("threadkeep: ")
    assert not told.out
    assert not Path(".threadkeep").exists()


def test_link_for_somebody_who_is_suspended_says_so(monkeypatch: pytest.MonkeyPatch, capsys: Captured):
    monkeypatch.setenv("THREADKEEP_INVITATIONS", "on")
    monkeypatch.setenv("THREADKEEP_JWT_SECRET", "s3cret-" * 8)
    assert main(["import", "conversations.json", "--user", "bob", "--data", "data"]) == 0
    invite = ["invite", "ann", "--data", "data"]
    capsys.readouterr()
    assert main(invite) == 0
    assert "suspended" not in capsys.readouterr().err
    with closing(sqlite3.connect("data/threadkeep.db")) as database, database:
        database.execute(
            "INSERT INTO tk_users (id, created_at, role, invited, suspended_at, suspended_by) "
            "VALUES ('invited:ann', 1, 'user', 1, 1, 'admin')"
        )
    assert main(invite) == 0
    told = capsys.readouterr()
    assert "invited:ann is suspended" in told.err
    assert told.out.startswith("http")


def test_import_into_a_folder_that_the_user_names_makes_it():
    assert main(["import", "conversations.json", "--data", "new"]) == 0
    assert Path("new", "threadkeep.db").exists()


def test_key_of_a_server_keeps_a_command_from_the_data_folder(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
):
    assert main(["import", "conversations.json", "--data", ".threadkeep"]) == 0
    monkeypatch.setenv("THREADKEEP_KEY", "tk_of_a_server")
    assert main(["apply", "poet.toml", "--yes"]) == 1
    assert "--url" in capsys.readouterr().err


def test_key_wins_over_a_token_that_is_left_in_the_folder(
    model: ScriptedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
):
    make_token(Path(".threadkeep"))
    settings = scripted_settings(model, data=tmp_path / "server", require_token=True)
    with talking_aside(settings) as server:
        monkeypatch.setenv("THREADKEEP_PORT", server.url.rpartition(":")[2])
        assert main(["agent", "list"]) == 1
        assert main(["key", "create", "CI", "--scope", "admin", "--data", str(settings.data)]) == 0
        key = capsys.readouterr().out.strip()
        monkeypatch.setenv("THREADKEEP_KEY", key)
        assert main(["apply", "poet.toml", "--yes"]) == 0
        told = capsys.readouterr()
        assert told.err == f"Server: {server.url}\n"
        assert "Applied to 1 agent." in told.out
        monkeypatch.setenv("THREADKEEP_KEY", f"{key}x")
        assert main(["apply", "poet.toml", "--yes"]) == 1
        assert "the API key in THREADKEEP_KEY" in capsys.readouterr().err
