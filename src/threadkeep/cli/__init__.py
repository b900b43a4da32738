"""The command line: `threadkeep serve`, `chat`, `export`, `import` and the others."""

import argparse
import gc
import os
import sys
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from importlib import import_module

from threadkeep.cli.commands import add_data, refuse, sentence
from threadkeep.domain.errors import SettingsError, ThreadkeepError
from threadkeep.settings import Settings, misnamed
from threadkeep.version import __version__


@dataclass(frozen=True, slots=True)
class Command:
    """A command: its purpose, and the module whose function `add_<name>` adds its arguments."""

    name: str
    module: str
    purpose: str

    def load(self) -> Callable[[argparse.ArgumentParser], None]:
        """That function. Only the called command is loaded: others need a whole server."""
        gc.disable()  # what is loaded stays: to look at it again and again takes a tenth of the time
        try:
            return getattr(import_module(self.module), f"add_{self.name}")
        finally:
            gc.freeze()
            gc.enable()


# In the order in which `threadkeep --help` lists them.
COMMANDS = (
    Command("serve", "threadkeep.cli.serve", "run the server"),
    Command(
        "demo", "threadkeep.cli.demo", "download the demonstration model and the one for semantic search"
    ),
    Command(
        "open", "threadkeep.cli.open_page", "open the page in a browser, with the token where it needs one"
    ),
    Command("chat", "threadkeep.cli.chat", "chat with an agent in the terminal"),
    Command("ingest", "threadkeep.cli.ingest", "add files for an agent to search"),
    Command("rerun", "threadkeep.cli.rerun", "run turns again with other models, and compare the answers"),
    Command(
        "token",
        "threadkeep.cli.access_tokens",
        "print the token of this folder's server; with --user, create one for somebody who signs in",
    ),
    Command("invite", "threadkeep.cli.invite", "print a link that signs somebody in, once"),
    Command("key", "threadkeep.cli.managing.keys", "make, list and revoke API keys"),
    Command("agent", "threadkeep.cli.managing.agents", "list, show, create, change and delete agents"),
    Command(
        "apply",
        "threadkeep.cli.managing.apply",
        "create and change agents as files describe them, after showing the difference",
    ),
    Command("mcp", "threadkeep.cli.managing.mcp", "list, add, test and remove an agent's MCP servers"),
    Command(
        "model", "threadkeep.cli.managing.models", "list models; connect and test accounts with providers"
    ),
    Command(
        "backup", "threadkeep.cli.backup", "back up everything to one file, even while the server is running"
    ),
    Command("restore", "threadkeep.cli.backup", "restore a backup into an empty data folder"),
    Command(
        "export",
        "threadkeep.cli.moving",
        "export a user's data to one file, even while the server is running",
    ),
    Command("import", "threadkeep.cli.moving", "import an export from Threadkeep, ChatGPT or Claude"),
    Command("reassign", "threadkeep.cli.moving", "move everything from one user to another"),
    Command("settings", "threadkeep.cli.settings", "list every setting and its value"),
    Command("doctor", "threadkeep.cli.doctor", "check the installation and suggest fixes; changes nothing"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; prints errors that people can fix in one line."""
    os.umask(0o077)  # other accounts of this machine can't read what we write
    words = sys.argv[1:] if arguments is None else arguments
    parser = parser_of({next((word for word in words if not word.startswith("-")), "")})
    if not words:
        parser.print_help(sys.stderr)
        return 2
    given = parser.parse_args(words)
    try:
        settings = Settings.load(
            host=getattr(given, "host", None),
            port=getattr(given, "port", None),
            processes=getattr(given, "processes", None),
            agents=getattr(given, "agents", None),
            check_agents=getattr(given, "check_agents", None),
            require_token=getattr(given, "require_token", None),
            data=given.data,
        )
    except SettingsError as exc:
        return given.report_refused(exc, given)
    if not given.reports_settings:
        for it in misnamed():
            print(f"threadkeep: {it.message} {it.advice}", file=sys.stderr)
    try:
        status = given.run(settings, given)
        sys.stdout.flush()
        return status
    except ThreadkeepError as exc:
        return refuse(exc, given)
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def parser_of(called: Container[str]) -> argparse.ArgumentParser:
    """A parser for all commands, with the arguments of those that are called."""
    parser = argparse.ArgumentParser(prog="threadkeep", description="The conversation backend for AI agents.")
    parser.add_argument("--version", action="version", version=f"threadkeep {__version__}")
    parsers = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in COMMANDS:
        its_parser = parsers.add_parser(
            command.name, help=command.purpose, description=sentence(command.purpose)
        )
        if command.name in called:
            add_data(its_parser)
            command.load()(its_parser)
    return parser
