"""The rows that are measured: made once, loaded in bulk, the same for the floor and for Threadkeep."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Protocol

from threadkeep.domain.conversation import Conversation
from threadkeep.domain.ids import AgentId, MessageId, UserId, new_uuid
from threadkeep.domain.message import Usage
from threadkeep.storage.database.columns import to_json

NOW = 1_800_000_000_000
MODEL = "scripted"
QUESTION = "合同第七条的违约金是否过高？ Please answer in one paragraph, and say which clause you mean."
ANSWER = "The clause sets the damages at thirty percent of the contract's value. " * 10 + "根据合同法，" * 20
TOKENS = 830
SPENT = Usage(input_tokens=89, output_tokens=TOKENS)
USAGE = to_json(SPENT)

TURNS_A_BATCH = 5_000

AGENT_COLUMNS = """id owner_id name description primary_role_id system_prompt visibility settings is_default
    version created_at updated_at"""
CONVERSATION_COLUMNS = """id user_id agent_id session_id title title_source status is_main metadata last_seq
    message_count archived_to_seq created_at updated_at last_message_at tip_id"""
TURN_COLUMNS = """id conversation_id user_message_id assistant_message_id origin status model usage
    started_at ended_at"""
MESSAGE_COLUMNS = """id conversation_id seq turn_id role content_type content status token_count usage model
    parent_id on_path created_at completed_at"""

Values = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows for one table."""

    table: str
    columns: str
    rows: Sequence[Values]

    @property
    def names(self) -> str:
        """The columns as SQL names them."""
        return ", ".join(self.columns.split())


class Rows(Protocol):
    """Whatever a database can be filled with."""

    def batches(self) -> Iterator[Batch]:
        """Everything, in an order that foreign keys allow."""
        ...


@dataclass(frozen=True, slots=True)
class Dataset:
    """One agent and its conversations; `last_seq` says how many messages each has."""

    agent_id: AgentId
    conversations: Sequence[Conversation]

    def batches(self) -> Iterator[Batch]:
        """Everything, in an order that foreign keys allow."""
        users = list(dict.fromkeys(it.user_id for it in self.conversations))
        agent = (self.agent_id, users[0], "Measured", "", "assistant", "", "public", "{}", False, 1, NOW, NOW)
        yield Batch("tk_users", "id created_at", [(user, NOW) for user in users])
        yield Batch("tk_agents", AGENT_COLUMNS, [agent])
        yield Batch(
            "tk_conversations", CONVERSATION_COLUMNS, [conversation_values(it) for it in self.conversations]
        )
        turns = _turns(self.conversations)
        while batch := list(islice(turns, TURNS_A_BATCH)):
            yield Batch("tk_turns", TURN_COLUMNS, [turn for turn, _, _ in batch])
            yield Batch("tk_messages", MESSAGE_COLUMNS, [it for _, *messages in batch for it in messages])
        # Told to be searchable already: a server would make it so while it is measured.
        known = [(it.id, it.last_seq, it.title) for it in self.conversations]
        yield Batch("tk_searchable", "conversation_id to_seq title", known)


def make_conversation(
    user_id: UserId, agent_id: AgentId, *, length: int, age: int = 0, is_main: bool = False
) -> Conversation:
    """A conversation of so many messages, last touched so many milliseconds ago."""
    started = Conversation.start(user_id, agent_id, NOW - age, is_main=is_main, title=f"违约金 {age}")
    return replace(
        started,
        last_seq=length,
        message_count=length,
        last_message_at=started.updated_at if length else None,
        tip_id=MessageId(new_uuid()) if length else None,
    )


def conversation_values(it: Conversation) -> Values:
    """A conversation as its row."""
    return (
        it.id, it.user_id, it.agent_id, it.session_id.reveal(), it.title, it.title_source, it.status,
        it.is_main, "{}", it.last_seq, it.message_count, it.archived_to_seq, it.created_at, it.updated_at,
        it.last_message_at, it.tip_id,
    )  # fmt: skip


def _turns(conversations: Sequence[Conversation]) -> Iterator[tuple[Values, Values, Values]]:
    """Turns with their two messages, the conversations taking turns as in life.

    So the messages of one conversation lie scattered over the table, and reading them finds few
    neighbours on a page.
    """
    tips: dict[str, str | None] = {}
    seq, open_ones = 1, [it for it in conversations if it.last_seq > 0]
    while open_ones:
        for conversation in open_ones:
            turn, asked, reply = _turn(conversation, seq, tips.get(conversation.id))
            tips[conversation.id] = reply[0]
            yield turn, asked, reply
        seq += 2
        open_ones = [it for it in open_ones if it.last_seq > seq]


def _turn(conversation: Conversation, seq: int, tip: str | None) -> tuple[Values, Values, Values]:
    id_, now = conversation.id, NOW + seq
    turn_id, asked = new_uuid(), new_uuid()
    reply = conversation.tip_id if seq + 1 == conversation.last_seq else new_uuid()
    return (
        (turn_id, id_, asked, reply, "live", "COMPLETED", MODEL, USAGE, now, now + 1),
        (
            asked, id_, seq, turn_id, "user", "text", QUESTION, "COMPLETED", None, None, None, tip, True, now,
            now,
        ),
        (
            reply, id_, seq + 1, turn_id, "assistant", "text", ANSWER, "COMPLETED", TOKENS, USAGE, MODEL,
            asked, True, now, now + 1,
        ),
    )  # fmt: skip
