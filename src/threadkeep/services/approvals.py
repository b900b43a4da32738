"""Approvals: turns' requests to their users, and the users' decisions."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from threadkeep.clock import Clock
from threadkeep.domain.approval import (
    AllowedTool,
    Approval,
    ApprovalAction,
    ApprovalKind,
    Decision,
    OpenApproval,
)
from threadkeep.domain.errors import (
    ApprovalAnswered,
    ApprovalExpired,
    ApprovalNotFound,
    InvalidRequest,
    PayloadTooLarge,
    ThreadkeepError,
)
from threadkeep.domain.ids import TurnId, derived_uuid, is_uuid
from threadkeep.domain.text import size_text
from threadkeep.domain.turn import Turn
from threadkeep.domain.user import User
from threadkeep.domain.user_events import UserEvent, UserEventType
from threadkeep.engine.user_requests import Asking, run_by_client
from threadkeep.log.writer import persist
from threadkeep.ports.schemas import Schemas
from threadkeep.ports.tools import MOST_RESULT_BYTES, Grant
from threadkeep.runtime.control import TurnControl
from threadkeep.runtime.leases import lease_of
from threadkeep.runtime.node import Node
from threadkeep.services.access import own_conversation, own_turn
from threadkeep.services.reach import is_within_reach
from threadkeep.storage.approvals import Decided
from threadkeep.storage.store import Store
from threadkeep.storage.turn_log import HeldTurn

REFUSED_RESULT = "The client ran the tool, but its result was refused."
NEVER_MS = 100 * 365 * 24 * 60 * 60 * 1000

_ACTIONS = {
    ApprovalKind.TOOL: {ApprovalAction.ALLOW, ApprovalAction.DENY, ApprovalAction.EDIT},
    ApprovalKind.QUESTION: {ApprovalAction.ANSWER, ApprovalAction.DENY},
    ApprovalKind.ELICITATION: {ApprovalAction.ANSWER, ApprovalAction.DENY},
    ApprovalKind.CLIENT_TOOL: {ApprovalAction.RESULT, ApprovalAction.DENY},
}


def request_id_of(turn: Turn, subject: str) -> str:
    """The id of a turn's request about a tool call: always the same, so that nobody is asked twice."""
    return derived_uuid(turn.started_at, turn.id, subject)


class Approvals:
    """The use cases of approvals."""

    def __init__(self, store: Store, node: Node, clock: Clock, schemas: Schemas) -> None:
        self._store = store
        self._node = node
        self._schemas = schemas
        self._clock = clock

    async def open(self, user: User, turn: Turn | None = None) -> Sequence[OpenApproval]:
        """The open requests of the user's turns, or of one of them, oldest first."""
        found = await self._store.approvals.open_of(user.id, turn.id if turn else None)
        return [it for it in found if await is_within_reach(self._store, user, "turn_id", it.turn_id)]

    async def about(self, turn: Turn, id_: str, action: ApprovalAction) -> Approval | None:
        """The request that a decision is for, by its own id or its tool call's.

        A call may wait for the user and then for the client that runs it: the open request counts.
        """
        ids = [request_id_of(turn, id_), request_id_of(turn, run_by_client(id_))]
        if is_uuid(id_):
            ids.append(id_.lower())
        found = [await self._store.approvals.get(turn.id, it) for it in ids]
        fitting = [it for it in found if it is not None and action in _ACTIONS[it.kind]]
        return next((it for it in fitting if it.decision is None), fitting[-1] if fitting else None)

    async def decide(self, user: User, turn_id: str, request_id: str, decision: Decision) -> Turn:
        """Decides a request; its turn continues immediately, on this node if it was waiting.

        A client tool's result that is refused is an error of its call: the turn goes on with that.
        """
        turn = await own_turn(self._store, user, turn_id)
        asked = None
        if is_uuid(request_id):
            asked = await self._store.approvals.get(turn.id, request_id.lower())
        if asked is None:
            raise ApprovalNotFound
        accepted, refusal = await self.accepted(user, asked, decision)
        # Even if the request is cancelled meanwhile: a turn that this node has taken must run.
        decided = await asyncio.shield(asyncio.create_task(self._take(turn.id, asked.request_id, accepted)))
        match decided.outcome:
            case "over":
                raise ApprovalExpired("This request is no longer waiting for an answer.")
            case "other":
                raise ApprovalAnswered("This request already has a different answer.")
            case "same":
                pass
            case "taken":
                await self._node.announce(
                    UserEvent(
                        user.id,
                        UserEventType.APPROVAL_ANSWERED,
                        turn.conversation_id,
                        turn.id,
                        asked.request_id,
                    )
                )
        if refusal is not None:
            raise refusal
        return turn if decided.outcome == "same" else await own_turn(self._store, user, turn_id)

    async def allowed_tools(self, user: User, conversation_id: str) -> Sequence[AllowedTool]:
        """The tools that run without asking in one of the user's conversations, because the user said so."""
        conversation = await own_conversation(self._store, user, conversation_id)
        return await self._store.approvals.allowed_tools(conversation.id)

    async def disallow(self, user: User, conversation_id: str, server: str, tool_name: str) -> None:
        """Takes that back: the tool's next call asks again, in a turn that is running, too."""
        conversation = await own_conversation(self._store, user, conversation_id)
        await self._store.approvals.disallow(conversation.id, server, tool_name)

    async def accepted(
        self, user: User, asked: Approval, decision: Decision
    ) -> tuple[Decision, ThreadkeepError | None]:
        """A decision as it counts, and why it counts otherwise than the client meant it. Rejects one that
        doesn't match the request.

        A client that has run its tool has nothing else to send, and its turn must not wait for ever: a result
        that is refused becomes an error.
        """
        try:
            _check(asked, decision)
        except (InvalidRequest, PayloadTooLarge) as refusal:
            if asked.kind is not ApprovalKind.CLIENT_TOOL or decision.action is not ApprovalAction.RESULT:
                raise
            error = f"{REFUSED_RESULT} {refusal.message}"
            return Decision(action=ApprovalAction.RESULT, at=decision.at, error=error), refusal
        await self._check_value(user, asked, decision)
        return decision, None

    async def _check_value(self, user: User, asked: Approval, decision: Decision) -> None:
        """Rejects arguments or an answer that don't match the request's schema."""
        match decision.action:
            case ApprovalAction.EDIT:
                param, value = "arguments", decision.arguments
            case ApprovalAction.ANSWER if asked.url is None:
                param, value = "content", decision.content
            case _:
                return
        if asked.schema is None:
            return
        if problem := await self._schemas.problem(user.id, asked.schema, value):
            raise InvalidRequest(problem, param=param)

    async def _take(self, turn_id: TurnId, request_id: str, decision: Decision) -> Decided:
        """Stores a decision and resumes its turn."""
        lease = lease_of(self._node.id)
        decided = await self._store.approvals.decide(turn_id, request_id, decision, lease)
        if decided.held is not None:
            await self._node.resume(decided.held)
        elif decided.outcome == "taken":
            await self._node.decided(turn_id)
        return decided


def _check(asked: Approval, decision: Decision) -> None:
    """Rejects a decision that doesn't match the request."""
    if decision.action not in _ACTIONS[asked.kind]:
        fitting = ", ".join(sorted(_ACTIONS[asked.kind]))
        raise InvalidRequest(f"This request accepts one of: {fitting}.", param="action")
    if (decision.action is ApprovalAction.EDIT) != (decision.arguments is not None):
        raise InvalidRequest("Send `arguments` with the action `edit`, and only with it.", param="arguments")
    if decision.action is ApprovalAction.ANSWER:
        _check_content(asked, decision.content)
    elif decision.action is ApprovalAction.RESULT:
        _check_result(decision)
    elif decision.content is not None:
        raise InvalidRequest("Send `content` only with the actions `answer` and `result`.", param="content")
    if decision.error is not None and decision.action is not ApprovalAction.RESULT:
        raise InvalidRequest("Send `error` only with the action `result`.", param="error")


def _check_content(asked: Approval, content: Any) -> None:
    if asked.url is not None:
        if content is not None:
            raise InvalidRequest(
                "The user answers this request at its URL; don't send `content`.", param="content"
            )
    elif asked.kind is ApprovalKind.QUESTION and (not isinstance(content, str) or not content.strip()):
        raise InvalidRequest("The answer must be a string.", param="content")


def _check_result(decision: Decision) -> None:
    """Rejects more than a tool of ours could return."""
    if decision.error is not None and (decision.content is not None or not decision.error.strip()):
        raise InvalidRequest(
            "Send either `content`, what the tool returned, or `error`, why it failed.", param="error"
        )
    if len(msgspec.json.encode((decision.content, decision.error))) > MOST_RESULT_BYTES:
        raise PayloadTooLarge(
            f"A tool's result can have at most {size_text(MOST_RESULT_BYTES)}.",
            details={"most": MOST_RESULT_BYTES},
        )


_OF_A_CALL = {ApprovalKind.TOOL, ApprovalKind.CLIENT_TOOL}


class TurnApprovals:
    """How a turn asks its user."""

    def __init__(
        self, store: Store, held: HeldTurn, timeout_s: float, clock: Clock, control: TurnControl
    ) -> None:
        self._store = store
        self._turn = held.turn
        self._timeout_ms = int(timeout_s * 1000) or NEVER_MS
        self._clock = clock
        self._control = control
        self._asked_at = 0

    def request_id(self, tool_call_id: str) -> str:
        """The id of the request for a call: always the same, so that nobody is asked twice."""
        return request_id_of(self._turn, tool_call_id)

    @property
    def expires_at(self) -> int:
        """When a request created now expires."""
        return self._clock() + self._timeout_ms

    def expires_in(self, seconds: float) -> int:
        """When a request expires that can wait at most this long."""
        return min(self._clock() + int(seconds * 1000), self.expires_at)

    async def granted(self) -> frozenset[Grant]:
        """The tools that the user has allowed in this conversation."""
        return await persist(lambda: self._store.approvals.granted(self._turn.conversation_id))

    async def ask(self, asking: Asking) -> None:
        """Stores a request, once; the user can decide from now on."""
        request, tool = asking.request, asking.tool
        # Requests are listed by their time, so that those of one millisecond keep their order.
        self._asked_at = max(self._clock(), self._asked_at + 1)
        approval = Approval(
            request_id=request.request_id,
            turn_id=self._turn.id,
            conversation_id=self._turn.conversation_id,
            kind=request.kind,
            message=request.message,
            created_at=self._asked_at,
            expires_at=request.expires_at,
            tool_call_id=request.tool_call_id,
            tool_name=tool.name,
            server=tool.server,
            arguments=asking.arguments if request.kind in _OF_A_CALL else None,
            schema=tool.input_schema if request.kind in _OF_A_CALL else request.schema,
            url=request.url,
            tool_definition=tool.definition,
        )
        await persist(lambda: self._store.approvals.add(approval))

    async def withdraw(self, request_id: str) -> bool:
        """Expires a request that nothing waits for; False if it has a decision."""
        decision = Decision(action=ApprovalAction.EXPIRE, at=self._clock())
        return await persist(lambda: self._store.approvals.withdraw(self._turn.id, request_id, decision))

    async def decisions(self) -> Mapping[str, Decision]:
        """The decisions so far, by request id."""
        return await persist(lambda: self._store.approvals.decisions(self._turn.id))

    async def arrived(self) -> None:
        """Returns when there may be another decision."""
        await self._control.heard()
