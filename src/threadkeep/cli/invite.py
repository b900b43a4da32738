"""`threadkeep invite`: prints a link that signs somebody in, once."""

import argparse
import asyncio
import sys

from threadkeep.bootstrap import store_beside_server
from threadkeep.cli.access_tokens import seconds
from threadkeep.cli.commands import runs
from threadkeep.clock import system_clock
from threadkeep.domain.errors import SettingsError
from threadkeep.domain.sign_in.session import INVITATION_S, MOST_INVITATION_S
from threadkeep.domain.user import UserRole
from threadkeep.services.sign_in.invitations import Invitations
from threadkeep.services.sign_in.sessions import Sessions
from threadkeep.settings import Settings


def add_invite(command: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    runs(command, _invite)
    command.add_argument("name", help="whom to invite, for example ann, who becomes the user invited:ann")
    command.add_argument("--admin", action="store_true", help="make them an admin")
    command.add_argument(
        "--ttl",
        type=seconds,
        default=INVITATION_S,
        help="how long the link can be used, for example 2h, 7d (24h; at most 30d)",
    )
    command.add_argument(
        "--first", action="store_true", help="do nothing once an admin has signed in; for start scripts"
    )


def _invite(settings: Settings, given: argparse.Namespace) -> int:
    if settings.sign_in_rules.public_url is None or settings.invitations == "off":
        raise SettingsError("Set THREADKEEP_INVITATIONS=on, here and for the server, to invite people.")
    if given.ttl > MOST_INVITATION_S:
        raise SettingsError("An invitation can be valid for at most 30 days: --ttl 30d.")
    role = UserRole.ADMIN if given.admin else UserRole.USER
    url = asyncio.run(_create(settings, given.name, role, given.ttl, first=given.first))
    if url is None:
        print("threadkeep: an admin has signed in already; no invitation was made.", file=sys.stderr)
    else:
        print(url)
    return 0


async def _create(settings: Settings, name: str, role: UserRole, ttl_s: int, *, first: bool) -> str | None:
    async with store_beside_server(settings) as store:
        if first and await store.invitations.has_admin():
            return None
        sessions = Sessions(store, system_clock)
        invitations = Invitations(store, sessions, settings.sign_in_rules, system_clock)
        return (await invitations.create(None, name, role, ttl_s)).url
