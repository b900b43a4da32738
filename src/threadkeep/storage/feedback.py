"""Feedback in the database."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import msgspec

from threadkeep.domain.feedback import Feedback, FeedbackByMessage, FeedbackFilter, RatedReply, Rating
from threadkeep.domain.ids import AgentId, ConversationId, MessageId, TurnId, UserId
from threadkeep.domain.message import Message, MessageRole, Usage
from threadkeep.storage.database.columns import to_json
from threadkeep.storage.database.connector import Database, Plan, Query, Row, Statement


@dataclass(frozen=True, slots=True)
class SharedTurn:
    """A turn that its user shares with the owner of the agent."""

    agent_id: AgentId
    user_id: UserId


_COLUMNS = "message_id, conversation_id, rating, note, share_text, created_at, updated_at"
_OF_FEEDBACK = ", ".join(f"feedback.{name}" for name in _COLUMNS.split(", "))
# Adds nothing if the conversation has been purged meanwhile. The agent is the conversation's.
_PUT = Statement(
    f"""INSERT INTO tk_feedback ({_COLUMNS}, agent_id)
    SELECT message.id, message.conversation_id, :rating, :note, :share_text, :created_at, :updated_at,
        conversation.agent_id
    FROM tk_messages AS message JOIN tk_conversations AS conversation
        ON conversation.id = message.conversation_id
    WHERE message.id = :message_id AND message.conversation_id = :conversation_id
    ON CONFLICT (message_id) DO UPDATE SET rating = excluded.rating, note = excluded.note,
        share_text = excluded.share_text, updated_at = excluded.updated_at
    RETURNING {_COLUMNS}""",
    postgres=f"""INSERT INTO tk_feedback ({_COLUMNS}, agent_id)
    SELECT message.id, message.conversation_id, CAST(:rating AS text), CAST(:note AS text),
        CAST(:share_text AS boolean), CAST(:created_at AS bigint), CAST(:updated_at AS bigint),
        conversation.agent_id
    FROM tk_messages AS message JOIN tk_conversations AS conversation
        ON conversation.id = message.conversation_id
    WHERE message.id = :message_id AND message.conversation_id = :conversation_id
    ON CONFLICT (message_id) DO UPDATE SET rating = excluded.rating, note = excluded.note,
        share_text = excluded.share_text, updated_at = excluded.updated_at
    RETURNING {_COLUMNS}""",
)
_REMOVE = Statement("DELETE FROM tk_feedback WHERE message_id = :message_id")
_CONVERSATION_OF = Statement(
    """SELECT conversation.id FROM tk_messages AS message
    JOIN tk_conversations AS conversation ON conversation.id = message.conversation_id
    WHERE message.id = :message_id AND conversation.user_id = :user_id AND conversation.deleted_at IS NULL"""
)
_OF_MESSAGES = Statement(f"SELECT {_COLUMNS} FROM tk_feedback WHERE message_id IN ({{ids}})")
_OF_CONVERSATION = Statement(
    f"SELECT {_COLUMNS} FROM tk_feedback WHERE conversation_id = :conversation_id ORDER BY message_id"
)
_SHARED_TURN = Statement(
    """SELECT feedback.agent_id, conversation.user_id FROM tk_turns AS turn
    JOIN tk_feedback AS feedback ON feedback.message_id = turn.assistant_message_id
    JOIN tk_conversations AS conversation ON conversation.id = feedback.conversation_id
    WHERE turn.id = :turn_id AND feedback.share_text AND conversation.deleted_at IS NULL"""
)
_FILTERS = {
    "agent_id": "feedback.agent_id = :agent_id",
    "user_id": "conversation.user_id = :user_id",
    "rating": "feedback.rating = :rating",
    "model": "reply.model = :model",
    "since": "feedback.updated_at >= :since",
    "until": "feedback.updated_at < :until",
    "before_time": "(feedback.updated_at, feedback.message_id) < (:before_time, :before_id)",
}
_MAY_READ = """conversation.user_id = :reader OR (feedback.share_text AND :reads_shared)"""

_decode_usage = msgspec.json.Decoder(Usage).decode


@cache
def _page(*names: str) -> Statement:
    """The statement for the filters in use."""
    return Statement(
        f"""SELECT {_OF_FEEDBACK}, feedback.agent_id, conversation.user_id, reply.turn_id, reply.model,
            reply.usage, reply.created_at,
            CASE WHEN {_MAY_READ} THEN question.content END, CASE WHEN {_MAY_READ} THEN reply.content END
        FROM tk_feedback AS feedback
        JOIN tk_conversations AS conversation ON conversation.id = feedback.conversation_id
        JOIN tk_messages AS reply ON reply.id = feedback.message_id
        LEFT JOIN tk_turns AS turn ON turn.id = reply.turn_id
        LEFT JOIN tk_messages AS question ON question.id = turn.user_message_id
        WHERE conversation.deleted_at IS NULL
            {" ".join(f"AND {_FILTERS[name]}" for name in names)}
        ORDER BY feedback.updated_at DESC, feedback.message_id DESC
        LIMIT :limit OFFSET :offset"""
    )


class SqlFeedback:
    """Feedback, at most one for each reply."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, feedback: Feedback) -> Feedback | None:
        """Stores feedback, or replaces what there is for its reply; None if the reply is gone.

        The time of the first feedback stays.
        """
        rows = await self._database.write(lambda: put_feedback(feedback))
        return _feedback(rows[0]) if rows else None

    async def remove(self, message_id: MessageId) -> None:
        """Removes the feedback on a reply, if there is any."""
        await self._database.execute(_REMOVE(message_id=message_id))

    async def conversation_of(self, user_id: UserId, message_id: MessageId) -> ConversationId | None:
        """The conversation of a user, not deleted, that a message belongs to."""
        rows = await self._database.fetch(_CONVERSATION_OF(user_id=user_id, message_id=message_id))
        return rows[0][0] if rows else None

    async def of_conversation(self, conversation_id: ConversationId) -> Sequence[Feedback]:
        """All feedback in a conversation, by message."""
        rows = await self._database.fetch(_OF_CONVERSATION(conversation_id=conversation_id))
        return [_feedback(row) for row in rows]

    async def page(
        self,
        which: FeedbackFilter,
        *,
        reader: UserId,
        reads_shared: bool,
        before: tuple[int, str] | None,
        offset: int,
        limit: int,
    ) -> Sequence[RatedReply]:
        """Feedback by `(updated_at, message_id)`, newest first, after a position.

        It has the texts of the reader's own turns and, if `reads_shared`, of those that users share.
        Feedback in deleted conversations is left out.
        """
        values = {name: getattr(which, name) for name in FeedbackFilter.__slots__}
        if before is not None:
            values["before_time"], values["before_id"] = before
        used = (name for name in _FILTERS if values.get(name) is not None)
        rows = await self._database.fetch(
            _page(*used)(
                **values,
                reader=reader,
                reads_shared=reads_shared,
                offset=offset,
                limit=limit,
            )
        )
        return [_rated(row) for row in rows]

    async def shared_turn(self, turn_id: TurnId) -> SharedTurn | None:
        """A turn that its user shares with the agent's owner, in a conversation that is not deleted."""
        rows = await self._database.fetch(_SHARED_TURN(turn_id=turn_id))
        return SharedTurn(*rows[0]) if rows else None


def put_feedback(feedback: Feedback) -> Plan[Sequence[Row]]:
    """Stores feedback; returns its row, or none if the reply is gone."""
    return (yield putting(feedback))


def putting(feedback: Feedback) -> Query:
    """What stores feedback."""
    return _PUT(**{name: getattr(feedback, name) for name in Feedback.__slots__})


def feedback_on(messages: Sequence[Message]) -> Plan[FeedbackByMessage]:
    """The feedback on those messages that have any."""
    ids = [it.id for it in messages if it.role is MessageRole.ASSISTANT and it.completed_at is not None]
    rows = (yield _OF_MESSAGES(ids=to_json(ids))) if ids else ()
    return {row[0]: _feedback(row) for row in rows}


def _feedback(row: Row) -> Feedback:
    message_id, conversation_id, rating, note, share_text, created_at, updated_at = row
    return Feedback(
        message_id=message_id,
        conversation_id=conversation_id,
        rating=Rating(rating),
        note=note,
        share_text=bool(share_text),
        created_at=created_at,
        updated_at=updated_at,
    )


def _rated(row: Row) -> RatedReply:
    agent_id, user_id, turn_id, model, usage, replied_at, question, reply = row[7:]
    return RatedReply(
        feedback=_feedback(row[:7]),
        agent_id=agent_id,
        user_id=user_id,
        turn_id=turn_id,
        model=model,
        usage=_decode_usage(usage) if usage else None,
        replied_at=replied_at,
        question=question,
        reply=reply,
    )
