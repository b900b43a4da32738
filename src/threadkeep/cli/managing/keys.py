"""`threadkeep key`: makes, lists and revokes API keys."""

import argparse
from datetime import UTC, datetime, timedelta

from threadkeep.cli.access_tokens import seconds
from threadkeep.cli.managing.actions import add_action, add_json, print_json, print_table
from threadkeep.cli.target import find_agent
from threadkeep.client.client import Client
from threadkeep.domain.errors import KeyNotFound
from threadkeep.domain.key import Scope
from threadkeep.wire.keys import KeyView


def add_key(command: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    actions = command.add_subparsers(required=True, metavar="ACTION")
    create = add_action(actions, "create", _create, "make a key and print it, this once")
    create.add_argument("name", help="what the key is for, for your list")
    create.add_argument(
        "--scope",
        action="append",
        choices=[scope.value for scope in Scope],
        help="what it may do: read, chat (the default: also write in conversations) or "
        "admin (everything that you may)",
    )
    create.add_argument("--agent", action="append", help="an agent that it is limited to; repeat for several")
    create.add_argument(
        "--expires", type=seconds, metavar="TIME", help="when it expires, for example 12h, 30d"
    )
    create.add_argument("--budget-month", metavar="AMOUNT", help="what it can spend in a calendar month")
    create.add_argument(
        "--act-as",
        metavar="REALM",
        help="make a key for an application's server, which acts for the application's users: the user 42 of "
        "the realm shop is shop:42 (admins only; '' for every user, where THREADKEEP_ACT_AS_ANYONE is set)",
    )
    create.add_argument("--may-delete", action="store_true", help="with --act-as: it can delete these users")
    purpose = "list the keys, with what they may do and their last use"
    add_json(add_action(actions, "list", _list, purpose))
    revoke = add_action(actions, "revoke", _revoke, "revoke a key")
    revoke.add_argument("key", help="its id, its prefix or its name")


async def _create(client: Client, given: argparse.Namespace) -> None:
    agents = [(await find_agent(client, name)).id for name in given.agent or ()]
    made = await client.create_key(
        given.name,
        given.scope or [Scope.CHAT.value],
        agents=agents or None,
        budget_month=given.budget_month,
        expires_at=given.expires and datetime.now(UTC) + timedelta(seconds=given.expires),
        act_as=given.act_as,
        may_delete=given.may_delete,
    )
    print(made.key)


async def _list(client: Client, given: argparse.Namespace) -> None:
    keys = [key async for key in client.keys()]  # noqa: SIM118 - no mapping
    if given.json:
        print_json(keys)
        return
    print_table(
        ("PREFIX", "NAME", "SCOPES", "ACTS AS", "AGENTS", "EXPIRES", "LAST USED", "ID"), map(_row, keys)
    )


def _row(key: KeyView) -> tuple[str, ...]:
    agents = "all" if key.agents is None else str(len(key.agents))
    expires, used = (time[:10] if time else "never" for time in (key.expires_at, key.last_used_at))
    acts_as = "" if key.act_as is None else f"{key.act_as.realm}:*" if key.act_as.realm else "*"
    return key.prefix, key.name, ",".join(key.scopes), acts_as, agents, expires, used, key.id


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
