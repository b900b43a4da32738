"""A Threadkeep for tests, in this process: `async with running_app() as app: await app.client.me()`."""

import os
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from threadkeep.agents import Agent
from threadkeep.bootstrap import create_app
from threadkeep.client import Client
from threadkeep.domain.user import LOCAL, User, UserRole, user_id
from threadkeep.http.app import Threadkeep
from threadkeep.http.sign_in.access_tokens import issue_token
from threadkeep.settings import Settings
from threadkeep.testing.listening import listening
from threadkeep.testing.scripted_model import ScriptedModel
from threadkeep.wire.views import ConversationView

SECRET = "signs the users of tests in, and nobody else"  # noqa: S105 - it guards a folder that is deleted
TOKEN_S = 86_400


@dataclass(frozen=True, slots=True)
class RunningApp:
    """A running Threadkeep, its model, and a client of the user `local`, an admin."""

    app: Threadkeep
    model: ScriptedModel
    client: Client
    url: str | None = None
    """Where it listens, if it does."""

    def as_user(self, name: str, *, admin: bool = False) -> Client:
        """A client of another user."""
        return _client(self.app, User(user_id(name), UserRole.ADMIN if admin else UserRole.USER))

    async def conversation(self, name: str = "Agent", **agent: Any) -> ConversationView:
        """A conversation with a new agent, which takes the arguments of `Client.create_agent`.

        It has a title: for a conversation without one, Threadkeep asks the model, which takes a reply of the
        script.
        """
        made = await self.client.create_agent(name, **agent)
        return await self.client.create_conversation(made.id, title="Test")


@asynccontextmanager
async def running_app(
    model: ScriptedModel | None = None,
    *,
    agents: Sequence[Agent] = (),
    listens: bool = False,
    **settings: Any,
) -> AsyncGenerator[RunningApp]:
    """A Threadkeep with an empty SQLite database in a temporary folder.

    Without a model, it gets one that answers `OK.`; `app.model` is the model. `agents` are functions that are
    agents; `settings` are those of `Settings`. Users sign in with tokens; MCP servers can be on this machine,
    such as a `ToolServer`. It has no port unless it `listens`, which agents need that use `turn.openai()`.
    """
    async with AsyncExitStack() as stack:
        model = model or ScriptedModel()
        if not model.is_running:
            stack.enter_context(model)
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="threadkeep-"))
        usual = {"data": Path(folder), "mcp_allow_private": True}
        app = create_app(scripted_settings(model, jwt_secret=SECRET, **{**usual, **settings}), agents=agents)
        url = None
        if listens:  # before a turn continues
            url = await stack.enter_async_context(listening(app, lifespan="off"))
            app.listens_at(urlsplit(url).hostname or "", urlsplit(url).port or 0)
        await stack.enter_async_context(app.lifespan())
        client = await stack.enter_async_context(Client(app=app, token=admin_token()))
        yield RunningApp(app, model, client, url)


def _client(app: Threadkeep, user: User) -> Client:
    return Client(app=app, token=issue_token(SECRET, user, TOKEN_S))


def admin_token() -> str:
    """Signs an admin in at a Threadkeep with our secret."""
    return issue_token(SECRET, User(LOCAL, UserRole.ADMIN), TOKEN_S)


def scripted_settings(model: ScriptedModel, **settings: Any) -> Settings:
    """Settings for a scripted model; ignores the environment and `threadkeep.toml`."""
    return Settings.load({}, Path(os.devnull), **usual_settings(model, **settings))


def usual_settings(model: ScriptedModel, **settings: Any) -> dict[str, Any]:
    """These settings, and what else a Threadkeep with a scripted model needs."""
    usual = {
        "gateway": "openai",
        "gateway_url": model.url,
        "gateway_api_key": "sk-scripted",
        "model": "scripted",
        "database_pool_size": 4,
        "user_turns_per_minute": 0,
        "user_uploads_per_minute": 0,
    }
    return {**usual, **settings}
