"""Calls that pydantic-ai defers: those that need an approval, and those that are made elsewhere."""

import asyncio
from typing import Any

from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, ToolApproved

from threadkeep.agents.errors import Denied, OutcomeUnknown
from threadkeep.agents.pydantic_ai.records import records_of
from threadkeep.agents.turn import Turn

DECLINED = "The user didn't answer."


async def decide(turn: Turn, requests: DeferredToolRequests) -> DeferredToolResults:
    """What becomes of calls that were deferred.

    Those that need an approval get it here: the call itself asks the user, who may also change its arguments.
    """
    results = await asyncio.gather(*(_result(turn, call, requests) for call in requests.calls))
    return DeferredToolResults(
        approvals={it.tool_call_id: ToolApproved() for it in requests.approvals},
        calls={it.tool_call_id: result for it, result in zip(requests.calls, results, strict=True)},
    )


async def _result(turn: Turn, call: ToolCallPart, requests: DeferredToolRequests) -> Any:
    """The result of a call: the server's, the client's, or the user's answer."""
    arguments = call.args_as_dict()
    if call.tool_name in records_of(turn).offered:
        try:
            returned = await turn.call(call.tool_name, arguments, call_id=call.tool_call_id)
        except (Denied, OutcomeUnknown) as exc:
            return ToolFailed(exc.for_model)
        return returned.text if returned.status == "ok" else ToolFailed(returned.text)
    answer = await turn.ask(_question(call, arguments, requests))
    return ToolFailed(DECLINED) if answer is None else answer


def _question(call: ToolCallPart, arguments: dict[str, Any], requests: DeferredToolRequests) -> str:
    """What the user is asked: a question's own words, or what the call is to do."""
    kind_of = getattr(requests, "kind", None)  # since pydantic-ai 2.68: before, no call is a question
    if kind_of is not None and kind_of(call.tool_call_id) == "question":
        for name in ("question", "message", "prompt"):
            if isinstance(text := arguments.get(name), str):
                return text
    return f"What is the result of `{call.tool_name}` with {call.args_as_json_str()}?"
