"""Guardrails of the SDK as recorded steps: what they call, such as a model, is called once."""

import asyncio
import inspect
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, cast

from agents import (
    Agent,
    GuardrailFunctionOutput,
    InputGuardrail,
    OutputGuardrail,
    RunContextWrapper,
    ToolGuardrailFunctionOutput,
    ToolInputGuardrail,
    ToolInputGuardrailData,
    ToolOutputGuardrail,
)
from pydantic import BaseModel

from threadkeep.agents.openai_agents.current import Running, recording, step_name
from threadkeep.agents.openai_agents.values import as_stored
from threadkeep.agents.values import Unstorable, plain

MOST_WAIT_S = 2.0
"""How long a guardrail waits for a model call that may never come, because something else has failed."""

Guardrail = InputGuardrail[Any] | OutputGuardrail[Any] | ToolInputGuardrail[Any] | ToolOutputGuardrail[Any]


def record_guardrails(guardrails: Iterable[Guardrail]) -> None:
    """From now on, what these guardrails do inside a turn are steps. They stay the same objects."""
    for guardrail in guardrails:
        changed = cast("Any", guardrail)
        if not getattr(changed.guardrail_function, "_threadkeep_recorded", False):
            name = guardrail.get_name()
            if isinstance(guardrail, ToolInputGuardrail | ToolOutputGuardrail):
                function = _of_tool(name, changed.guardrail_function)
            else:
                is_beside = isinstance(guardrail, InputGuardrail) and guardrail.run_in_parallel
                function = _of_agent(name, changed.guardrail_function, is_beside=is_beside)
            function._threadkeep_recorded = True
            changed.guardrail_function = function
            changed.name = name


def _of_agent(name: str, function: Any, *, is_beside: bool) -> Any:
    async def check(context: RunContextWrapper[Any], agent: Agent[Any], checked: Any) -> Any:
        if (now := recording()) is None:
            return await _called(function, context, agent, checked)

        async def run() -> Any:
            output = await _called(function, context, agent, checked)
            return [_info(output.output_info), bool(output.tripwire_triggered)]

        if is_beside:
            await _until_asked(now[1])
        key = [agent.name, _content(checked)]
        info, is_triggered = await now[0].step(run, name=step_name(name), key=key, effect="idempotent")
        return GuardrailFunctionOutput(output_info=info, tripwire_triggered=is_triggered)

    return check


def _of_tool(name: str, function: Any) -> Any:
    async def check(data: ToolInputGuardrailData) -> ToolGuardrailFunctionOutput:
        if (now := recording()) is None:
            return await _called(function, data)

        async def run() -> Any:
            output = await _called(function, data)
            return [_info(output.output_info), output.behavior]

        key = [data.context.tool_call_id, _content(getattr(data, "output", None))]
        info, behavior = await now[0].step(run, name=step_name(name), key=key, effect="idempotent")
        return ToolGuardrailFunctionOutput(output_info=info, behavior=behavior)

    return check


async def _until_asked(run: Running) -> None:
    """Waits for the model call beside which a guardrail runs.

    When a turn runs again, its guardrail's result is there at once. If it ended the run before the model was
    asked, as it hadn't the first time, the code would seem to have changed.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(MOST_WAIT_S):
            await run.has_asked.wait()


async def _called(function: Any, *args: Any) -> Any:
    output = function(*args)
    return await output if inspect.isawaitable(output) else output


def _info(info: Any) -> Any:
    return info.model_dump(mode="json") if isinstance(info, BaseModel) else as_stored(info)


def _content(checked: Any) -> Any:
    """What is checked, to tell two checks apart."""
    try:
        return plain(checked)
    except Unstorable:
        return str(checked)
