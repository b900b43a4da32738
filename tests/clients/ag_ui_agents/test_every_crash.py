"""Turns of agents that another server runs, crashed and killed at every commit."""

from pathlib import Path

import pytest

from tests.remote_agents.test_crashes import crash_at_all, unused
from threadkeep.testing.crashes import InProcess, Killed
from threadkeep.testing.processes import Processes


@pytest.mark.parametrize("repeat", [False, True])
async def test_crash_at_any_commit_repeats_only_what_may_be_repeated(tmp_path: Path, repeat: bool):
    assert await crash_at_all(InProcess({}), tmp_path, repeat=repeat) > 20


@pytest.mark.timeout(1_200)  # a process for each life
@pytest.mark.parametrize("part", range(3))
@pytest.mark.parametrize("repeat", [False, True])
async def test_kill_at_any_commit_repeats_only_what_may_be_repeated(tmp_path: Path, repeat: bool, part: int):
    async with Processes([unused], {}) as processes:
        assert await crash_at_all(Killed(processes), tmp_path, repeat=repeat, only=slice(part, None, 3)) > 5
