"""Branches in the database: messages are a tree by `parent_id`; `on_path` marks one path through it.

A child's number is larger than its parent's. So the active path is a range of the index on `(conversation_id,
seq)`, and moving it changes only what follows the fork.
"""

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

from threadkeep.domain.conversation import Branch, Conversation
from threadkeep.domain.errors import StorageConflict
from threadkeep.domain.ids import ConversationId, MessageId
from threadkeep.domain.message import Message, MessageStatus
from threadkeep.storage import path_moves
from threadkeep.storage.compactions import RENEW_ARCHIVED
from threadkeep.storage.database.columns import to_json
from threadkeep.storage.database.connector import LAST_SEQ, Database, Plan, Rows, Statement
from threadkeep.storage.path_moves import on_path
from threadkeep.storage.siblings import Siblings, family_sizes, siblings


class OutlinedMessage(NamedTuple):
    """A message without its content."""

    id: MessageId
    seq: int
    status: MessageStatus


# From a message back to the first one that is on the path.
_BACK = Statement(
    f"""WITH RECURSIVE back (id, parent_id, seq, on_path) AS (
        SELECT id, parent_id, seq, {on_path()} FROM tk_messages
        WHERE id = :message_id AND conversation_id = :conversation_id
        UNION ALL
        SELECT before.id, before.parent_id, before.seq, {on_path("before")}
        FROM back JOIN tk_messages AS before ON before.id = back.parent_id
        WHERE NOT back.on_path AND before.conversation_id = :conversation_id)
    SELECT id, seq, on_path FROM back ORDER BY seq"""
)
# From a message onward, taking the newest child at each step, the last one in the index by parent.
_ONWARD = Statement(
    """WITH RECURSIVE onward (id, seq) AS (
        SELECT id, seq FROM tk_messages WHERE id = :message_id AND conversation_id = :conversation_id
        UNION ALL
        SELECT next.id, next.seq FROM onward JOIN tk_messages AS next
            ON next.conversation_id = :conversation_id AND next.parent_id = onward.id
        WHERE next.seq = (SELECT MAX(seq) FROM tk_messages
            WHERE conversation_id = :conversation_id AND parent_id = onward.id))
    SELECT id FROM onward ORDER BY seq"""
)
_NEWEST_REPLY = Statement(
    """SELECT id FROM tk_messages
    WHERE conversation_id = :conversation_id AND parent_id = :question_id AND role = 'assistant'
    ORDER BY +seq DESC LIMIT 1"""
)
# Read with a branch, and again before the path moves: if the count differs, or the fork is off the path, the
# branch is outdated.
_COUNT_AFTER = Statement(
    f"""SELECT COUNT(*) FROM tk_messages
    WHERE conversation_id = :conversation_id AND {on_path()} AND seq > :fork_seq"""
)
_IS_ON_PATH = Statement(
    f"SELECT 1 FROM tk_messages WHERE conversation_id = :conversation_id AND {on_path()} AND seq = :seq"
)
# How far the branch will be archived: by the newest compaction whose last message is on it.
_ARCHIVED = Statement(
    f"""SELECT COALESCE(MAX(compaction.to_seq), 0) FROM tk_compactions AS compaction
    JOIN tk_messages AS last
        ON last.conversation_id = compaction.conversation_id AND last.seq = compaction.to_seq
    WHERE compaction.conversation_id = :conversation_id
        AND (({on_path("last")} AND last.seq <= :fork_seq) OR last.id IN ({{ids}}))"""
)
# Only what follows the fork changes, and only if that is little (`path_moves`).
_HIDE = Statement(
    """UPDATE tk_messages SET on_path = FALSE
    WHERE conversation_id = :conversation_id AND on_path AND seq > :fork_seq"""
)
_SHOW = Statement("UPDATE tk_messages SET on_path = TRUE WHERE id IN ({ids})")
# A message's place and state, without its text.
_OUTLINE = Statement(
    f"""SELECT id, seq, status FROM tk_messages WHERE conversation_id = :conversation_id
        AND seq > :after_seq AND seq <= :to_seq AND {on_path()} ORDER BY seq LIMIT :limit"""
)
_OUTLINE_OF_ALL = Statement(
    """SELECT id, seq, status FROM tk_messages WHERE conversation_id = :conversation_id
        AND seq > :after_seq AND seq <= :to_seq ORDER BY seq LIMIT :limit"""
)
# A compare-and-set: refused if there are new messages, another path or a running turn. It also locks the
# conversation.
_MOVE = Statement(
    """UPDATE tk_conversations SET tip_id = :tip_id, message_count = :message_count
    WHERE id = :conversation_id AND last_seq = :last_seq AND active_turn_id IS NULL AND deleted_at IS NULL
        AND COALESCE(CAST(tip_id AS text), '') = :expected_tip
    RETURNING id"""
)


class SqlBranches:
    """The branches of conversations."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def up_to(self, conversation_id: ConversationId, message_id: MessageId | None) -> Branch | None:
        """The branch that ends with a message, or before the first one; None if the message is not found."""
        return await self._database.read(lambda: _up_to(conversation_id, message_id))

    async def through(self, conversation_id: ConversationId, message_id: MessageId) -> Branch | None:
        """The branch through a message that continues with the newest message at each step."""
        return await self._database.read(lambda: through(conversation_id, message_id))

    async def outline(
        self, conversation_id: ConversationId, *, after_seq: int, to_seq: int | None, limit: int
    ) -> Sequence[OutlinedMessage]:
        """Some messages in their order, after a number: of the active path up to a number, or of all."""
        statement = _OUTLINE_OF_ALL if to_seq is None else _OUTLINE
        rows = await self._database.fetch(
            statement(
                conversation_id=conversation_id,
                after_seq=after_seq,
                to_seq=LAST_SEQ if to_seq is None else to_seq,
                limit=limit,
            )
        )
        return [OutlinedMessage(id_, seq, MessageStatus(status)) for id_, seq, status in rows]

    async def newest_reply(self, conversation_id: ConversationId, question_id: MessageId) -> MessageId | None:
        """The newest reply to a message."""
        rows = await self._database.fetch(
            _NEWEST_REPLY(conversation_id=conversation_id, question_id=question_id)
        )
        return rows[0][0] if rows else None

    async def follow(self, conversation: Conversation, branch: Branch) -> None:
        """Makes a branch the active path of a conversation.

        StorageConflict if a turn has begun in it or its path has changed since it was read.
        """
        last_seq, tip_id = conversation.last_seq, conversation.tip_id
        async with self.prepared(conversation.id, branch, last_seq=last_seq, tip_id=tip_id) as ready:
            await self._database.write(lambda: _follow(conversation, ready))

    @asynccontextmanager
    async def prepared(
        self,
        conversation_id: ConversationId,
        branch: Branch,
        *,
        last_seq: int,
        tip_id: MessageId | None,
    ) -> AsyncGenerator[Branch]:
        """The branch, which a small transaction within this context can make the active path.

        StorageConflict if the conversation no longer has this last number and this tip.
        """
        async with path_moves.prepared(
            self._database,
            conversation_id,
            branch,
            last_seq=last_seq,
            tip_id=tip_id,
            check=lambda: _check_fork(conversation_id, branch),
        ) as ready:
            yield ready

    async def settle(self) -> None:
        """Finishes what is left to do once long paths have moved, or have not."""
        await path_moves.settle_all(self._database)

    async def siblings(self, conversation_id: ConversationId, messages: Iterable[Message]) -> Siblings:
        """The siblings of those messages that have any."""
        return await self._database.read(lambda: _siblings(conversation_id, list(messages)))


def _up_to(conversation_id: ConversationId, message_id: MessageId | None) -> Plan[Branch | None]:
    if message_id is None:
        return (yield from _branch(conversation_id, 0, (), None))
    back = yield _BACK(message_id=message_id, conversation_id=conversation_id)
    if not back:
        return None
    fork_seq, own = _split(back)
    return (yield from _branch(conversation_id, fork_seq, own, message_id))


def through(conversation_id: ConversationId, message_id: MessageId) -> Plan[Branch | None]:
    """The branch through a message, continuing with the newest message at each step."""
    back = yield _BACK(message_id=message_id, conversation_id=conversation_id)
    if not back:
        return None
    onward = yield _ONWARD(message_id=message_id, conversation_id=conversation_id)
    fork_seq, own = _split(back)
    ahead = tuple(id_ for (id_,) in onward if id_ != message_id)
    return (yield from _branch(conversation_id, fork_seq, (*own, *ahead), onward[-1][0]))


def _split(back: Rows) -> tuple[int, tuple[MessageId, ...]]:
    """Where the branch leaves the path, and its own messages after that."""
    _, seq, on_path = back[0]
    return (seq if on_path else 0), tuple(id_ for id_, _, is_on_path in back if not is_on_path)


def _branch(
    conversation_id: ConversationId, fork_seq: int, shown: tuple[MessageId, ...], tip_id: MessageId | None
) -> Plan[Branch]:
    ((hidden,),) = yield _COUNT_AFTER(conversation_id=conversation_id, fork_seq=fork_seq)
    ((archived_to_seq,),) = yield _ARCHIVED(
        conversation_id=conversation_id, fork_seq=fork_seq, ids=to_json(shown)
    )
    return Branch(
        fork_seq=fork_seq, hidden=hidden, shown=shown, tip_id=tip_id, archived_to_seq=archived_to_seq
    )


def _follow(conversation: Conversation, branch: Branch) -> Plan[None]:
    moved = yield _MOVE(
        conversation_id=conversation.id,
        last_seq=conversation.last_seq,
        expected_tip=conversation.tip_id or "",
        tip_id=branch.tip_id,
        message_count=conversation.following(branch).message_count,
    )
    if not moved:
        raise StorageConflict("The conversation has changed since it was read.")
    yield from move_path(conversation.id, branch)


def move_path(conversation_id: ConversationId, branch: Branch) -> Plan[None]:
    """Takes messages after the fork off the path and puts the branch on it; the conversation is locked.

    A long branch must have been `prepared`.
    """
    if branch.move_id is not None:
        yield from path_moves.done(conversation_id, branch)
    else:
        yield from path_moves.check_settled(conversation_id)
        yield from _check_fork(conversation_id, branch)
        if branch.hidden:
            yield _HIDE(conversation_id=conversation_id, fork_seq=branch.fork_seq)
        if branch.shown:
            yield _SHOW(ids=to_json(branch.shown))
    yield RENEW_ARCHIVED(conversation_id=conversation_id)


def _check_fork(conversation_id: ConversationId, branch: Branch) -> Plan[None]:
    """Refuses a branch that was read while another path was active."""
    ((hidden,),) = yield _COUNT_AFTER(conversation_id=conversation_id, fork_seq=branch.fork_seq)
    forks_here = branch.fork_seq == 0 or (
        yield _IS_ON_PATH(conversation_id=conversation_id, seq=branch.fork_seq)
    )
    if hidden != branch.hidden or not forks_here:
        raise StorageConflict("The path has changed since the branch was read.")


def _siblings(conversation_id: ConversationId, messages: Sequence[Message]) -> Plan[Siblings]:
    sizes = yield from family_sizes(conversation_id, messages)
    return (yield from siblings(conversation_id, messages, sizes))
