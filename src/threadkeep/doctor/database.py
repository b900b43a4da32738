"""Whether the database can be used, and its secrets be read."""

from collections.abc import Iterator

from threadkeep.doctor.finding import Finding
from threadkeep.settings import PREFIX, Settings
from threadkeep.storage.inspection import Inspection
from threadkeep.storage.secrets import SealedSecret


def check_database(inspection: Inspection | None) -> Iterator[Finding]:
    """Whether it is of this version and can be written; without one there is no file yet."""
    if inspection is None:
        yield Finding("database", "ok", "A SQLite file, which is made at the first start.")
        return
    if inspection.unknown:
        message = f"A newer Threadkeep has changed it (migration {inspection.unknown[-1]})."
        yield Finding("database", "problem", message, "Upgrade Threadkeep, or restore the backup of before.")
    if inspection.refusal:
        advice = "Give Threadkeep the primary, and a user that owns its tables."
        yield Finding("database", "problem", inspection.refusal, advice)
    if inspection.missing and not inspection.unknown:
        waiting = f"{len(inspection.missing)} migrations are applied at the next start."
        yield Finding("database", "ok", f"{inspection.version}; {waiting}")
    elif not inspection.unknown and not inspection.refusal:
        yield Finding("database", "ok", f"{inspection.version}; reachable, writable and up to date.")


def check_secret_key(
    settings: Settings, inspection: Inspection | None, sealing_key: str | None
) -> Iterator[Finding]:
    """Whether the secrets that are kept can be read, and new ones be kept."""
    kept = [
        secret
        for agent in (inspection.agents if inspection else ())
        for server in agent.settings.mcp_servers.values()
        for secret in server.secrets.values()
    ]
    lost = sum(isinstance(secret, SealedSecret) and not secret.is_readable for secret in kept)
    if lost:
        yield Finding(
            "secret key",
            "problem",
            f"{lost} of {len(kept)} stored secrets cannot be read with it.",
            f"Add the key that they were stored with to {PREFIX}SECRET_KEY, or give the secrets again.",
        )
    elif sealing_key is None and not settings.on_sqlite:
        yield Finding(
            "secret key",
            "warning",
            "There is none: secrets of MCP servers cannot be stored, and session ids are stored as they are.",
            f"Set {PREFIX}SECRET_KEY to 32 random characters or more, the same on every node.",
        )
    elif sealing_key is None:
        yield Finding("secret key", "ok", "It is made in the data folder at the first start.")
    else:
        yield Finding("secret key", "ok", f"There is one; it reads all of {len(kept)} stored secrets.")
