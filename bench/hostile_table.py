"""The table of `bench.hostile` for people: per attack, how long others waited at most on each database."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from bench.results import Table
from bench.table import Texts, render

WHOLE, SOME = "hostile", "hostile-some"
"""Where the figures of whole runs are kept, and those of runs with some attacks."""
ASKED = ("/healthz", "a read", "a write")
DATABASES = {"sqlite": "SQLite", "postgres": "PostgreSQL"}


class Waited(NamedTuple):
    """The longest that somebody waited, in ms: while all was quiet, and during an attack."""

    quiet: float
    during: float

    def __str__(self) -> str:
        return f"{self.during:,.0f} ({self.quiet:,.0f})"


Attacks = Mapping[tuple[str, str], Waited]
"""By the attack and what was asked for."""


def name_of(database: str, attacks: Iterable[str] | None = None) -> str:
    """What the table of a whole run is called, or of one with some attacks."""
    return database if attacks is None else f"{database}: {', '.join(attacks)}"


def render_attacks(tables: Iterable[Table]) -> str | None:
    """One line for each attack, if anything was measured; runs with some attacks are added to whole ones."""
    known = [it for it in tables if _database(it) in DATABASES]
    if not known:
        return None
    found: dict[str, dict[tuple[str, str], Waited]] = {}
    for table in known:
        found.setdefault(_database(table), {}).update(_attacks(table))
    attacks = dict.fromkeys(attack for some in found.values() for attack, _ in some)
    lines = [(it, *_cells(it, found.values())) for it in attacks]
    return f"{_runs(known)}\n\n{render(lines, _headings(found), markdown=True)}"


def _database(table: Table) -> str:
    return table.name.partition(": ")[0]


def _attacks(table: Table) -> Attacks:
    rows = [dict(zip(it.headings, it.texts, strict=True)) for it in table.rows if isinstance(it, Texts)]
    return {
        (it["during"], it["asks"]): Waited(float(it["quiet most ms"]), float(it["most ms"])) for it in rows
    }


def _cells(attack: str, databases: Iterable[Attacks]) -> Iterator[str]:
    return (str(some.get((attack, asked), "")) for some in databases for asked in ASKED)


def _headings(databases: Iterable[str]) -> tuple[str, ...]:
    asked = [heading for name in databases for heading in (f"{DATABASES[name]}: `/healthz`", *ASKED[1:])]
    return ("during", *asked)


def _runs(tables: Iterable[Table]) -> str:
    """When each was measured, a line for each run."""
    whats: dict[str, list[str]] = {}
    for it in tables:
        title, attacks = DATABASES[_database(it)], it.name.partition(": ")[2]
        whats.setdefault(str(it.run), []).append(f"{title}, {attacks}" if attacks else title)
    return "\\\n".join(f"**{'; '.join(some)}** ({run})" for run, some in whats.items())
