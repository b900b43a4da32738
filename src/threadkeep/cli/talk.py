"""`threadkeep chat` and `ingest`: commands that talk to a server as other clients do."""

import argparse
import logging
from pathlib import Path

from threadkeep.cli.access_tokens import issue, local_token
from threadkeep.cli.commands import Commands
from threadkeep.cli.ingest import ingest
from threadkeep.cli.terminal import chat
from threadkeep.domain.user import User, user_id
from threadkeep.settings import Settings

INGEST_S = 86_400
"""How long a token for `ingest` is valid: many large files take their time."""


def add_chat(commands: Commands) -> None:
    """Adds the command."""
    command = commands.add("chat", _chat, "chat with an agent in the terminal")
    _add_target(command)
    command.add_argument("--token", help="your bearer token, if the server has sign-in")


def add_ingest(commands: Commands) -> None:
    """Adds the command."""
    command = commands.add("ingest", _ingest, "add files for an agent to search")
    command.add_argument(
        "paths", type=Path, nargs="+", metavar="PATH", help="a file, or a folder to add recursively"
    )
    _add_target(command)
    who = command.add_mutually_exclusive_group()
    who.add_argument("--token", help="your bearer token, if the server has sign-in")
    who.add_argument("--user", help="create a token for this user instead; requires the server's secret")


def _add_target(command: argparse.ArgumentParser) -> None:
    command.add_argument("--agent", help="the agent's name (the default agent)")
    command.add_argument(
        "--url",
        help="server address (http://127.0.0.1:8710; if no server is running, the data folder)",
    )


def _chat(settings: Settings, given: argparse.Namespace) -> int:
    _only_errors()
    return chat(settings, agent=given.agent, url=given.url, token=given.token or _own(settings, given))


def _ingest(settings: Settings, given: argparse.Namespace) -> int:
    _only_errors()
    token = issue(settings, User(user_id(given.user)), INGEST_S) if given.user else given.token
    token = token or _own(settings, given)
    return ingest(settings, given.paths, agent=given.agent, url=given.url, token=token)


def _own(settings: Settings, given: argparse.Namespace) -> str | None:
    """The token of our own server, if no other one is meant: nobody else shall see it."""
    return local_token(settings) if given.url is None else None


def _only_errors() -> None:
    """What a server of our own logs stays out of what people read, unless it is an error."""
    logging.basicConfig(level=logging.ERROR, format="%(message)s")
