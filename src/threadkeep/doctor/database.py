"""Whether the database is usable and its secrets are readable."""

from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from threadkeep.doctor.finding import Finding
from threadkeep.domain.errors import StorageError
from threadkeep.settings import IN_FILE, PREFIX, Settings
from threadkeep.storage.inspection import Inspection
from threadkeep.storage.secrets import SealedSecret
from threadkeep.storage.store import delivers_notifications

OTHER_CONNECTIONS = 4
"""Of each process besides its pool: two for turn logs, one for leases, and one to listen to other nodes."""


def unreachable_database(environment: Mapping[str, str]) -> str:
    """What to do if it can't be opened; names the settings that this installation has."""
    named = [
        f"{name} ({environment[name]})" if name.endswith(IN_FILE) else name
        for name in (
            f"{PREFIX}{setting}{end}"
            for setting in ("DATABASE_URL", "DATABASE_PASSWORD")
            for end in ("", IN_FILE)
        )
        if environment.get(name)
    ]
    what = " and ".join(named or [f"{PREFIX}DATABASE_URL"])
    return f"Check {what}. Is the database running, and does it accept this user and password?"


def check_database(settings: Settings, inspection: Inspection | None) -> Iterator[Finding]:
    """Whether it is writable and of this version; without an inspection there is no file yet."""
    if inspection is None:
        yield Finding("database", "ok", "SQLite file, created at the first start.")
        return
    if inspection.incompatible:
        yield Finding("database", "problem", inspection.incompatible.reason, inspection.incompatible.advice)
    if inspection.refusal:
        advice = "Connect Threadkeep to the primary, with a user that owns its tables."
        yield Finding("database", "problem", inspection.refusal, advice)
    if inspection.missing_count:
        waiting = f"The next start applies {inspection.missing_count} migrations."
        yield Finding("database", "ok", f"{inspection.version}{_named(settings)}; {waiting}")
    elif not inspection.incompatible and not inspection.refusal:
        found = f"{inspection.version}{_named(settings)}; reachable, writable and up to date."
        yield Finding("database", "ok", found)


def _named(settings: Settings) -> str:
    """Which one it is on PostgreSQL: `--data` doesn't choose it, so it may not belong to that folder."""
    if settings.on_sqlite:
        return ""
    url = urlsplit(settings.database)
    return f", database {url.path.removeprefix('/')} on {url.hostname or 'this machine'}"


def check_connections(settings: Settings, inspection: Inspection | None) -> Iterator[Finding]:
    """Whether the database server has a connection for each one that we may open."""
    most = inspection.most_connections if inspection else None
    if most is None:
        return
    ours = settings.processes * (settings.of_each_process.database_pool_size + OTHER_CONNECTIONS)
    processes = "1 process" if settings.processes == 1 else f"{settings.processes} processes"
    used = f"{processes} may use {ours} connections; the database server has {most}."
    if ours > most:
        advice = (
            f"Lower {PREFIX}DATABASE_POOL_SIZE or {PREFIX}PROCESSES, or raise the server's max_connections."
        )
        yield Finding("connections", "problem", used, advice)
    else:
        yield Finding("connections", "ok", used)


async def check_bus(settings: Settings) -> Finding:
    """Whether nodes on PostgreSQL hear each other."""
    if settings.bus_url:
        return Finding("bus", "ok", f"Nodes ask the database ({PREFIX}BUS_URL={settings.bus_url}).")
    try:
        arrives = await delivers_notifications(settings.database)
    except StorageError as exc:
        return Finding("bus", "problem", exc.message, "Is the database still running? Try again.")
    if arrives:
        return Finding("bus", "ok", "LISTEN works: nodes notify each other at once.")
    return Finding(
        "bus",
        "problem",
        "Notifications don't arrive through LISTEN, as behind a connection pooler in transaction mode "
        "(PgBouncer): nodes don't hear each other.",
        f"Set {PREFIX}BUS_URL=poll:, or connect to PostgreSQL itself.",
    )


def check_retention(settings: Settings, inspection: Inspection | None) -> Iterator[Finding]:
    """What the rule for conversations without messages does, before it does it."""
    if inspection is None:
        return
    told, untold = inspection.conversations_to_delete, inspection.conversations_to_note
    if not (settings.delete_after_days or told or untold):
        return
    rule = (
        f"Conversations are deleted after {settings.delete_after_days} days without a message."
        if settings.delete_after_days
        else "Only agents with a rule of their own lose conversations without messages."
    )
    yield Finding(
        "retention", "ok", f"{rule} {told} will be, as their users can see; the next sweep adds {untold}."
    )


def check_secret_key(
    settings: Settings, inspection: Inspection | None, sealing_key: str | None
) -> Iterator[Finding]:
    """Whether stored secrets are readable, and new ones can be stored."""
    kept = [
        secret
        for agent in (inspection.agents if inspection else ())
        for server in agent.settings.mcp_servers.values()
        for secret in server.secrets.values()
    ]
    remotes = [agent.remote for agent in (inspection.agents if inspection else ()) if agent.remote]
    kept += [secret for remote in remotes for secret in remote.headers.values()]
    kept += [it.config.api_key for it in (inspection.gateways if inspection else ()) if it.config.api_key]
    lost = sum(isinstance(secret, SealedSecret) and not secret.is_readable for secret in kept)
    if lost:
        yield Finding(
            "secret key",
            "problem",
            f"{lost} of {len(kept)} stored secrets can't be decrypted.",
            f"Add their key to {PREFIX}SECRET_KEY, or enter the secrets again.",
        )
    elif sealing_key is None and not settings.on_sqlite:
        yield Finding(
            "secret key",
            "warning",
            "Not set: Threadkeep can't store keys of gateways or secrets of MCP servers, people have to sign "
            "in with their provider every day, and session ids are stored unencrypted.",
            f"Set {PREFIX}SECRET_KEY to at least 32 random characters, the same on every node.",
        )
    elif sealing_key is None:
        yield Finding("secret key", "ok", "Created in the data folder at the first start.")
    else:
        yield Finding("secret key", "ok", f"Set; it decrypts all {len(kept)} stored secrets.")
