"""One run of an import: the file that a user uploaded, its progress, and where every node can read that.

What is imported stays, whatever happens to the run. Importing the same file again adds nothing twice.
"""

from collections.abc import Sequence
from typing import Protocol

from threadkeep.domain.ids import ImportId, UserId
from threadkeep.domain.import_run import ImportFailure, ImportProgress, ImportRun, ImportStatus


class ImportRunStore(Protocol):
    """The latest runs of each user."""

    async def begin(self, run: ImportRun, *, most: int) -> ImportId | None:
        """Stores a new run and deletes all but the latest `most`, unless another runs: returns its id."""
        ...

    async def note(self, run_id: ImportId, progress: ImportProgress) -> bool:
        """Stores a run's progress; returns whether it may go on. It may not if it was stopped or replaced."""
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
