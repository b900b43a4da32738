"""Checks for a server on the internet: one finding for each point of docs/hardening.md."""

import os
from collections.abc import Iterator

from threadkeep.doctor.finding import Finding, Verdict
from threadkeep.domain.sign_in.session import Invitation
from threadkeep.domain.times import time_in
from threadkeep.domain.user import UserRole
from threadkeep.loopback import is_loopback
from threadkeep.settings import PREFIX, Settings
from threadkeep.storage.inspection import Inspection

_PACKAGES = {"npx", "uvx"}
_ROOT = 0


def check_internet(settings: Settings) -> Iterator[Finding]:
    """Who can sign in, what programs may do, and what each user may spend."""
    yield from _who_gets_in(settings)
    yield from _what_runs(settings)
    yield from _what_is_spent(settings)


def check_invitations(inspection: Inspection | None) -> Finding:
    """Whose links would sign somebody in who found them."""
    found = inspection.open_invitations if inspection else ()
    return _point(
        "invitations",
        None if found else "No invitation is open.",
        otherwise=f"Whoever has one of these links signs in with it: {', '.join(map(_invited, found))}.",
        advice="Withdraw those that nobody needs, in the list of users.",
    )


def _invited(it: Invitation) -> str:
    role = " (an admin)" if it.role is UserRole.ADMIN else ""
    return f"{it.user_id}{role} until {time_in(it.expires_at):%Y-%m-%d %H:%M} UTC"


def _who_gets_in(settings: Settings) -> Iterator[Finding]:
    yield _point(
        "sign-in",
        "Users sign in." if settings.signs_in else None,
        otherwise="Sign-in is off: anyone who reaches the server is an admin.",
        advice=f"Set {PREFIX}JWKS_URL or {PREFIX}JWT_SECRET.",
        verdict="problem",
    )
    yield _point(
        "address",
        f"Only this machine can reach {settings.host}." if is_loopback(settings.host) else None,
        otherwise=f"It listens on {settings.host} without TLS: others can read tokens in transit.",
        advice=f"Put a TLS proxy in front. Set {PREFIX}HOST=127.0.0.1, or let only the proxy reach the port.",
    )
    names = _public_names(settings)
    yield _point(
        "names",
        f"It accepts requests for {', '.join(names)}." if names else None,
        otherwise="It has no public name, so it refuses requests from a proxy.",
        advice=f"Set {PREFIX}PUBLIC_URL, or add its public name to {PREFIX}ALLOWED_HOSTS.",
        verdict="problem",
    )
    plain = [it for it in settings.cors_origins if not it.startswith("https://")]
    yield _point(
        "origins",
        None if plain else "Only HTTPS pages of other origins can call it, if any.",
        otherwise=f"Pages without TLS, which others can tamper with, can call it: {', '.join(plain)}.",
        advice=f"List only https:// origins in {PREFIX}CORS_ORIGINS.",
    )


def _what_runs(settings: Settings) -> Iterator[Finding]:
    yield _point(
        "account",
        None if os.geteuid() == _ROOT else "It doesn't run as root.",
        otherwise="It runs as root: an attacker who breaks out of it controls the machine.",
        advice="Run it, and this command, under a dedicated account.",
        verdict="problem",
    )
    yield _point(
        "encryption",
        "Secrets and session ids are encrypted." if settings.on_sqlite or settings.secret_keys else None,
        otherwise="Session ids are stored unencrypted: anyone with the database can follow conversations.",
        advice=f"Set {PREFIX}SECRET_KEY to at least 32 characters, the same on every node.",
        verdict="problem",
    )
    others = sorted(set(settings.mcp_allowed_commands) - _PACKAGES)
    is_safe = settings.mcp_stdio == "admin" and not others
    yield _point(
        "programs",
        "Only admins can add programs, and only as packages." if is_safe else None,
        otherwise=f"Any owner can add programs ({', '.join(settings.mcp_allowed_commands)})."
        if settings.mcp_stdio == "owner"
        else f"Admins can run more than packages: {', '.join(others)}.",
        advice=f"Leave {PREFIX}MCP_STDIO at admin and {PREFIX}MCP_ALLOWED_COMMANDS at npx,uvx.",
        verdict="problem" if settings.mcp_stdio == "owner" and settings.mcp_sandbox == "off" else "warning",
    )
    yield _point(
        "networks",
        None if settings.mcp_allow_private else "Users' MCP servers can't reach private networks.",
        otherwise="Users can make the server call addresses in your network.",
        advice=f"Unset {PREFIX}MCP_ALLOW_PRIVATE.",
        verdict="problem",
    )


def _what_is_spent(settings: Settings) -> Iterator[Finding]:
    yield _point(
        "models",
        f"Agents can use {', '.join(settings.allowed_models)}." if settings.allowed_models else None,
        otherwise="Every user can choose the most expensive model.",
        advice=f"List the allowed models in {PREFIX}ALLOWED_MODELS.",
    )
    yield _cap("tokens", settings.max_reply_tokens, "tokens per reply", "MAX_REPLY_TOKENS")
    yield _cap("iterations", settings.max_iterations, "model calls per turn", "MAX_ITERATIONS")
    yield _cap("messages", settings.max_message_chars, "characters per message", "MAX_MESSAGE_CHARS")
    yield _cap("turns a minute", settings.user_turns_per_minute, "turns per minute", "USER_TURNS_PER_MINUTE")
    yield _cap("turns at once", settings.user_running_turns, "turns at once", "USER_RUNNING_TURNS")
    yield _cap(
        "uploads a minute",
        settings.user_uploads_per_minute,
        "uploaded files per minute",
        "USER_UPLOADS_PER_MINUTE",
    )
    yield _cap(
        "writes a minute",
        settings.user_writes_per_minute,
        "other new things per minute",
        "USER_WRITES_PER_MINUTE",
    )
    yield _cap("documents", settings.user_documents, "documents per user", "USER_DOCUMENTS")
    yield _cap("bytes", settings.user_bytes, "bytes of text, documents and files per user", "USER_BYTES")
    yield _point(
        "publishing",
        "Only admins can make agents public." if settings.publish == "admin" else None,
        otherwise="Every user can show an agent to all others.",
        advice=f"Set {PREFIX}PUBLISH=admin unless your users trust each other.",
    )


def _cap(check: str, most: int, what: str, setting: str) -> Finding:
    return _point(
        check,
        f"At most {most} {what}." if most else None,
        otherwise=f"No limit on {what}.",
        advice=f"Set {PREFIX}{setting}.",
    )


def _point(
    check: str, well: str | None, *, otherwise: str, advice: str, verdict: Verdict = "warning"
) -> Finding:
    """The finding for one point: it is fine, or what is wrong and how to fix it."""
    return Finding(check, "ok", well) if well else Finding(check, verdict, otherwise, advice)


def _public_names(settings: Settings) -> list[str]:
    """The names other than loopback under which the server is reached."""
    public_url = settings.sign_in_rules.public_url
    of_url = [] if public_url is None or is_loopback(public_url.host) else [public_url.host]
    return list(dict.fromkeys([*of_url, *settings.allowed_hosts]))
