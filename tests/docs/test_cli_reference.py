"""docs/cli.md has every command, and each of them explains all that it takes."""

import argparse
import re

import pytest
from scripts import cli_reference
from scripts.cli_reference import GUIDES, Entry, entries

from threadkeep.cli import COMMANDS

ENTRIES = list(entries())


def test_written_reference_is_up_to_date():
    written = cli_reference.FILE.read_text(encoding="utf-8")
    assert written == cli_reference.reference(), "run: python scripts/cli_reference.py"


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda it: it.words)
def test_what_nobody_explained_is_in_no_command(entry: Entry):
    assert len(entry.purpose.split()) > 1
    for argument in entry.arguments:
        assert is_explained(argument), f"{entry.words} {argument.option_strings or argument.dest}"


def is_explained(argument: argparse.Action) -> bool:
    """Whether its help says more than its name does."""
    words = set(re.findall(r"\w+", (argument.help or "").lower()))
    return bool(words - set(argument.dest.lower().split("_")) - {"the", "a", "its"})


def test_every_command_leads_to_a_guide():
    assert list(GUIDES) == [command.name for command in COMMANDS]
