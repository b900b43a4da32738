"""`threadkeep invite`: prints a link that signs somebody in, once."""

import argparse
import asyncio
import sys
from urllib.parse import urlsplit

from threadkeep.bootstrap import store_beside_server
from threadkeep.cli.access_tokens import seconds
from threadkeep.cli.commands import runs
from threadkeep.clock import system_clock
from threadkeep.domain.errors import SettingsError
from threadkeep.domain.sign_in.session import INVITATION_S, MOST_INVITATION_S, KnownUser
from threadkeep.domain.user import UserRole
from threadkeep.services.sign_in.invitations import Invitations, NewInvitation
from threadkeep.services.sign_in.sessions import Sessions
from threadkeep.settings import Settings
from threadkeep.storage.store import sqlite_path


def add_invite(command: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    runs(command, _invite)
    command.add_argument(
        "name", help="the name of a person, for example ann, who becomes the user invited:ann"
    )
    command.add_argument("--admin", action="store_true", help="make them an admin")
    command.add_argument(
        "--ttl",
        type=seconds,
        default=INVITATION_S,
        help="how long the link can be used, for example 2h, 7d (24h; at most 30d)",
    )
    command.add_argument(
        "--first",
        action="store_true",
        help="invite the first admin: do nothing once an admin has signed in, or while one is invited; for "
        "start scripts",
    )


def _invite(settings: Settings, given: argparse.Namespace) -> int:
    if settings.sign_in_rules.public_url is None or settings.invitations == "off":
        raise SettingsError(
            "Invitations are off in these settings. Set THREADKEEP_INVITATIONS=on for the server, and run "
            "this command with all of the server's settings: docs/operating.md#systemd shows how."
        )
    if given.ttl > MOST_INVITATION_S:
        raise SettingsError("An invitation can be valid for at most 30 days: --ttl 30d.")
    made, known = asyncio.run(_create(settings, given))
    if made is None:
        print(
            "threadkeep: An admin has signed in, or is invited already: no invitation was made. "
            f"For a new link: threadkeep invite {given.name} --admin",
            file=sys.stderr,
        )
    else:
        print(f"For the server with {_place(settings)}:", file=sys.stderr)
        print(made.url)
        if known and known.suspended_at is not None:
            print(
                f"threadkeep: {known.id} is suspended: the link works once an admin has let them in again.",
                file=sys.stderr,
            )
        elif known:
            print(
                f"threadkeep: {known.id} exists: opening the link ends their sessions in other browsers.",
                file=sys.stderr,
            )
    return 0


def _place(settings: Settings) -> str:
    """What its server has in common with this command."""
    if settings.on_sqlite:
        return f"the database {sqlite_path(settings.database).absolute()}"
    url = urlsplit(settings.database)
    return f"the database {url.hostname or ''}{url.path}"


async def _create(
    settings: Settings, given: argparse.Namespace
) -> tuple[NewInvitation | None, KnownUser | None]:
    """The invitation, if one was made, and the person it is for, if they exist."""
    async with store_beside_server(settings) as store:
        sessions = Sessions(store, system_clock)
        invitations = Invitations(store, sessions, settings.sign_in_rules, system_clock)
        if given.first:
            made = await invitations.create_first(given.name, given.ttl)
        else:
            role = UserRole.ADMIN if given.admin else UserRole.USER
            made = await invitations.create(None, given.name, role, given.ttl)
        return made, await store.known_users.find(made.invitation.user_id) if made else None
