"""Finds conversations that nobody writes in, notes when each will be deleted, and deletes them then.

Small transactions, each of which finds its rows by an index. Several nodes can do this at once: what one has
changed, the others no longer find. Whoever writes a message takes the note away (`ADVANCE`), so a message and
the deletion can't both win: the second of the two doesn't find the conversation as it was.
"""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, replace

from threadkeep.domain.agent import AuditEntry
from threadkeep.domain.ids import FIRST_UUID, AgentId, ConversationId, UserId
from threadkeep.domain.retention.rule import DAY_MS, AgentRetention, Rule, Whose
from threadkeep.storage.agents import audit_query
from threadkeep.storage.database.columns import to_json
from threadkeep.storage.database.connector import Database, Plan, Query, Statement
from threadkeep.storage.purging import patiently

# A turn that runs, or waits for somebody, keeps its conversation.
_CAN_GO = "deleted_at IS NULL AND held_by IS NULL AND NOT is_pinned AND active_turn_id IS NULL"
_WHOSE = {
    Whose.ANYBODYS: "",
    Whose.OWNERS: "AND user_id = :owner",
    Whose.OTHERS: "AND user_id <> COALESCE(:owner, '')",
}


def _skipping_locked(sql: str) -> Statement:
    """The same on PostgreSQL, without what somebody is changing at this moment: the next round finds it."""
    return Statement(sql.format(lock=""), postgres=sql.format(lock="FOR UPDATE SKIP LOCKED"))


_NOTE = {
    whose: _skipping_locked(
        f"""UPDATE tk_conversations SET deletes_at =
            CASE WHEN updated_at + :age > :earliest THEN updated_at + :age ELSE :earliest END
        WHERE id IN (SELECT id FROM tk_conversations
            WHERE agent_id IN ({{{{ids}}}}) AND updated_at <= :before AND deletes_at IS NULL AND {_CAN_GO}
                AND created_at >= :begun_from AND created_at < :begun_before {condition}
            LIMIT :limit {{lock}}) RETURNING id, user_id"""
    )
    for whose, condition in _WHOSE.items()
}
_COUNT = {
    whose: Statement(
        f"""SELECT COUNT(*) FROM tk_conversations
        WHERE agent_id IN ({{ids}}) AND updated_at <= :before AND deletes_at IS NULL AND {_CAN_GO}
            AND created_at >= :begun_from AND created_at < :begun_before {condition}"""
    )
    for whose, condition in _WHOSE.items()
}
# Whether what the note says still follows from a rule: from the operator's, or from that of the agent.
_NOTED = Statement(
    f"""SELECT noted.deletes_at, noted.id, NOT noted.is_pinned AND (
            (:age > 0 AND noted.updated_at + :age <= noted.deletes_at)
            OR (agent.delete_after_days > 0
                AND noted.updated_at + agent.delete_after_days * {DAY_MS} <= noted.deletes_at
                AND (noted.user_id = agent.owner_id OR noted.created_at >= agent.delete_since)))
    FROM tk_conversations AS noted JOIN tk_agents AS agent ON agent.id = noted.agent_id
    WHERE noted.deletes_at IS NOT NULL AND (noted.deletes_at, noted.id) > (:after_time, :after_id)
    ORDER BY noted.deletes_at, noted.id LIMIT :limit"""
)
_TAKE_BACK = Statement(
    """UPDATE tk_conversations SET deletes_at = NULL WHERE id IN ({ids}) AND deletes_at IS NOT NULL
    RETURNING id, user_id"""
)
_DELETE = _skipping_locked(
    f"""UPDATE tk_conversations SET deleted_at = :now, deletes_at = NULL
    WHERE id IN (SELECT id FROM tk_conversations WHERE deletes_at <= :now AND {_CAN_GO}
        ORDER BY deletes_at LIMIT :limit {{lock}}) RETURNING id, user_id"""
)
_AGENTS = Statement("SELECT id FROM tk_agents WHERE id > :after ORDER BY id LIMIT :limit")
_AGENTS_WITH_RULES = Statement(
    """SELECT id, owner_id, delete_after_days, delete_since, delete_shortened_at FROM tk_agents
    WHERE delete_after_days > 0 AND id > :after ORDER BY id LIMIT :limit"""
)
_COUNT_NOTED = Statement(
    """SELECT COUNT(*), MIN(deletes_at) FROM tk_conversations
    WHERE deletes_at IS NOT NULL AND deleted_at IS NULL"""
)


AGENTS_AT_ONCE = 100

Range = tuple[Sequence[AgentId], UserId | None, Rule]
"""Agents, their owner, and the rule for conversations with them."""


@dataclass(frozen=True, slots=True)
class Touched:
    """A conversation that was changed, and whose it is."""

    id: ConversationId
    user_id: UserId


class SqlIdleConversations:
    """The conversations of a database that nobody writes in."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def ranges(self, operators: Rule | None) -> AsyncGenerator[Range]:
        """All rules, the operator's and those of agents, each with the agents that it is for."""
        after: str | None = FIRST_UUID if operators else None
        while operators and after is not None:
            rows = await self._database.fetch(_AGENTS(after=after, limit=AGENTS_AT_ONCE))
            if rows:
                yield [AgentId(id_) for (id_,) in rows], None, operators
            after = rows[-1][0] if len(rows) == AGENTS_AT_ONCE else None
        after = FIRST_UUID
        while after is not None:
            rows = await self._database.fetch(_AGENTS_WITH_RULES(after=after, limit=AGENTS_AT_ONCE))
            for row in rows:
                agent = AgentRetention(*row)
                for rule in agent.rules:
                    yield [agent.agent_id], agent.owner_id, rule
            after = rows[-1][0] if len(rows) == AGENTS_AT_ONCE else None

    async def note(
        self, agents: Sequence[AgentId], owner_id: UserId | None, rule: Rule, now: int, *, limit: int
    ) -> Sequence[Touched]:
        """Notes for some conversations when they are deleted: by the rule, and not before the notice ends."""
        statement = _NOTE[rule.whose]
        return await self._change(
            statement(
                **_range_of(agents, owner_id, rule, now),
                age=rule.age_ms,
                earliest=now + rule.notice_ms,
                limit=limit,
            )
        )

    async def count_untold(self, operators: Rule | None, now: int) -> int:
        """How many conversations a sweep would now find that will be deleted; changes nothing."""
        count = 0
        async for agents, owner_id, rule in self.ranges(operators):
            query = _COUNT[rule.whose](**_range_of(agents, owner_id, rule, now))
            count += (await self._database.fetch(query))[0][0]
        return count

    async def take_back(
        self, age_ms: int, after: tuple[int, str], *, limit: int
    ) -> tuple[Sequence[Touched], tuple[int, str] | None]:
        """Takes back the notes that no rule supports any more, among the next ones; and where to go on.

        `age_ms` is the operator's rule, 0 for none.
        """
        after_time, after_id = after
        noted = await self._database.fetch(
            _NOTED(age=age_ms, after_time=after_time, after_id=after_id, limit=limit)
        )
        wrong = [id_ for _, id_, is_right in noted if not is_right]
        touched = await self._change(_TAKE_BACK(ids=to_json(wrong))) if wrong else ()
        return touched, (noted[-1][0], noted[-1][1]) if len(noted) == limit else None

    async def delete_due(self, now: int, entry: AuditEntry, *, limit: int) -> Sequence[Touched]:
        """Deletes some conversations whose time has come, as their users would; they can be restored."""
        return await patiently(lambda: self._database.write(lambda: _delete(now, entry, limit)))

    async def noted(self) -> tuple[int, int | None]:
        """How many conversations will be deleted, and when the first."""
        ((count, first),) = await self._database.fetch(_COUNT_NOTED())
        return count, first

    async def _change(self, query: Query) -> Sequence[Touched]:
        rows = await patiently(lambda: self._database.execute(query))
        return [Touched(id_, user_id) for id_, user_id in rows]


def _range_of(agents: Sequence[AgentId], owner_id: UserId | None, rule: Rule, now: int) -> dict[str, object]:
    whose = {} if rule.whose is Whose.ANYBODYS else {"owner": owner_id}
    return {
        "ids": to_json(agents),
        "before": now - rule.age_ms + rule.notice_ms,
        "begun_from": rule.begun_from,
        "begun_before": rule.begun_before,
        **whose,
    }


def _delete(now: int, entry: AuditEntry, limit: int) -> Plan[Sequence[Touched]]:
    touched = [Touched(id_, user_id) for id_, user_id in (yield _DELETE(now=now, limit=limit))]
    if touched:
        details = {"conversationIds": [it.id for it in touched]}
        yield audit_query(replace(entry, details=details))
    return touched
