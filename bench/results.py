"""What the runs showed, kept as JSON beside the documentation that is made of it."""

import os
import platform
import subprocess
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from bench.servers import TREE
from bench.table import Row, Texts

CHANGED = ("status", "--porcelain", "--", "src", "bench")
FOLDER = TREE / "docs" / "performance" / "results"


class Run(msgspec.Struct, frozen=True):
    """When and where something was measured."""

    date: str
    commit: str
    machine: str
    python: str
    load_before: float
    """Ratios of time grow with the load: who is to be woken waits for a core. Ratios of CPU do not."""
    is_quick: bool

    @staticmethod
    def now(*, is_quick: bool) -> "Run":
        """A run that begins here."""
        return Run(
            date=datetime.now(UTC).strftime("%Y-%m-%d"),
            commit=_git("rev-parse", "--short", "HEAD") + (" with changes" if _git(*CHANGED) else ""),
            machine=f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
            python=f"Python {platform.python_version()}",
            load_before=round(os.getloadavg()[0], 1),
            is_quick=is_quick,
        )

    def __str__(self) -> str:
        effort = "short run, " if self.is_quick else ""
        return f"{effort}{self.date}, {self.machine}, load {self.load_before:g} before, {self.commit}"


class Table(msgspec.Struct, frozen=True):
    """Rows that were measured together."""

    name: str
    """What tells it from the group's other tables, such as the database."""
    title: str
    rows: Sequence[Row]
    run: Run


def _git(*arguments: str) -> str:
    said = subprocess.run(["git", *arguments], cwd=TREE, capture_output=True, text=True, check=False)
    return said.stdout.strip()


def load(group: str) -> list[Table]:
    """A group's tables; none if it has not been measured yet."""
    path = _path(group)
    return msgspec.json.decode(path.read_bytes(), type=list[Table]) if path.exists() else []


def save(group: str, table: Table) -> None:
    """Puts a table in the place of the one that has its name."""
    kept = {it.name: it for it in load(group)} | {table.name: table}
    _write(group, list(kept.values()))


def forget(group: str, is_outdated: Callable[[str], bool]) -> None:
    """Drops the tables with such names."""
    _write(group, [it for it in load(group) if not is_outdated(it.name)])


def save_texts(
    group: str, name: str, headings: tuple[str, ...], lines: Iterable[tuple[str, ...]], run: Run
) -> None:
    """Keeps a table that has columns of its own."""
    save(group, Table(name, name, [Texts(headings, line) for line in lines], run))


def _write(group: str, tables: Sequence[Table]) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    _path(group).write_bytes(msgspec.json.format(msgspec.json.encode(tables), indent=1) + b"\n")


def _path(group: str) -> Path:
    return FOLDER / f"{group}.json"
