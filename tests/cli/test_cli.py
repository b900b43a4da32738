"""The command line, as people call it."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import jwt
import msgspec
import pytest

from tests.serving import Server, environment, run
from threadkeep.cli import main
from threadkeep.http.sign_in.local_token import make_token
from threadkeep.testing.waiting import PATIENCE_S

SECRET = "s3cret-" * 8


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings of this machine."""
    monkeypatch.chdir(tmp_path)


def test_token_signs_a_user_in(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setenv("THREADKEEP_JWT_SECRET", SECRET)
    assert main(["token", "--user", "alice", "--admin", "--ttl", "2h"]) == 0
    claims = jwt.decode(capsys.readouterr().out.strip(), SECRET, algorithms=["HS256"])
    assert (claims["sub"], claims["role"], claims["exp"] - claims["iat"]) == ("alice", "admin", 7200)


def test_token_without_a_secret_says_what_to_set(capsys: pytest.CaptureFixture[str]):
    assert main(["token", "--user", "alice"]) == 1
    assert "THREADKEEP_JWT_SECRET" in capsys.readouterr().err


def test_token_of_a_server_without_a_sign_in_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    token = make_token(Path(".threadkeep"))  # as a server's start does
    assert main(["token"]) == 0
    assert capsys.readouterr().out.strip() == token
    monkeypatch.setenv("THREADKEEP_JWT_SECRET", SECRET)
    assert main(["token"]) == 1
    assert "--user" in capsys.readouterr().err


def test_token_in_a_folder_without_a_server_says_so_and_makes_none(capsys: pytest.CaptureFixture[str]):
    assert main(["token"]) == 1
    assert "--data" in capsys.readouterr().err
    assert not Path(".threadkeep").exists()


def test_page_is_opened_with_the_token_unless_people_sign_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    opened: list[str] = []

    def open_browser(address: str) -> bool:
        opened.append(address)
        return True

    monkeypatch.setattr("webbrowser.open", open_browser)
    open_page = ["open", "--data", "data", "--port"]
    assert main([*open_page, "1"]) == 1
    assert "threadkeep serve" in capsys.readouterr().err
    secret = "s3cret-" * 8
    with Server(tmp_path, gateway="openai", jwt_secret=secret) as server:
        port = server.url.rpartition(":")[2]
        monkeypatch.setenv("THREADKEEP_JWT_SECRET", secret)
        assert main([*open_page, port]) == 0
        assert opened.pop() == f"{server.url}/"
        monkeypatch.delenv("THREADKEEP_JWT_SECRET")
    with Server(tmp_path, gateway="openai") as server:
        port = server.url.rpartition(":")[2]
        assert main([*open_page, port, "--print"]) == 0
        token = Path("data", "token").read_text().strip()
        assert capsys.readouterr().out.strip() == f"{server.url}/#token={token}"
        assert main([*open_page, port]) == 0
        # Everybody on a machine sees with what a browser is started: not with the token.
        (address,) = opened
        assert address == Path("data", "open.html").absolute().as_uri()
    assert Path("data", "open.html").stat().st_mode & 0o777 == 0o600
    assert f"{server.url}/#token={token}" in Path("data", "open.html").read_text()


def test_page_is_not_opened_with_the_token_of_another_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    with Server(tmp_path, "--require-token", gateway="openai") as server:
        port = server.url.rpartition(":")[2]
        assert main(["open", "--print", "--data", str(tmp_path / "other"), "--port", port]) == 1
    told = capsys.readouterr()
    assert "--data" in told.err
    assert not told.out


def test_own_commands_send_the_token_that_a_server_wants(tmp_path: Path):
    (tmp_path / "note.txt").write_text("The tenant pays on the first.")
    with Server(tmp_path, "--require-token", gateway="openai") as server:
        words = ["ingest", "note.txt", "--data", "data"]
        port = server.url.rpartition(":")[2]
        ran = run(*words, folder=tmp_path, port=port, require_token="true", gateway="openai")
        assert ran.returncode == 0, ran.stderr
        ran = run(*words, "--url", server.url, folder=tmp_path, gateway="openai")
        assert ran.returncode == 0, ran.stderr
        elsewhere = [*words[:2], "--data", "other", "--url", server.url]
        refused = run(*elsewhere, folder=tmp_path, gateway="openai")
        assert refused.returncode == 1
        assert "--data" in refused.stderr
        assert not (tmp_path / "other").exists()


def test_reader_that_has_seen_enough_is_no_error():
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "threadkeep", "settings"]
    ended = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, env=environment({}), check=False)
    os.close(writing)
    assert ended.stderr == b""


@pytest.mark.parametrize("ttl", ["0", "-1h", "soon", "1y", ""])
def test_bad_ttl_is_refused(ttl: str):
    with pytest.raises(SystemExit):
        main(["token", "--user", "alice", f"--ttl={ttl}"])


def test_settings_are_printed_with_documentation_and_without_secrets(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("THREADKEEP_JWT_SECRET", SECRET)
    monkeypatch.delenv("THREADKEEP_PORT")
    assert main(["settings"]) == 0
    shown = capsys.readouterr().out
    assert "THREADKEEP_PORT = 8710\n    Port to listen on" in shown
    assert SECRET not in shown


@pytest.mark.parametrize("form", ["text", "json"])
def test_server_warns_of_a_mistyped_setting_and_names_the_one_meant(tmp_path: Path, form: str):
    given = {"gateway": "openai", "log_format": form, "databse_url": f"postgresql://u:{SECRET}@host/d"}
    with Server(tmp_path, **given) as server:
        assert server.stop() == 0
    (told,) = [line for line in server.lines if "DATABSE" in line]
    assert (
        "THREADKEEP_DATABSE_URL is not a setting and has no effect. Did you mean THREADKEEP_DATABASE_URL?"
        in told
    )
    level = msgspec.json.decode(told)["level"].upper() if form == "json" else told
    assert "WARNING" in level
    assert SECRET not in server.output


def test_command_warns_of_a_mistyped_setting_and_does_its_work(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("THREADKEEP_PROT", "1")
    assert main(["settings"]) == 0
    assert "Did you mean THREADKEEP_PORT?" in capsys.readouterr().err


def test_serving_strangers_without_sign_in_is_refused(capsys: pytest.CaptureFixture[str]):
    assert main(["serve", "--host", "0.0.0.0"]) == 1
    assert "loopback" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"gateway": "openai"}, "Model: none in the settings. Connect one on the page"),
        (
            {"gateway": "anthropic", "gateway_api_key": "k"},
            "Model: default/claude-sonnet-4-5 at api.anthropic.com\n",
        ),
        (
            {"gateway": "openai", "gateway_url": "http://127.0.0.1:11434/v1", "model": "small"},
            "Model: default/small at 127.0.0.1:11434\n",
        ),
    ],
)
def test_server_tells_which_model_replies(tmp_path: Path, settings: dict[str, str], told: str):
    with Server(tmp_path, **settings) as server:
        assert _model_told(server).startswith(told)


def test_server_tells_which_model_somebody_connected_before_its_restart(tmp_path: Path):
    with Server(tmp_path) as server, server.client() as client:
        work = {"name": "work", "kind": "openai", "url": "http://127.0.0.1:9/v1", "models": ["large"]}
        assert client.post("/api/admin/gateways", json=work).status_code == 201
        server.stop()
    with Server(tmp_path) as server:
        assert _model_told(server).startswith("Model: work/large, connected on the page")


def _model_told(server: Server) -> str:
    """What it says of its model, once."""
    patience = time.monotonic() + PATIENCE_S
    while not (told := re.findall(r"Model: .*\n", server.output)):
        assert time.monotonic() < patience
        time.sleep(0.02)
    (line,) = told
    return line


def test_without_a_command_all_of_them_are_shown(capsys: pytest.CaptureFixture[str]):
    assert main([]) == 2
    assert "chat with an agent in the terminal" in capsys.readouterr().err


def test_unknown_command_shows_usage(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        main(["dance"])
    assert "serve" in capsys.readouterr().err
