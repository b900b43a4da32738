"""`threadkeep mcp`: an agent's MCP servers; and our own, for programs that start MCP servers."""

import argparse
import asyncio
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import UNSET

from threadkeep.cli.commands import runs, sentence
from threadkeep.cli.managing.actions import (
    PROGRAM_NOTE,
    add_action,
    add_json,
    confirm,
    print_json,
    print_table,
    secrets_from,
    tell_of_rules,
)
from threadkeep.cli.managing.agents import find_own_agent
from threadkeep.cli.terminal import clean
from threadkeep.client.client import Client
from threadkeep.clock import system_clock
from threadkeep.domain.errors import InvalidRequest, McpServerNotFound
from threadkeep.program_log import set_up_logs
from threadkeep.search import terms as tokens
from threadkeep.settings import Settings, promptx_project
from threadkeep.tools.promptx_stdio import serve_promptx
from threadkeep.version import __version__
from threadkeep.wire.mcp_servers import McpServerView
from threadkeep.wire.views import AgentDetailView


def add_mcp(command: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    actions = command.add_subparsers(required=True, metavar="ACTION")
    listing = add_action(actions, "list", _list, "list an agent's MCP servers and whether they work")
    _add_agent(listing)
    add_json(listing)
    add = add_action(actions, "add", _add, "add a server to an agent, a program or an address, and test it")
    _add_agent(add)
    add.add_argument("name", help="what the agent's rules call it")
    add.add_argument(
        "words",
        nargs="+",
        metavar="WHAT",
        help="an address (https://…), or after -- the program to start, with its arguments",
    )
    add.add_argument(
        "--env",
        action="append",
        default=[],
        metavar="NAME[=VARIABLE]",
        help="a variable that the program gets, with the value that it, or VARIABLE, has here",
    )
    add.add_argument(
        "--header",
        action="append",
        default=[],
        metavar="NAME=VARIABLE",
        help="a header that the address gets, with the value that VARIABLE has here",
    )
    add.add_argument("--cwd", help="the folder, within the agent's workspace, in which the program starts")
    add.add_argument("--timeout", type=float, metavar="SECONDS", help="how long one call may take (60)")
    add.add_argument(
        "--scope",
        choices=["agent", "user", "conversation"],
        help="who shares one process or connection: all users of the agent, one user, one conversation",
    )
    add.add_argument("--replace", action="store_true", help="take the place of a server with this name")
    add.add_argument("--yes", action="store_true", help="don't ask before the server's first program")
    add_json(add)
    for name, work, purpose in (
        ("remove", _remove, "remove a server from an agent"),
        ("test", _test, "connect to an agent's server and list its tools"),
    ):
        action = add_action(actions, name, work, purpose)
        _add_agent(action)
        action.add_argument("name", help="the server's name")
        if name == "test":
            add_json(action)
    purpose = "run the built-in server for roles and memory in PROMPTX_PROJECT_DIR over stdin and stdout"
    runs(actions.add_parser("promptx", help=purpose, description=sentence(purpose)), _promptx)


def _add_agent(action: argparse.ArgumentParser) -> None:
    action.add_argument("agent", metavar="AGENT", help="the agent's name or its id")


async def _list(client: Client, given: argparse.Namespace) -> None:
    agent = await find_own_agent(client, given.agent)
    servers = _servers(agent)
    if given.json:
        print_json(servers)
        return
    print_table(("NAME", "SOURCE", "STATUS", "TOOLS", "WHAT", "ERROR"), map(_row, servers))
    tell_of_rules(agent)


def _servers(agent: AgentDetailView) -> Sequence[McpServerView]:
    return () if agent.mcp_servers is UNSET else agent.mcp_servers


def _row(server: McpServerView) -> tuple[str, ...]:
    tools = "" if server.tools is UNSET else str(len(server.tools))
    what = "" if server.url is UNSET else server.url
    if server.command is not UNSET:
        what = " ".join((server.command, *(() if server.args is UNSET else server.args)))
    status = "switched off" if server.disabled is True else server.status
    return server.name, server.source, status, tools, what, "" if server.error is UNSET else server.error


async def _add(client: Client, given: argparse.Namespace) -> int:
    entry = _entry(given)
    agent = await find_own_agent(client, given.agent)
    there = None if agent.settings is UNSET else agent.settings.mcp_servers.get(given.name)
    if there is not None:
        if not given.replace:
            raise InvalidRequest(f"{agent.name} has a server {given.name!r} already. Add --replace.")
        # A merge patch keeps what it doesn't name.
        entry = {**dict.fromkeys(msgspec.to_builtins(there)), **entry}
    patch = {"settings": {"mcpServers": {given.name: entry}}}
    if (await client.preview_agent(patch, agent_id=agent.id)).requires_token:
        print(f"{given.name} is a program. {PROGRAM_NOTE}", file=sys.stderr)
        if not confirm(f"Add {given.name} to {agent.name}?", yes=given.yes):
            print("Nothing was added.", file=sys.stderr)
            return 1
    saved = await client.update_agent(agent.id, patch, version=agent.version)
    print(f"Added {given.name} to {saved.name}.", file=sys.stderr)
    return _report(await client.test_mcp_server(agent.id, given.name), given)


def _entry(given: argparse.Namespace) -> Mapping[str, Any]:
    """The server in the format of requests."""
    what, *arguments = given.words
    is_address = what.startswith(("http://", "https://"))
    if (given.env or given.cwd or arguments) if is_address else given.header:
        raise InvalidRequest("A program takes arguments, --env and --cwd; an address takes --header.")
    fields: dict[str, Any] = (
        {"url": what, "headers": secrets_from(given.header)}
        if is_address
        else {"command": what, "args": arguments, "env": secrets_from(given.env), "cwd": given.cwd}
    )
    fields |= {"timeoutS": given.timeout, "scope": given.scope}
    return {name: value for name, value in fields.items() if value is not None}


async def _remove(client: Client, given: argparse.Namespace) -> None:
    agent = await find_own_agent(client, given.agent)
    if agent.settings is UNSET or given.name not in agent.settings.mcp_servers:
        raise McpServerNotFound(
            f"{agent.name} has no server {given.name!r} of its own. `threadkeep mcp list` lists them."
        )
    patch = {"settings": {"mcpServers": {given.name: None}}}
    tell_of_rules(await client.update_agent(agent.id, patch, version=agent.version))
    print(f"Removed {given.name} from {agent.name}.")


async def _test(client: Client, given: argparse.Namespace) -> int:
    agent = await find_own_agent(client, given.agent)
    return _report(await client.test_mcp_server(agent.id, given.name), given)


def _report(server: McpServerView, given: argparse.Namespace) -> int:
    """Prints what a test found; 0 if the server works."""
    if given.json:
        print_json(server)
    elif server.error is not UNSET:
        print(f"{server.name}: {clean(server.error)}", file=sys.stderr)
        if server.stderr is not UNSET:
            print(clean(server.stderr), file=sys.stderr)
    else:
        rows = ((it.name, it.effect, it.description) for it in server.tools or ())
        print_table(("TOOL", "EFFECT", "DESCRIPTION"), rows)
    return 0 if server.error is UNSET else 1


def _promptx(settings: Settings, given: argparse.Namespace) -> int:
    set_up_logs(settings.log_level, settings.log_format)
    asyncio.run(serve_promptx(promptx_project(), tokens, system_clock, __version__))
    return 0
