"""Background work, stored in the database until it is done."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Job:
    """A job. `kind` selects its handler."""

    id: str
    kind: str
    arguments: Mapping[str, Any]
    attempts: int = 0
    holder: str | None = None
    """Who claimed it. Together with `attempts`, which every claim raises, it names the claim."""

    @property
    def user_id(self) -> str:
        """The user it is for, so that one user's jobs don't delay another's; empty for none."""
        return str(self.arguments.get("user_id", ""))


class JobStore(Protocol):
    """The queue of jobs."""

    async def add(self, job: Job, *, delay_ms: int = 0) -> None:
        """Stores a job that is due after a delay; an identical waiting job is rescheduled instead."""
        ...

    async def take(
        self, holder: str, kind: str, *, lease_ms: int, limit: int, not_for: Collection[str] = ()
    ) -> Sequence[Job]:
        """Claims due jobs of a kind; if the holder dies, its claim ends with the lease.

        Jobs for the users in `not_for` wait.
        """
        ...

    async def renew(self, job: Job, *, lease_ms: int) -> bool:
        """Extends a claim by a lease from now; False if it has ended, and the job may be another's."""
        ...

    async def release(self, holder: str) -> None:
        """Releases jobs that a holder claimed and won't do, as if never claimed."""
        ...

    async def release_all(self) -> None:
        """Releases all claimed jobs, for a process that is alone; their attempts count."""
        ...

    async def finish(self, job: Job) -> bool:
        """Deletes a finished job; False if its claim has ended, and it may be another's."""
        ...

    async def postpone(self, job: Job, *, delay_ms: int, error: str) -> bool:
        """Returns a failed job to the queue; False if its claim has ended, and it may be another's."""
        ...
