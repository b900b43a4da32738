"""Whether the database can be used, and its secrets be read."""

from collections.abc import Iterator

from threadkeep.doctor.finding import Finding
from threadkeep.settings import PREFIX, Settings
from threadkeep.storage.look import Look
from threadkeep.storage.secrets import SealedSecret


def check_database(look: Look | None) -> Iterator[Finding]:
    """Whether it is of this version and can be written; without a look there is no file yet."""
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


def check_secret_key(settings: Settings, look: Look | None, sealing_key: str | None) -> Iterator[Finding]:
    """Whether the secrets that are kept can be read, and new ones be kept."""
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
    elif sealing_key is None and not settings.on_sqlite:
        yield Finding(
            "secret key", "warning", "There is none: secrets of MCP servers cannot be stored.",
            f"Set {PREFIX}SECRET_KEY to 32 random characters or more, the same on every node.",
        )  # fmt: skip
    elif sealing_key is None:
        yield Finding("secret key", "ok", "It is made in the data folder with the first secret.")
    else:
        yield Finding("secret key", "ok", f"There is one; it reads all of {len(kept)} stored secrets.")
