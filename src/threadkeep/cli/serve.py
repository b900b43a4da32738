"""`threadkeep serve`: the server."""

import argparse
import asyncio
import logging
import socket
import sys
import time
from collections.abc import Callable, Collection, Iterator
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from threadkeep.bootstrap import build_models, create_app, endpoint_of, has_model
from threadkeep.cli.commands import refuse, runs
from threadkeep.cli.privacy import keep_secrets_private
from threadkeep.cli.watched_places import watched_places
from threadkeep.domain.errors import GatewayNotConfigured, ThreadkeepError
from threadkeep.domain.model import GatewayKind
from threadkeep.gateways.local import LocalGateway
from threadkeep.http.app import Threadkeep
from threadkeep.http.server.connection import ConnectionLimits
from threadkeep.http.server.reloader import Reloader, WatchedFiles
from threadkeep.http.server.server import listen, serve
from threadkeep.http.server.supervisor import ServingProcess, Supervisor
from threadkeep.http.siblings import Siblings, connect_siblings
from threadkeep.http.sign_in.accounts import Accounts
from threadkeep.http.sign_in.local_token import is_token_required, make_token
from threadkeep.ports.gateway import GatewayError
from threadkeep.program_log import set_up_logs
from threadkeep.settings import Settings, misnamed, open_to_others, settings_file
from threadkeep.version import __version__

log = logging.getLogger("threadkeep")

# Loading a model blocks everything else for a moment, so requests that wait for the start go first.
LOAD_AFTER_S = 1.0
NO_MODEL = "none in the settings. Connect one on the page, or set ANTHROPIC_API_KEY or OPENAI_API_KEY."
DEMONSTRATION_MODEL = (
    "a small demonstration model in this process, with limited knowledge. Connect a real one on the page."
)
RELOAD_GRACE_S = 5.0
"""How long a running step keeps its author waiting who has changed a file."""


def add_serve(command: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    runs(command, run_server, reports_settings=True)
    command.add_argument("--host", help="address to listen on (127.0.0.1)")
    command.add_argument("--port", type=int, help="port to listen on (8710)")
    command.add_argument(
        "--processes",
        "--workers",  # its earlier name
        type=int,
        help="processes that share the port, one for each core; needs PostgreSQL (1)",
    )
    command.add_argument(
        "--agents",
        action="append",
        metavar="MODULE:NAME",
        help="an agent in code to run, or a list of them; can be given several times",
    )
    command.add_argument(
        "--check-agents",
        action="store_true",
        default=None,
        help="after each turn of an agent in code, run its function again and log what differs",
    )
    command.add_argument(
        "--reload",
        action="store_true",
        help="for development: start again when a Python file in the folder of an agent changes; running "
        "turns continue",
    )
    command.add_argument(
        "--require-token",
        action="store_true",
        default=None,
        help="if sign-in is off, require the data folder's token (`threadkeep open` sends it)",
    )


def run_server(settings: Settings, given: argparse.Namespace) -> int:
    """Serves until a signal arrives."""
    settings.check_safe_to_listen()
    set_up_logs(settings.log_level, settings.log_format)
    for it in misnamed():
        log.warning("%s %s", it.message, it.advice)
    if (reason := open_to_others(settings_file())) is not None:
        log.warning("The settings file isn't safe: %s", reason)
    keep_secrets_private(settings)
    if not settings.signs_in:
        make_token(settings.data)  # commands beside the server read it
    places = watched_places(settings) if given.reload else ()
    with listen(settings.host, settings.port) as listener:
        if given.reload:
            return _serve_reloading(settings, given, listener, places)
        if settings.processes == 1:
            _serve(settings, listener, announce_start=partial(_announce_start, settings, listener))
            return 0
        lines = connect_siblings(settings.processes)

        def work(process: ServingProcess) -> int:
            set_up_logs(settings.log_level, settings.log_format, process=process.number)
            try:
                _serve(
                    settings.of_each_process,
                    listener,
                    announce_start=process.report_ready,
                    process=process,
                    siblings=Siblings(process.number, lines),
                )
            except ThreadkeepError as exc:
                return refuse(exc, given)
            return 0

        return Supervisor(settings.processes, work, partial(_announce_start, settings, listener)).run()


def _serve_reloading(
    settings: Settings, given: argparse.Namespace, listener: socket.socket, places: Collection[Path]
) -> int:
    """Serves in a process that starts again when a file changes."""
    hasty = replace(settings, shutdown_grace_s=min(settings.shutdown_grace_s, RELOAD_GRACE_S))

    def work(process: ServingProcess) -> int:
        sys.dont_write_bytecode = True  # two changes within a second look alike to it
        try:
            _serve(hasty, listener, announce_start=process.report_ready, process=process)
        except ThreadkeepError as exc:
            return refuse(exc, given)
        return 0

    announce_start = partial(_announce_start, settings, listener)
    return Reloader(WatchedFiles(places), work, announce_start, _announcer(settings)).run()


def _serve(
    settings: Settings,
    listener: socket.socket,
    *,
    announce_start: Callable[[], None],
    process: ServingProcess | None = None,
    siblings: Siblings | None = None,
) -> None:
    """Serves in this process."""
    app = create_app(settings, siblings=siblings)
    app.listens_at(*listener.getsockname()[:2])
    begun: list[asyncio.Task[None]] = []

    def ready() -> None:
        announce_start()
        is_first = process is None or process.number == 1
        begun.append(asyncio.create_task(_begin_model(app, settings, tells=is_first)))

    serve(
        app,
        listener,
        when_ready=ready,
        grace_s=settings.shutdown_grace_s,
        limits=ConnectionLimits(
            most=settings.max_connections,
            header_s=settings.header_timeout_s,
            keep_alive_s=settings.keep_alive_s,
        ),
        process=process,
    )


def _announcer(settings: Settings) -> Callable[[str], None]:
    """Where people read that the server has started; for programs, all lines have one format."""
    return log.info if settings.log_format == "json" else _print


def _announce_start(settings: Settings, listener: socket.socket) -> None:
    for line in _announcement(settings, listener):
        _announcer(settings)(line)


def _print(line: str) -> None:
    print(line, flush=True)


def _announcement(settings: Settings, listener: socket.socket) -> Iterator[str]:
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    processes = f" with {settings.processes} processes" if settings.processes > 1 else ""
    yield f"Threadkeep {__version__} is listening on http://{shown}:{port}{processes} ({_who(settings)})."
    if not settings.signs_in and sys.stdout.isatty():  # a terminal isn't kept, as a log is
        yield f"Open http://{shown}:{port}/#token={make_token(settings.data)}"
    if (file := settings_file().absolute()).exists():
        yield f"Settings: {file}"
    if model := _model(settings):
        yield f"Model: {model}"
    if settings.agents:
        checks = "; checked after each turn: what they do outside steps happens twice"
        yield f"Agents in code: {', '.join(settings.agents)}{checks if settings.check_agents else ''}."
    yield f"API reference: http://{shown}:{port}/docs   Data: {_where(settings)}   Stop: Ctrl-C"


def _who(settings: Settings) -> str:
    """Who has access."""
    if settings.signs_in:
        others = {"token": settings.takes_tokens, "invitation": settings.invitations == "on"}
        ways = [*settings.sign_in, *(name for name, is_on in others.items() if is_on)]
        return f"sign-in by {' or '.join(ways)}"
    if settings.require_token or is_token_required(settings.data):
        return "no sign-in; `threadkeep open` opens the page with the token"
    if Accounts().are_known:
        return "no sign-in; this account is the user `local`"
    return "no sign-in; everyone on this machine is the user `local`"


def _model(settings: Settings) -> str | None:
    """Which model answers, and where it is; None if one that was connected on the page would."""
    if not has_model(settings) and not settings.gateways:
        return None
    if settings.gateway != "local" or settings.gateways:
        models = build_models(settings)
        model = models.get(None)
        config = models.gateways[model.model.gateway].config
        if config.kind is GatewayKind.LOCAL:
            return f"{model.id} in this process"
        return f"{model.id} at {endpoint_of(settings, config).address.netloc.decode()}"
    if settings.model:
        return f"{settings.model} in this process"
    return None


def _where(settings: Settings) -> str:
    """Where the data is, without a password."""
    if settings.on_sqlite:
        return settings.database.removeprefix("sqlite:///")
    return "PostgreSQL"


async def _begin_model(app: Threadkeep, settings: Settings, *, tells: bool) -> None:
    """Says which model answers, unless the settings do; loads one that runs here before a request."""
    announce = _announcer(settings)
    tells = tells and _model(settings) is None
    try:
        model = (await app.services()).models.get(None)
    except GatewayNotConfigured:
        if tells:
            announce(f"Model: {NO_MODEL}")
        return
    if tells:
        is_connected = model.model.gateway not in build_models(settings).gateways
        told = f"{model.id}, connected on the page or over the API." if is_connected else DEMONSTRATION_MODEL
        announce(f"Model: {told}")
    if not isinstance(model.gateway, LocalGateway):
        return
    await asyncio.sleep(LOAD_AFTER_S)
    begun = time.monotonic()
    announce("Model: loading …")
    try:
        await model.gateway.load()
    except GatewayError as exc:
        announce(f"Model: {exc.message}")
    else:
        announce(f"Model: ready after {time.monotonic() - begun:.1f} s")
