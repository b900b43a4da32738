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
    names = " ".join(number.name.removeprefix("SIG") for number in INHERITED)
    check_obeys(f"trap '' {names};")


def test_test_that_ignores_signals_leaves_them_to_the_next_one() -> None:
    check_obeys("", f"{__file__}::{test_signal_can_be_ignored.__name__}")


@pytest.mark.parametrize("number", INHERITED, ids=lambda number: number.name)
def test_signal_can_be_ignored(number: signal.Signals) -> None:
    signal.signal(number, signal.SIG_IGN)
    assert signal.getsignal(number) is signal.SIG_IGN


def check_obeys(shell: str, *tests_before: str) -> None:
    """Runs the test of signals in a pytest of its own, after these tests."""
    test = f"{__file__}::{test_process_that_a_test_starts_obeys_a_signal.__name__}"
    command = shlex.join([sys.executable, "-m", "pytest", "-q", *tests_before, test])
    ended = subprocess.run(
        ["sh", "-c", f"{shell} exec {command}"],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
