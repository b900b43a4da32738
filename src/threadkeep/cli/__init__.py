"""The command line: `threadkeep serve`, `chat`, `export`, `import` and the others."""

import argparse
import os
import sys
from collections.abc import Sequence

from threadkeep.cli.access_tokens import add_token
from threadkeep.cli.backup import add_backup, add_restore
from threadkeep.cli.commands import Commands
from threadkeep.cli.doctor import add_doctor, doctor, report_refused
from threadkeep.cli.exchange import add_export, add_import, add_reassign
from threadkeep.cli.mcp import add_mcp
from threadkeep.cli.open_page import add_open
from threadkeep.cli.serve import add_serve, run_server
from threadkeep.cli.settings import add_settings
from threadkeep.cli.talk import add_chat, add_ingest
from threadkeep.domain.errors import SettingsError, ThreadkeepError
from threadkeep.settings import Settings, misnamed
from threadkeep.version import __version__

# In the order in which `threadkeep --help` lists them.
_COMMANDS = (
    add_serve,
    add_open,
    add_chat,
    add_ingest,
    add_token,
    add_mcp,
    add_backup,
    add_restore,
    add_export,
    add_import,
    add_reassign,
    add_settings,
    add_doctor,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; errors that people can mend are told in one line."""
    os.umask(0o077)  # whatever we write, other accounts of this machine do not read it
    parser = _parser()
    words = sys.argv[1:] if arguments is None else arguments
    if not words:
        parser.print_help(sys.stderr)
        return 2
    given = parser.parse_args(words)
    try:
        settings = Settings.load(
            host=getattr(given, "host", None),
            port=getattr(given, "port", None),
            require_token=getattr(given, "require_token", None),
            data=given.data,
        )
    except SettingsError as exc:
        return report_refused(exc, given) if given.run is doctor else _refuse(exc)
    if given.run not in {run_server, doctor}:  # these tell it among their own lines
        for it in misnamed():
            print(f"threadkeep: {it.message} {it.advice}", file=sys.stderr)
    try:
        status = given.run(settings, given)
        sys.stdout.flush()
        return status
    except ThreadkeepError as exc:
        return _refuse(exc)
    except BrokenPipeError:  # whoever read, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _refuse(error: ThreadkeepError) -> int:
    print(f"threadkeep: {error.message}", file=sys.stderr)
    return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="threadkeep", description="The conversation backend for AI agents.")
    parser.add_argument("--version", action="version", version=f"threadkeep {__version__}")
    commands = Commands(parser)
    for add in _COMMANDS:
        add(commands)
    return parser
