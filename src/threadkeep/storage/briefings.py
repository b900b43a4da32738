"""Briefings in the database."""

from collections.abc import Sequence

from threadkeep.domain.briefing import Briefing, Priority
from threadkeep.domain.ids import LAST_UUID, UserId
from threadkeep.storage.columns import to_json_or_null, to_value
from threadkeep.storage.database import Database, Plan, Row, Statement
from threadkeep.storage.users import ENSURE_USER

_COLUMNS = "id, agent_id, user_id, title, summary, priority, data, actions, created_at, read_at, message_id"
_ADD = Statement(
    f"""INSERT INTO tk_briefings ({_COLUMNS})
    VALUES (:id, :agent_id, :user_id, :title, :summary, :priority, :data, :actions, :created_at, :read_at,
        :message_id)"""
)


def _page(extra: str) -> Statement:
    return Statement(
        f"""SELECT {_COLUMNS} FROM tk_briefings WHERE user_id = :user_id AND id < :before {extra}
        ORDER BY id DESC LIMIT :limit"""
    )


PAGE = _page("")
PAGE_UNREAD = _page("AND read_at IS NULL")


class SqlBriefings:
    """The briefings of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, briefing: Briefing) -> None:
        """Keeps a new briefing; its user becomes known."""
        await self._database.write(lambda: _add(briefing))

    async def page(
        self, user_id: UserId, *, unread: bool, before: str | None, limit: int
    ) -> Sequence[Briefing]:
        """The user's briefings, newest first."""
        statement = PAGE_UNREAD if unread else PAGE
        rows = await self._database.fetch(statement(user_id=user_id, before=before or LAST_UUID, limit=limit))
        return [_briefing(row) for row in rows]


def _add(briefing: Briefing) -> Plan[None]:
    yield ENSURE_USER(id=briefing.user_id, now=briefing.created_at)
    values = {name: getattr(briefing, name) for name in Briefing.__slots__}
    yield _ADD(
        **values | {"data": to_json_or_null(briefing.data), "actions": to_json_or_null(briefing.actions)}
    )


def _briefing(row: Row) -> Briefing:
    (
        id_, agent_id, user_id, title, summary, priority, data, actions, created_at, read_at, message_id,
    ) = row  # fmt: skip
    return Briefing(
        id_, agent_id, user_id, title, summary, Priority(priority), to_value(data),
        tuple(to_value(actions) or ()), created_at, read_at, message_id,
    )  # fmt: skip
