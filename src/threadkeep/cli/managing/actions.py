"""The actions of a command that works through the API, such as `threadkeep agent list`."""

import argparse
import getpass
import os
import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from typing import Any

import msgspec

from threadkeep.cli.access_tokens import issue
from threadkeep.cli.commands import add_data, runs, sentence
from threadkeep.cli.target import connect, explained, leave, log_only_errors
from threadkeep.cli.terminal import clean
from threadkeep.client.blocking import LoopThread
from threadkeep.client.client import Client
from threadkeep.client.errors import ClientError
from threadkeep.domain.errors import SettingsError
from threadkeep.domain.tool_rules import without_server
from threadkeep.domain.user import User, UserRole, user_id
from threadkeep.settings import Settings
from threadkeep.wire.views import AgentView

TOKEN_S = 60
"""How long the token is valid that the command signs in with."""
INTERRUPTED = 130
PROGRAM_NOTE = (
    "From then on, this server requires its token for every request: `threadkeep open` opens the page with "
    "it, commands in the server's folder send it, other programs need an API key."
)
"""What the first program changes on a server without sign-in."""

Work = Callable[[Client, argparse.Namespace], Awaitable[int | None]]
"""What an action does; returns the exit status, None for 0."""


def add_action(actions: Any, name: str, work: Work, purpose: str) -> argparse.ArgumentParser:
    """Adds an action with the arguments that every one has: where the server is, and who asks."""
    action: argparse.ArgumentParser = actions.add_parser(name, help=purpose, description=sentence(purpose))
    add_data(action, default=argparse.SUPPRESS)  # what stands before the action stays
    add_server(action, work)
    return action


def add_server(action: argparse.ArgumentParser, work: Work, *, names_server: bool = False) -> None:
    """Makes a command do this with a server, and adds the arguments that say which, and who asks.

    With `names_server`, it always says which server that is.
    """
    runs(action, _doing(work, names_server=names_server))
    action.add_argument(
        "--url", help="server address (http://127.0.0.1:8710; if none runs, the data folder, if it exists)"
    )
    who = action.add_mutually_exclusive_group()
    who.add_argument("--token", help="your bearer token, if the server has sign-in (or set THREADKEEP_KEY)")
    who.add_argument("--user", help="act for this user instead; requires the server's secret")
    action.add_argument("--admin", action="store_true", help="with --user: as an admin")


def add_json(action: argparse.ArgumentParser) -> None:
    """Adds `--json`."""
    action.add_argument("--json", action="store_true", help="print it as the API returns it, for programs")


def print_json(value: object) -> None:
    """Prints a view for programs."""
    print(msgspec.json.format(msgspec.json.encode(value)).decode())


def print_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Prints rows in columns; what others wrote can't control the terminal."""
    cells = [[clean(cell).replace("\n", " ") for cell in row] for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def tell_of_rules(agent: AgentView) -> None:
    """Says which of its rules change nothing. Printed beside the output, which programs may read."""
    for rule in agent.rules_without_server or ():
        print(clean(f"{agent.name}: settings.tools: {without_server(rule)}"), file=sys.stderr)


def confirm(question: str, *, yes: bool) -> bool:
    """Whether the user agrees; without a terminal, only `--yes` does."""
    if yes:
        return True
    if not sys.stdin.isatty():
        raise SettingsError(f"{question} Nobody is here to answer: repeat the command with --yes.")
    return input(f"{question} [y/N] ").strip().lower() in {"y", "yes"}


def _doing(work: Work, *, names_server: bool) -> Callable[[Settings, argparse.Namespace], int]:
    def run(settings: Settings, given: argparse.Namespace) -> int:
        log_only_errors()
        user = given.user and User(user_id(given.user), UserRole.ADMIN if given.admin else UserRole.USER)
        token = issue(settings, user, TOKEN_S) if user else given.token
        stack, loop = AsyncExitStack(), LoopThread()

        async def do() -> int:
            client = await connect(settings, stack, url=given.url, token=token, names_server=names_server)
            try:
                return await work(client, given) or 0
            except ClientError as exc:
                raise explained(exc) from exc

        try:
            return loop.wait(do())
        except KeyboardInterrupt:
            return INTERRUPTED
        finally:
            leave(loop, stack)

    return run


def secrets_from(given: Sequence[str]) -> dict[str, str]:
    """Values by name from this environment, or typed where nobody sees them: arguments are no secret."""
    return dict(_secret(*text.partition("=")) for text in given)


def _secret(name: str, _: str, variable: str) -> tuple[str, str]:
    variable = variable or name
    if (value := os.environ.get(variable)) is not None:
        return name, value
    if not sys.stdin.isatty():
        raise SettingsError(
            f"The variable {variable} isn't set here. Set it to the value of {name}, and repeat the command."
        )
    return name, getpass.getpass(f"{name}: ")
