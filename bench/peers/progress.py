"""What the harness is doing, for whoever waits."""

import time

_BEGUN = time.monotonic()


def say(text: str) -> None:
    """Prints a line with the seconds since the start."""
    print(f"{time.monotonic() - _BEGUN:6.0f} s  {text}", flush=True)
