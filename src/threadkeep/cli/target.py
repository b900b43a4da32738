"""The server and the agent that a command uses."""

import argparse
import logging
import signal
from concurrent.futures import wait
from contextlib import AsyncExitStack

from msgspec import UNSET

from threadkeep.client.blocking import LoopThread
from threadkeep.client.client import Client
from threadkeep.client.errors import ClientError, NotReached
from threadkeep.domain.errors import AgentNotFound, RouteNotFound, Unauthenticated
from threadkeep.http.sign_in.local_token import make_token
from threadkeep.settings import Settings
from threadkeep.wire.views import AgentView

LEAVE_S = 3.0
LEAVE_OWN_S = 7.0
"""Extra time for an embedded server to end its programs; Ctrl-C ends it immediately."""


def add_target(command: argparse.ArgumentParser) -> None:
    """Adds the arguments for the server and the agent."""
    command.add_argument("--agent", help="the agent's name (the default agent)")
    command.add_argument(
        "--url",
        help="server address (http://127.0.0.1:8710; if no server is running, the data folder)",
    )


def own_token(settings: Settings, url: str | None) -> str | None:
    """Our own server's token; None for another server, which must not see it."""
    return None if url is not None or settings.signs_in else make_token(settings.data)


def log_only_errors() -> None:
    """Keeps an embedded server's log out of the output, except for errors."""
    logging.basicConfig(level=logging.ERROR, format="%(message)s")


async def connect(settings: Settings, stack: AsyncExitStack, *, url: str | None, token: str | None) -> Client:
    """A client of the server at `url`; by default the usual one, or an embedded one if none runs."""
    address = _usual_url(settings) if url is None else url
    client = await stack.enter_async_context(Client(address, token=token))
    if url is None and not await client.is_there():
        from threadkeep.cli.embedded import embedded  # noqa: PLC0415 - a whole server takes long to load

        own = await stack.enter_async_context(embedded(settings))
        client = await stack.enter_async_context(Client(own, token=token))
    return client


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
        if exc.code == Unauthenticated.code:
            hint = (
                "Pass the token with --token; if people sign in, `threadkeep token --user NAME` creates one."
            )
            raise Unauthenticated(f"{exc.message} {hint}") from exc
        if exc.code == RouteNotFound.code:
            raise NotReached(
                "Threadkeep is running here, but not under this path. Leave out the path unless an "
                "application mounts Threadkeep under one, as in http://127.0.0.1:8000/chat."
            ) from exc
        raise
    if name is None:
        return next(agent for agent in found if agent.is_default)
    named = [agent for agent in found if agent.name.casefold() == name.casefold()]
    if not named:
        known = ", ".join(sorted({agent.name for agent in found}))
        raise AgentNotFound(f"Agent {name!r} not found. Available agents: {known}.")
    return next((agent for agent in named if agent.version is not UNSET), named[0])


def _usual_url(settings: Settings) -> str:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"http://{host}:{settings.port}"
