"""The conversations that the operations work on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from bench.contender import Floor
from bench.data import Dataset, make_conversation
from bench.measure import Effort
from threadkeep.domain.ids import AgentId, ConversationId, UserId, new_uuid

# The reader is the one whom a server without a sign-in serves.
READER, WRITER, HASTY = UserId("local"), UserId("writer"), UserId("hasty")
LISTED = 1_000
WRITERS = 32
WARM_UP_TURNS = 2
COPIES_BY_LENGTH = {5_000: 4, 50_000: 1}

_LEFT_BY_WRITER = (
    """SELECT it.id, last_seq, message_count, active_turn_id, updated_at, last_message_at, tip.seq
    FROM tk_conversations AS it LEFT JOIN tk_messages AS tip ON tip.id = it.tip_id
    WHERE user_id = 'writer' ORDER BY it.id""",
    """SELECT turn.conversation_id, origin, turn.status, model, usage, error, started_at, ended_at
    FROM tk_turns AS turn JOIN tk_conversations AS it ON it.id = turn.conversation_id
    WHERE it.user_id = 'writer' ORDER BY turn.conversation_id, started_at""",
    """SELECT message.conversation_id, message.seq, message.role, message.content_type, message.content,
        message.status, message.parts, message.on_path, parent.seq, message.tool_call_count,
        message.file_count, message.token_count, message.usage, message.model, message.error,
        message.created_at, message.completed_at
    FROM tk_messages AS message JOIN tk_conversations AS it ON it.id = message.conversation_id
    LEFT JOIN tk_messages AS parent ON parent.id = message.parent_id
    WHERE it.user_id = 'writer' ORDER BY message.conversation_id, message.seq""",
)


@dataclass(frozen=True, slots=True)
class Sample:
    """Who reads and writes what."""

    dataset: Dataset
    read: ConversationId
    """5,000 messages that nobody adds to."""
    appended: Mapping[int, Sequence[ConversationId]]
    """By length: conversations that get turns, so many that none grows noticeably."""
    writers: Sequence[ConversationId]
    hasty: Sequence[ConversationId]
    """For the writer that commits only once a turn."""


def make_sample(effort: Effort) -> Sample:
    """Makes everything; an empty conversation is appended to once, hence the many."""
    agent = AgentId(new_uuid())
    empty = WARM_UP_TURNS + effort.append_rounds * effort.turns_a_block
    read = [make_conversation(READER, agent, length=5_000)]
    listed = [
        make_conversation(READER, agent, length=2, age=number, is_main=number == 1)
        for number in range(1, LISTED)
    ]
    appended = {
        length: [make_conversation(WRITER, agent, length=length) for _ in range(count)]
        for length, count in ({0: empty} | COPIES_BY_LENGTH).items()
    }
    writers, hasty = (
        [make_conversation(user, agent, length=0) for _ in range(WRITERS)] for user in (WRITER, HASTY)
    )
    made = [*read, *listed, *chain.from_iterable(appended.values()), *writers, *hasty]
    return Sample(
        Dataset(agent, made),
        read[0].id,
        {length: [it.id for it in conversations] for length, conversations in appended.items()},
        [it.id for it in writers],
        [it.id for it in hasty],
    )


async def check_same_rows(floor: Floor, ours: Floor) -> None:
    """Both sides have done the same work: apart from ids, what they appended is equal to the letter."""
    for statement in _LEFT_BY_WRITER:
        if await floor.fetch(statement) != await ours.fetch(statement):
            raise AssertionError(f"The floor and Threadkeep left different rows: {statement}")
