"""What a worker process may use, set by itself before it opens a file that may be hostile."""

import os
import resource
from contextlib import suppress
from pathlib import Path


def limit_process(*, memory_bytes: int, cpu_s: int, written_bytes: int) -> None:
    """Whatever the file makes us do, turns go first, and it ends."""
    os.nice(10)
    with suppress(OSError):  # where memory runs out, this goes before the server does
        Path("/proc/self/oom_score_adj").write_text("1000")
    for kind, most in (
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_CPU, cpu_s),
        (resource.RLIMIT_FSIZE, written_bytes),
    ):
        resource.setrlimit(kind, (most, most + 5))  # a little more for the hard limit, which kills unasked
