"""Storage of how far imports have come, so that every node knows."""

from collections.abc import Sequence
from typing import Protocol

from threadkeep.domain.exchange.import_run import ImportFailure, ImportProgress, ImportRun, ImportStatus
from threadkeep.domain.ids import ImportId, UserId

SILENT_MS = 30_000
"""A run that has noted nothing for so long has lost its node: it was interrupted."""


class ImportRunStore(Protocol):
    """The latest runs of each user."""

    async def begin(self, run: ImportRun, *, most: int) -> ImportId | None:
        """Stores a new run and forgets all but the latest `most`, unless another one runs: returns its id."""
        ...

    async def note(self, run_id: ImportId, progress: ImportProgress) -> bool:
        """Notes how far a run has come; returns whether it goes on: nobody stopped it or took its place."""
        ...

    async def end(
        self,
        run_id: ImportId,
        status: ImportStatus,
        progress: ImportProgress,
        now: int,
        failure: ImportFailure | None = None,
    ) -> None:
        """Ends a run that has not ended yet."""
        ...

    async def get(self, user_id: UserId, run_id: ImportId) -> ImportRun | None:
        """One of the user's runs."""
        ...

    async def latest(self, user_id: UserId) -> Sequence[ImportRun]:
        """The user's runs, newest first."""
        ...

    async def ask_to_stop(self, user_id: UserId, run_id: ImportId) -> None:
        """Asks the node of a run to stop it, if it still runs."""
        ...
