"""What a turn's tool calls ask its user, and the decisions."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from threadkeep.domain.approval import ApprovalAction, ApprovalKind, Decision
from threadkeep.domain.events import ApprovalRequest, ApprovalResponse
from threadkeep.engine.call_state import Call
from threadkeep.engine.journal import InputAwaited, InputNoted
from threadkeep.engine.permissions import ToolPermissions
from threadkeep.ports.tools import Asked, Grant, InputRequest, InputRequired, Tool


@dataclass(frozen=True, slots=True)
class Asking:
    """A turn's request to its user about a call, ready to store."""

    request: ApprovalRequest
    tool: Tool
    arguments: Mapping[str, Any]


class UserRequests(Protocol):
    """How a turn asks its user."""

    def request_id(self, tool_call_id: str) -> str:
        """The id of the request for a call: always the same, so that nobody is asked twice."""
        ...

    @property
    def expires_at(self) -> int:
        """When a request created now expires."""
        ...

    def expires_in(self, seconds: float) -> int:
        """When a request expires that can wait at most this long."""
        ...

    async def granted(self) -> frozenset[Grant]:
        """The tools that the user has allowed in this conversation."""
        ...

    async def ask(self, asking: Asking) -> None:
        """Stores a request, once; the user can decide from now on."""
        ...

    async def withdraw(self, request_id: str) -> bool:
        """Expires a request that nothing waits for; False if it has a decision."""
        ...

    async def decisions(self) -> Mapping[str, Decision]:
        """The decisions so far, by request id."""
        ...

    async def arrived(self) -> None:
        """Returns when there may be another decision."""
        ...


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A call that waits for a decision."""

    call: Call
    held: "asyncio.Future[Decision] | None" = None
    """Set if the call runs: its server holds it open and gets the decision."""


class OpenRequests:
    """The requests of a batch of calls that have no decision yet."""

    def __init__(self, user_requests: UserRequests, permissions: ToolPermissions) -> None:
        self._user_requests = user_requests
        self._permissions = permissions
        self._waiting: dict[str, _Waiting] = {}

    @property
    def ids(self) -> frozenset[str]:
        """Their ids."""
        return frozenset(self._waiting)

    async def ask_about(self, call: Call) -> list[ApprovalRequest]:
        """Asks the user about a call, or passes on its server's questions; returns the new requests."""
        requests = [self._about_call(call)] if call.state.awaited is None else self._for_input(call)
        return [request for request in requests if await self.ask(request, call)]

    async def ask(
        self, request: ApprovalRequest, call: Call, held: "asyncio.Future[Decision] | None" = None
    ) -> bool:
        """Waits for the decision on a request; False if an earlier run of the turn asked the user.

        If the call's server holds it open, `held` gets the decision.
        """
        assert call.tool is not None
        # Before it is stored: from then on, the user can decide.
        self._waiting[request.request_id] = _Waiting(call, held)
        if request.request_id in call.state.asked:
            return False
        await self._user_requests.ask(Asking(request, call.tool, call.arguments))
        return True

    async def ask_client(self, call: Call) -> list[ApprovalRequest]:
        """Asks the client to run a call; returns the request, if it is new."""
        assert call.tool is not None
        request = ApprovalRequest(
            request_id=call.client_request_id,
            kind=ApprovalKind.CLIENT_TOOL,
            message=f"Waiting for the client to run {call.tool.name}.",
            expires_at=self._user_requests.expires_at,
            tool_call_id=call.use.id,
        )
        return [request] if await self.ask(request, call) else []

    async def decided(self) -> dict[str, Decision]:
        """The decisions on open requests that are there by now."""
        if not self._waiting:
            return {}
        decisions = await self._user_requests.decisions()
        return {id_: decisions[id_] for id_ in self._waiting if id_ in decisions}

    def take(self, request_id: str, decision: Decision) -> Call | None:
        """Closes a request with its decision; returns the call that continues with it, if any."""
        waiting = self._waiting.pop(request_id)
        call = waiting.call
        if waiting.held is not None:
            waiting.held.set_result(decision)
            return None
        if request_id == call.client_request_id:
            call.state = call.state.ended_by_client(decision)
            return call
        call.state = call.state.decided(request_id, decision)
        if call.state.awaited is not None:
            return call if call.state.given else None
        if call.tool is not None:
            self._permissions.remember(call.tool, decision)
        return call

    async def expire(self, request_id: str) -> bool:
        """Expires a request; False if it has a decision."""
        return await self._user_requests.withdraw(request_id)

    async def withdraw(self, call: Call) -> list[ApprovalResponse]:
        """Expires the requests of an earlier run about a call that won't continue."""
        expired = [it for it in sorted(call.state.undecided) if await self.expire(it)]
        return [ApprovalResponse(request_id, ApprovalAction.EXPIRE) for request_id in expired]

    def await_input(self, call: Call, required: InputRequired) -> InputAwaited:
        """What a call's server needs from the user, with the ids of the requests for it."""
        noted = [
            InputNoted(
                key=request.key,
                request_id=self._user_requests.request_id(
                    f"{call.use.id}/{call.state.rounds}/{request.key}/{_text(request)}"
                ),
                message=request.message,
                schema=None if request.schema is None else dict(request.schema),
                url=request.url,
            )
            for request in required.requests
        ]
        return InputAwaited(call.use.id, required.state, tuple(noted))

    def from_server(self, call: Call, asked: Asked, seconds: float) -> ApprovalRequest:
        """The request of a server that holds its call open for at most this long."""
        number, call.held_open = call.held_open, call.held_open + 1
        return ApprovalRequest(
            request_id=self._user_requests.request_id(f"{call.use.id}#{number}/{_text(asked)}"),
            kind=ApprovalKind.ELICITATION,
            message=asked.message,
            expires_at=self._user_requests.expires_in(seconds),
            tool_call_id=call.use.id,
            schema=asked.schema,
            url=asked.url,
        )

    def _for_input(self, call: Call) -> list[ApprovalRequest]:
        assert call.state.awaited is not None
        return [
            ApprovalRequest(
                request_id=request.request_id,
                kind=ApprovalKind.ELICITATION,
                message=request.message,
                expires_at=self._user_requests.expires_at,
                tool_call_id=call.use.id,
                schema=request.schema,
                url=request.url,
            )
            for request in call.state.awaited.requests
            if request.request_id not in call.state.inputs
        ]

    def _about_call(self, call: Call) -> ApprovalRequest:
        tool, arguments = call.tool, call.use.arguments
        assert tool is not None
        if tool.asks_user:
            choices = arguments.get("choices")
            return ApprovalRequest(
                request_id=call.request_id,
                kind=ApprovalKind.QUESTION,
                message=str(arguments.get("question")),
                expires_at=self._user_requests.expires_at,
                tool_call_id=call.use.id,
                schema={"type": "string", "enum": choices} if choices else None,
            )
        is_repeated = self._permissions.is_repeated(tool, arguments)
        again = " again (the first call may already have taken effect)" if is_repeated else ""
        asked = (tool.title or f"Call {tool.name} on {tool.server}").removesuffix("?")
        return ApprovalRequest(
            request_id=call.request_id,
            kind=ApprovalKind.TOOL,
            message=f"{asked}{again}?",
            expires_at=self._user_requests.expires_at,
            tool_call_id=call.use.id,
        )


def _text(question: Asked | InputRequest) -> str:
    """A question, for its id: a call that runs again may ask something else, which has no decision yet."""
    values = question.message, question.schema, question.url
    return msgspec.json.encode(values, order="deterministic").decode()


def run_by_client(tool_call_id: str) -> str:
    """What the id of the request to run a call is made from; the call may also need the user's approval."""
    return f"{tool_call_id}/client"
