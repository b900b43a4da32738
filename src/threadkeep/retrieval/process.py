"""What the processes that we start are given."""

import os

_KEPT = ("PATH", "PYTHONPATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "TMPDIR")


def worker_environment() -> dict[str, str]:
    """What a worker needs to find its code, and nothing else of ours: no key, no password."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return kept | {"OPENBLAS_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
