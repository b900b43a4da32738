"""Reach the server: where it listens, who may call it, how much it accepts and how long it waits."""

from typing import Annotated

import msgspec
from msgspec import Meta

from threadkeep.domain.errors import SettingsError
from threadkeep.settings.values import split_url


class ReachSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the server is reached."""

    host: Annotated[str, Meta(description="Address to listen on.")] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535, description="Port to listen on; 0 picks a free one.")] = 8710
    allowed_hosts: Annotated[
        tuple[str, ...],
        Meta(description="Host names the server accepts besides loopback; comma-separated."),
    ] = ()
    cors_origins: Annotated[
        tuple[str, ...],
        Meta(
            description="Web origins allowed to call the server from a browser, besides its own; "
            "comma-separated."
        ),
    ] = ()
    max_connections: Annotated[
        int,
        Meta(
            ge=1,
            description="Maximum number of open connections; beyond it, the connection idle the longest is "
            "closed. The system's limit on open files lowers it.",
        ),
    ] = 10_000
    max_idle_sockets: Annotated[
        int,
        Meta(
            ge=1,
            description="Maximum /ws connections without a session; beyond it, the oldest is closed.",
        ),
    ] = 500
    header_timeout_s: Annotated[
        float, Meta(gt=0, le=3600, description="Seconds for a request's headers to arrive.")
    ] = 10
    body_timeout_s: Annotated[
        float,
        Meta(
            gt=0,
            le=3600,
            description="Seconds that a body may pause; it must arrive at 8 KB a second on average.",
        ),
    ] = 20
    keep_alive_s: Annotated[
        int, Meta(ge=1, le=3600, description="Seconds an idle connection waits for its next request.")
    ] = 30
    max_body_bytes: Annotated[
        int,
        Meta(
            ge=1024,
            description="Maximum body size for messages and executions; a larger body gets a 413. Other "
            "routes accept 64 KB; those for agents, prompts and briefings, 256 KB.",
        ),
    ] = 10 * 1024 * 1024

    def check_reach(self) -> None:
        """Rejects what is not an origin."""
        for origin in self.cors_origins:
            parts = split_url(origin, "CORS_ORIGINS")
            if parts.scheme not in {"http", "https"} or not parts.hostname:
                raise SettingsError(
                    f"THREADKEEP_CORS_ORIGINS: {origin!r} is not an origin such as https://app.example."
                )
