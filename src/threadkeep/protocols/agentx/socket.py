"""One client of `/ws`: reads its frames, follows sessions for it, responds to its requests."""

import asyncio
import contextlib
import logging
from dataclasses import dataclass
from typing import assert_never

from starlette.websockets import WebSocket, WebSocketDisconnect

from threadkeep.clock import system_clock
from threadkeep.domain.errors import (
    ConversationNotFound,
    Forbidden,
    InvalidRequest,
    PayloadTooLarge,
    ThreadkeepError,
    Unauthenticated,
)
from threadkeep.domain.ids import MessageId, UserId
from threadkeep.domain.text import size_text
from threadkeep.handling.services import Services
from threadkeep.protocols.agentx import frames
from threadkeep.protocols.agentx.cursor import Cursor, parse_cursor
from threadkeep.protocols.agentx.decode import Ack, Auth, Request, Subscribe, Unsubscribe, decode
from threadkeep.protocols.agentx.encode import wrap
from threadkeep.protocols.agentx.frames import (
    Envelope,
    NoContext,
    Response,
    SessionContext,
    event_envelope,
    response_envelope,
)
from threadkeep.protocols.agentx.idle_sockets import IdleSockets
from threadkeep.protocols.agentx.requests import internal_error, respond
from threadkeep.protocols.agentx.socket_sign_in import SocketSignIn
from threadkeep.protocols.agentx.started_agents import StartedByUser
from threadkeep.protocols.agentx.subscriptions import PollPace, SessionReader, Sessions, Subscription
from threadkeep.tasks import end_tasks
from threadkeep.wire.inside import LARGE_MESSAGES, SMALL_MESSAGE_BYTES

log = logging.getLogger("threadkeep.ws")

SLOWEST_READ_S = 30.0
MOST_WAITING = 256

# For clients that have not signed in. An id or a token can't be guessed, so few attempts are allowed.
SIGN_IN_S = 30.0
MOST_GUESSES = 3

# Of other users' sessions; signed-in users may follow all of their own.
MOST_SUBSCRIPTIONS = 100

_POLICY_VIOLATION, _TOO_BIG = 1008, 1009
TRY_LATER = 1013

NO_CONTEXT = NoContext()


@dataclass(frozen=True, slots=True)
class SocketLimits:
    """Limits that the operator sets."""

    most_idle: int
    most_message_bytes: int
    """Of a signed-in client's message; an agent may accept less."""


@dataclass(frozen=True, slots=True)
class Close:
    """Sent last."""

    code: int
    reason: str


class SharedBySockets:
    """What all sockets of the process share."""

    def __init__(self, limits: SocketLimits) -> None:
        self.limits = limits
        self.idle = IdleSockets(limits.most_idle)
        self.started = StartedByUser()
        self.pace = PollPace()


class Socket:
    """One client. Outgoing messages wait in a bounded queue; a client that does not read is dropped."""

    def __init__(
        self, websocket: WebSocket, sign_in: SocketSignIn, services: Services, shared: SharedBySockets
    ) -> None:
        self._websocket = websocket
        self._sign_in = sign_in
        self._services = services
        self._sessions = Sessions(services.store, services.turns, shared.pace)
        self._idle, self._started, self._limits = shared.idle, shared.started, shared.limits
        self._outgoing: asyncio.Queue[str | Close] = asyncio.Queue(MOST_WAITING)
        self._may_send_events = asyncio.Event()
        """Set unless a request is being handled: its response precedes the events that it causes."""
        self._may_send_events.set()
        self._subscriptions: dict[str, Subscription] = {}
        self._guesses = 0
        """Unknown sessions and refused tokens of a client that has not signed in."""
        self._is_closing = False
        self._has_signed_in = False
        """Whether the client has signed in by a message since: then it is not idle."""
        self._ending: asyncio.Future[Close] = asyncio.get_running_loop().create_future()
        self._signing_in: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the client signs in by a message: what it signs in with sets the pause between checks."""

    async def run(self) -> None:
        """Serves the client until either side closes."""
        self._allow_large_messages()
        tasks = {asyncio.create_task(it) for it in (self._read(), self._write(), self._end_when_asked())}
        deadline = asyncio.get_running_loop().call_later(SIGN_IN_S, self._end_without_sign_in)
        self._idle.add(self)
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            deadline.cancel()
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
            log.info("dropping a /ws client that stopped reading")
        except WebSocketDisconnect:
            return

    def make_room(self) -> None:
        """Closes for another socket."""
        self._end(Close(TRY_LATER, "Too many connections without a session."))

    def _end(self, close: Close) -> None:
        if not self._ending.done():
            self._ending.set_result(close)

    async def _end_when_asked(self) -> None:
        """Closes at once: a client that does not read would block the queue."""
        while not self._ending.done():
            waiting = asyncio.wait(
                [self._ending, self._signing_in],
                timeout=self._sign_in.check_every_s,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if not (await waiting)[0]:
                await self._check_sign_in()
        close = self._ending.result()
        with contextlib.suppress(TimeoutError, WebSocketDisconnect, RuntimeError):  # it may be closing anyway
            async with asyncio.timeout(SLOWEST_READ_S):
                await self._websocket.close(close.code, close.reason)

    async def _check_sign_in(self) -> None:
        try:
            await self._sign_in.check()
        except (Unauthenticated, Forbidden):
            self._end(Close(_POLICY_VIOLATION, "Sign in again."))

    @property
    def _is_anonymous(self) -> bool:
        return self._sign_in.user_id is None

    def _end_without_sign_in(self) -> None:
        if self._is_anonymous and not self._subscriptions:
            self._end(Close(_POLICY_VIOLATION, "No sign-in or session arrived in time."))

    def _allow_large_messages(self) -> None:
        allow = self._websocket.scope.get("extensions", {}).get(LARGE_MESSAGES)
        if allow is not None and not self._is_anonymous:
            allow(self._limits.most_message_bytes)

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
                await self._fail(internal_error())

    async def _handle(self, raw: bytes) -> None:
        most = SMALL_MESSAGE_BYTES if self._is_anonymous else self._limits.most_message_bytes
        if len(raw) > most:
            await self._fail(PayloadTooLarge(f"A message can have at most {size_text(most)}."))
            await self._close(_TOO_BIG, "The message is too large.")
            return
        match await decode(raw):
            case Request() as request:
                await self._respond(request)
            case Subscribe(session_id, after_cursor):
                await self._subscribe(session_id, after_cursor)
                self._note_idle()
            case Unsubscribe(session_id):
                if subscription := self._subscriptions.pop(session_id, None):
                    await subscription.close()
                self._note_idle()
            case Auth(authorization):
                await self._authenticate(authorization)
            case Ack():
                pass
            case _ as never:
                assert_never(never)

    async def _authenticate(self, authorization: str) -> None:
        try:
            await self._sign_in.renew(authorization)
        except Unauthenticated as exc:
            await self._refuse(exc)
            return
        self._allow_large_messages()
        self._note_signed_in()
        self._signing_in.set_result(None)
        self._signing_in = asyncio.get_running_loop().create_future()

    async def _refuse(self, error: ThreadkeepError, session_id: str = "") -> None:
        """Reports an error; a client that has not signed in gets a few attempts only."""
        await self._fail(error, session_id)
        self._guesses += self._is_anonymous
        if self._guesses >= MOST_GUESSES:
            await self._close(_POLICY_VIOLATION, "Too many unknown sessions or tokens.")

    async def _subscribe(self, session_id: str, after_cursor: str | None) -> None:
        if session_id in self._subscriptions and not after_cursor:
            return
        try:
            after = parse_cursor(after_cursor) if after_cursor else None
            if before := self._subscriptions.pop(session_id, None):
                await before.close()
            conversation = await self._sessions.find(session_id)
            self._check_room(conversation.user_id)
            self._subscriptions[session_id] = await self._sessions.follow(
                conversation, after, self._reader(session_id)
            )
        except ConversationNotFound as exc:
            await self._refuse(exc, session_id)
        except ThreadkeepError as exc:
            await self._fail(exc, session_id)

    def _check_room(self, owner_id: UserId) -> None:
        """Refuses one session too many; the signed-in user's own do not count."""
        user_id = self._sign_in.user_id
        if owner_id == user_id or len(self._subscriptions) < MOST_SUBSCRIPTIONS:
            return
        if sum(it.owner_id != user_id for it in self._subscriptions.values()) >= MOST_SUBSCRIPTIONS:
            raise InvalidRequest(
                f"A connection can follow at most {MOST_SUBSCRIPTIONS} sessions of other users."
            )

    def _note_signed_in(self) -> None:
        self._has_signed_in = True
        self._note_idle()

    def _note_idle(self) -> None:
        if self._subscriptions or self._has_signed_in:
            self._idle.discard(self)
        else:
            self._idle.add(self)

    def _reader(self, session_id: str) -> SessionReader:
        async def send(cursor: Cursor, envelope: Envelope) -> None:
            await self._may_send_events.wait()
            await self._outgoing.put(wrap(cursor, envelope))

        async def fail(error: ThreadkeepError) -> None:
            await self._fail(error, session_id)

        async def move(tip_id: MessageId | None) -> None:
            # Not part of a turn, so it has no cursor: a client that missed it reads the conversation again.
            data = frames.PathChanged(tip_id)
            moved = event_envelope(data, system_clock(), SessionContext(session_id))
            await self._outgoing.put(moved.json().decode())

        async def end(error: ThreadkeepError) -> None:
            self._subscriptions.pop(session_id, None)
            self._note_idle()
            await self._fail(error, session_id)

        return SessionReader(send=send, fail=fail, move=move, end=end)

    async def _respond(self, request: Request) -> None:
        self._may_send_events.clear()
        try:
            response = await respond(self._services, self._sign_in.user, request, self._started)
            await self._send(f"{request.name}_response", response, NO_CONTEXT)
        finally:
            self._may_send_events.set()
        if not self._is_anonymous:
            self._note_signed_in()

    async def _fail(self, error: ThreadkeepError, session_id: str = "") -> None:
        context = SessionContext(session_id) if session_id else NO_CONTEXT
        await self._send("error", frames.Error(error.message, error.code), context)

    async def _send(
        self, name: str, data: Response | frames.Error, context: SessionContext | NoContext
    ) -> None:
        await self._outgoing.put(response_envelope(name, data, system_clock(), context).json().decode())

    async def _close(self, code: int, reason: str) -> None:
        """Closes after sending what is queued; stops reading at once."""
        self._is_closing = True
        await self._outgoing.put(Close(code, reason))
