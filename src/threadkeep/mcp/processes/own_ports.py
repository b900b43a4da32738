"""The ports on which this process listens, opened by Threadkeep or by its host application."""

import os
import socket
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def own_ports() -> set[int]:
    """The TCP ports; none on a system that doesn't list a process's open files."""
    return {*_listening()}


def _listening() -> Iterator[int]:
    try:
        descriptors = [int(entry.name) for entry in Path("/proc/self/fd").iterdir()]
    except OSError:
        return
    for descriptor in descriptors:
        with suppress(OSError):  # closed meanwhile, or not such a socket
            if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                with socket.socket(fileno=os.dup(descriptor)) as copy:
                    is_tcp = copy.family in {socket.AF_INET, socket.AF_INET6}
                    if is_tcp and copy.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                        yield copy.getsockname()[1]
