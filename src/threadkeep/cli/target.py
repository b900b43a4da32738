"""The server and the agent that a command uses."""

import argparse
import asyncio
import logging
import os
import signal
import sys
from collections.abc import Iterable
from concurrent.futures import wait
from contextlib import AsyncExitStack
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import UNSET

from threadkeep.client.blocking import LoopThread
from threadkeep.client.client import Client
from threadkeep.client.errors import ClientError, NotReached
from threadkeep.domain.errors import (
    AgentNotFound,
    Forbidden,
    GatewayNotFound,
    InvalidRequest,
    McpServerNotFound,
    NotFound,
    RouteNotFound,
    ThreadkeepError,
    Unauthenticated,
)
from threadkeep.http.sign_in.accounts import Accounts
from threadkeep.http.sign_in.local_token import make_token, read_token
from threadkeep.loopback import is_loopback
from threadkeep.settings import Settings
from threadkeep.wire.views import AgentView

LEAVE_S = 3.0
LEAVE_OWN_S = 7.0
"""Extra time for an embedded server to end its programs; Ctrl-C ends it immediately."""

LOOKS = 250
LOOK_EVERY_S = 0.02
KEY_VARIABLE = "THREADKEEP_KEY"
"""An API key to sign in with."""

HOW_TO_SIGN_IN = (
    "Run this command in the folder where you started the server, or name its data folder with --data. For "
    "another server, set THREADKEEP_KEY to an API key; if people sign in, `threadkeep token --user NAME` "
    "creates a token for --token, an admin's with --admin."
)
HOW_TO_BE_ADMIN = (
    "Sign in as an admin: where the server's secret is set, add --user NAME --admin; otherwise, "
    "`threadkeep token --user NAME --admin` creates an admin's token for --token there."
)

_LISTED_BY = {
    GatewayNotFound.code: "threadkeep model gateways",
    McpServerNotFound.code: "threadkeep mcp list AGENT",
}
"""The commands that list what wasn't found."""
_PORTS = {"http": 80, "https": 443}


def add_target(command: argparse.ArgumentParser) -> None:
    """Adds the arguments for the server and the agent."""
    command.add_argument("--agent", help="the agent's name (the default agent)")
    command.add_argument(
        "--url",
        help="server address (http://127.0.0.1:8710; if none runs, the data folder)",
    )


async def own_token(settings: Settings, url: str | None) -> str | None:
    """The data folder's token, if our own server runs there; None for another server, which must not see it.

    Anybody's program could listen at an address of this machine, so that the system says whose it is.
    """
    if settings.signs_in:
        return None
    if url is not None and url.rstrip("/") != _usual_url(settings) and not await _is_ours(url):
        return None
    return await asyncio.to_thread(read_token, settings.data)


async def _is_ours(url: str) -> bool:
    """Whether a program of our account listens at this address of this machine."""
    address = urlsplit(url)
    try:
        host, port = address.hostname or "", address.port or _PORTS[address.scheme]
    except (KeyError, ValueError):
        return False
    if not Accounts().are_known or not is_loopback(host):
        return False
    try:
        _, writer = await asyncio.open_connection(host, port)
        try:
            near, far = writer.get_extra_info("sockname"), writer.get_extra_info("peername")
            for _ in range(LOOKS):
                # It remembers what it has found.
                if (account := await Accounts().of(far[:2], near[:2])) is not None:
                    return account == os.geteuid()
                await asyncio.sleep(LOOK_EVERY_S)  # no process has accepted the connection yet
        finally:
            writer.close()
    except OSError:
        pass
    return False


def log_only_errors() -> None:
    """Keeps an embedded server's log out of the output, except for errors."""
    logging.basicConfig(level=logging.ERROR, format="%(message)s")


async def connect(
    settings: Settings,
    stack: AsyncExitStack,
    *,
    url: str | None,
    token: str | None,
    creates_data: bool = False,
    names_server: bool = False,
) -> Client:
    """A client of the server at `url`; by default the usual one, or if none runs, one on the data folder.

    Without a `token`: the key in THREADKEEP_KEY, or else our own server's. Only a command that `creates_data`
    makes a data folder: others must not succeed with one that no server has. With `names_server`, the command
    says which server it talks to even if the user has.
    """
    address = _usual_url(settings) if url is None else url
    key = os.environ.get(KEY_VARIABLE)
    token = token or key or await own_token(settings, url)
    client = await stack.enter_async_context(Client(address, token=token))
    if url is not None or await client.is_there():
        if names_server or (url is None and not creates_data):
            print(f"Server: {address}", file=sys.stderr)
        return client
    if key:
        raise NotReached(
            f"No server at {address}. {KEY_VARIABLE} is set, which is for a server: name it with --url. To "
            "use the data folder without a server, unset the variable."
        )
    from threadkeep.cli.embedded import embedded, has_data  # noqa: PLC0415 - a whole server takes long to load

    if not creates_data and not has_data(settings):
        raise NotReached(
            f"No server at {address}, and no data in {_shown(settings.data)}. Start the server with "
            "`threadkeep serve`, name another one with --url, or a server's data folder with --data."
        )
    is_new = not settings.data.exists()
    own = await stack.enter_async_context(embedded(settings))
    print(without_server(address, settings.data, is_new=is_new), file=sys.stderr)
    if not settings.signs_in:
        token = await asyncio.to_thread(make_token, settings.data)
    return await stack.enter_async_context(Client(own, token=token))


def without_server(address: str, data: Path, *, is_new: bool) -> str:
    """What a command says that has found no server."""
    if is_new:
        return f"No server at {address}. Starting with a new data folder, {_shown(data)}"
    return f"No server at {address}. Using the data folder {_shown(data)}"


def _shown(data: Path) -> str:
    return f"./{data}" if data.parent == Path() and data.name else str(data)


def leave(loop: LoopThread, stack: AsyncExitStack) -> None:
    """Closes the connections and the loop, with a time limit: users can always leave."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # we are leaving; ignore more of them
    closing = loop.start(stack.aclose())
    if not wait([closing], LEAVE_S).done:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # this takes long: another one now ends the process
        wait([closing], LEAVE_OWN_S)
    if closing.done():
        closing.result()
        loop.close(LEAVE_S)
    if not loop.is_closed:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python waits for threads before it ends


async def find_agent(client: Client, name: str | None) -> AgentView:
    """The agent with this name, the user's own first; without a name, the default one."""
    try:
        found = [agent async for agent in client.agents()]
    except ClientError as exc:
        raise explained(exc) from exc
    if name is None:
        return next(agent for agent in found if agent.is_default)
    named = [it for it in found if it.id == name or it.name.casefold() == name.casefold()]
    if not named:
        raise no_such_agent(name, found)
    return next((agent for agent in named if agent.version is not UNSET), named[0])


def no_such_agent(name: str, found: Iterable[AgentView]) -> AgentNotFound:
    """The error for a name that no agent has."""
    known = ", ".join(sorted({agent.name for agent in found}))
    return AgentNotFound(f"Agent {name!r} not found. Available agents: {known}.")


def explained(error: ThreadkeepError) -> ThreadkeepError:
    """A server's refusal, with what to do about it on the command line."""
    if error.code == Unauthenticated.code and os.environ.get(KEY_VARIABLE):
        return Unauthenticated(
            f"{error.message} Without --token and --user, the command sends the API key in {KEY_VARIABLE}. "
            "Is it one of this server? Name another server with --url, or unset the variable."
        )
    if error.code == Unauthenticated.code:
        return Unauthenticated(f"{error.message} {HOW_TO_SIGN_IN}")
    if error.code == Forbidden.code and error.message.startswith("Only an admin "):
        return Forbidden(f"{error.message} {HOW_TO_BE_ADMIN}")
    if error.code == RouteNotFound.code:
        return NotReached(
            "Threadkeep is running here, but not under this path. Leave out the path unless an "
            "application mounts Threadkeep under one, as in http://127.0.0.1:8000/chat."
        )
    if (command := _LISTED_BY.get(error.code)) is not None:
        return NotFound(f"{error.message} `{command}` lists them.")
    if error.code == InvalidRequest.code:
        return InvalidRequest(located(error))
    return error


def located(error: ThreadkeepError) -> str:
    """A server's refusal with the field that is wrong, if its words don't name it."""
    field = f"`{error.param}`: " if error.param and error.param not in error.message else ""
    return f"{field}{error.message}"


def _usual_url(settings: Settings) -> str:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"http://{host}:{settings.port}"
