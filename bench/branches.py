"""What it takes to choose a branch where 10,000 messages lie after the fork, 5,000 on each side."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bench.data import Batch, Dataset, make_conversation
from bench.databases import LARGE_DATABASES
from bench.measure import Effort
from bench.sample import READER
from bench.table import Aim, Times
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.ids import AgentId, ConversationId, MessageId, new_uuid
from threadkeep.domain.message import MessageWindow
from threadkeep.storage.store import Store, open_store

ROWS = 10_000
AIM = Aim("≤", 200, "P50")


@dataclass(frozen=True, slots=True)
class Branched:
    """A conversation whose first message was edited, with as many messages after it as before."""

    straight: Dataset

    def batches(self) -> Iterator[Batch]:
        """The rows of a straight conversation, of which the second half follows nothing."""
        for batch in self.straight.batches():
            if batch.table != "tk_messages":
                yield batch
                continue
            names = batch.columns.split()
            seq, parent, on_path = (names.index(name) for name in ("seq", "parent_id", "on_path"))
            rows = [list(row) for row in batch.rows]
            for row in rows:
                row[on_path] = row[seq] > ROWS // 2
                row[parent] = None if row[seq] == ROWS // 2 + 1 else row[parent]
            yield replace(batch, rows=[tuple(row) for row in rows])


def make_branched() -> tuple[Conversation, Branched]:
    """The conversation, and the rows to load."""
    agent = AgentId(new_uuid())
    conversation = replace(make_conversation(READER, agent, length=ROWS), message_count=ROWS // 2)
    return conversation, Branched(Dataset(agent, [conversation]))


async def choose_forever() -> None:
    """Chooses again and again, to be watched; prints a line when it begins."""
    conversation, rows = make_branched()
    async with LARGE_DATABASES["sqlite"](rows) as url:
        store = await open_store(url)
        print(flush=True)
        while True:
            await _choose_the_other(store, conversation.id)


async def measure(effort: Effort, databases: Sequence[str]) -> Sequence[Times]:
    """Milliseconds of each choice, to and fro."""
    lines: list[Times] = []
    for name, loaded in LARGE_DATABASES.items():
        if name not in databases:
            continue
        conversation, rows = make_branched()
        async with loaded(rows) as url:
            store = await open_store(url)
            times = [await _choose_the_other(store, conversation.id) for _ in range(2 * effort.append_rounds)]
            await store.close()
        lines.append(Times.of(f"{name}: choose a branch, {ROWS:,} rows after the fork", times, "ms", AIM))
    return lines


async def _choose_the_other(store: Store, conversation_id: ConversationId) -> float:
    conversation = await store.conversations.get(READER, conversation_id)
    assert conversation is not None
    first = (await store.messages.page(conversation.id, MessageWindow(), offset=0, limit=1))[0]
    others = (await store.branches.siblings(conversation.id, [first]))[first.id]
    other = next(id_ for id_ in others if id_ != first.id)
    begun = time.perf_counter()
    branch = await store.branches.through(conversation.id, MessageId(other))
    assert branch is not None
    await store.branches.follow(conversation, branch)
    return (time.perf_counter() - begun) * 1000
