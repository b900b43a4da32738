"""Fuzzes for so many minutes (`make fuzz MINUTES=60`): each round draws other examples, a failure ends it."""

import argparse
import os
import random
import signal
import subprocess
import sys
import time

from tests.fuzz.hostile import EXAMPLES_NAME

TESTS = ["tests/fuzz", "tests/http/test_fuzz.py"]
EXAMPLES = 60


def run_round(seed: int, ends_at: float) -> int | None:
    """One round; pytest's exit code, or None where the time was up before its end."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "auto", "--timeout", "0", "--tb", "short"]
    command += ["-W", "ignore::hypothesis.errors.HypothesisWarning"]  # examples are long
    environment = {EXAMPLES_NAME: str(EXAMPLES), **os.environ}
    process = subprocess.Popen([*command, f"--hypothesis-seed={seed}", *TESTS], env=environment)
    try:
        return process.wait(max(1.0, ends_at - time.monotonic()))
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        process.wait()
        return None


def main() -> None:
    """Rounds until the time is up."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("minutes", type=float)
    ends_at = time.monotonic() + parser.parse_args().minutes * 60
    rounds = 0
    while time.monotonic() < ends_at:
        seed = random.getrandbits(32)
        print(f"\n== round {rounds + 1}, --hypothesis-seed={seed}", flush=True)
        if (code := run_round(seed, ends_at)) is None:
            break
        if code:
            sys.exit(
                f"\nFailed. Again: {EXAMPLES_NAME}={EXAMPLES} sh scripts/test {' '.join(TESTS)} "
                f"--hypothesis-seed={seed}"
            )
        rounds += 1
    print(f"\nNothing failed in {rounds} whole rounds.")


if __name__ == "__main__":
    main()
