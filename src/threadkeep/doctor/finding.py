"""What the doctor says of one thing."""

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["ok", "warning", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at; `advice` tells what to do where something is wrong."""

    check: str
    verdict: Verdict
    message: str
    advice: str | None = None
