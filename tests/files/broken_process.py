"""A confined process that does what a hostile file could make one do; the name of the file says what."""

import os
import signal
import sys
import time
from pathlib import Path

from threadkeep.confined.limits import limit_process


def main(how: str) -> None:
    """Goes wrong in this way."""
    match how:
        case "dies":
            os.kill(os.getpid(), signal.SIGSEGV)
        case "sleeps":
            time.sleep(600)
        case "spins":
            limit_process(memory_bytes=1024**3, cpu_s=1, written_bytes=0)
            while True:
                pass
        case "floods":
            while True:
                sys.stdout.write("x" * 4096)
        case "answers and floods":
            sys.stdout.write("fine\n")
            while True:
                sys.stdout.write("x" * 4096)
        case "leaves":
            sys.exit(3)
        case _:
            sys.stdout.write("fine\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]).name)
