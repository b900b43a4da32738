"""Which rows of which groups say whether an aim is met."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from bench.results import load
from bench.table import Line, Row, Texts, Times, Trade, amount, render

SQLITE, POSTGRES = "SQLite", "PostgreSQL"
HEADINGS = ("what", "aim", SQLITE, POSTGRES)


class Place(NamedTuple):
    """Where a row is found."""

    group: str
    table: str
    row: str


class Aimed(NamedTuple):
    """Something with an aim, and where its figures are, by column."""

    what: str
    places: Mapping[str, Place]


def _both(what: str, group: str, row: str) -> Aimed:
    return Aimed(what, {SQLITE: Place(group, "sqlite", row), POSTGRES: Place(group, "postgres", row)})


AIMED = (
    _both("streamed piece, 50 turns at 20/s, CPU against bare ASGI", "pieces", "a piece, 50 turns at 20/s"),
    _both("streamed piece, 50 turns at 100/s, CPU against bare ASGI", "pieces", "a piece, 50 turns at 100/s"),
    _both("delay of a piece, 1 turn", "delays", "a piece, 1 turn at 20/s, model to page"),
    _both("delay of a piece, 50 turns", "delays", "a piece, 50 turns at 20/s, model to page"),
    _both("delay of a piece, 500 turns", "delays", "a piece, 500 turns at 20/s, model to page"),
    _both("a turn's begin and end, CPU", "begin", "a turn's begin and end, server CPU"),
    _both("append a turn to an empty conversation, against the driver", "store", "append a turn to 0"),
    _both("append a turn to 5,000 messages", "store", "append a turn to 5,000"),
    _both("append a turn to 50,000 messages", "store", "append a turn to 50,000"),
    _both("latest 20 of 5,000 messages", "store", "latest 20 of 5,000"),
    _both("list 20 of 1,000 conversations", "store", "list 20 of 1,000 conversations"),
    Aimed(
        "32 writers, durable turns",
        {SQLITE: Place("store", "sqlite", "32 writers, against one with the same two commits a turn")},
    ),
    Aimed(
        "a piece with 2 workers, CPU against 1",
        {POSTGRES: Place("workers", "", "a piece, 50 turns at 20/s: 2 workers against 1")},
    ),
    _both(
        "agents in code: `say` adds to a piece, CPU", "programs", "`say` adds to a configured agent's piece"
    ),
    _both("agents in code: a read step against a bare crossing", "programs", "a read step"),
    _both("agents in code: commits of a write step", "programs", "commits of a write step"),
    _both("agents in code: 1,000 recorded steps run again", "programs", "1,000 recorded steps run again"),
    _both(
        "agents in code: `/healthz` while one blocks for 1 s",
        "programs",
        "an agent blocks for 1 s: `/healthz` is later by",
    ),
    _both(
        "agents in code: `/healthz` while one spins for 1 s",
        "programs",
        "an agent spins for 1 s: `/healthz` is later by",
    ),
    _both("memory of an idle server", "memory", "idle, after the start"),
    _both("memory of an open stream", "memory", "each open stream of a running turn"),
    Aimed(
        "cold start to the first response",
        {SQLITE: Place("cold", "", "from the command to the first response, empty folder")},
    ),
    Aimed(
        "request of 200 messages with 400 tool calls",
        {SQLITE: Place("context", "", "request of 200 messages with 400 tool calls")},
    ),
    Aimed(
        "choose a branch, 10,000 rows after the fork",
        {
            SQLITE: Place("branches", "", "sqlite: choose a branch, 10,000 rows after the fork"),
            POSTGRES: Place("branches", "", "postgres: choose a branch, 10,000 rows after the fork"),
        },
    ),
)


def render_aims() -> str:
    """Every aim with what was measured."""
    return render([_cells(it) for it in AIMED], HEADINGS, markdown=True)


def find(place: Place) -> Row | None:
    """A row, if it was measured."""
    rows = (row for table in load(place.group) if table.name == place.table for row in table.rows)
    return next((row for row in rows if place.row in _names(row)), None)


def _cells(aimed: Aimed) -> tuple[str, ...]:
    rows = {column: find(place) for column, place in aimed.places.items()}
    aims = {_aim(row) for row in rows.values() if isinstance(row, Line | Times) and row.aim}
    return (aimed.what, ", ".join(sorted(aims)), *(_measured(rows.get(it)) for it in (SQLITE, POSTGRES)))


def _aim(row: Line | Times) -> str:
    """An aim with its unit."""
    is_ratio = row.aim is not None and row.aim.of == "ratio"
    return f"{row.aim} {'×' if is_ratio else row.unit}"


def _measured(row: Row | None) -> str:
    """A figure, with what says whether it is where it should be."""
    match row:
        case Line():
            figure = f"{amount(row.comparison.ours, row.unit)}, {row.comparison.ratio:.2f} ×"
        case Times():
            figure = amount(row.judged, row.unit)
        case _:
            return ""
    return figure if row.aim is None else f"{figure} {'✓' if row.aim.is_met(row.judged) else '✗'}"


def _names(row: Row) -> Iterator[str]:
    match row:
        case Line():
            yield row.operation
        case Times():
            yield row.what
        case Texts() | Trade():
            return
