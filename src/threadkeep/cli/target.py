"""The Threadkeep that a command of ours talks to, and the agent that it means."""

from contextlib import AsyncExitStack

from msgspec import UNSET

from threadkeep.cli.embedded import embedded
from threadkeep.client.client import Client
from threadkeep.client.errors import ClientError, NotReached
from threadkeep.domain.errors import AgentNotFound, RouteNotFound, Unauthenticated
from threadkeep.settings import Settings
from threadkeep.wire.views import AgentView


async def connect(settings: Settings, stack: AsyncExitStack, *, url: str | None, token: str | None) -> Client:
    """A client of the server at `url`; without one of the usual server, or of one of our own if none runs."""
    address = _usual_url(settings) if url is None else url
    client = await stack.enter_async_context(Client(address, token=token))
    if url is None and not await client.is_there():
        own = await stack.enter_async_context(embedded(settings))
        client = await stack.enter_async_context(Client(own, token=token))
    return client


async def find_agent(client: Client, name: str | None) -> AgentView:
    """The agent of this name, one's own before others'; without a name the default one."""
    try:
        found = [agent async for agent in client.agents()]
    except ClientError as exc:
        if exc.code == Unauthenticated.code:
            hint = "Sign in with --token. To create a token, run `threadkeep token --user NAME`."
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
