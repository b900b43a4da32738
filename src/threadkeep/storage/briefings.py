"""Briefings in the database."""

from collections.abc import Callable, Sequence
from functools import cache

from threadkeep.domain.briefing import Briefing, Priority
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.errors import StorageConflict
from threadkeep.domain.ids import LAST_UUID, AgentId, BriefingId, MessageId, UserId
from threadkeep.domain.message import Message
from threadkeep.storage.database.columns import to_json, to_json_or_null, to_value
from threadkeep.storage.database.connector import Database, Plan, Row, Statement
from threadkeep.storage.messages import add_card
from threadkeep.storage.path_moves import on_path
from threadkeep.storage.users import ENSURE_USER, lock_known

CheckUnread = Callable[[int], None]
"""Rejects a briefing if the user has this many unread ones from the owner's agents."""


_COLUMNS = "id, agent_id, user_id, title, summary, priority, data, actions, created_at, read_at, message_id"
_ADD = Statement(
    f"""INSERT INTO tk_briefings ({_COLUMNS})
    VALUES (:id, :agent_id, :user_id, :title, :summary, :priority, :data, :actions, :created_at, :read_at,
        :message_id)"""
)


@cache
def _page(*, unread: bool, by_agents: bool) -> Statement:
    conditions = ["user_id = :user_id AND id < :before"]
    conditions += ["read_at IS NULL"] * unread + ["agent_id IN ({ids})"] * by_agents
    # Newest first, since ids begin with the time.
    return Statement(
        f"""SELECT {_COLUMNS} FROM tk_briefings WHERE {" AND ".join(conditions)}
        ORDER BY id DESC LIMIT :limit OFFSET :offset"""
    )


# All agents of one owner share a limit. An agent without an owner counts alone.
UNREAD = Statement(
    """SELECT COUNT(*) FROM tk_briefings WHERE user_id = :user_id AND read_at IS NULL
        AND (agent_id = :agent_id OR agent_id IN (SELECT id FROM tk_agents WHERE owner_id = :owner_id))"""
)

# Another user's briefing is not found, changed or deleted.
_GET = Statement(f"SELECT {_COLUMNS} FROM tk_briefings WHERE user_id = :user_id AND id = :id")
# The first time counts.
_MARK_READ = Statement(
    f"""UPDATE tk_briefings SET read_at = COALESCE(read_at, :now)
    WHERE user_id = :user_id AND id = :id RETURNING {_COLUMNS}"""
)
# The briefing's card stays in its conversation.
_DELETE = Statement("DELETE FROM tk_briefings WHERE user_id = :user_id AND id = :id RETURNING id")
# Only run if the latest card has left the path: it scans the whole path.
_CARD_ON_PATH = Statement(
    f"""SELECT id FROM tk_messages WHERE conversation_id = :conversation_id AND {on_path()}
        AND content_type = 'briefing_card' AND content LIKE :named
    ORDER BY seq DESC LIMIT 1"""
)
# Only if it has not got a card meanwhile.
_SET_CARD = Statement(
    """UPDATE tk_briefings SET message_id = :message_id, read_at = COALESCE(read_at, :now)
    WHERE user_id = :user_id AND id = :id AND COALESCE(CAST(message_id AS text), '') = :before RETURNING id"""
)


class SqlBriefings:
    """The briefings of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def send(self, briefing: Briefing, owner_id: UserId | None, check_unread: CheckUnread) -> bool:
        """Stores a new briefing from an agent of this owner; returns False if its user is unknown.

        `check_unread` receives the number of unread ones from the owner's agents, including this one, while
        nobody else sends the user one.
        """
        return await self._database.write(lambda: _send(briefing, owner_id, check_unread))

    async def add(self, briefing: Briefing) -> None:
        """Stores a new briefing; its user becomes known."""
        await self._database.write(lambda: _add(briefing))

    async def page(
        self,
        user_id: UserId,
        *,
        unread: bool,
        before: str | None,
        limit: int,
        offset: int = 0,
        agents: frozenset[AgentId] | None = None,
    ) -> Sequence[Briefing]:
        """The user's briefings, newest first; only those of `agents`, if there are any."""
        statement = _page(unread=unread, by_agents=agents is not None)
        rows = await self._database.fetch(
            statement(
                user_id=user_id, before=before or LAST_UUID, limit=limit, offset=offset, ids=to_json(agents)
            )
        )
        return [_briefing(row) for row in rows]

    async def get(self, user_id: UserId, briefing_id: BriefingId) -> Briefing | None:
        """One of the user's briefings."""
        rows = await self._database.fetch(_GET(user_id=user_id, id=briefing_id))
        return _briefing(rows[0]) if rows else None

    async def mark_read(self, user_id: UserId, briefing_id: BriefingId, now: int) -> Briefing | None:
        """Marks a briefing as read; the first time counts."""
        rows = await self._database.execute(_MARK_READ(user_id=user_id, id=briefing_id, now=now))
        return _briefing(rows[0]) if rows else None

    async def delete(self, user_id: UserId, briefing_id: BriefingId) -> bool:
        """Removes a briefing; its card stays."""
        return bool(await self._database.execute(_DELETE(user_id=user_id, id=briefing_id)))

    async def card_on_path(self, conversation: Conversation, briefing: Briefing) -> MessageId | None:
        """A card of the briefing on the active path of a conversation."""
        # A card's JSON begins with its briefing's id; its data may name others.
        named = f'{{"briefing_id":"{briefing.id}"%'
        rows = await self._database.fetch(_CARD_ON_PATH(conversation_id=conversation.id, named=named))
        return rows[0][0] if rows else None

    async def add_card(self, briefing: Briefing, conversation: Conversation, message: Message) -> None:
        """Stores a briefing's card and marks it read.

        StorageConflict if it has got a card, or the conversation has changed, since they were read.
        """
        await self._database.write(lambda: _add_card(briefing, conversation, message))


def _send(briefing: Briefing, owner_id: UserId | None, check_unread: CheckUnread) -> Plan[bool]:
    if not (yield from lock_known(briefing.user_id, briefing.created_at)):
        return False
    ((unread,),) = yield UNREAD(user_id=briefing.user_id, agent_id=briefing.agent_id, owner_id=owner_id)
    check_unread(unread + 1)
    yield from _insert(briefing)
    return True


def _add(briefing: Briefing) -> Plan[None]:
    yield ENSURE_USER(id=briefing.user_id, now=briefing.created_at)
    yield from _insert(briefing)


def _insert(briefing: Briefing) -> Plan[None]:
    values = {name: getattr(briefing, name) for name in Briefing.__slots__}
    yield _ADD(
        **values | {"data": to_json_or_null(briefing.data), "actions": to_json_or_null(briefing.actions)}
    )


def _add_card(briefing: Briefing, conversation: Conversation, message: Message) -> Plan[None]:
    yield from add_card(conversation, message)
    linked = yield _SET_CARD(
        user_id=briefing.user_id,
        id=briefing.id,
        message_id=message.id,
        now=message.created_at,
        before=briefing.message_id or "",
    )
    if not linked:
        raise StorageConflict("The briefing got a card or was deleted since it was read.")


def _briefing(row: Row) -> Briefing:
    (
        id_, agent_id, user_id, title, summary, priority, data, actions, created_at, read_at, message_id,
    ) = row  # fmt: skip
    return Briefing(
        id=id_,
        agent_id=agent_id,
        user_id=user_id,
        title=title,
        summary=summary,
        priority=Priority(priority),
        data=to_value(data),
        actions=tuple(to_value(actions) or ()),
        created_at=created_at,
        read_at=read_at,
        message_id=message_id,
    )
