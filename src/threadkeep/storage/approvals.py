"""What turns ask their users, in the database."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import msgspec

from threadkeep.domain.approval import (
    AllowedTool,
    Approval,
    ApprovalAction,
    ApprovalKind,
    Decision,
    OpenApproval,
)
from threadkeep.domain.ids import ConversationId, TurnId, UserId
from threadkeep.domain.turn import Lease
from threadkeep.ports.tools import Grant
from threadkeep.storage.database.columns import to_json, to_json_or_null
from threadkeep.storage.database.connector import Database, Plan, Row, Statement
from threadkeep.storage.turn_log import HeldTurn, SqlTurnLog
from threadkeep.storage.turns import LOG_VERSION


@dataclass(frozen=True, slots=True)
class Decided:
    """The outcome of a decision: taken, too late (an earlier one was the same or another), or over.

    `held` is the turn, if it was waiting and the node that received the decision can read its log; that node
    runs it now. Otherwise another node does.
    """

    outcome: Literal["taken", "same", "other", "over"]
    held: HeldTurn | None = None


# Storing it again, after a lost reply, changes nothing.
_ADD = Statement(
    """INSERT INTO tk_approvals (id, turn_id, conversation_id, kind, message, tool_call_id, tool_name, server,
        arguments, schema, url, created_at, expires_at, tool_definition)
    VALUES (:request_id, :turn_id, :conversation_id, :kind, :message, :tool_call_id, :tool_name, :server,
        :arguments, :schema, :url, :created_at, :expires_at, :tool_definition)
    ON CONFLICT (id) DO NOTHING"""
)
_COLUMNS = """asked.id, asked.turn_id, asked.conversation_id, asked.kind, asked.message, asked.created_at,
    asked.expires_at, asked.tool_call_id, asked.tool_name, asked.server, asked.arguments, asked.schema,
    asked.url, asked.answer, asked.tool_definition"""
# By turn, too: the caller has checked that the turn is the user's.
_GET = Statement(
    f"SELECT {_COLUMNS} FROM tk_approvals AS asked WHERE id = :request_id AND turn_id = :turn_id"
)
# A user has few active turns, and they have their own indexes.
_OPEN = Statement(
    f"""SELECT {_COLUMNS}, conversation.agent_id, conversation.title FROM tk_turns AS turn
    JOIN tk_conversations AS conversation
        ON conversation.id = turn.conversation_id AND conversation.deleted_at IS NULL
    JOIN tk_approvals AS asked ON asked.turn_id = turn.id AND asked.answered_at IS NULL
    WHERE turn.user_id = :user_id AND turn.status IN ('RUNNING', 'WAITING') AND turn.origin = 'live'
    ORDER BY asked.created_at, asked.id"""
)
_OPEN_OF_TURN = Statement(
    f"""SELECT {_COLUMNS}, conversation.agent_id, conversation.title FROM tk_approvals AS asked
    JOIN tk_conversations AS conversation ON conversation.id = asked.conversation_id
    WHERE asked.turn_id = :turn_id AND asked.answered_at IS NULL ORDER BY asked.created_at, asked.id"""
)
# Includes withdrawn requests, whose decision is that they expired.
_DECISIONS = Statement("SELECT id, answer FROM tk_approvals WHERE turn_id = :turn_id AND answer IS NOT NULL")
# A permission for the rest of the conversation covers the tool only as it was defined when the user allowed
# it.
_GRANTED = Statement(
    """SELECT DISTINCT server, tool_name, tool_definition FROM tk_approvals
    WHERE conversation_id = :conversation_id AND kind = 'tool' AND granted AND tool_definition IS NOT NULL"""
)
# For people, who know a tool by its name: they may have allowed several definitions of it.
_ALLOWED = Statement(
    """SELECT server, tool_name, MAX(answered_at) FROM tk_approvals
    WHERE conversation_id = :conversation_id AND kind = 'tool' AND granted
    GROUP BY server, tool_name ORDER BY MAX(answered_at) DESC, server, tool_name"""
)
_DISALLOW = Statement(
    """UPDATE tk_approvals SET granted = FALSE
    WHERE conversation_id = :conversation_id AND kind = 'tool' AND granted
        AND server = :server AND tool_name = :tool_name
    RETURNING id"""
)
# Locks the turn first: it may be about to wait, or another decision may arrive at the same moment.
_LOCK_TURN = Statement("SELECT status, log_version FROM tk_turns WHERE id = :turn_id", locks="FOR UPDATE")
# The first decision counts.
_DECIDE = Statement(
    """UPDATE tk_approvals SET answer = :answer, granted = :granted, answered_at = :at
    WHERE id = :request_id AND answered_at IS NULL RETURNING id"""
)
# No node watches a waiting turn, so nodes look for those whose time is up.
_EXPIRED = Statement(
    """SELECT DISTINCT turn.id FROM tk_approvals AS asked
    JOIN tk_turns AS turn ON turn.id = asked.turn_id AND turn.status = 'WAITING'
    WHERE asked.answered_at IS NULL AND asked.expires_at <= :now LIMIT :limit"""
)

# Left by a node of an older version: a turn closes its requests when it ends.
_CLOSE = Statement(
    """UPDATE tk_approvals SET answered_at = :now WHERE id IN (
        SELECT asked.id FROM tk_approvals AS asked
        JOIN tk_turns AS turn ON turn.id = asked.turn_id AND turn.status NOT IN ('RUNNING', 'WAITING')
        WHERE asked.answered_at IS NULL AND asked.expires_at <= :now
        ORDER BY asked.expires_at LIMIT :limit)
    RETURNING id"""
)
CLOSED_AT_ONCE = 100

_encode_sorted = msgspec.json.Encoder(order="deterministic").encode
_decode_decision = msgspec.json.Decoder(Decision).decode
_decode_object = msgspec.json.Decoder(dict[str, Any]).decode


class SqlApprovals:
    """Turns' requests to their users."""

    def __init__(self, database: Database, turn_log: SqlTurnLog) -> None:
        self._database = database
        self._turn_log = turn_log

    async def add(self, approval: Approval) -> None:
        """Stores a request, once."""
        await self._database.execute(
            _ADD(
                request_id=approval.request_id,
                turn_id=approval.turn_id,
                conversation_id=approval.conversation_id,
                kind=approval.kind,
                message=approval.message,
                tool_call_id=approval.tool_call_id,
                tool_name=approval.tool_name,
                server=approval.server,
                arguments=to_json_or_null(approval.arguments),
                schema=to_json_or_null(approval.schema),
                url=approval.url,
                created_at=approval.created_at,
                expires_at=approval.expires_at,
                tool_definition=approval.tool_definition,
            )
        )

    async def get(self, turn_id: TurnId, request_id: str) -> Approval | None:
        """One request of a turn."""
        rows = await self._database.fetch(_GET(turn_id=turn_id, request_id=request_id))
        return _approval(rows[0]) if rows else None

    async def open_of(self, user_id: UserId, turn_id: TurnId | None = None) -> Sequence[OpenApproval]:
        """The open requests of a user's turns, or of one of them, oldest first."""
        query = _OPEN(user_id=user_id) if turn_id is None else _OPEN_OF_TURN(turn_id=turn_id)
        return [_open_approval(row) for row in await self._database.fetch(query)]

    async def decisions(self, turn_id: TurnId) -> Mapping[str, Decision]:
        """The decisions on a turn's requests, by their ids."""
        rows = await self._database.fetch(_DECISIONS(turn_id=turn_id))
        return {id_: _decode_decision(decision) for id_, decision in rows}

    async def granted(self, conversation_id: ConversationId) -> frozenset[Grant]:
        """The tools that a conversation's user has allowed in it."""
        rows = await self._database.fetch(_GRANTED(conversation_id=conversation_id))
        return frozenset((server, tool_name, definition) for server, tool_name, definition in rows)

    async def allowed_tools(self, conversation_id: ConversationId) -> Sequence[AllowedTool]:
        """The same for people: each tool once, the latest one first."""
        rows = await self._database.fetch(_ALLOWED(conversation_id=conversation_id))
        return [AllowedTool(server, tool_name, at) for server, tool_name, at in rows]

    async def disallow(self, conversation_id: ConversationId, server: str, tool_name: str) -> bool:
        """Takes back that a tool is allowed in a conversation; False if it wasn't."""
        statement = _DISALLOW(conversation_id=conversation_id, server=server, tool_name=tool_name)
        return bool(await self._database.execute(statement))

    async def decide(self, turn_id: TurnId, request_id: str, decision: Decision, lease: Lease) -> Decided:
        """Stores the first decision on a request; a waiting turn then belongs to this node.

        A turn that a later version wrote continues on a node of that version.
        """
        return await self._database.write(lambda: self._decide(turn_id, request_id, decision, lease))

    def _decide(self, turn_id: TurnId, request_id: str, decision: Decision, lease: Lease) -> Plan[Decided]:
        locked = yield _LOCK_TURN(turn_id=turn_id)
        rows = yield _GET(turn_id=turn_id, request_id=request_id)
        if not locked or not rows:
            return Decided("over")
        asked, (status, version) = _approval(rows[0]), locked[0]
        if asked.decision is not None and asked.decision.action is not ApprovalAction.EXPIRE:
            return Decided("same" if _is_same(asked.decision, decision) else "other")
        if asked.decision or status not in ("RUNNING", "WAITING") or asked.expires_at <= decision.at:
            return Decided("over")
        yield _DECIDE(
            request_id=request_id, answer=to_json(decision), granted=decision.is_grant, at=decision.at
        )
        if status == "RUNNING":
            return Decided("taken")
        if version > LOG_VERSION:
            yield from self._turn_log.leave(turn_id)
            return Decided("taken")
        return Decided("taken", (yield from self._turn_log.take_over(turn_id, lease, 0)))

    async def withdraw(self, turn_id: TurnId, request_id: str, decision: Decision) -> bool:
        """Expires a request; False if it has a decision."""
        return await self._database.write(lambda: _withdraw(turn_id, request_id, decision))

    async def expired(self, now: int, *, limit: int) -> Sequence[TurnId]:
        """Turns whose requests have expired."""
        rows = await self._database.fetch(_EXPIRED(now=now, limit=limit))
        return [TurnId(turn_id) for (turn_id,) in rows]

    async def close_of_ended(self, now: int) -> int:
        """Closes expired requests of turns that have ended; returns how many."""
        closed = 0
        while ids := await self._database.execute(_CLOSE(now=now, limit=CLOSED_AT_ONCE)):
            closed += len(ids)
        return closed


def _withdraw(turn_id: TurnId, request_id: str, decision: Decision) -> Plan[bool]:
    yield _LOCK_TURN(turn_id=turn_id)
    return bool(
        (yield _DECIDE(request_id=request_id, answer=to_json(decision), granted=False, at=decision.at))
    )


def _is_same(one: Decision, other: Decision) -> bool:
    """Whether two decisions are equal, in whatever order their fields come."""
    return _encode_sorted(replace(one, at=0)) == _encode_sorted(replace(other, at=0))


def _open_approval(row: Row) -> OpenApproval:
    *columns, agent_id, title = row
    return OpenApproval(**_fields(tuple(columns)), agent_id=agent_id, title=title)


def _approval(row: Row) -> Approval:
    return Approval(**_fields(row))


def _fields(row: Row) -> dict[str, Any]:
    (
        request_id, turn_id, conversation_id, kind, message, created_at, expires_at, tool_call_id, tool_name,
        server, arguments, schema, url, decision, tool_definition,
    ) = row  # fmt: skip
    return {
        "request_id": request_id,
        "turn_id": turn_id,
        "conversation_id": conversation_id,
        "kind": ApprovalKind(kind),
        "message": message,
        "created_at": created_at,
        "expires_at": expires_at,
        "tool_call_id": tool_call_id,
        "tool_name": tool_name,
        "server": server,
        "arguments": _decode_object(arguments) if arguments else None,
        "schema": _decode_object(schema) if schema else None,
        "url": url,
        "decision": _decode_decision(decision) if decision else None,
        "tool_definition": tool_definition,
    }
