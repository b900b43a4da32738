"""The periodic jobs: what every node does once an hour, in this order.

To add a job, name it in `HourlyJobs` and say there what it is for; `bootstrap/jobs.py` gives it its function.
What can't wait an hour, such as the renewal of leases, beats every second in `runtime/node.py`.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, fields
from functools import partial

from threadkeep.loops import Loops, SomeFailed, do_each
from threadkeep.tasks import end_tasks

log = logging.getLogger("threadkeep")

EVERY_S = 3600
RETRY_AFTER_AT_MOST_S = 300.0
ORPHANED_S = 3600  # a younger file's row may still be on its way

HourlyJob = Callable[[], Awaitable[int | None]]
"""May return how many things it removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HourlyJobs:
    """The table of periodic jobs. The logs call each by its name here."""

    conversations_without_messages: HourlyJob
    """Deletes conversations without a message for as long as the operator or an agent's owner allows, a while
    after noting it for their users.
    """
    deleted_conversations: HourlyJob
    """Purges conversations that were deleted longer ago than the retention period, and what is left of
    imports, forks and purges that a crash has ended.
    """
    runs_without_a_turn: HourlyJob
    """Makes turns of other engines' complete runs, where a crash came in between."""
    turn_logs: HourlyJob
    """Trims the logs of turns that ended long ago; their replies have what they said."""
    requests_of_ended_turns: HourlyJob
    """Closes expired requests of turns that have ended."""
    receipt_prompts: HourlyJob
    """Deletes prompt texts that no receipt refers to."""
    leftovers_of_deleted_users: HourlyJob
    """Finishes interrupted deletions, and cleans up after a host application that deletes users in the shared
    database.
    """
    agent_folders: HourlyJob
    """Removes the folders of agents that no longer exist."""
    document_files: HourlyJob
    """Fails documents whose processing stalled, and removes files and chunks of deleted ones."""
    documents_without_vectors: HourlyJob
    """Queues the embedding of chunks that the current model hasn't embedded."""
    conversations_missing_from_search: HourlyJob
    """Indexes conversations that aren't indexed yet, such as those of a stopped node."""
    files_without_a_message: HourlyJob
    """Deletes files that no message used in time, and leftovers of uploads after a crash."""
    unreferenced_payloads: HourlyJob
    """Deletes contents that no payload refers to, as a crash may leave them."""
    abandoned_reservations: HourlyJob
    """Charges in full what was reserved for model calls that nobody is left to charge."""
    repeatable_requests: HourlyJob
    """Forgets how requests with an `Idempotency-Key` were answered, a day later."""
    ended_sessions: HourlyJob
    """Deletes sessions that have ended."""
    ended_invitations: HourlyJob
    """Forgets invitations that ended a month ago."""
    unfinished_sign_ins: HourlyJob
    """Forgets sign-ins with a provider that never came back."""
    past_spending: HourlyJob
    """Forgets what budgets have spent in months long past; the ledger still knows."""
    users_of_providers: HourlyJob
    """Asks sign-in providers whether they still know their users, and who those are now.

    Last, since it waits for others."""

    @property
    def by_name(self) -> Mapping[str, HourlyJob]:
        """The jobs in their order."""
        return {field.name.replace("_", " "): getattr(self, field.name) for field in fields(self)}


class Hourly:
    """Runs jobs in order, even if some fail, and retries those."""

    def __init__(self, jobs: Mapping[str, HourlyJob], loops: Loops) -> None:
        self._jobs = {f"cleanup of {name}": partial(_do, name, job) for name, job in jobs.items()}
        self._due = self._jobs
        self._loop = loops.start(
            "cleanup", self._run_due, self._until_next, longest_pause_s=RETRY_AFTER_AT_MOST_S
        )

    async def close(self) -> None:
        """Stops; the next run does the rest."""
        await end_tasks(self._loop.task)

    async def _run_due(self) -> None:
        failed = await do_each(self._due)
        self._due = {name: self._jobs[name] for name in failed} or self._jobs
        if failed:
            raise SomeFailed

    async def _until_next(self) -> None:
        await asyncio.sleep(EVERY_S)


async def _do(name: str, job: HourlyJob) -> None:
    if removed := await job():
        log.info("removed %d %s", removed, name)
