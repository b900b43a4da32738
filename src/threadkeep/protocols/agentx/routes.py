"""`/ws`: the wire of AgentX 1.9.0. Sessions are followed by their ids; who signed in may also ask for things.

A client sends JSON: `subscribe` and `unsubscribe` with a `sessionId`, requests by name, and `__ack`, which
is taken and not needed. Events come wrapped with their cursors; answers, errors too, come as they are.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import Struct
from starlette.websockets import WebSocket, WebSocketDisconnect

from threadkeep.clock import system_clock
from threadkeep.domain.errors import ConversationNotFound, InvalidRequest, PayloadTooLarge, ThreadkeepError
from threadkeep.domain.user import User
from threadkeep.http.auth import SignIn
from threadkeep.http.decoding import decode_body, refused
from threadkeep.http.json_shape import check_shape
from threadkeep.http.services import Services
from threadkeep.protocols.agentx.encode import Cursor, Envelope, parse_cursor, wrap
from threadkeep.protocols.agentx.sessions import Reader, Subscription
from threadkeep.tasks import end_tasks

log = logging.getLogger("threadkeep.ws")

PING_EVERY_S = 30.0
SLOWEST_READ_S = 30.0
MOST_MESSAGE_BYTES = 64 * 1024
MOST_SUBSCRIPTIONS = 100
MOST_WAITING = 256
MOST_STRANGE_SESSIONS = 3

_POLICY_VIOLATION, _TOO_BIG, _TRY_LATER = 1008, 1009, 1013
_BEARER = "bearer."


class Incoming(Struct, frozen=True, rename="camel"):
    """What a client sends."""

    type: str = ""
    session_id: str = ""
    after_cursor: str | None = None
    data: dict[str, Any] = {}
    ack: str | None = msgspec.field(default=None, name="__ack")


class ImageConfig(Struct, frozen=True):
    """An image to be made; what else AgentX clients send belongs to the agent here."""

    name: str | None = None


class ImageCreate(Struct, frozen=True, rename="camel"):
    """A conversation to be made."""

    container_id: str
    config: ImageConfig = ImageConfig()


class MessageSend(Struct, frozen=True, rename="camel"):
    """What a user says."""

    image_id: str
    content: str


class AgentInterrupt(Struct, frozen=True, rename="camel"):
    """A turn to be stopped."""

    image_id: str


@dataclass(frozen=True, slots=True)
class Close:
    """The last thing that is sent."""

    code: int
    reason: str


_decoder = msgspec.json.Decoder(Incoming)


class IdleSockets:
    """The sockets that follow no session: nobody had to sign in for them, so there are only so many."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._sockets: dict[Socket, None] = {}

    def add(self, socket: "Socket") -> None:
        """Another one; the oldest makes room if need be."""
        self._sockets[socket] = None
        if len(self._sockets) > self._most:
            oldest = next(iter(self._sockets))
            self.discard(oldest)
            oldest.end()

    def discard(self, socket: "Socket") -> None:
        """One that follows a session now, or has gone."""
        self._sockets.pop(socket, None)


def web_socket(
    sign_in: SignIn, services: Callable[[], Awaitable[Services]], max_idle_sockets: int
) -> Callable[[WebSocket], Awaitable[None]]:
    """The function that serves `/ws`."""
    idle = IdleSockets(max_idle_sockets)

    async def serve(websocket: WebSocket) -> None:
        await websocket.accept(_chosen(websocket.scope.get("subprotocols", [])))
        try:
            ready = await services()
        except ThreadkeepError as exc:
            log.warning("/ws: %s", exc.message)
            await websocket.close(_TRY_LATER, "Try again later.")
            return
        await Socket(websocket, sign_in, ready, idle).run()

    return serve


def _chosen(offered: list[str]) -> str | None:
    """One of the offered subprotocols, as browsers demand; the token only where there is no other."""
    return next((it for it in offered if not it.startswith(_BEARER)), offered[0] if offered else None)


def _with_token(websocket: WebSocket) -> WebSocket:
    """The connection with the token of its subprotocol, where a browser has to put it, as a header."""
    tokens = [
        it.removeprefix(_BEARER) for it in websocket.scope.get("subprotocols", []) if it.startswith(_BEARER)
    ]
    headers = [(b"authorization", b"Bearer " + token.encode()) for token in tokens]
    scope = {**websocket.scope, "headers": [*websocket.scope["headers"], *headers]}
    return WebSocket(scope, websocket.receive, websocket.send)


class Socket:
    """One client. What it is sent waits in a bounded queue; one that does not read is dropped."""

    def __init__(self, websocket: WebSocket, sign_in: SignIn, services: Services, idle: IdleSockets) -> None:
        self._websocket = websocket
        self._signed = _with_token(websocket)
        self._sign_in = sign_in
        self._services = services
        self._outgoing: asyncio.Queue[str | Close] = asyncio.Queue(MOST_WAITING)
        self._subscriptions: dict[str, Subscription] = {}
        self._strange_sessions = 0
        self._is_closing = False
        self._idle = idle
        self._ended = asyncio.Event()

    async def run(self) -> None:
        """Serves the client until one of the two goes."""
        tasks = {asyncio.create_task(it) for it in (self._read(), self._write(), self._make_room())}
        self._idle.add(self)
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._idle.discard(self)
            await end_tasks(*tasks)
            await asyncio.gather(*(it.close() for it in self._subscriptions.values()))
        for task in tasks:
            if not task.cancelled() and (exc := task.exception()):
                log.error("/ws failed", exc_info=exc)

    async def _write(self) -> None:
        try:
            while True:
                message = await self._outgoing.get()
                async with asyncio.timeout(SLOWEST_READ_S):
                    if isinstance(message, Close):
                        await self._websocket.close(message.code, message.reason)
                        return
                    await self._websocket.send_text(message)
        except TimeoutError:
            log.info("a client of /ws does not read and is dropped")
        except WebSocketDisconnect:
            return

    def end(self) -> None:
        """Another socket needs its place."""
        self._ended.set()

    async def _make_room(self) -> None:
        await self._ended.wait()
        with contextlib.suppress(TimeoutError, WebSocketDisconnect, RuntimeError):  # it may be going anyway
            async with asyncio.timeout(SLOWEST_READ_S):
                await self._websocket.close(_TRY_LATER, "Too many sockets follow no session.")

    async def _read(self) -> None:
        while (message := await self._websocket.receive())["type"] != "websocket.disconnect":
            if self._is_closing:
                continue
            raw = message.get("bytes") or (message.get("text") or "").encode()
            try:
                await self._handle(raw)
            except ThreadkeepError as exc:
                await self._fail(exc)
            except Exception:
                log.exception("a message on /ws failed")
                await self._fail(_internal_error())

    async def _handle(self, raw: bytes) -> None:
        if len(raw) > MOST_MESSAGE_BYTES:
            await self._fail(PayloadTooLarge(f"A message may have at most {MOST_MESSAGE_BYTES} bytes."))
            await self._close(_TOO_BIG, "The message is too big.")
            return
        check_shape(raw)
        incoming = decode_body(raw, _decoder)
        if incoming.type == "subscribe":
            await self._subscribe(incoming.session_id, incoming.after_cursor)
            self._note_idle()
        elif incoming.type == "unsubscribe":
            if subscription := self._subscriptions.pop(incoming.session_id, None):
                await subscription.close()
            self._note_idle()
        elif incoming.type in _REQUESTS:
            await self._answer(incoming.type, incoming.data)
        elif incoming.ack is None:
            raise InvalidRequest("There is no message of this type.", param="type")

    async def _subscribe(self, session_id: str, after_cursor: str | None) -> None:
        if session_id in self._subscriptions and not after_cursor:
            return
        try:
            after = parse_cursor(after_cursor) if after_cursor else None
            if before := self._subscriptions.pop(session_id, None):
                await before.close()
            if len(self._subscriptions) >= MOST_SUBSCRIPTIONS:
                raise InvalidRequest(f"A socket may follow at most {MOST_SUBSCRIPTIONS} sessions.")
            reader = self._reader(session_id)
            subscription = await self._services.sessions.subscribe(session_id, after, reader)
            self._subscriptions[session_id] = subscription
        except ThreadkeepError as exc:
            await self._fail(exc, session_id)
            # An id cannot be guessed; whoever tries is not let try for long.
            self._strange_sessions += isinstance(exc, ConversationNotFound)
            if self._strange_sessions >= MOST_STRANGE_SESSIONS:
                await self._close(_POLICY_VIOLATION, "Too many unknown sessions.")

    def _note_idle(self) -> None:
        if self._subscriptions:
            self._idle.discard(self)
        else:
            self._idle.add(self)

    def _reader(self, session_id: str) -> Reader:
        async def tell(cursor: Cursor, envelope: Envelope) -> None:
            await self._outgoing.put(wrap(cursor, envelope.json()))

        async def fail(error: ThreadkeepError) -> None:
            await self._fail(error, session_id)

        async def end(error: ThreadkeepError) -> None:
            self._subscriptions.pop(session_id, None)
            self._note_idle()
            await self._fail(error, session_id)

        return Reader(tell, fail, end)

    async def _answer(self, name: str, data: Mapping[str, Any]) -> None:
        """Does what a request asks for. The user is checked each time, because tokens expire."""
        kind, handle = _REQUESTS[name]
        answer: dict[str, Any] = {"requestId": data.get("requestId", "")}
        try:
            body = msgspec.convert(data, kind)
            user = await self._sign_in.user(self._signed)
            answer |= await handle(self._services, user, body)
        except msgspec.ValidationError as exc:
            answer |= _error_data(refused(exc, kind))
        except ThreadkeepError as exc:
            answer |= _error_data(exc)
        except Exception:
            log.exception("%s failed", name)
            answer |= _error_data(_internal_error())
        await self._send(f"{name.removesuffix('_request')}_response", answer)

    async def _fail(self, error: ThreadkeepError, session_id: str = "") -> None:
        data = {"message": error.message, "errorCode": error.code}
        await self._send("error", data, {"sessionId": session_id} if session_id else {})

    async def _send(
        self, name: str, data: Mapping[str, Any], context: Mapping[str, str] | None = None
    ) -> None:
        envelope = Envelope(
            name,
            system_clock(),
            data,
            source="command",
            category="response",
            intent="result",
            context=context or {},
        )
        await self._outgoing.put(envelope.json().decode())

    async def _close(self, code: int, reason: str) -> None:
        """Closes after what is waiting has been sent; what comes until then is not read."""
        self._is_closing = True
        await self._outgoing.put(Close(code, reason))


def _internal_error() -> ThreadkeepError:
    return ThreadkeepError("Something went wrong on our side; it has been logged.")


def _error_data(error: ThreadkeepError) -> dict[str, Any]:
    return {"error": error.message, "errorCode": error.code}


async def _create_image(services: Services, user: User, body: ImageCreate) -> dict[str, Any]:
    conversation, _ = await services.conversations.create(
        user, body.container_id, title=body.config.name, metadata=None
    )
    session_id = conversation.session_id.reveal()
    record = {
        "imageId": conversation.id,
        "containerId": conversation.agent_id,
        "sessionId": session_id,
        "name": conversation.title or "",
        "createdAt": conversation.created_at,
        "updatedAt": conversation.updated_at,
    }
    return {"record": record, "__subscriptions": [session_id]}


async def _send_message(services: Services, user: User, body: MessageSend) -> dict[str, Any]:
    turn, conversation = await services.turns.send(user, body.image_id, body.content)
    return {"imageId": conversation.id, "agentId": conversation.agent_id, "turnId": turn.id}


async def _interrupt_agent(services: Services, user: User, body: AgentInterrupt) -> dict[str, Any]:
    conversation = await services.conversations.get(user, body.image_id)
    await services.turns.abort(user, conversation.id)
    return {"imageId": conversation.id, "agentId": conversation.agent_id}


_Handler = Callable[[Services, User, Any], Awaitable[dict[str, Any]]]
_REQUESTS: Mapping[str, tuple[type[Struct], _Handler]] = {
    "image_create_request": (ImageCreate, _create_image),
    "message_send_request": (MessageSend, _send_message),
    "agent_interrupt_request": (AgentInterrupt, _interrupt_agent),
}
