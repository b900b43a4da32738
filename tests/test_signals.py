import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.signals import INHERITED


@pytest.mark.parametrize("number", INHERITED, ids=lambda number: number.name)
def test_process_that_a_test_starts_obeys_a_signal(number: signal.Signals) -> None:
    command = ["sh", "-c", "echo started; exec sleep 60"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == b"started\n"
        process.send_signal(number)
    assert process.returncode == -number


def test_tests_in_the_background_of_a_script_have_default_signals() -> None:
    test = f"{__file__}::{test_process_that_a_test_starts_obeys_a_signal.__name__}"
    names = " ".join(number.name.removeprefix("SIG") for number in INHERITED)
    command = shlex.join([sys.executable, "-m", "pytest", "-q", test])
    ended = subprocess.run(
        ["sh", "-c", f"trap '' {names}; exec {command}"],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
