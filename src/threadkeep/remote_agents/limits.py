"""How much another server may send for one run."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLimits:
    """The limits of one run; a run that exceeds one ends there, and keeps what it has said."""

    frame_bytes: int = 2 * 1024 * 1024
    run_bytes: int = 64 * 1024 * 1024
    events: int = 100_000
    text_characters: int = 4 * 1024 * 1024
    """Of texts and thoughts together."""
    argument_characters: int = 1024 * 1024
    """Of one call of a tool."""
    calls: int = 500
    steps: int = 500
    interrupts: int = 50
    silence_s: float = 300.0
    """How long the server may send nothing, not even a comment."""
    connect_s: float = 10.0
    thread_bytes: int = 5 * 1024 * 1024
    """Of the thread's messages, which are kept for the next turn."""
    state_bytes: int = 2 * 1024 * 1024


LIMITS = RunLimits()
