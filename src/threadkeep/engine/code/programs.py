"""Programs that are agents, wherever they run."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from threadkeep.domain.agent import BlockedLoop, Code, Places
from threadkeep.wire.programs import FromProgram, Start, ToProgram


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

    @property
    def blocked(self) -> BlockedLoop | None:
        """What keeps their event loop from answering; None if it answers."""
        ...

    @property
    def blocked_total_s(self) -> float:
        """For how long it has not answered so far, all times together."""
        ...

    @property
    def places(self) -> Mapping[str, Places]:
        """Where their functions run that block, by what is run there."""
        ...

    def start(self, start: Start) -> ProgramRun:
        """Runs a program for a turn."""
        ...
