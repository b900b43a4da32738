"""`export`, `import` and `reassign` as people type them, beside a running server and without one."""

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.imports.foreign import branched, claude
from tests.serving import environment as surroundings
from tests.serving import serving
from threadkeep.cli.progress import Progress
from threadkeep.testing.waiting import PATIENCE_S

PAGE = Path(__file__).parents[2] / "docs" / "data.md"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A shell in which `threadkeep` is the one under test."""
    program = tmp_path / "bin" / "threadkeep"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m threadkeep "$@"\n')
    program.chmod(0o755)
    bare = surroundings({})
    return bare | {"PATH": f"{program.parent}{os.pathsep}{bare['PATH']}"}


def run(folder: Path, environment: dict[str, str], *commands: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-euc", "\n".join(commands)],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=4 * PATIENCE_S, check=False,
    )  # fmt: skip


def test_page_is_carried_out_as_written(tmp_path: Path, environment: dict[str, str]):
    page = PAGE.read_text(encoding="utf-8")
    (tmp_path / "conversations.json").write_text(json.dumps([branched(), claude()]))
    leaving, arriving, foreign, reassigning = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    for_local = foreign.replace("--user alice", "")
    with_sign_in = environment | {"THREADKEEP_JWT_SECRET": "s3cret-" * 8}
    nobody = run(tmp_path, with_sign_in, for_local)
    assert (nobody.returncode, nobody.stderr) == (
        1,
        "threadkeep: This server has sign-in. Name a user with --user.\n",
    )
    with serving(tmp_path):
        pass  # makes the data folder
    (tmp_path / "data").rename(tmp_path / ".threadkeep")
    done = run(tmp_path, environment, for_local, reassigning, leaving, arriving)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "Added: 1 agent, 2 conversations, 10 messages, 1 file.",
        "local → alice: 2 conversations, 1 agent, 0 briefings, 0 memories.",
        "alice.zip: 2 conversations, 10 messages.",
        "Added: 1 agent, 2 conversations, 10 messages, 1 file.",
    ]
    again = run(tmp_path, environment, foreign, arriving)
    assert again.stdout.splitlines() == [
        "Added: nothing; 2 already present.",
        "Added: nothing; 3 already present.",
    ]


def test_running_server_is_told_of_and_export_works_beside_it(tmp_path: Path, environment: dict[str, str]):
    (tmp_path / "conversations.json").write_text(json.dumps([claude()]))
    assert run(tmp_path, environment, "threadkeep import conversations.json --data data").returncode == 0
    with serving(tmp_path):
        for command in ("import conversations.json", "reassign local alice"):
            refused = run(tmp_path, environment, f"threadkeep {command} --data data")
            assert refused.returncode == 1
            assert re.search(
                r"data is in use by another Threadkeep \(process \d+\)\. Stop it", refused.stderr
            )
        beside = run(tmp_path, environment, "threadkeep export local.zip --data data")
        assert (beside.returncode, beside.stdout) == (0, "local.zip: 1 conversation, 3 messages.\n")
    missing = run(tmp_path, environment, "threadkeep export x.zip --data nowhere")
    assert (missing.returncode, missing.stdout) == (1, "")
    assert "No database found in nowhere" in missing.stderr


def test_progress_is_a_bar_in_a_terminal_and_lines_elsewhere():
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for stream, expected in (
        (Terminal(), "\rIt [            ".rstrip()),
        (io.StringIO(), "It: 0 %\nIt: 50 %\nIt: 100 %\n"),
    ):
        progress = Progress("It", stream)
        for done in (0, 1, 500, 501, 1000):
            progress.show(done, 1000)
        progress.end()
        told = stream.getvalue()
        assert told.startswith(expected) if stream.isatty() else told == expected
        assert told.endswith("100 %\n")
