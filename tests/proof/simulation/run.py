"""One story, from its beginning to rest."""

# pyright: reportPrivateUsage=false

import asyncio
import logging
import random
import sys
import warnings
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from tests.proof.checker import check
from tests.proof.seen import Backup, MadeCall, Seen
from tests.proof.simulation.cluster import GRACE_S, Cluster
from tests.proof.simulation.database import EPOCH_MS, connect
from tests.proof.simulation.interleavings import count_interleavings
from tests.proof.simulation.loop import VirtualLoop
from tests.proof.simulation.model import PRICE
from tests.proof.simulation.trace import Trace
from tests.proof.simulation.wire import SimulatedWire
from tests.proof.story import Story, Trim
from tests.proof.users import Users
from threadkeep.domain.errors import StorageError
from threadkeep.domain.ids import Ids, make_ids_with
from threadkeep.http.api import approvals

MOST_S = 45.0
"""Virtual seconds until everything must be at rest after the last act."""


@dataclass(slots=True)
class Outcome:
    """What became of a story."""

    story: Story
    problems: list[str]
    trace: Trace
    turns: int
    virtual_s: float

    @property
    def failed(self) -> bool:
        """Whether something broke."""
        return bool(self.problems)


def run_story(story: Story) -> Outcome:
    """Runs a story on a loop of its own."""
    loop = VirtualLoop()
    trace, seen = Trace(loop.time), Seen()
    chance = random.Random(f"{story.seed} ids")
    ids = Ids(lambda: (EPOCH_MS + round(loop.time() * 1000)) * 1_000_000, chance.randbytes)
    before = make_ids_with(ids)
    clock, approvals.system_clock = approvals.system_clock, lambda: EPOCH_MS + round(loop.time() * 1000)
    random.seed(story.seed)
    asyncio.set_event_loop(loop)
    cluster = Cluster(story, loop, trace, seen)
    try:
        with _quiet(seen, trace):
            loop.run_until_complete(_play(story, loop, cluster, seen, trace))
            problems = check(seen, cluster.database.connection)
            count_interleavings(trace, seen, cluster.database.connection)
            turns = cluster.database.connection.execute("SELECT count(*) FROM tk_turns").fetchone()[0]
    except Exception as exc:
        problems, turns = [f"the run itself failed: {exc!r}"], 0
        if "-v" in sys.argv:
            raise
    finally:
        make_ids_with(before)
        approvals.system_clock = clock
        _bury(loop)
        cluster.database.close()
        asyncio.set_event_loop(None)
    return Outcome(story, problems, trace, turns, loop.time())


async def _play(story: Story, loop: VirtualLoop, cluster: Cluster, seen: Seen, trace: Trace) -> None:
    at_commits, cluster.faults.at_commits = cluster.faults.at_commits, []
    outages, cluster.faults.outages = cluster.faults.outages, []
    wire = SimulatedWire(cluster, loop, 0.0)
    users = Users(story, wire, seen)
    fails, cluster.provider.fails = cluster.provider.fails, 0.0
    await cluster.start()
    await users.prepare()
    cluster.faults.at_commits, cluster.faults.outages = at_commits, outages
    cluster.provider.fails, wire.loses = fails, story.loses_requests
    cluster.schedule_faults()
    users.begin()
    for act in story.acts:
        if isinstance(act, Trim):
            loop.elsewhere(_trim, loop, cluster, trace, after_s=act.at)
    last = max((it.at for it in story.acts), default=0.0)
    loop.elsewhere(_back_up, loop, cluster, seen, after_s=cluster.chance("backup").uniform(0, last + 5))
    await asyncio.sleep(last + 5)
    await _come_to_rest(loop, cluster, users, wire, seen)
    await users.done(20)
    await users.read_all()
    await _end_all(cluster, seen)
    seen.calls = [
        MadeCall(it.mark, it.stage, it.at, it.ended_at, it.input_tokens, it.output_tokens, it.status)
        for it in cluster.provider.calls
    ]
    seen.losses = len(story.faults)
    seen.price = PRICE.input, PRICE.output
    seen.budget = None if story.budget is None else round(float(story.budget) * 10**12)
    seen.left += loop.problems


def _trim(loop: VirtualLoop, cluster: Cluster, trace: Trace) -> None:
    if not cluster.serving:
        return
    node = cluster.serving[0]
    trace.add(node.place.name, "trims the logs of ended turns")

    async def trim() -> None:
        assert node.services is not None
        with suppress(StorageError):
            await node.services.store.log.trim(EPOCH_MS + round(loop.time() * 1000))

    loop.at(node.place, trim())


def _back_up(loop: VirtualLoop, cluster: Cluster, seen: Seen) -> None:
    copy = connect(cluster.database.copy(), lambda: EPOCH_MS)
    texts = copy.execute(
        "SELECT content FROM tk_messages WHERE role = 'user' UNION ALL SELECT content FROM tk_queued"
        " UNION ALL SELECT parts FROM tk_messages WHERE parts IS NOT NULL"
        " UNION ALL SELECT events FROM tk_turn_chunks"
    ).fetchall()
    dangling = {(table, parent) for table, _, parent, _ in copy.execute("PRAGMA foreign_key_check")}
    seen.backups.append(Backup(loop.time(), [text for (text,) in texts], sorted(dangling)))
    copy.close()


async def _come_to_rest(
    loop: VirtualLoop, cluster: Cluster, users: Users, wire: SimulatedWire, seen: Seen
) -> None:
    """All faults end; then every turn must end, too."""
    cluster.faults.is_over = True
    cluster.faults.at_commits = []
    cluster.provider.fails, cluster.wires.loses, wire.loses = 0.0, 0.0, 0.0
    until = loop.time() + MOST_S
    query = "SELECT id, status FROM tk_turns WHERE status IN ('RUNNING', 'WAITING')"
    active, jobs = list[tuple[str, str]](), 0
    await asyncio.sleep(3)
    while loop.time() < until:
        active = cluster.database.connection.execute(query).fetchall()
        jobs = cluster.database.connection.execute("SELECT count(*) FROM tk_jobs").fetchone()[0]
        if not active and not jobs and users.is_idle and cluster.serving:
            return
        await users.answer_all()
        await asyncio.sleep(1.0)
    seen.left += [f"turn {id_} is still {status}" for id_, status in active]
    if jobs:
        seen.left.append(f"{jobs} jobs are still waiting")


async def _end_all(cluster: Cluster, seen: Seen) -> None:
    """Settles what is left to settle, then ends every node as an operator does."""
    first = cluster.serving[0]
    assert first.services is not None
    settling = first.services.spending.charge_abandoned(2**60)
    await asyncio.wait([asyncio.get_running_loop().at(first.place, settling)])  # type: ignore[attr-defined]
    for node in list(cluster.nodes):
        if node.is_serving:
            await cluster.end(node, GRACE_S)
            if node.database.in_use:
                seen.left.append(f"{node.place.name} still waits for {node.database.in_use} statements")


class _Errors(logging.Handler):
    """Exceptions that the product logs but never expects."""

    def __init__(self, seen: Seen, trace: Trace) -> None:
        super().__init__(logging.ERROR)
        self._seen = seen
        self._trace = trace

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        self._trace.add("log", record.getMessage()[:200])
        if error is not None and not _is_storage(error):
            self._seen.left.append(f"an exception in the log: {record.getMessage()}: {error!r}")


def _is_storage(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, StorageError):
            return True
        error = error.__cause__ or error.__context__
    return False


@contextmanager
def _quiet(seen: Seen, trace: Trace) -> Generator[None]:
    logger, handler = logging.getLogger("threadkeep"), _Errors(seen, trace)
    propagates, level = logger.propagate, logger.level
    logger.propagate = False
    logger.setLevel(logging.ERROR)
    logger.addHandler(handler)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of coroutines that died with their node
            yield
    finally:
        logger.removeHandler(handler)
        logger.propagate, _ = propagates, logger.setLevel(level)


def _ignore(_: object) -> None:
    """What dead nodes leave can't be cleaned up properly."""


def _bury(loop: VirtualLoop) -> None:
    """Drops what dead nodes left, as their processes' ends did."""
    hook, sys.unraisablehook = sys.unraisablehook, _ignore
    logging.disable(logging.CRITICAL)
    try:
        for task in asyncio.all_tasks(loop):
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            with suppress(BaseException):
                task.get_coro().close()  # type: ignore[union-attr]
        loop.close()
    finally:
        logging.disable(logging.NOTSET)
        sys.unraisablehook = hook
