"""An empty project with our packages, and its programs."""

import json
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from scripts import page

from threadkeep.testing.waiting import PATIENCE_S

PROGRAMS = Path(__file__).parent / "programs"


class Project:
    """A folder in which the packages are installed."""

    def __init__(self, folder: Path, *packages: Path) -> None:
        self.folder = folder
        (folder / "package.json").write_text('{"private": true, "type": "module"}')
        _, npm = page.commands()
        from_disk = ["install", "--offline", "--no-audit", "--no-fund", "--loglevel", "error"]
        page.run([*npm, *from_disk, *map(str, packages)], folder=folder)

    def program(self, name: str, *arguments: str) -> "Program":
        """Starts one of `programs`."""
        (self.folder / name).write_bytes((PROGRAMS / name).read_bytes())
        return Program(self.folder, name, *arguments)


class Program:
    """A program of node that runs; it prints what happens, one JSON text a line."""

    def __init__(self, folder: Path, *command: str) -> None:
        node, _ = page.commands()
        self._process = subprocess.Popen(
            [*node, *command],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(ProcessLookupError):
            self._process.kill()
        self._process.communicate()

    def next(self) -> Any:
        """What it prints next."""
        assert self._process.stdout
        line = self._process.stdout.readline()
        assert line, f"it ended: {self._process.communicate(timeout=PATIENCE_S)[1]}"
        return json.loads(line)

    def rest(self) -> list[Any]:
        """What it prints until it ends, without an error."""
        printed, said = self._process.communicate(timeout=PATIENCE_S)
        assert self._process.returncode == 0, said
        return [json.loads(line) for line in printed.splitlines()]
