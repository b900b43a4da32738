"""Identifies a socket's user: by the handshake's headers, its subprotocol, or a message."""

import logging

from starlette.requests import HTTPConnection
from starlette.websockets import WebSocket

from threadkeep.domain.errors import Forbidden, ThreadkeepError
from threadkeep.domain.ids import UserId
from threadkeep.domain.user import User
from threadkeep.ports.sign_in import CHECK_EVERY_S, Check, SignIn, check_every_s

log = logging.getLogger("threadkeep.ws")

BEARER = "bearer."
"""The prefix of a subprotocol that is a token: browsers can set no header of a web socket."""
_CREDENTIALS = (b"authorization", b"x-api-key")


class SocketSignIn:
    """The sign-in of one socket, which stays the same user's."""

    def __init__(self, websocket: WebSocket, sign_in: SignIn[HTTPConnection]) -> None:
        self._websocket = websocket
        self._sign_in = sign_in
        self._signed = _with_subprotocol(websocket)
        self._user_id: UserId | None = None
        self._check: Check | None = None
        self.check_every_s = CHECK_EVERY_S
        """The seconds between two checks, as the one who has signed in last needs them."""

    @property
    def user_id(self) -> UserId | None:
        """The user who has signed in, if any."""
        return self._user_id

    async def try_handshake(self) -> None:
        """Tries to sign in by the handshake; a client can follow a session without."""
        try:
            await self.user()
        except ThreadkeepError:
            return
        except Exception:
            log.exception("a sign-in on /ws failed")

    async def user(self) -> User:
        """The currently signed-in user: tokens expire."""
        return await self._user_of(self._signed)

    async def renew(self, authorization: str) -> None:
        """Signs in by a message, or renews a token. If refused, nothing changes."""
        signed = _with_credentials(self._websocket, [(b"authorization", authorization.encode())])
        await self._user_of(signed)
        self._signed = signed

    async def _user_of(self, connection: WebSocket) -> User:
        user = await self._sign_in.user(connection)
        if self._user_id not in {None, user.id}:
            raise Forbidden("This connection belongs to another user. Open a new one.")
        if self._user_id is None:
            self._user_id = user.id
            self._check = self._sign_in.checking(lambda: self._signed, user.id)
        self.check_every_s = check_every_s(user)
        return user

    async def check(self) -> None:
        """Raises Unauthenticated or Forbidden if the user is no longer signed in, with their newest token."""
        if self._check is not None:
            await self._check()


def _with_subprotocol(websocket: WebSocket) -> WebSocket:
    """The connection with the tokens of its subprotocols as headers: browsers can set only the former."""
    offered: list[str] = websocket.scope.get("subprotocols", [])
    tokens = [it.removeprefix(BEARER) for it in offered if it.startswith(BEARER)]
    given = [header for header in websocket.scope["headers"] if header[0] in _CREDENTIALS]
    return _with_credentials(
        websocket, [*given, *((b"authorization", b"Bearer " + token.encode()) for token in tokens)]
    )


def _with_credentials(websocket: WebSocket, credentials: list[tuple[bytes, bytes]]) -> WebSocket:
    others = [header for header in websocket.scope["headers"] if header[0] not in _CREDENTIALS]
    scope = {**websocket.scope, "headers": [*others, *credentials]}
    return WebSocket(scope, websocket.receive, websocket.send)
