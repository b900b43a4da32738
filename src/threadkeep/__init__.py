"""Threadkeep: the conversation backend for AI agents."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from threadkeep.bootstrap import create_app
    from threadkeep.client import BlockingClient, Client
    from threadkeep.domain.ids import UserId
    from threadkeep.domain.user import User, UserRole
    from threadkeep.settings import Settings
    from threadkeep.version import __version__

__all__ = ["BlockingClient", "Client", "Settings", "User", "UserId", "UserRole", "__version__", "create_app"]

# Names are loaded on first use: a program that only talks to a server doesn't load one.
_HOMES = {
    "BlockingClient": "threadkeep.client",
    "Client": "threadkeep.client",
    "Settings": "threadkeep.settings",
    "User": "threadkeep.domain.user",
    "UserId": "threadkeep.domain.ids",
    "UserRole": "threadkeep.domain.user",
    "__version__": "threadkeep.version",
    "create_app": "threadkeep.bootstrap",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
