"""`threadkeep token`: bearer tokens, and the token of a server without sign-in."""

import argparse
import re

from threadkeep.cli.commands import runs
from threadkeep.domain.errors import SettingsError
from threadkeep.domain.user import User, UserRole, user_id
from threadkeep.http.sign_in.access_tokens import expected_of, issue_token
from threadkeep.http.sign_in.local_token import read_token
from threadkeep.settings import PREFIX, Settings

_TTL = re.compile(r"(\d+)([smhd]?)")
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


def add_token(command: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    runs(command, _token)
    command.add_argument(
        "--user",
        help="the user's id; leave it out if sign-in is off: the server has one token, for everything",
    )
    command.add_argument("--admin", action="store_true", help="give the token the admin role")
    command.add_argument(
        "--ttl", type=seconds, default=3600, help="how long the token is valid, for example 30m, 1h, 7d (1h)"
    )


def issue(settings: Settings, user: User, ttl_s: int) -> str:
    """A token that signs a user in to a server with these settings."""
    if not settings.jwt_secret:
        raise SettingsError(
            f"Creating a token for a user requires {PREFIX}JWT_SECRET, which isn't set here. If sign-in is "
            "off, leave out --user. Otherwise, `threadkeep invite NAME` invites somebody, and `threadkeep "
            "key create NAME` makes an API key for a program."
        )
    return issue_token(settings.jwt_secret, user, ttl_s, expected_of(settings))


def _token(settings: Settings, given: argparse.Namespace) -> int:
    if given.user is None:
        if settings.signs_in:
            raise SettingsError("Name the token's user: threadkeep token --user NAME.")
        token = read_token(settings.data)
        if token is None:
            raise SettingsError(
                f"No server has run with the data folder {settings.data.absolute()}, so there is no token. "
                "Run this in the folder where you started the server, or name its data folder with --data."
            )
        print(token)
        return 0
    user = User(user_id(given.user), UserRole.ADMIN if given.admin else UserRole.USER)
    print(issue(settings, user, given.ttl))
    return 0


def seconds(text: str) -> int:
    """A duration as people write it."""
    match = _TTL.fullmatch(text)
    if not match or not int(match[1]):
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration such as 30m, 1h or 7d")
    return int(match[1]) * _SECONDS[match[2]]
