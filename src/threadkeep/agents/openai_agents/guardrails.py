"""Guardrails of the SDK as recorded steps: what they call, such as a model, is called once."""

import inspect
from collections.abc import Iterable
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

from threadkeep.agents.openai_agents.current import recording, step_name
from threadkeep.agents.openai_agents.values import as_stored
from threadkeep.agents.values import Unstorable, plain

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
                function = _of_agent(name, changed.guardrail_function)
            function._threadkeep_recorded = True
            changed.guardrail_function = function
            changed.name = name


def _of_agent(name: str, function: Any) -> Any:
    async def check(context: RunContextWrapper[Any], agent: Agent[Any], checked: Any) -> Any:
        if (now := recording()) is None:
            return await _called(function, context, agent, checked)

        async def run() -> Any:
            output = await _called(function, context, agent, checked)
            return [_info(output.output_info), bool(output.tripwire_triggered)]

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
