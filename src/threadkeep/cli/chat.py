"""`threadkeep chat`: its arguments."""

import argparse

from threadkeep.cli.commands import runs
from threadkeep.cli.target import add_target, log_only_errors
from threadkeep.cli.terminal import chat
from threadkeep.settings import Settings


def add_chat(command: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    runs(command, _chat)
    add_target(command)
    command.add_argument("--model", help="the model that answers, one that the agent offers")
    command.add_argument("--token", help="your bearer token, if the server has sign-in")


def _chat(settings: Settings, given: argparse.Namespace) -> int:
    log_only_errors()
    return chat(settings, agent=given.agent, model=given.model, url=given.url, token=given.token)
