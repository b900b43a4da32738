"""The tools of a reply outside any conversation, and what becomes of its questions.

Our own tools that need a stored conversation, or somebody who looks at it, are left out:

| tool | why |
|---|---|
| ask_user | nobody is there to answer |
| make_chart | nobody sees the chart |
| promptx_remember | nothing is stored; what is remembered can be recalled |
| recall_file, recall_result, search_history | they read what a conversation has stored |
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from threadkeep.clock import Clock
from threadkeep.domain.approval import ApprovalAction, ApprovalKind, Decision
from threadkeep.domain.mcp import CHARTS, FILES, HISTORY, PROMPTX, RESULTS, USER
from threadkeep.domain.turn import Turn
from threadkeep.engine.user_requests import Asking
from threadkeep.ports.tools import GivenInput, Grant, Step, Tool, ToolSession, Unavailable
from threadkeep.services.approvals import request_id_of

NOBODY_APPROVES = "This tool needs the user's approval, and nobody can give it here."

_LEFT_OUT_SERVERS = {USER, CHARTS, RESULTS, FILES, HISTORY}
_LEFT_OUT = {(PROMPTX, "promptx_remember")}


class OfferedTools:
    """The tools of an agent that work without a conversation."""

    def __init__(self, session: ToolSession) -> None:
        self._session = session

    async def list(self) -> tuple[Sequence[Tool], Sequence[Unavailable]]:
        """The available tools, and the unavailable servers."""
        tools, unavailable = await self._session.list()
        return [it for it in tools if not _is_left_out(it)], unavailable

    def call(
        self, tool: Tool, arguments: Mapping[str, Any], *, key: str, given: GivenInput | None = None
    ) -> AsyncGenerator[Step]:
        """Runs a tool."""
        return self._session.call(tool, arguments, key=key, given=given)


def _is_left_out(tool: Tool) -> bool:
    return tool.is_own and (tool.server in _LEFT_OUT_SERVERS or (tool.server, tool.name) in _LEFT_OUT)


class NobodyToAsk:
    """Denies whatever needs a user; a call that the client runs stays open, which ends the reply."""

    def __init__(self, turn: Turn, clock: Clock) -> None:
        self._turn = turn
        self._clock = clock
        self._decisions: dict[str, Decision] = {}
        self._denied = asyncio.Event()

    def request_id(self, tool_call_id: str) -> str:
        """The id of the request for a call."""
        return request_id_of(self._turn, tool_call_id)

    @property
    def expires_at(self) -> int:
        """At once: nobody decides later."""
        return self._clock()

    def expires_in(self, seconds: float) -> int:
        """At once."""
        return self._clock()

    async def granted(self) -> frozenset[Grant]:
        """Nothing was allowed before."""
        return frozenset()

    async def ask(self, asking: Asking) -> None:
        """Denies a request, unless it is for the client."""
        if asking.request.kind is ApprovalKind.CLIENT_TOOL:
            return
        denied = Decision(action=ApprovalAction.DENY, at=self._clock(), error=NOBODY_APPROVES)
        self._decisions[asking.request.request_id] = denied
        self._denied.set()

    async def withdraw(self, request_id: str) -> bool:
        """Whether a request has no decision."""
        return request_id not in self._decisions

    async def decisions(self) -> Mapping[str, Decision]:
        """The decisions so far, by request id."""
        return self._decisions

    async def arrived(self) -> None:
        """Returns when something was denied."""
        await self._denied.wait()
        self._denied.clear()
