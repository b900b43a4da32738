"""Threadkeep: the conversation backend for AI agents."""

from threadkeep.bootstrap import create_app
from threadkeep.client import BlockingClient, Client
from threadkeep.domain.ids import UserId
from threadkeep.domain.user import User, UserRole
from threadkeep.settings import Settings
from threadkeep.version import __version__

__all__ = ["BlockingClient", "Client", "Settings", "User", "UserId", "UserRole", "__version__", "create_app"]
