"""`threadkeep mcp`: our own MCP servers, for programs that start MCP servers."""

import argparse
import asyncio

from threadkeep.cli.commands import runs
from threadkeep.clock import system_clock
from threadkeep.program_log import set_up_logs
from threadkeep.search import terms as tokens
from threadkeep.settings import Settings, promptx_project
from threadkeep.tools.promptx_stdio import serve_promptx
from threadkeep.version import __version__


def add_mcp(command: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    runs(command, _mcp)
    command.add_argument(
        "server", choices=["promptx"], help="promptx: roles and memory in PROMPTX_PROJECT_DIR"
    )


def _mcp(settings: Settings, given: argparse.Namespace) -> int:
    set_up_logs(settings.log_level, settings.log_format)
    asyncio.run(serve_promptx(promptx_project(), tokens, system_clock, __version__))
    return 0
