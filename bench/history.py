"""How long a person waits for a search of what was said, with a million messages of a hundred people."""

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bench.data import (
    AGENT_COLUMNS,
    CONVERSATION_COLUMNS,
    MESSAGE_COLUMNS,
    NOW,
    Batch,
    Values,
    conversation_values,
    make_conversation,
)
from bench.databases import LARGE_DATABASES
from bench.measure import Effort
from bench.table import Aim, Times
from bench.words import VOCABULARY
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.ids import AgentId, UserId, new_uuid
from threadkeep.search.terms import terms
from threadkeep.storage.history import entry_number
from threadkeep.storage.store import Store, open_store
from threadkeep.storage.terms import numbered

USERS, LENGTH = 100, 50
TALKATIVE = 10
"""Every so many messages are of one person, who has a tenth of all."""
WORDS_A_MESSAGE = 20
CONVERSATIONS_A_BATCH = 200
SEARCHES = 300
AIM = Aim("≤", 10, "P95")


@dataclass(frozen=True, slots=True)
class Said:
    """Conversations whose messages all differ, and the index of them."""

    agent_id: AgentId
    conversations: Sequence[Conversation]

    def batches(self) -> Iterator[Batch]:
        """Everything, in an order that foreign keys allow."""
        chance = random.Random(11)
        last_number = 0
        users = list(dict.fromkeys(it.user_id for it in self.conversations))
        numbers = {user: number for number, user in enumerate(users, 1)}
        agent = (self.agent_id, users[0], "Measured", "", "assistant", "", "public", "{}", False, 1, NOW, NOW)
        yield Batch("tk_users", "id created_at", [(user, NOW) for user in users])
        yield Batch("tk_agents", AGENT_COLUMNS, [agent])
        yield Batch("tk_collections", "number user_id", [(numbers[user], user) for user in users])
        for first in range(0, len(self.conversations), CONVERSATIONS_A_BATCH):
            some = self.conversations[first : first + CONVERSATIONS_A_BATCH]
            yield Batch("tk_conversations", CONVERSATION_COLUMNS, [conversation_values(it) for it in some])
            messages = [_message(it, seq, chance) for it in some for seq in range(1, LENGTH + 1)]
            yield Batch("tk_messages", MESSAGE_COLUMNS, messages)
            users_of = {it.id: numbers[it.user_id] for it in some}
            entries: list[Values] = []
            for message in messages:
                # Some are made in the same moment; a store gives these the next free number, too.
                last_number = max(last_number + 1, entry_number(message[0]))
                entries.append(_entry(last_number, message, users_of[message[1]]))
            yield Batch("tk_entries", "id conversation_id message_id terms", entries)
            yield Batch(
                "tk_searchable", "conversation_id to_seq title", [(it.id, LENGTH, it.title) for it in some]
            )


def _words(chance: random.Random, count: int) -> str:
    """Words as common as in a language, none of which begins another."""
    return " ".join(f"word{int(VOCABULARY ** chance.random()):05}" for _ in range(count))


def _message(conversation: Conversation, seq: int, chance: random.Random) -> Values:
    role = "user" if seq % 2 else "assistant"
    text = _words(chance, WORDS_A_MESSAGE)
    return (
        new_uuid(), conversation.id, seq, None, role, "text", text, "COMPLETED", None, None, None, None, True,
        NOW, NOW,
    )  # fmt: skip


def _entry(id_: int, message: Values, number: int) -> Values:
    found = numbered(number, dict.fromkeys(terms(message[6])))
    return id_, message[1], message[0], " ".join(found)


def make_said(messages: int) -> Said:
    """So many messages; a tenth of them are of the first user."""
    agent = AgentId(new_uuid())
    users = [UserId(f"user-{number}") for number in range(USERS)]
    return Said(
        agent,
        [
            replace(make_conversation(user, agent, length=LENGTH, age=number), title=None)
            for number in range(messages // LENGTH)
            for user in [users[0] if number % TALKATIVE == 0 else users[number % USERS]]
        ],
    )


async def measure(effort: Effort, databases: Sequence[str]) -> Sequence[Times]:
    """Queries of one to three words by the talkative one and by others, newest hits first; then the same
    without the last two letters, which a hundred words begin with.
    """
    lines: list[Times] = []
    for name, loaded in LARGE_DATABASES.items():
        if name not in databases:
            continue
        async with loaded(make_said(effort.said)) as url:
            store = await open_store(url)
            for who, users in (("one with a tenth", [0]), ("one of a hundred", range(1, USERS))):
                for how, missing in (("", 0), (" while typing", 2)):
                    took = await _times(store, users, missing)
                    what = f"{name}: {who} searches {effort.said:,} messages{how}"
                    lines.append(Times.of(what, took, aim=AIM))
            await store.close()
    return lines


async def _times(store: Store, users: Sequence[int], missing: int) -> list[float]:
    """How long searches take whose last word lacks so many letters."""
    chance = random.Random(12)
    took: list[float] = []
    for _ in range(20 + SEARCHES):
        user = UserId(f"user-{chance.choice(users)}")
        query = _words(chance, chance.choice((1, 2, 3)))
        begun = time.perf_counter()
        await store.history.search(user, query[: len(query) - missing], before=None, limit=20)
        took.append((time.perf_counter() - begun) * 1000)
    return took[20:]
