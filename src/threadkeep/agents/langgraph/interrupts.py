"""What a graph asks: each interrupt is a request to the turn's user, or the approval of a tool's call."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from langgraph.types import Interrupt

from threadkeep.agents.langgraph.graph_run import GraphRun
from threadkeep.agents.langgraph.tools import approval_of
from threadkeep.agents.turn import Turn

_TEXTS = (
    *("question", "message", "prompt", "text", "description", "query", "task"),
    *("instruction", "instructions", "action"),
)
_CHOICES = ("choices", "options")


async def answer(run: GraphRun, interrupts: Sequence[Interrupt]) -> dict[str, Any]:
    """Asks all at once, each with a request of its own; returns the answers by the interrupts' ids."""
    asking = run.turn.scope(f"asks/{run.saver.now.round}")
    answers = await asyncio.gather(
        *(_answer(run, asking.scope(str(number)), it) for number, it in enumerate(interrupts))
    )
    return {it.id: given for it, given in zip(interrupts, answers, strict=True)}


async def _answer(run: GraphRun, turn: Turn, asked: Interrupt) -> Any:
    is_in_tool = any(asked.id in it.ids for it in run.saver.now.in_tools.values())
    match asked.value:
        case {"action_requests": [*requests], "review_configs": [*configs]}:
            allowed = {it["action_name"]: it["allowed_decisions"] for it in configs}
            decisions = [
                _decide(run, turn.scope(f"action/{number}"), it, allowed.get(it["name"], ()), is_in_tool)
                for number, it in enumerate(requests)
            ]
            return {"decisions": await asyncio.gather(*decisions)}
        case {"type": "tool_approval", "tool_call_id": str(id_), "name": str(), "args": dict()}:
            return await _decide(run, turn, asked.value, ("approve",), is_in_tool, id_)
        case value:
            text, choices = _question(value)
            schema: dict[str, Any] | None = getattr(asked, "response_schema", None)
            return await turn.ask(text, choices if schema is None else None, schema)


async def _decide(
    run: GraphRun,
    turn: Turn,
    action: Mapping[str, Any],
    allowed: Sequence[str],
    is_in_tool: bool,
    call_id: str | None = None,
) -> dict[str, Any]:
    """Decides about a call that is to be reviewed.

    What may be approved is, here: the call itself then asks, so that its user sees it as the tool's call, can
    edit or deny it, and one request is recorded instead of two. A call of an agent that a tool runs is no
    call of the turn's, so nothing else would ask.
    """
    text = str(action.get("description") or f"Call {action['name']}? {_plain(action['args'])}")
    if "approve" in allowed and is_in_tool:
        return {"type": "approve"} if await turn.approve(text) else {"type": "reject"}
    if "approve" in allowed:
        run.saver.now.approvals.append(call_id or approval_of(action["name"], action["args"]))
        return {"type": "approve"}
    said = await turn.ask(text)
    if said is not None and "respond" in allowed:
        return {"type": "respond", "message": said}
    return {"type": "reject", **({"message": said} if said else {})}


def _question(value: Any) -> tuple[str, list[str] | None]:
    """A question that its user can read, and the answers to choose from."""
    if isinstance(value, str):
        return value, None
    if isinstance(value, dict):
        asked = cast("dict[str, Any]", value)
        found = next((asked[it] for it in _CHOICES if it in asked), None)
        choices = cast("list[Any]", found) if isinstance(found, list) and found else None
        is_choice = choices is not None and all(isinstance(it, str) for it in choices)
        text = next((asked[it] for it in _TEXTS if isinstance(asked.get(it), str)), None)
        rest = {k: v for k, v in asked.items() if v is not text and not (is_choice and v is found)}
        if text is not None:
            shown = f"{text}\n\n{_plain(rest)}" if rest else text
            return shown, cast("list[str]", choices) if is_choice else None
    return _plain(value), None


def _plain(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2, default=str)
