"""A finding of the doctor."""

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["ok", "warning", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check; `advice` says what to do if something is wrong."""

    check: str
    verdict: Verdict
    message: str
    advice: str | None = None
