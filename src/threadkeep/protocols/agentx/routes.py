"""`/ws`: AgentX 1.9.0. Clients follow sessions by id; signed-in clients may also send requests.

A client sends JSON: `auth`, `subscribe` and `unsubscribe`, requests by name, and `__ack`, which is accepted
and ignored. Events come wrapped with their cursors; responses, including errors, come unwrapped.
"""

import logging
from collections.abc import Awaitable, Callable

from starlette.requests import HTTPConnection
from starlette.websockets import WebSocket

from threadkeep.domain.errors import ThreadkeepError
from threadkeep.handling.services import Services
from threadkeep.ports.sign_in import SignIn
from threadkeep.protocols.agentx.socket import TRY_LATER, SharedBySockets, Socket, SocketLimits
from threadkeep.protocols.agentx.socket_sign_in import BEARER, SocketSignIn

log = logging.getLogger("threadkeep.ws")


def web_socket(
    sign_in: SignIn[HTTPConnection], services: Callable[[], Awaitable[Services]], limits: SocketLimits
) -> Callable[[WebSocket], Awaitable[None]]:
    """The function that serves `/ws`."""
    shared = SharedBySockets(limits)

    async def serve(websocket: WebSocket) -> None:
        signed = SocketSignIn(websocket, sign_in)
        await signed.try_handshake()
        await websocket.accept(_chosen(websocket.scope.get("subprotocols", [])))
        try:
            ready = await services()
        except ThreadkeepError as exc:
            log.warning("/ws: %s", exc.message)
            await websocket.close(TRY_LATER, "Try again later.")
            return
        await Socket(websocket, signed, ready, shared).run()

    return serve


def _chosen(offered: list[str]) -> str | None:
    """One of the offered subprotocols, as browsers require; the token only if there is no other."""
    return next((it for it in offered if not it.startswith(BEARER)), offered[0] if offered else None)
