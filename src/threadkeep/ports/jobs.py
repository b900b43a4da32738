"""Work that is done later, and not forgotten: it is kept in the database until it is done."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Job:
    """Something to do. `kind` names who knows how."""

    id: str
    kind: str
    arguments: Mapping[str, Any]
    attempts: int = 0

    @property
    def user_id(self) -> str:
        """For whom it is done, so that those of one user do not hold up another's; empty where for nobody."""
        return str(self.arguments.get("user_id", ""))


class JobStore(Protocol):
    """Where jobs wait."""

    async def add(self, job: Job, *, delay_ms: int = 0) -> None:
        """Keeps a job that is due after a delay; one just like it that waits is then due instead."""
        ...

    async def take(
        self, holder: str, kind: str, *, lease_ms: int, limit: int, not_for: Collection[str] = ()
    ) -> Sequence[Job]:
        """Takes due jobs of a kind; whoever took one and died gives it up when the lease runs out.

        Those for the users of `not_for` wait.
        """
        ...

    async def release(self, holder: str) -> None:
        """Gives back what a holder took and will not do, as if it had never been taken."""
        ...

    async def release_all(self) -> None:
        """Gives back what others took who are gone, for a process that is alone; their attempts count."""
        ...

    async def finish(self, job: Job) -> None:
        """Forgets a job that is done."""
        ...

    async def postpone(self, job: Job, *, delay_ms: int, error: str) -> None:
        """Puts a job back that could not be done."""
        ...
