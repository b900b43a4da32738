"""The table of attacks shows the longest wait of others, on each database."""

from collections.abc import Sequence

from bench.hostile import HEADINGS
from bench.hostile_table import name_of, render_attacks
from bench.results import Run, Table
from bench.table import Texts


def table(name: str, attacks: Sequence[str], *, date: str, most: str) -> Table:
    run = Run(date, "abc", "Linux, 2 cores", "Python 3.11", 1.0, is_quick=False)
    figures = ("1.0", "2.4", "3.0", "40.0", most)
    asked = ("/healthz", "a read", "a write")
    return Table(name, name, [Texts(HEADINGS, (it, one, *figures)) for it in attacks for one in asked], run)


def test_each_attack_is_a_line_with_the_longest_wait_beside_the_quiet_one():
    drawn = render_attacks(
        [
            table(name_of("sqlite"), ["search", "slow"], date="2026-11-19", most="1234.5"),
            table(name_of("postgres"), ["search"], date="2026-11-19", most="7.0"),
        ]
    )
    assert drawn is not None
    lines = [" ".join(it.split()) for it in drawn.splitlines()]
    assert lines[-2:] == [
        "| search | 1,234 (2) | 1,234 (2) | 1,234 (2) | 7 (2) | 7 (2) | 7 (2) |",
        "| slow | 1,234 (2) | 1,234 (2) | 1,234 (2) | | | |",
    ]
    assert lines[0] == "**SQLite; PostgreSQL** (2026-11-19, Linux, 2 cores, load 1 before, abc)"


def test_a_run_with_some_attacks_is_added_and_told_apart():
    drawn = render_attacks(
        [
            table(name_of("sqlite"), ["search"], date="2026-11-18", most="5.0"),
            table(name_of("sqlite", ["steps"]), ["steps"], date="2026-11-19", most="9.0"),
        ]
    )
    assert drawn is not None
    assert "**SQLite** (2026-11-18" in drawn
    assert "**SQLite, steps** (2026-11-19" in drawn
    assert [it.split()[1] for it in drawn.splitlines()[-2:]] == ["search", "steps"]


def test_nothing_measured_is_no_table():
    assert render_attacks([table("", ["search"], date="2026-11-16", most="5.0")]) is None
