"""Seed 003 was written for a to-do application: ours goes on as before when the chatbot comes."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.serving import environment

ROOT = Path(__file__).parents[2]


def outcomes(**environ: str) -> list[str]:
    """The application's own tests that pass; all must."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-rA", "examples/todo/tests"],
        cwd=ROOT,
        env={**environment({}), **environ},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return sorted(re.findall(r"^PASSED (\S+)", done.stdout, re.MULTILINE))


@pytest.fixture(scope="module")
def before() -> list[str]:
    return outcomes()


@pytest.mark.requirement("SC-006")
def test_applications_own_tests_pass_alike_before_and_after_the_chat_is_mounted(
    before: list[str], database_url: str
):
    assert "examples/todo/tests/test_todo.py::test_task_is_added_completed_renamed_and_deleted" in before
    database = {} if database_url.startswith("sqlite") else {"TODO_CHAT_DATABASE": database_url}
    assert outcomes(TODO_CHAT="on", **database) == before
