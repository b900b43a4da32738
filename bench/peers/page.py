"""The page about the peers, made of nothing but the file of results: `python -m bench.peers --page`."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from statistics import median
from textwrap import fill
from typing import Any, Literal, NamedTuple

import msgspec

from bench.peers.store_sample import APPENDS, LATEST, LISTED, TOGETHER
from bench.peers.turns import ALONE, AT_ONCE, BUSY, CROWD, LOADS, Load
from bench.plots import Bar, Bars, draw_bars
from bench.results import Run
from bench.table import amount, render

OURS = ("threadkeep", "threadkeep_postgres")
FLOORS = ("bare", "sqlite", "sqlite_once", "postgres")
ON_POSTGRES = ("postgres", "threadkeep_postgres")
NOTHING = "–"
LINE = 120

Results = Mapping[str, Mapping[str, Any]]
Cell = Callable[[str], str]

GENERATED = """This page is generated. `make bench-peers` measures everything again and replaces it
    (`python -m bench.peers --help`: some contenders only, a short run). The figures of every round are
    in [peers.json](peers.json)."""
RULES = """Every contender runs in an environment of its own, installed from a lock file. The model is a
    process on the same machine that speaks the provider's own protocol. Commits wait for the disk."""
PIECES = f"""`{LOADS[0]}` is {LOADS[0].turns} turns at once, {LOADS[0].rate} pieces a second each. The
    begin and the end of a turn are shared out among its pieces."""
TURNS = """Processor time of a whole turn with one piece, and how long whatever the server says first
    and the first piece of the reply take, when so many begin at once."""
DELAYS = f"""Of a piece from the model to the client, P50 / P99 in milliseconds. `{CROWD}` is
    {CROWD.turns} turns at once."""
BEHIND = """How long the turns took, from the first question to the last end, against the time that the
    model spoke:"""
SIZES = """Memory is resident. The bytes on disk include a turn's log, where a server keeps one; a sync
    is an `fsync` or `fdatasync`."""
CRASHES = """A server is killed in the middle of a turn and started again in the same folder; then its
    own history says what it has. The reply goes on if it is completed though no client asks. No model
    continues a reply: it is asked again."""
KEEPING = """A turn is a question and a reply, about 1.2 kB. `append to 5,000` keeps one in a
    conversation of 5,000 messages. The floor is the driver with Threadkeep's own tables, which keep
    more of a turn than most."""


def make_pages(results: Mapping[str, Any]) -> dict[str, str]:
    """The page and its plots, by the names of their files."""
    plots = dict(_plots(results))
    return {"peers.md": _page(results, plots), **plots}


def write_pages(file: Path) -> None:
    """Renders a file of results beside itself."""
    for name, text in make_pages(json.loads(file.read_text())).items():
        (file.parent / name).write_text(text)


def _page(results: Mapping[str, Any], plots: Mapping[str, str]) -> str:
    servers, stores = results["servers"], results["stores"]
    parts = ["# Beside other servers and stores", _prose(GENERATED), _conditions(results), _prose(RULES)]
    if servers:
        parts += ["## Servers", *_pictures(plots, "servers"), *_servers(servers)]
    if stores:
        parts += ["## Stores", *_pictures(plots, "stores"), *_stores(stores)]
    parts += ["## What failed", _failures(servers, stores)]
    parts += ["## Who was measured, and how each is at its best", *_contenders(servers, stores)]
    return "\n\n".join(parts) + "\n"


def _conditions(results: Mapping[str, Any]) -> str:
    run = msgspec.convert(results["run"], Run)
    return _prose(
        f"""Measured: {run}, {results["processor"]}, {run.python}; the disk takes
        {results["sync ms"]:.2f} ms to make a write durable. Rounds: {results["rounds"]} of the servers,
        {results["store rounds"]} of the stores; replies have {results["pieces a turn"]} pieces,
        {results["pieces of a turn alone"]} where one turn runs alone. In each round every contender has
        its turn. `×` is the median of the rounds' own ratios to the floor, with the least and the
        greatest in brackets; other figures are medians."""
    )


def _prose(text: str) -> str:
    return fill(" ".join(text.split()), LINE, break_long_words=False, break_on_hyphens=False)


# Servers


def _servers(servers: Results) -> list[str]:
    def ratio(what: str, unit: str) -> Cell:
        return lambda name: _with_ratio(servers, name, "bare", what, unit)

    def plain(what: str, unit: str = "") -> Cell:
        return lambda name: _amount(_median(servers[name], what), unit)

    def delays(load: Load) -> Cell:
        return lambda name: " / ".join(
            _amount(_median(servers[name], f"delay P{percent} ms {load}"), "") for percent in (50, 99)
        )

    return [
        "### Processor time for a piece",
        _prose(PIECES),
        _table(servers, {f"{load}": ratio(f"piece CPU µs {load}", "µs") for load in LOADS}),
        "### Beginning and ending a turn",
        _prose(TURNS),
        _table(
            servers,
            {f"CPU, {count} at once": plain(f"turn CPU ms {count}", "ms") for count in AT_ONCE}
            | {f"first event, {count} at once": plain(f"first event ms {count}", "ms") for count in AT_ONCE}
            | {f"first piece, {count} at once": plain(f"first piece ms {count}", "ms") for count in AT_ONCE},
        ),
        "### Delay",
        _prose(DELAYS),
        _table(servers, {f"{load}": delays(load) for load in (ALONE, BUSY, CROWD)}),
        _prose(BEHIND),
        _table(servers, {f"{load}": plain(f"time against the model's {load}", "×") for load in LOADS}),
        "### Memory and disk",
        _prose(SIZES),
        _table(
            servers,
            {
                "idle": plain("idle memory MB", "MB"),
                "an open stream": plain("memory a stream kB", "kB"),
                "disk, a turn": plain("disk bytes a turn", "B"),
                "syncs, a turn alone": plain("syncs a turn alone"),
                f"syncs, a turn of {BUSY.turns} at once": plain("syncs a turn together"),
            },
        ),
        "### What `kill -9` leaves",
        _prose(CRASHES),
        _survival(servers),
    ]


def _survival(servers: Results) -> str:
    lines: list[tuple[str, ...]] = []
    for name, result in servers.items():
        left = result["survives"]
        if left is None:
            lines.append((_shown_name(result, name), *[NOTHING] * 4))
            continue
        pieces = f"{left['pieces kept']} of {left['pieces shown']}"
        answers = ("yes" if left[it] else "no" for it in ("earlier turn", "question", "went on"))
        earlier, question, went_on = answers
        lines.append((_shown_name(result, name), earlier, question, pieces, went_on))
    headings = ("server", "earlier turn", "the question", "pieces of the reply", "the reply goes on")
    return render(lines, headings, markdown=True)


# Stores


def _stores(stores: Results) -> list[str]:
    def ratio(what: str) -> Cell:
        return lambda name: _with_ratio(
            stores, name, "postgres" if name in ON_POSTGRES else "sqlite", what, "µs"
        )

    def plain(what: str, unit: str = "") -> Cell:
        return lambda name: _amount(_median(stores[name], what), unit)

    operations = (*APPENDS, LATEST, LISTED)
    wall = {it: ratio(f"{it} µs") for it in operations}
    cpu = {it: ratio(f"{it} CPU µs") for it in operations}
    rest = {
        TOGETHER: plain(f"{TOGETHER} turns/s", "turns/s"),
        f"{TOGETHER}, CPU a turn": plain(f"{TOGETHER} CPU µs a turn", "µs"),
        "disk, a turn": plain("disk bytes a turn", "B"),
        "syncs, a turn": plain("append to 500 syncs"),
    }
    return [
        _prose(KEEPING),
        "### Time by the clock",
        _table(stores, wall),
        "### Processor time",
        _table(stores, cpu),
        "### Many writers, disk",
        _table(stores, rest),
    ]


# What both have


def _failures(*groups: Results) -> str:
    lines = [
        f"- {result['title']}, {where}: {' '.join(why.split())}"
        for group in groups
        for result in group.values()
        for where, why in result["failures"].items()
    ]
    return "\n".join(lines) or "Nothing."


def _contenders(servers: Results, stores: Results) -> list[str]:
    return [
        _prose(f"**{result['title']}** ({kind}{_versions(result)}). {result['best case']}")
        for kind, group in (("server", servers), ("store", stores))
        for result in group.values()
    ]


def _versions(result: Mapping[str, Any]) -> str:
    return "".join(f", {name} {version}" for name, version in result["versions"].items())


def _table(results: Results, columns: Mapping[str, Cell]) -> str:
    lines = [
        (_shown_name(result, name), *(cell(name) for cell in columns.values()))
        for name, result in results.items()
    ]
    return render(lines, ("", *columns), markdown=True)


def _shown_name(result: Mapping[str, Any], name: str) -> str:
    return f"**{result['title']}**" if name in OURS else result["title"]


def _with_ratio(results: Results, name: str, floor: str, what: str, unit: str) -> str:
    value = _median(results[name], what)
    if value is None or name == floor or floor not in results:
        return _amount(value, unit)
    ratios = _ratios(results[floor], results[name], what)
    if not ratios:
        return _amount(value, unit)
    spread = f" ({_short(min(ratios))}–{_short(max(ratios))})" if len(ratios) > 1 else ""
    return f"{_amount(value, unit)}, {_short(median(ratios))} ×{spread}"


def _ratios(floor: Mapping[str, Any], result: Mapping[str, Any], what: str) -> list[float]:
    pairs = zip(floor["figures"].get(what, ()), result["figures"].get(what, ()), strict=False)
    return [mine / least for least, mine in pairs if least and mine is not None]


def _median(result: Mapping[str, Any], what: str) -> float | None:
    values = [value for value in result["figures"].get(what, ()) if value is not None]
    return median(values) if values else None


def _amount(value: float | None, unit: str) -> str:
    return NOTHING if value is None else amount(value, unit)


def _short(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.1f}"


# Plots


def _loads(load: Load) -> str:
    turns = f"{load.turns} turns" if load.turns > 1 else "1 turn"
    return f"{turns}, {load.rate} pieces a second each"


class Plot(NamedTuple):
    """Figures of all servers or all stores, as bars."""

    title: str
    group: Literal["servers", "stores"]
    figures: Mapping[str, str]
    """What is drawn, by the heading above it."""
    unit: str


PLOTS = {
    "peers-server-cpu.svg": Plot(
        "Processor time for a streamed piece",
        "servers",
        {_loads(load): f"piece CPU µs {load}" for load in (LOADS[2], LOADS[3])},
        "µs",
    ),
    "peers-server-delay.svg": Plot(
        "Delay of a piece from the model to the client, median",
        "servers",
        {_loads(load): f"delay P50 ms {load}" for load in (ALONE, BUSY)},
        "ms",
    ),
    "peers-server-memory.svg": Plot(
        "Memory", "servers", {"An open stream": "memory a stream kB"}, "kB"
    ),
    "peers-store-append.svg": Plot(
        "Processor time to keep a turn",
        "stores",
        {f"{it[0].upper()}{it[1:]}": f"{it} CPU µs" for it in ("append to 500", "append to 5,000")},
        "µs",
    ),
    "peers-store-latest.svg": Plot(
        "Time to read the latest messages", "stores", {"20 of 5,000": f"{LATEST} µs"}, "µs"
    ),
}  # fmt: skip


def _plots(results: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for file, plot in PLOTS.items():
        measured = results[plot.group]
        groups = [
            Bars(heading, bars)
            for heading, what in plot.figures.items()
            if (bars := _bars(measured, what, plot.unit))
        ]
        if groups:
            yield file, draw_bars(plot.title, groups)


def _bars(results: Results, what: str, unit: str) -> list[Bar]:
    values = {name: _median(result, what) for name, result in results.items()}
    found = sorted((value, name) for name, value in values.items() if value is not None and value > 0)
    return [Bar(results[name]["title"], value, _amount(value, unit), _colour(name)) for value, name in found]


def _colour(name: str) -> str:
    return "ours" if name in OURS else "floor" if name in FLOORS else "bar"


def _pictures(plots: Mapping[str, str], group: str) -> list[str]:
    return [f"![{PLOTS[file].title}]({file})" for file in plots if PLOTS[file].group == group]
