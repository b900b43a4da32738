"""What a command loads: only what it needs, so that it starts quickly."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.client.test_loading import OF_A_CLIENT, OF_A_SERVER
from tests.serving import environment
from tests.talking import talking_aside
from threadkeep.cli import COMMANDS, main
from threadkeep.http.sign_in.local_token import make_token
from threadkeep.testing import ScriptedModel, scripted_settings

OF_EVERY_COMMAND = {"__main__", "choices", "cli", "domain", "loopback", "settings", "version"}


def loaded_by(folder: Path, *arguments: str) -> set[str]:
    """The modules that a command loads."""
    command = [sys.executable, "-X", "importtime", "-m", "threadkeep", *arguments]
    ran = subprocess.run(
        command, cwd=folder, env=environment({}), stdin=subprocess.DEVNULL, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    lines = ran.stderr.splitlines()
    return {line.rpartition("|")[2].strip() for line in lines if line.startswith("import time:")}


def layers(modules: set[str]) -> set[str]:
    return {module.split(".")[1] for module in modules if module.startswith("threadkeep.")}


def packages(modules: set[str]) -> set[str]:
    return {module.split(".")[0] for module in modules}


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["settings", "--help"]])
def test_what_needs_neither_server_nor_client_loads_neither(tmp_path: Path, arguments: list[str]):
    modules = loaded_by(tmp_path, *arguments)
    assert layers(modules) <= OF_EVERY_COMMAND
    assert not packages(modules) & {*OF_A_SERVER, "httpx2", "asyncio"}


def test_token_loads_what_signs_it_and_no_server(tmp_path: Path):
    make_token(tmp_path / ".threadkeep")
    modules = loaded_by(tmp_path, "token")
    assert layers(modules) <= OF_EVERY_COMMAND | {"http"}
    assert not packages(modules) & {"starlette", "uvicorn", "httpx2", "pydantic"}


def test_chat_with_a_running_server_loads_no_server(model: ScriptedModel, tmp_path: Path):
    with talking_aside(scripted_settings(model, data=tmp_path / "data")) as server:
        modules = loaded_by(tmp_path, "chat", "--url", server.url)
    assert "threadkeep.client.client" in modules
    assert layers(modules) <= OF_EVERY_COMMAND | OF_A_CLIENT | {"http"}
    of_http = {module for module in modules if module.startswith("threadkeep.http.")}
    whose_server = {"accounts", "local_token", "socket_owner"}
    assert of_http == {"threadkeep.http.sign_in", *(f"threadkeep.http.sign_in.{it}" for it in whose_server)}
    assert not packages(modules) & OF_A_SERVER


@pytest.mark.parametrize("name", [command.name for command in COMMANDS])
def test_every_command_says_what_it_takes(name: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"usage: threadkeep {name} ")
    assert "--data" in shown
