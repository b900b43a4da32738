"""`threadkeep ingest`, as people use it: against a server, without one, in a terminal and in a pipe."""

import os
import pty
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conftest import SECRET
from tests.retrieval.files import CONTRACT, make_contract, make_docx
from tests.serving import Server, environment, run, serving
from threadkeep.cli.ingest import find_files
from threadkeep.domain.user import User, UserId
from threadkeep.http.sign_in.access_tokens import issue_token
from threadkeep.testing import closed_port
from threadkeep.testing.waiting import PATIENCE_S

BY_WORDS = {"embedding_url": "off"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[Server]:
    """One for all of them, each with an agent of its own."""
    with serving(tmp_path_factory.mktemp("server"), jwt_secret=SECRET, **BY_WORDS) as server:
        yield server


def alice(server: Server) -> httpx.Client:
    return server.client(issue_token(SECRET, User(UserId("alice")), 600))


def ingested(folder: Path, *arguments: str | Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """The command, run to its end in a folder."""
    return run("ingest", *map(str, arguments), folder=folder, **{"jwt_secret": SECRET, **settings})


def documents(client: httpx.Client, agent_id: str) -> list[dict[str, Any]]:
    return client.get(f"/api/agents/{agent_id}/documents").json()["items"]


def make_library(folder: Path) -> None:
    """Files of several kinds, some of which nobody can read."""
    (folder / "laws" / "old").mkdir(parents=True)
    (folder / ".git").mkdir()
    (folder / ".git" / "config.txt").write_text("hidden")
    (folder / CONTRACT).write_bytes(make_contract())
    (folder / "laws" / "lease.docx").write_bytes(make_docx([("Pets", "Cats only.")]))
    (folder / "laws" / "old" / "copy.pdf").write_bytes(make_contract())
    (folder / "laws" / "old" / "broken.pdf").write_bytes(b"%PDF-1.4 nothing more")
    (folder / "laws" / "logo.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    os.mkfifo(folder / "laws" / "pipe.txt")


def test_folder_is_sent_and_read_and_what_failed_is_told(server: Server, tmp_path: Path):
    make_library(tmp_path)
    with alice(server) as client:
        agent_id = client.post("/api/agents", json={"name": "Lawyer"}).json()["id"]
        command = (".", "missing.txt", "--agent", "lawyer", "--user", "alice", "--url", server.url)
        done = ingested(tmp_path, *command)
        assert (done.returncode, done.stderr) == (1, "")
        told, summary = done.stdout.splitlines()[:6], done.stdout.splitlines()[6:]
        assert sorted(told) == sorted(
            [
                *summary_of(told, "ready"),
                *summary_of(told, "already added"),
                "failed: laws/old/broken.pdf: The PDF is damaged.",
                "failed: missing.txt: No such file or directory.",
                "skipped: laws/logo.png: logo.png isn't a supported file type. "
                "Upload a PDF, DOCX, HTML, Markdown, text or CSV file.",
            ]
        )
        assert summary == [
            "6 files: 1 already added, 2 failed, 2 ready, 1 skipped.",
            *(f"  {line}" for line in sorted(told, key=path_of) if not line.startswith(("ready", "already"))),
        ]
        kept = {it["fileName"]: it["status"] for it in documents(client, agent_id)}
        contract = next(name for name in kept if name in (CONTRACT, "copy.pdf"))
        assert kept == {contract: "ready", "lease.docx": "ready", "broken.pdf": "failed"}
        # Once more: what is there is recognised, and what failed is tried again.
        again = ingested(tmp_path, "laws", "--agent", "Lawyer", "--user", "alice", "--url", server.url)
        assert again.stdout.splitlines()[-3] == "4 files: 2 already added, 1 failed, 1 skipped."
        assert len(documents(client, agent_id)) == 3


def summary_of(lines: list[str], outcome: str) -> list[str]:
    return [line for line in lines if line.startswith(f"{outcome}: ")]


def path_of(line: str) -> str:
    return line.split(": ")[1]


def test_without_a_server_the_data_folder_is_filled(tmp_path: Path):
    (tmp_path / "notes.md").write_text("# Soup\n\nAdd ginger.")
    with closed_port() as url:
        with serving(tmp_path, **BY_WORDS):
            pass  # makes the data folder
        own = {**BY_WORDS, "jwt_secret": "", "port": url.rpartition(":")[2]}
        done = ingested(tmp_path, "notes.md", "--data", "data", **own)
        told = f"No server at {url}. Using the data folder ./data\n"
        assert (done.returncode, done.stderr) == (0, told)
        assert done.stdout == "ready: notes.md: 1 chunk\n1 file: 1 ready.\n"
    with (
        serving(tmp_path, **BY_WORDS) as server,
        server.client() as client,
    ):
        default = next(it for it in client.get("/api/agents").json()["items"] if it["isDefault"])
        found = client.get(f"/api/agents/{default['id']}/search", params={"q": "ginger"}).json()["items"]
        assert [hit["source"] for hit in found] == ["notes.md"]


def test_terminal_shows_a_bar_that_gives_way_to_the_summary(server: Server, tmp_path: Path):
    (tmp_path / "notes.md").write_text("# Soup\n\nAdd ginger.")
    with alice(server) as client:
        client.post("/api/agents", json={"name": "Cook"})
    master, slave = pty.openpty()
    command = ("notes.md", "--agent", "Cook", "--user", "alice", "--url", server.url)
    process = subprocess.Popen(
        [sys.executable, "-m", "threadkeep", "ingest", *command],
        cwd=tmp_path,
        env=environment({"jwt_secret": SECRET}) | {"TERM": "xterm"},
        stdin=slave,
        stdout=slave,
        stderr=slave,
    )
    os.close(slave)
    seen = b""
    while part := read(master):
        seen += part
    os.close(master)
    assert process.wait(PATIENCE_S) == 0
    shown = seen.decode()
    assert f"\r[{'#' * 24}] 1/1 notes.md\x1b[K" in shown
    assert shown.endswith("\r\x1b[K1 file: 1 ready.\r\n")


def read(master: int) -> bytes:
    """What is written to a terminal; nothing once it is closed."""
    try:
        return os.read(master, 65536)
    except OSError:
        return b""


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--agent", "Nobody", "--user", "alice"), "Agent 'Nobody' not found"),
        ((), "--token"),
        (("--user", "bob"), "Only the agent's owner or an admin can do this."),
    ],
    ids=["no-agent", "no-token", "not-ones-own"],
)
def test_what_may_not_be_is_told_in_one_line(
    server: Server, tmp_path: Path, arguments: tuple[str, ...], reason: str
):
    (tmp_path / "notes.md").write_text("words")
    done = ingested(tmp_path, "notes.md", *arguments, "--url", server.url)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert reason in done.stderr


def test_user_needs_the_servers_secret(tmp_path: Path):
    done = ingested(tmp_path, "notes.md", "--user", "alice", jwt_secret="")
    assert done.returncode == 1
    assert "THREADKEEP_JWT_SECRET" in done.stderr


def test_files_are_found_once_and_hidden_ones_are_not(tmp_path: Path):
    make_library(tmp_path)
    (tmp_path / "laws" / "again.pdf").symlink_to(tmp_path / CONTRACT)
    (tmp_path / "laws" / "loop").symlink_to(tmp_path)
    named = tmp_path / ".git" / "config.txt"
    found = list(find_files([named, tmp_path / "laws", tmp_path, tmp_path / "laws" / "logo.png"]))
    names = [it.path.name for it in found]
    assert names == ["config.txt", "again.pdf", "lease.docx", "logo.png", "broken.pdf", "copy.pdf"]
    assert [it.path for it in found if it.named] == [named]
