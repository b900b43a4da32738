"""Makes the figures of the documentation from what the runs have saved: `python -m bench.report`.

Fills the regions `<!-- figures: GROUP -->` … `<!-- end -->` of docs/performance.md and of the README, and
draws the plots in docs/performance/.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from bench.aims import Place, find, render_aims
from bench.delays import AIMS, row_name
from bench.hostile_table import SOME, WHOLE, render_attacks
from bench.plots import Axis, Bar, Bars, Curve, Point, draw_bars, draw_curves
from bench.results import Table, load
from bench.servers import TREE
from bench.table import Line, Times, Trade, amount, render_rows

PAGE, README = TREE / "docs" / "performance.md", TREE / "README.md"
PICTURES = TREE / "docs" / "performance"
PEER_PICTURES = {
    "peers-server-cpu.svg": "Processor time for a streamed piece, beside other servers",
    "peers-server-delay.svg": "Delay of a streamed piece, beside other servers",
}
DATABASES = {"sqlite": "SQLite", "postgres": "PostgreSQL"}

_REGION = re.compile(r"(<!-- figures: (?P<name>[\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def main() -> None:
    """Writes what has changed."""
    for path, text in made().items():
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
            print(path.relative_to(TREE))


def made() -> dict[Path, str]:
    """The files as they should be."""
    plots = {PICTURES / name: svg for name, draw in PLOTS.items() if (svg := draw())}
    return {path: filled(path) for path in (PAGE, README)} | plots


def filled(path: Path) -> str:
    """A page with every region as the saved figures render it."""
    pictures = PICTURES.relative_to(path.parent)
    return _REGION.sub(lambda it: f"{it[1]}{_region(it['name'], pictures)}\n{it[3]}", path.read_text())


def _region(name: str, pictures: Path) -> str:
    if name == "aims":
        return render_aims()
    if name == "peers":
        return _peers(pictures)
    if name == "hostile":
        return render_attacks([*load(WHOLE), *load(SOME)]) or "Not measured yet."
    return "\n\n".join(_described(table) for table in load(name)) or "Not measured yet."


def _described(table: Table) -> str:
    title = f"**{table.title}** " if table.title else ""
    return f"{title}({table.run})\n\n{render_rows(table.rows, markdown=True)}"


def _peers(pictures: Path) -> str:
    """Threadkeep beside others, where they have been measured; else beside the floor."""
    if not (PICTURES / "peers.md").exists():
        return f"![CPU of the server for a streamed piece]({pictures}/pieces.svg)"
    there = {file: what for file, what in PEER_PICTURES.items() if (PICTURES / file).exists()}
    drawn = [f"![{what}]({pictures}/{file})" for file, what in there.items()]
    page = f"[Beside other servers and stores]({pictures}/peers.md): how each was measured, and what survives"
    return "\n\n".join([*drawn, f"{page} `kill -9`."])


# Plots


def _pieces() -> str | None:
    groups = [
        Bars(f"50 turns, {rate} pieces a second each", bars)
        for rate in (20, 100)
        if (bars := list(_beside_floor("bare ASGI", "pieces", f"a piece, 50 turns at {rate}/s")))
    ]
    return draw_bars("CPU of the server for a streamed piece", groups) if groups else None


def _begin() -> str | None:
    kinds = ("one after the other", "20 begun at once", "50 begun at once")
    groups = [
        Bars(kind, bars)
        for kind in kinds
        if (bars := list(_beside_floor("bare ASGI", "begin", f"a turn with one piece, {kind}, server CPU")))
    ]
    return draw_bars("CPU of the server for a whole turn with one piece", groups) if groups else None


def _store() -> str | None:
    rows = (
        "append a turn to 5,000",
        "append a turn to 50,000",
        "latest 20 of 5,000",
        "list 20 of 1,000 conversations",
    )
    groups = [Bars(row, bars) for row in rows if (bars := list(_beside_floor("driver", "store", row)))]
    return draw_bars("The store beside the driver with the same SQL", groups) if groups else None


def _beside_floor(floor: str, group: str, row: str) -> Iterator[Bar]:
    """A row's floor and ours, for each database."""
    for table, database in DATABASES.items():
        found = find(Place(group, table, row))
        if isinstance(found, Line):
            it = found.comparison
            yield Bar(f"{floor}, same rounds", it.floor, amount(it.floor, found.unit), "floor")
            said = f"{amount(it.ours, found.unit)}, {it.ratio:.1f} ×"
            yield Bar(f"Threadkeep, {database}", it.ours, said, "ours")


def _delays() -> str | None:
    curves: list[Curve] = []
    for table, database in DATABASES.items():
        rows = {turns: find(Place("delays", table, row_name(turns))) for turns in AIMS}
        times = {turns: row for turns, row in rows.items() if isinstance(row, Times)}
        colour = "ours" if table == "sqlite" else "second"
        if times:
            curves += [
                Curve(f"{database}, P50", [Point(turns, it.p50) for turns, it in times.items()], colour),
                Curve(f"{database}, P99", [Point(turns, it.p99) for turns, it in times.items()], colour),
            ]
    if not curves:
        return None
    turns = Axis("turns at once, 20 pieces a second each", is_logarithmic=True, ticks=list(AIMS))
    delay = Axis("ms", is_logarithmic=True)
    return draw_curves("Delay of a piece, from the model to the page", turns, delay, curves)


def _rest() -> str | None:
    trades = [row for table in load("rest") for row in table.rows if isinstance(row, Trade)]
    if not trades:
        return None
    curves = [
        Curve(f"{rate}/s", [_rest_point(it) for it in trades if it.rate == rate], colour)
        for rate, colour in ((20, "ours"), (100, "second"))
    ]
    note = "Beside each point: how long the log's writer rests at most between two flushes."
    axes = Axis("delay of a piece, P50, ms"), Axis("CPU of the server for a piece, µs")
    return draw_curves("CPU against delay, 50 turns on SQLite", *axes, curves, note=note)


def _rest_point(it: Trade) -> Point:
    return Point(it.p50_ms, it.cpu_us, f"{it.most_rest_ms:g} ms{' (default)' if it.is_default else ''}")


PLOTS: Mapping[str, Callable[[], str | None]] = {
    "pieces.svg": _pieces,
    "delays.svg": _delays,
    "rest.svg": _rest,
    "begin.svg": _begin,
    "store.svg": _store,
}


if __name__ == "__main__":
    main()
