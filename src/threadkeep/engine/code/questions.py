"""Questions of a program to the turn's user: they may wait for days."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from threadkeep.domain.approval import ApprovalAction, ApprovalKind, Decision
from threadkeep.domain.events import ApprovalRequest, ApprovalResponse
from threadkeep.domain.mcp import AGENT
from threadkeep.engine.code.claims import OpenClaim
from threadkeep.engine.code.running import RunningCode
from threadkeep.engine.user_requests import Asking
from threadkeep.ports.tools import Tool
from threadkeep.wire.programs import AskClaim

_ASK = Tool(AGENT, "ask", "Asks the user.", {}, 0, is_own=True, asks_user=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question; `subject` decides its id, so that nobody is asked twice."""

    subject: str
    kind: ApprovalKind
    message: str
    schema: Mapping[str, Any] | None

    async def ask(self, code: RunningCode) -> tuple[Decision, ApprovalResponse]:
        """Asks, unless an earlier run has; returns the user's decision and its event."""
        share = code.requests.share()
        request_id = share.request_id(self.subject)
        try:
            if request_id not in code.state.requests:
                request = ApprovalRequest(
                    request_id=request_id,
                    kind=self.kind,
                    message=self.message,
                    expires_at=share.expires_at,
                    schema=self.schema,
                )
                await share.ask(Asking(request, _ASK, {}))
                await code.outlet.store(request)
            while (decision := (await share.decisions()).get(request_id)) is None:
                with code.activity.waiting(frozenset({request_id})):
                    await share.arrived()
        finally:
            share.close()
        return decision, ApprovalResponse(
            request_id, decision.action, decision.scope, content=decision.content
        )

    async def withdraw(self, code: RunningCode) -> tuple[ApprovalResponse, ...]:
        """Expires the question, because the program no longer waits for the answer."""
        request_id = code.around.requests.request_id(self.subject)
        if await code.around.requests.withdraw(request_id):
            return (ApprovalResponse(request_id, ApprovalAction.EXPIRE),)
        return ()


async def ask(code: RunningCode, claim: AskClaim, open_: OpenClaim) -> None:
    """Asks the user what the program wants to know; `null` if they decline."""
    begun = code.begun(open_, "ask", "question", "read")
    if open_.key not in code.state.begun:
        code.outlet.emit(begun)
    try:
        decision, response = await _question_of(claim, open_, code.named(claim.scope, claim.message)).ask(
            code
        )
    except asyncio.CancelledError:
        if open_.is_given_up:
            await give_up_question(code, claim, open_)
        raise
    answer = decision.content if decision.action is ApprovalAction.ANSWER else None
    code.end(await code.ok(open_, answer, is_progress=True), response)


async def give_up_question(code: RunningCode, claim: AskClaim, open_: OpenClaim) -> None:
    """Ends a question to which the program no longer wants an answer."""
    expired = await _question_of(claim, open_, claim.message).withdraw(code)
    code.end(code.failed(open_, None, status="cancelled"), *expired)


def _question_of(claim: AskClaim, open_: OpenClaim, message: str) -> Question:
    is_form = claim.schema is not None and claim.schema.get("type") == "object"
    return Question(
        subject=f"ask/{open_.key}",
        kind=ApprovalKind.ELICITATION if is_form else ApprovalKind.QUESTION,
        message=message,
        schema=claim.schema,
    )
