"""Run the server: stop it, continue after a crash, and read its log."""

from typing import Annotated, Literal

from msgspec import Meta

from threadkeep.settings.limits import LimitSettings


class RunningSettings(LimitSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the server runs."""

    resume_within_hours: Annotated[
        float,
        Meta(
            ge=0,
            description="Hours after which Threadkeep ends an abandoned turn instead of resuming it.",
        ),
    ] = 24
    shutdown_grace_s: Annotated[
        float,
        Meta(
            ge=0,
            le=3600,
            description="Seconds running turns get to finish when the server stops; a second signal stops it "
            "immediately.",
        ),
    ] = 10
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        Meta(description="Minimum level of log lines: debug, info, warning or error."),
    ] = "info"
    log_format: Annotated[
        Literal["text", "json"],
        Meta(description="Log format: text for people, or json with one object per line for programs."),
    ] = "text"
