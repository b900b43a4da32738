"""A server process whose settings are given as its environment names them, ended in good order."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.http.process import Server
from threadkeep.settings import PREFIX


class ServerProcess(Server):
    """`threadkeep serve` with these variables."""

    def __init__(self, folder: Path, environment: Mapping[str, str] | None = None) -> None:
        given = environment or {}
        super().__init__(folder, **{name.removeprefix(PREFIX).lower(): given[name] for name in given})


@contextmanager
def serving(folder: Path, environment: Mapping[str, str] | None = None) -> Generator[ServerProcess]:
    """A server while the block runs."""
    with ServerProcess(folder, environment) as server:
        yield server
        server.stop()
