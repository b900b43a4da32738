"""The code of agents that are programs."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Code:
    """The code of an agent: which agent it is, and how new."""

    key: str
    version: int
