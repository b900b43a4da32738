"""What matters before strangers reach the server: one finding for each point of docs/operating.md."""

import os
from collections.abc import Iterator

from threadkeep.doctor.finding import Finding, Verdict
from threadkeep.loopback import is_loopback
from threadkeep.settings import PREFIX, Settings

_PACKAGES = {"npx", "uvx"}
_ROOT = 0


def check_internet(settings: Settings) -> Iterator[Finding]:
    """Who gets in, what programs may do, and what each user may spend."""
    yield from _who_gets_in(settings)
    yield from _what_runs(settings)
    yield from _what_is_spent(settings)


def _who_gets_in(settings: Settings) -> Iterator[Finding]:
    yield _point(
        "sign-in",
        "Users sign in." if settings.signs_in else None,
        otherwise="Nobody signs in: whoever reaches the server is its admin.",
        advice=f"Set {PREFIX}JWKS_URL or {PREFIX}JWT_SECRET.",
        verdict="problem",
    )
    yield _point(
        "address",
        f"Only this machine reaches {settings.host}." if is_loopback(settings.host) else None,
        otherwise=f"It listens on {settings.host} without TLS: tokens can be read on the way.",
        advice=f"Put a proxy with TLS in front; set {PREFIX}HOST=127.0.0.1, or let only it reach the port.",
    )
    yield _point(
        "names",
        f"It answers as {', '.join(settings.allowed_hosts)}." if settings.allowed_hosts else None,
        otherwise="It has no public name: what a proxy passes on is refused.",
        advice=f"List the name under which it is reached in {PREFIX}ALLOWED_HOSTS.",
        verdict="problem",
    )
    plain = [it for it in settings.cors_origins if not it.startswith("https://")]
    yield _point(
        "origins",
        None if plain else "Web pages of other origins call it over TLS only, if at all.",
        otherwise=f"Pages that anybody on the way can change may call it: {', '.join(plain)}.",
        advice=f"List origins with https:// in {PREFIX}CORS_ORIGINS.",
    )


def _what_runs(settings: Settings) -> Iterator[Finding]:
    yield _point(
        "account",
        None if os.geteuid() == _ROOT else "It does not run as root.",
        otherwise="It runs as root: whoever breaks out of it has the machine.",
        advice="Run it, and this command, under an account of its own.",
        verdict="problem",
    )
    yield _point(
        "encryption",
        "Secrets and session ids are encrypted." if settings.on_sqlite or settings.secret_keys else None,
        otherwise="Session ids are stored as they are: whoever reads the database can follow conversations.",
        advice=f"Set {PREFIX}SECRET_KEY to 32 characters or more, the same on every node.",
        verdict="problem",
    )
    others = sorted(set(settings.mcp_allowed_commands) - _PACKAGES)
    is_safe = settings.mcp_stdio == "admin" and not others
    yield _point(
        "programs",
        "Only admins add programs, and those are packages." if is_safe else None,
        otherwise=f"Any owner adds programs ({', '.join(settings.mcp_allowed_commands)})."
        if settings.mcp_stdio == "owner"
        else f"Admins may run more than packages: {', '.join(others)}.",
        advice=f"Leave {PREFIX}MCP_STDIO at admin and {PREFIX}MCP_ALLOWED_COMMANDS at npx,uvx.",
        verdict="problem" if settings.mcp_stdio == "owner" and settings.mcp_sandbox == "off" else "warning",
    )
    yield _point(
        "networks",
        None if settings.mcp_allow_private else "Users' MCP servers reach no private network.",
        otherwise="Users can have the server call addresses of your own network.",
        advice=f"Unset {PREFIX}MCP_ALLOW_PRIVATE.",
        verdict="problem",
    )


def _what_is_spent(settings: Settings) -> Iterator[Finding]:
    yield _point(
        "models",
        f"Agents may name {', '.join(settings.allowed_models)}." if settings.allowed_models else None,
        otherwise="Every user may choose the most expensive model.",
        advice=f"List those that may be chosen in {PREFIX}ALLOWED_MODELS.",
    )
    yield _cap("tokens", settings.max_reply_tokens, "tokens in a reply", "MAX_REPLY_TOKENS")
    yield _cap("iterations", settings.max_iterations, "model calls in a turn", "MAX_ITERATIONS")
    yield _cap("messages", settings.max_message_chars, "characters in a message", "MAX_MESSAGE_CHARS")
    yield _cap("turns a minute", settings.user_turns_per_minute, "turns a minute", "USER_TURNS_PER_MINUTE")
    yield _cap("turns at once", settings.user_running_turns, "turns at once", "USER_RUNNING_TURNS")
    yield _cap("documents", settings.user_documents, "documents of a user", "USER_DOCUMENTS")
    yield _cap("bytes", settings.user_bytes, "bytes of a user's documents", "USER_BYTES")
    yield _point(
        "publishing",
        "Only admins make agents public." if settings.publish == "admin" else None,
        otherwise="Every user may show an agent to all others.",
        advice=f"Set {PREFIX}PUBLISH=admin, unless your users trust each other.",
    )


def _cap(check: str, most: int, what: str, setting: str) -> Finding:
    return _point(
        check,
        f"At most {most} {what}." if most else None,
        otherwise=f"There is no limit on {what}.",
        advice=f"Set {PREFIX}{setting}.",
    )


def _point(
    check: str, well: str | None, *, otherwise: str, advice: str, verdict: Verdict = "warning"
) -> Finding:
    """What is said of one point: that it is well, or what is not and what to do."""
    return Finding(check, "ok", well) if well else Finding(check, verdict, otherwise, advice)
