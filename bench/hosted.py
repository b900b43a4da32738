"""Threadkeep as measured: in an application that signs everybody in as `local`.

Under uvicorn, which the bare servers run under as well, Threadkeep lets nobody in without sign-in.
"""

from starlette.requests import HTTPConnection

import threadkeep
from threadkeep import User, UserId, UserRole
from threadkeep.http.app import Threadkeep

_LOCAL = User(UserId("local"), UserRole.ADMIN)


def create_app() -> Threadkeep:
    """For uvicorn."""
    return threadkeep.create_app(current_user=_local)


def _local(_: HTTPConnection) -> User:
    return _LOCAL
