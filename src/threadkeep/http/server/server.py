"""Runs the app on a socket until a signal ends it."""

import asyncio
import gc
import importlib
import importlib.util
import logging
import signal
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager

import uvicorn

from threadkeep.domain.errors import SettingsError
from threadkeep.handling.stream import broken_off
from threadkeep.http.app import Threadkeep
from threadkeep.http.server.connection import ConnectionLimits, Connections
from threadkeep.http.server.supervisor import ServingProcess
from threadkeep.http.server.web_sockets import ANY_SIZE, SocketConnection

PING_EVERY_S = 30.0
SHUTDOWN_S = 5
MOST_STUCK_S = 120
USUAL_LIMITS = ConnectionLimits()


def listen(host: str, port: int) -> socket.socket:
    """A socket that accepts connections; they wait until the server runs."""
    host = host.strip("[]")
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        # A client that stops reading would keep its connection, and the data queued for it, indefinitely.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, MOST_STUCK_S * 1000)
    try:
        listener.bind((host, port))
        listener.listen(2048)
    except OSError as exc:
        listener.close()
        raise SettingsError(
            f"Can't listen on {host}, port {port}: {exc.strerror}. Choose another port with --port."
        ) from exc
    return listener


def uvicorn_config(
    app: Threadkeep, shutdown_s: int, limits: ConnectionLimits = USUAL_LIMITS
) -> uvicorn.Config:
    """How uvicorn serves us: limits, log lines and the lifespan are ours."""
    return uvicorn.Config(
        app,
        http=Connections(limits).protocol,
        timeout_keep_alive=limits.keep_alive_s,
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        proxy_headers=False,  # the kernel says who is at the other end, not a header
        timeout_graceful_shutdown=shutdown_s,
        ws=SocketConnection,
        ws_max_size=ANY_SIZE,
        ws_ping_interval=PING_EVERY_S,
        ws_ping_timeout=PING_EVERY_S,
        ws_per_message_deflate=False,  # most messages are a few words, for which it costs more than it saves
    )


def serve(
    app: Threadkeep,
    listener: socket.socket,
    *,
    when_ready: Callable[[], None],
    grace_s: float,
    limits: ConnectionLimits,
    process: ServingProcess | None = None,
) -> None:
    """Serves until SIGINT or SIGTERM, then lets running turns and requests end and closes the database.

    One of several processes serves until its parent says so.
    """
    server = SignalFreeServer(uvicorn_config(app, SHUTDOWN_S, limits))
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_serve(app, server, listener, when_ready, grace_s, process))


async def _serve(
    app: Threadkeep,
    server: uvicorn.Server,
    listener: socket.socket,
    when_ready: Callable[[], None],
    grace_s: float,
    process: ServingProcess | None,
) -> None:
    filter_uvicorns_lines()
    stopping = _Stopping(app, server, grace_s)
    if process is None:
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stopping.hear_signal)
    else:
        process.obey(drain=stopping.drain, retire=stopping.retire, end=stopping.end)
    # Start-up errors appear as sentences here; within uvicorn they would be stack traces.
    async with app.lifespan():
        # What was loaded stays. Else every full collection looks at all of it, and all turns wait for that.
        gc.freeze()
        when_ready()
        await server.serve(sockets=[listener])


class _Stopping:
    """Ends the server when running turns have ended or their time is up."""

    def __init__(self, app: Threadkeep, server: uvicorn.Server, grace_s: float) -> None:
        self._app = app
        self._server = server
        self._grace_s = grace_s
        self._draining: asyncio.Task[None] | None = None

    def hear_signal(self) -> None:
        """The first signal drains the server, the second ends it."""
        if self._draining is None:
            self.drain()
        else:
            self.end()

    def drain(self) -> None:
        """Ends the server when running turns have ended or their time is up."""
        self._begin(self._grace_s)

    def retire(self) -> None:
        """The same for one of several processes: the others accept new connections on the same port."""
        for listening in getattr(self._server, "servers", ()):  # none before it has started
            listening.close()
        for connection in list(self._server.server_state.connections):
            connection.shutdown()  # after the response in progress
        self.drain()

    def end(self) -> None:
        """Ends the server without delay; running turns are handed off as they are."""
        self._begin(0)
        self._server.handle_exit(signal.SIGINT, None)

    def _begin(self, grace_s: float) -> None:
        if self._draining is None:
            self._draining = asyncio.create_task(self._drain(grace_s))

    async def _drain(self, grace_s: float) -> None:
        try:
            await (await self._app.services()).drain(grace_s)
        finally:
            self._server.handle_exit(signal.SIGTERM, None)


class SignalFreeServer(uvicorn.Server):
    """Leaves signals to us: uvicorn would let them end the process before the database is closed."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Captures none."""
        yield


def filter_uvicorns_lines() -> None:
    """Removes from the log what uvicorn wrongly reports as an error, and secrets."""
    logger = logging.getLogger("uvicorn.error")
    for is_wanted in (_is_no_cut_request, _is_not_broken_off, _has_no_query):
        logger.addFilter(is_wanted)
    # Below that level it logs what web sockets carry: session ids and tokens.
    logger.setLevel(max(logger.getEffectiveLevel(), logging.INFO))


def _is_no_cut_request(record: logging.LogRecord) -> bool:
    """A request cut off by our shutdown isn't an error: no stack trace for it."""
    return not (record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError))


def _is_not_broken_off(record: logging.LogRecord) -> bool:
    """A stream that we broke off already has a line of ours."""
    return not (broken_off.get() and "returned without completing response" in str(record.msg))


def _has_no_query(record: logging.LogRecord) -> bool:
    """Opening a web socket has a line of ours, without the query of its address."""
    return '"WebSocket %s"' not in str(record.msg)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """uvloop if installed; it is much faster than asyncio's own."""
    if importlib.util.find_spec("uvloop") is None:
        return asyncio.new_event_loop
    return importlib.import_module("uvloop").new_event_loop
