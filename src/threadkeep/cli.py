"""The command line: `threadkeep serve`, `chat`, `export`, `import` and the others."""

import argparse
import asyncio
import logging
import os
import re
import socket
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from threadkeep.bootstrap import DEFAULT_MODELS, DEFAULT_URLS, create_app, has_model
from threadkeep.client.ingest import ingest
from threadkeep.client.terminal import chat
from threadkeep.data import export_user, import_file, reassign_user
from threadkeep.doctor import Finding, examine, refused_settings
from threadkeep.domain.errors import SettingsError, ThreadkeepError
from threadkeep.domain.ids import UserId
from threadkeep.domain.user import LOCAL, User, UserRole, user_id
from threadkeep.gateways.local import LocalGateway
from threadkeep.http.app import Threadkeep
from threadkeep.http.server import listen, serve
from threadkeep.http.tokens import issue_token
from threadkeep.logs import set_up_logs
from threadkeep.ports.gateway import GatewayError
from threadkeep.retrieval import tokens
from threadkeep.services import system_clock
from threadkeep.settings import PREFIX, Settings, misnamed, promptx_project
from threadkeep.storage.backup import back_up, restore
from threadkeep.version import __version__

log = logging.getLogger("threadkeep")

_TTL = re.compile(r"(\d+)([smhd]?)")
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
# Loading a model holds everything else up for a moment, so those who wait for the start go first.
LOAD_AFTER_S = 1.0
INGEST_S = 86_400
"""How long a token for `ingest` is valid: many large files take their time."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; errors that people can mend are told in one line."""
    parser = _parser()
    given = parser.parse_args(arguments)
    try:
        settings = Settings.load(
            host=getattr(given, "host", None), port=getattr(given, "port", None), data=given.data
        )
    except SettingsError as exc:
        if given.run is _doctor:
            return _report([refused_settings(exc)], given)
        print(f"threadkeep: {exc.message}", file=sys.stderr)
        return 1
    if given.run not in {_serve, _doctor}:  # these tell it among their own lines
        for it in misnamed():
            print(f"threadkeep: {it.message} {it.advice}", file=sys.stderr)
    try:
        status = given.run(settings, given)
        sys.stdout.flush()
        return status
    except ThreadkeepError as exc:
        print(f"threadkeep: {exc.message}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # whoever read, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="threadkeep", description="The conversation backend for AI agents.")
    parser.add_argument("--version", action="version", version=f"threadkeep {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--data", type=Path, help="folder in which everything lives (.threadkeep)")

    serve = commands.add_parser("serve", parents=[shared], help="run the server")
    serve.add_argument("--host", help="address to listen on (127.0.0.1)")
    serve.add_argument("--port", type=int, help="port to listen on (8710)")
    serve.set_defaults(run=_serve)

    chat = commands.add_parser("chat", parents=[shared], help="talk to an agent in the terminal")
    chat.add_argument("--agent", help="the agent's name (the default agent)")
    chat.add_argument("--url", help="a running Threadkeep (the usual one if it runs, else one of our own)")
    chat.add_argument("--token", help="who one is, where users sign in")
    chat.set_defaults(run=_chat)

    ingest = commands.add_parser("ingest", parents=[shared], help="give files to an agent to search")
    ingest.add_argument(
        "paths", type=Path, nargs="+", metavar="PATH", help="a file, or a folder with all in it"
    )
    ingest.add_argument("--agent", help="the agent's name (the default agent)")
    ingest.add_argument("--url", help="a running Threadkeep (the usual one if it runs, else one of our own)")
    who = ingest.add_mutually_exclusive_group()
    who.add_argument("--token", help="who one is, where users sign in")
    who.add_argument("--user", help="the same by a token that is made here; needs the server's secret")
    ingest.set_defaults(run=_ingest)

    token = commands.add_parser("token", parents=[shared], help="make a bearer token")
    token.add_argument("--user", required=True, help="the user's id")
    token.add_argument("--admin", action="store_true", help="with the admin role")
    token.add_argument("--ttl", type=_seconds, default=3600, help="how long it is valid, such as 30m, 1h, 7d")
    token.set_defaults(run=_token)

    mcp = commands.add_parser(
        "mcp", parents=[shared], help="run one of our MCP servers over stdin and stdout"
    )
    mcp.add_argument("server", choices=["promptx"], help="promptx: roles and memory of PROMPTX_PROJECT_DIR")
    mcp.set_defaults(run=_mcp)

    backup = commands.add_parser(
        "backup", parents=[shared], help="write everything into one file, also while the server runs"
    )
    backup.add_argument("file", type=Path, help="the file to make")
    backup.set_defaults(run=_backup)

    restore = commands.add_parser("restore", parents=[shared], help="make a data folder of a backup")
    restore.add_argument("file", type=Path, help="the backup")
    restore.set_defaults(run=_restore)

    export = commands.add_parser(
        "export", parents=[shared], help="write all data of a user into one file, also while the server runs"
    )
    export.add_argument("file", type=Path, help="the file to make, such as alice.zip")
    export.add_argument("--user", help="whose data (local, where nobody signs in)")
    export.set_defaults(run=_export)

    importing = commands.add_parser(
        "import", parents=[shared], help="bring in an export of Threadkeep, ChatGPT or Claude"
    )
    importing.add_argument("file", type=Path, help="a ZIP file, a folder or conversations.json")
    importing.add_argument("--user", help="whose it becomes (local, where nobody signs in)")
    importing.add_argument(
        "--agent",
        help="whom conversations of ChatGPT and Claude are with; made if missing (the default agent)",
    )
    importing.set_defaults(run=_import)

    reassign = commands.add_parser("reassign", parents=[shared], help="make everything of one user another's")
    reassign.add_argument("giver", help="whose everything is, such as local")
    reassign.add_argument("receiver", help="whose it becomes")
    reassign.set_defaults(run=_reassign)

    settings = commands.add_parser("settings", parents=[shared], help="print every setting")
    settings.add_argument("--markdown", action="store_true", help="as the table of docs/operating.md")
    settings.set_defaults(run=_settings)

    doctor = commands.add_parser(
        "doctor", parents=[shared], help="look everything over and say what to do; changes nothing"
    )
    doctor.add_argument("--json", action="store_true", help="for programs")
    doctor.set_defaults(run=_doctor)
    return parser


def _serve(settings: Settings, given: argparse.Namespace) -> int:
    settings.check_safe_to_listen()
    set_up_logs(settings.log_level, settings.log_format)
    for it in misnamed():
        log.warning("%s %s", it.message, it.advice)
    app = create_app(settings)
    loading: list[asyncio.Task[None]] = []
    # Where programs read the lines, all of them are in one form.
    tell = log.info if settings.log_format == "json" else _print

    def ready() -> None:
        for line in _announcement(settings, listener):
            tell(line)
        if settings.gateway == "local" and has_model(settings):
            loading.append(asyncio.create_task(_load_model(app, tell)))

    with listen(settings.host, settings.port) as listener:
        serve(app, listener, when_ready=ready, grace_s=settings.shutdown_grace_s)
    return 0


def _print(line: str) -> None:
    print(line, flush=True)


async def _load_model(app: Threadkeep, tell: Callable[[str], None]) -> None:
    """Loads the model after the start, so that the first to ask need not wait for it."""
    gateway = (await app.services()).gateway
    assert isinstance(gateway, LocalGateway)
    await asyncio.sleep(LOAD_AFTER_S)
    begun = time.monotonic()
    tell("Model: loading …")
    try:
        await gateway.load()
    except GatewayError as exc:
        tell(f"Model: {exc.message}")
    else:
        tell(f"Model: ready after {time.monotonic() - begun:.1f} s")


def _chat(settings: Settings, given: argparse.Namespace) -> int:
    logging.basicConfig(level=logging.ERROR, format="%(message)s")
    return chat(settings, agent=given.agent, url=given.url, token=given.token)


def _ingest(settings: Settings, given: argparse.Namespace) -> int:
    logging.basicConfig(level=logging.ERROR, format="%(message)s")
    token = _issue(settings, User(user_id(given.user)), INGEST_S) if given.user else given.token
    return ingest(settings, given.paths, agent=given.agent, url=given.url, token=token)


def _mcp(settings: Settings, given: argparse.Namespace) -> int:
    from threadkeep.mcp.promptx_stdio import serve_promptx  # noqa: PLC0415 - the MCP library takes long to load

    set_up_logs(settings.log_level, settings.log_format)
    asyncio.run(serve_promptx(promptx_project(), tokens, system_clock, __version__))
    return 0


def _backup(settings: Settings, given: argparse.Namespace) -> int:
    _check_sqlite(settings, "pg_dump")
    size = back_up(settings.data, given.file)
    print(f"{given.file}: {size / 1e6:.1f} MB. It holds the key to stored secrets; keep it safe.")
    return 0


def _restore(settings: Settings, given: argparse.Namespace) -> int:
    _check_sqlite(settings, "pg_restore")
    restore(given.file, settings.data)
    print(f"{given.file} was restored into {settings.data}.")
    return 0


def _export(settings: Settings, given: argparse.Namespace) -> int:
    return asyncio.run(export_user(settings, _whose(settings, given), given.file))


def _import(settings: Settings, given: argparse.Namespace) -> int:
    return asyncio.run(import_file(settings, given.file, _whose(settings, given), given.agent))


def _whose(settings: Settings, given: argparse.Namespace) -> UserId:
    if given.user is None and settings.signs_in:
        raise SettingsError("Users sign in here: name one with --user.")
    return user_id(given.user or LOCAL)


def _reassign(settings: Settings, given: argparse.Namespace) -> int:
    return asyncio.run(reassign_user(settings, user_id(given.giver), user_id(given.receiver)))


def _check_sqlite(settings: Settings, instead: str) -> None:
    if settings.database_url is not None:
        raise SettingsError(f"This is for the database in the data folder; for others use {instead}.")


def _announcement(settings: Settings, listener: socket.socket) -> Iterator[str]:
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    who = (
        "sign-in by token"
        if settings.signs_in
        else "no sign-in: everyone on this machine is the user `local`"
    )
    yield f"Threadkeep {__version__} listens on http://{shown}:{port} ({who})."
    yield f"Model: {_model(settings)}"
    yield f"Reference: http://{shown}:{port}/docs   Data: {_where(settings)}   Stop: Ctrl-C"


def _model(settings: Settings) -> str:
    """Which model answers, and where it is."""
    if not has_model(settings):
        return "none. Set ANTHROPIC_API_KEY or OPENAI_API_KEY; `threadkeep doctor` tells what else would do."
    if settings.gateway != "local":
        host = urlsplit(settings.gateway_url or DEFAULT_URLS[settings.gateway]).hostname
        return f"{settings.model or DEFAULT_MODELS[settings.gateway]} at {host}"
    if settings.model:
        return f"{settings.model} in this process"
    return (
        "a small demonstration model in this process, which knows little. Set ANTHROPIC_API_KEY or "
        "OPENAI_API_KEY for a real one."
    )


def _where(settings: Settings) -> str:
    """Where the data is, without a password."""
    if settings.database.startswith("sqlite"):
        return settings.database.removeprefix("sqlite:///")
    return "PostgreSQL"


def _token(settings: Settings, given: argparse.Namespace) -> int:
    user = User(user_id(given.user), UserRole.ADMIN if given.admin else UserRole.USER)
    print(_issue(settings, user, given.ttl))
    return 0


def _issue(settings: Settings, user: User, ttl_s: int) -> str:
    if not settings.jwt_secret:
        raise SettingsError(f"Tokens are made with {PREFIX}JWT_SECRET, which is not set.")
    return issue_token(
        settings.jwt_secret, user, ttl_s, issuer=settings.jwt_issuer, audience=settings.jwt_audience
    )


def _seconds(text: str) -> int:
    match = _TTL.fullmatch(text)
    if not match or not int(match[1]):
        raise argparse.ArgumentTypeError(f"{text!r} is not like 30m, 1h or 7d")
    return int(match[1]) * _SECONDS[match[2]]


def _settings(settings: Settings, given: argparse.Namespace) -> int:
    if given.markdown:
        print("| setting | value | what it does |\n|---|---|---|")
    for setting in settings.describe():
        value = "(set, not shown)" if setting.secret and setting.value else _shown(setting.value)
        if given.markdown:
            print(f"| `{PREFIX}{setting.name.upper()}` | {value} | {setting.documentation} |")
            continue
        print(f"{PREFIX}{setting.name.upper()} = {value}\n    {setting.documentation}")
    return 0


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(map(str, value)) or "(none)"  # pyright: ignore[reportUnknownArgumentType]
    return "(not set)" if value is None else str(value)


def _doctor(settings: Settings, given: argparse.Namespace) -> int:
    logging.getLogger().addHandler(logging.NullHandler())  # what is worth telling is in the findings
    return _report(asyncio.run(_examined(settings)), given)


async def _examined(settings: Settings) -> list[Finding]:
    return [finding async for finding in examine(settings, os.environ)]


def _report(findings: Sequence[Finding], given: argparse.Namespace) -> int:
    """Tells what was found; 1 where something is a problem."""
    counts = Counter(finding.verdict for finding in findings)
    if given.json:
        answer = {"version": __version__, "ok": not counts["problem"], "findings": findings}
        print(msgspec.json.format(msgspec.json.encode(answer)).decode())
        return min(counts["problem"], 1)
    print(f"threadkeep {__version__}, Python {sys.version.split()[0]}, SQLite {sqlite3.sqlite_version}")
    for finding in findings:
        print(f"{finding.verdict:8} {finding.check}: {finding.message}")
        if finding.advice and finding.verdict != "ok":
            print(f"{'':8} → {finding.advice}")
    print(f"{counts['ok']} ok, {counts['warning']} warnings, {counts['problem']} problems")
    return min(counts["problem"], 1)
