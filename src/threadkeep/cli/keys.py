"""`threadkeep key`: makes, lists and revokes API keys."""

import argparse
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta

from threadkeep.cli.access_tokens import issue, seconds
from threadkeep.cli.commands import runs
from threadkeep.cli.target import connect, find_agent, leave, log_only_errors, own_token
from threadkeep.client.blocking import LoopThread
from threadkeep.client.client import Client
from threadkeep.domain.errors import KeyNotFound
from threadkeep.domain.key import Scope
from threadkeep.domain.user import User, UserRole, user_id
from threadkeep.settings import Settings
from threadkeep.wire.keys import KeyView

TOKEN_S = 60
"""How long the token is valid that the command signs in with."""

Work = Callable[[Client, argparse.Namespace], Awaitable[None]]


def add_key(command: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    actions = command.add_subparsers(required=True, metavar="ACTION")
    create = actions.add_parser("create", help="make a key and print it, this once")
    create.add_argument("name", help="what the key is for, for your list")
    create.add_argument(
        "--scope",
        action="append",
        choices=[scope.value for scope in Scope],
        help="what it may do: read, chat (by default: conversations, too) or admin (all that you may)",
    )
    create.add_argument("--agent", action="append", help="an agent that it is limited to; repeat for several")
    create.add_argument(
        "--expires", type=seconds, metavar="TIME", help="when it expires, for example 12h, 30d"
    )
    create.add_argument("--budget-month", metavar="AMOUNT", help="what it can spend in a calendar month")
    listing = actions.add_parser("list", help="list the keys, with what they may do and their last use")
    revoke = actions.add_parser("revoke", help="revoke a key")
    revoke.add_argument("key", help="its id, its prefix or its name")
    for action, work in ((create, _create), (listing, _list), (revoke, _revoke)):
        runs(action, _doing(work))
        action.add_argument(
            "--url", help="server address (http://127.0.0.1:8710; if none runs, the data folder)"
        )
        who = action.add_mutually_exclusive_group()
        who.add_argument("--token", help="your bearer token, if the server has sign-in")
        who.add_argument("--user", help="act for this user instead; requires the server's secret")
        action.add_argument("--admin", action="store_true", help="with --user: as an admin")


def _doing(work: Work) -> Callable[[Settings, argparse.Namespace], int]:
    def run(settings: Settings, given: argparse.Namespace) -> int:
        log_only_errors()
        user = given.user and User(user_id(given.user), UserRole.ADMIN if given.admin else UserRole.USER)
        token = issue(settings, user, TOKEN_S) if user else given.token or own_token(settings, given.url)
        stack, loop = AsyncExitStack(), LoopThread()

        async def do() -> None:
            await work(await connect(settings, stack, url=given.url, token=token), given)

        try:
            loop.wait(do())
        finally:
            leave(loop, stack)
        return 0

    return run


async def _create(client: Client, given: argparse.Namespace) -> None:
    agents = [(await find_agent(client, name)).id for name in given.agent or ()]
    made = await client.create_key(
        given.name,
        given.scope or [Scope.CHAT.value],
        agents=agents or None,
        budget_month=given.budget_month,
        expires_at=given.expires and datetime.now(UTC) + timedelta(seconds=given.expires),
    )
    print(made.key)


async def _list(client: Client, given: argparse.Namespace) -> None:
    rows = [("PREFIX", "NAME", "SCOPES", "AGENTS", "EXPIRES", "LAST USED", "ID")]
    rows += [_row(key) async for key in client.keys()]  # noqa: SIM118 - no mapping
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip())


def _row(key: KeyView) -> tuple[str, ...]:
    agents = "all" if key.agents is None else str(len(key.agents))
    expires, used = (time[:10] if time else "never" for time in (key.expires_at, key.last_used_at))
    return key.prefix, key.name, ",".join(key.scopes), agents, expires, used, key.id


async def _revoke(client: Client, given: argparse.Namespace) -> None:
    keys = [key async for key in client.keys()]  # noqa: SIM118 - no mapping
    found = [key for key in keys if given.key in {key.id, key.prefix, key.name}]
    if len(found) != 1:
        what = "No key has" if not found else f"{len(found)} keys have"
        raise KeyNotFound(
            f"{what} the id, prefix or name {given.key!r}. `threadkeep key list` lists the ids."
        )
    await client.revoke_key(found[0].id)
    print(f"Revoked {found[0].name} ({found[0].prefix}…).")
