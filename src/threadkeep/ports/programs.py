"""Programs that are agents, wherever they run."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from threadkeep.wire.programs import FromProgram, Start, ToProgram


class ProgramLost(Exception):
    """The process or connection that ran the program is gone."""


@dataclass(frozen=True, slots=True)
class Code:
    """The code of an agent: which agent it is, and how new."""

    key: str
    version: int


class ProgramRun(Protocol):
    """One run of a program's function for one turn, from the top."""

    @property
    def answers(self) -> bool:
        """Whether the program could react now: nothing blocks its loop."""
        ...

    def send(self, message: ToProgram) -> None:
        """Passes a message on, in order."""
        ...

    async def receive(self) -> FromProgram:
        """The next message; raises ProgramLost when there will be none."""
        ...

    async def close(self) -> None:
        """Ends the run; nothing that the program still does reaches the turn."""
        ...


class Programs(Protocol):
    """The programs that this node can run."""

    @property
    def codes(self) -> Sequence[Code]:
        """Which agents they are."""
        ...

    def start(self, start: Start) -> ProgramRun:
        """Runs a program for a turn."""
        ...
