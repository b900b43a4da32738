"""`threadkeep key`, as people use it: against a server, and without one."""

import subprocess
from collections.abc import Generator
from pathlib import Path
from unittest.mock import ANY

import httpx
import pytest

from tests.conftest import SECRET
from tests.serving import Server, run, serving


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[Server]:
    """One for all of them."""
    with serving(tmp_path_factory.mktemp("server"), jwt_secret=SECRET, embedding_url="off") as server:
        yield server


def key(server: Server, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command for alice, run to its end."""
    return run("key", *arguments, "--user", "alice", "--url", server.url, folder=folder, jwt_secret=SECRET)


def test_key_is_made_used_listed_and_revoked(server: Server, tmp_path: Path):
    with server.client("none") as client:
        options = ("--scope", "read", "--expires", "30d", "--agent", "Assistant")
        made = key(server, tmp_path, "create", "CI", *options)
        assert (made.returncode, made.stderr) == (0, ""), made.stderr
        value = made.stdout.strip()
        assert value.startswith("tk_")
        signed = {"Authorization": f"Bearer {value}"}
        assert client.get("/api/me", headers=signed).json() == {
            "id": "alice",
            "role": "user",
            "installation": ANY,
        }
        head, row = key(server, tmp_path, "list").stdout.splitlines()
        assert head.split()[:3] == ["PREFIX", "NAME", "SCOPES"]
        assert row.split()[:4] == [value[:11], "CI", "read", "1"] and "never" not in row
        revoked = key(server, tmp_path, "revoke", "CI")
        assert (revoked.returncode, revoked.stdout) == (0, f"Revoked CI ({value[:11]}…).\n")
        assert client.get("/api/me", headers=signed).status_code == httpx.codes.UNAUTHORIZED


def test_mistakes_are_told_in_one_line(server: Server, tmp_path: Path):
    for arguments, said in (
        (("revoke", "nothing"), "No key has the id, prefix or name 'nothing'."),
        (("create", " "), "`name` can't be blank."),
        (("create", "x", "--agent", "Nobody"), "Agent 'Nobody' not found."),
        (("create", "x", "--scope", "admin", "--expires", "91d"), "must expire within 90 days"),
    ):
        done = key(server, tmp_path, *arguments)
        assert (done.returncode, done.stdout) == (1, ""), arguments
        (line,) = done.stderr.splitlines()
        assert said in line


def test_without_a_running_server_the_data_folder_is_used(tmp_path: Path):
    settings = {"port": "1", "embedding_url": "off", "gateway": "openai"}
    with Server(tmp_path, gateway="openai", embedding_url="off"):
        pass  # makes the data folder
    made = run("key", "create", "CI", "--data", "data", folder=tmp_path, **settings)
    assert made.returncode == 0, made.stderr
    listed = run("key", "list", "--data", "data", folder=tmp_path, **settings).stdout.splitlines()
    assert [line.split()[:3] for line in listed[1:]] == [[made.stdout[:11], "CI", "chat"]]


def test_refusal_of_what_only_admins_may_do_says_how_to_be_one(server: Server, tmp_path: Path):
    arguments = ("create", "Shop", "--act-as", "shop")
    refused = key(server, tmp_path, *arguments)
    assert refused.returncode == 1
    assert "--user NAME --admin" in refused.stderr
    made = key(server, tmp_path, *arguments, "--admin")
    assert (made.returncode, made.stderr) == (0, "")
