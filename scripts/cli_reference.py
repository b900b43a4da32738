"""Writes docs/cli.md: the commands of `threadkeep`, as their own --help explains them.

    python scripts/cli_reference.py

A test compares the file with the commands.
"""

import argparse
from argparse import PARSER
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from threadkeep.cli import COMMANDS, parser_of
from threadkeep.cli.commands import add_data
from threadkeep.cli.managing.actions import add_server

FILE = Path(__file__).resolve().parents[1] / "docs" / "cli.md"
HEAD = """# Command-line reference

Generated from the commands by `scripts/cli_reference.py`; do not edit. `threadkeep COMMAND --help` shows the
same, and `threadkeep --version` the version. In a clone, the program is `.venv/bin/threadkeep`.

Commands read the [settings](operating.md#settings) as the server does: from the environment and from the
files in the current folder. Run them in the folder where the server runs, or name its data folder. Results go
to standard output, everything else to standard error. The exit status is 0 for success, 1 for an error, which
is explained, 2 for an invalid command line, and 130 after Ctrl-C.
"""
COMMON = """
## Every command

{every}
## Commands that ask a server

They are marked below, and also take these options. Without `--token` and `--user`, they send the API key in
`THREADKEEP_KEY`. Without that, they send the token in the data folder, but only to a server of the same
account on this machine. Without `--url`, they print to standard error which server they use; `apply` always
does.

If no server runs, they work on the data folder themselves. With `THREADKEEP_KEY` set, there must be a server.
Only `serve`, `demo`, `chat`, `restore` and `import --data` make a data folder.

{asking}"""
ASKS = " [Asks a server](#commands-that-ask-a-server)."
GUIDES = {
    "serve": "operating.md",
    "demo": "quickstart.md",
    "open": "operating.md#without-sign-in",
    "chat": "quickstart.md",
    "ingest": "documents.md",
    "rerun": "feedback.md",
    "token": "tokens.md",
    "invite": "sign-in.md",
    "key": "keys.md",
    "agent": "agents-as-files.md",
    "apply": "agents-as-files.md",
    "mcp": "mcp.md",
    "model": "models.md",
    "backup": "operating.md#backup-and-restore",
    "restore": "operating.md#backup-and-restore",
    "export": "data.md",
    "import": "importing.md",
    "reassign": "sign-in.md",
    "settings": "operating.md#settings",
    "doctor": "troubleshooting.md",
}
"""Where a command is explained."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A command, or an action of one, with what it takes."""

    words: str
    purpose: str
    arguments: Sequence[argparse.Action]
    depth: int

    @property
    def usage(self) -> str:
        """How it is called, without its options."""
        return " ".join((self.words, *map(_placed, self.positionals)))

    @property
    def positionals(self) -> Sequence[argparse.Action]:
        """What it takes by its place."""
        return [it for it in self.arguments if not it.option_strings]

    @property
    def options(self) -> Sequence[argparse.Action]:
        """What it takes by a name."""
        return [it for it in self.arguments if it.option_strings]


def entries() -> Iterator[Entry]:
    """Every command, each followed by its actions."""
    parsers = _parsers(parser_of({command.name for command in COMMANDS}))
    for name, parser in parsers.items():
        yield from _walk(f"threadkeep {name}", parser, 2)


def reference() -> str:
    """The file's text."""
    every, asking = _added(add_data), _added(lambda it: add_server(it, _nothing))
    common = COMMON.format(every=_table(_rows(every)), asking=_table(_rows(asking)))
    contents = "".join(
        f"| [`{name}`](#{entry.words.replace(' ', '-')}) | {entry.purpose} | [guide]({GUIDES[name]}) |\n"
        for entry in entries()
        if (name := entry.words.removeprefix("threadkeep ")) in GUIDES
    )
    sections = (_section(entry, _texts(every), _texts(asking)) for entry in entries())
    return f"{HEAD}\n| command | | |\n|---|---|---|\n{contents}{common}{''.join(sections)}"


def _texts(arguments: Iterable[argparse.Action]) -> set[str | None]:
    return {it.help for it in arguments}


def _walk(words: str, parser: argparse.ArgumentParser, depth: int) -> Iterator[Entry]:
    yield Entry(words, parser.description or "", _arguments(parser), depth)
    for name, action in _parsers(parser).items():
        yield from _walk(f"{words} {name}", action, depth + 1)


def _parsers(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The commands below a parser."""
    return {name: below for it in _actions(parser) if it.nargs == PARSER for name, below in _below(it)}


def _below(action: argparse.Action) -> Iterable[tuple[str, argparse.ArgumentParser]]:
    return cast("dict[str, argparse.ArgumentParser]", action.choices).items()


def _arguments(parser: argparse.ArgumentParser) -> Sequence[argparse.Action]:
    return [it for it in _actions(parser) if it.nargs != PARSER and "--help" not in it.option_strings]


def _actions(parser: argparse.ArgumentParser) -> Sequence[argparse.Action]:
    """What argparse calls so: it has no other way to ask."""
    return parser._actions  # pyright: ignore[reportPrivateUsage]


def _added(add: Callable[[argparse.ArgumentParser], None]) -> Sequence[argparse.Action]:
    """The arguments that this function adds to a command."""
    parser = argparse.ArgumentParser()
    add(parser)
    return _arguments(parser)


async def _nothing(*_: object) -> None:
    """Stands for what a command does."""


def _section(entry: Entry, every: set[str | None], asking: set[str | None]) -> str:
    asks = asking <= _texts(entry.arguments)
    known = every | asking if asks else every
    own = [*entry.positionals, *(it for it in entry.options if it.help not in known)]
    usage = f"\nUsage: `{entry.usage}`\n" if entry.positionals else ""
    table = f"\n{_table(_rows(own))}" if own else ""
    return f"\n{'#' * entry.depth} `{entry.words}`\n\n{entry.purpose}{ASKS if asks else ''}\n{usage}{table}"


def _placed(argument: argparse.Action) -> str:
    name = str(argument.metavar or argument.dest).upper()
    return f"{name}…" if argument.nargs in {"+", "*"} else name


def _rows(arguments: Iterable[argparse.Action]) -> Iterator[tuple[str, str]]:
    for it in arguments:
        is_needed = it.required and it.option_strings
        yield f"`{_named(it)}`{' (required)' if is_needed else ''}", f"{it.help}"


def _named(argument: argparse.Action) -> str:
    if not argument.option_strings:
        return _placed(argument)
    value = ""
    if argument.choices:
        value = f" {'|'.join(map(str, argument.choices))}"
    elif argument.nargs != 0:
        value = f" {argument.metavar or argument.dest.upper()}"
    return ", ".join(f"{name}{value}" for name in argument.option_strings)


def _table(rows: Iterable[tuple[str, str]]) -> str:
    lines = (" | ".join(cell.replace("|", "\\|") for cell in row) for row in rows)
    return "| | |\n|---|---|\n" + "".join(f"| {line} |\n" for line in lines)


if __name__ == "__main__":
    FILE.write_text(reference(), encoding="utf-8")
