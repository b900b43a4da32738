"""The limits that a confined process sets for itself before it opens a file that may be hostile."""

import os
import resource


def limit_process(*, memory_bytes: int, cpu_s: int, written_bytes: int) -> None:
    """Ranks us below turns, and limits what a file can make us use."""
    os.nice(10)
    for kind, most in (
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_CPU, cpu_s),
        (resource.RLIMIT_FSIZE, written_bytes),
    ):
        resource.setrlimit(kind, (most, most + 5))  # the hard limit, which kills, is a little higher
