"""A guard against creeping cost: no hot path costs a factor more than recorded."""

import subprocess
import sys
from pathlib import Path


def test_no_hot_path_costs_a_factor_more_than_recorded():
    # In a process of its own, where nothing else runs and nothing else was loaded.
    measured = subprocess.run(
        [sys.executable, "-m", "tests.costs"],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert measured.returncode == 0, f"{measured.stdout}\n{measured.stderr}"
