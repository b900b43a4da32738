"""Makes an agent of ours of one of the SDK's."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, cast

import agents as sdk
from agents.memory import Session
from pydantic_core import to_json

from threadkeep.agents.agent import Agent, agent
from threadkeep.agents.errors import AgentError
from threadkeep.agents.openai_agents.current import Running, ToolEffect, running
from threadkeep.agents.openai_agents.guardrails import record_guardrails
from threadkeep.agents.openai_agents.models import RecordedProvider, record_model
from threadkeep.agents.openai_agents.preparing import prepare
from threadkeep.agents.openai_agents.sessions import session_of
from threadkeep.agents.turn import Turn

REFUSED = "This agent doesn't reply to that."
MOST_ROUNDS = 10
"""How many calls of a model a turn has, unless `max_turns` says otherwise: what the SDK has."""


def durable(
    agent_of_sdk: "sdk.Agent[Any]",
    /,
    *,
    context: Callable[[Turn], Any] | None = None,
    effects: Mapping[str, ToolEffect] | None = None,
    run_config: "sdk.RunConfig | None" = None,
    max_turns: int | None = MOST_ROUNDS,
    hooks: "sdk.RunHooks[Any] | None" = None,
    refused: str = REFUSED,
    **meta: Any,
) -> Agent:
    """An agent of the OpenAI Agents SDK as an agent whose turns survive crashes, pauses and deploys.

    `context` makes what the SDK calls the run's context, whenever the turn runs from the top. `effects` says
    by the names of tools what a repetition would do; without it, a tool is a write. `refused` is what the
    user reads if a guardrail ends the turn. `run_config`, `max_turns` and `hooks` are those of `Runner.run`,
    and `meta` is what `@agent` takes.
    """
    prepare(agent_of_sdk)
    config = run_config or sdk.RunConfig()
    if isinstance(config.model, sdk.Model):
        record_model(config.model)
    record_guardrails((*(config.input_guardrails or ()), *(config.output_guardrails or ())))
    config = dataclasses.replace(config, model_provider=RecordedProvider(config.model_provider))
    meta.setdefault("name", agent_of_sdk.name)
    meta.setdefault("key", _key(agent_of_sdk.name))

    async def run(turn: Turn) -> str | None:
        now = Running(effects or {})
        token = running.set(now)
        try:
            result = await _result(
                agent_of_sdk,
                turn.text,
                now,
                context=context(turn) if context is not None else None,
                run_config=config,
                max_turns=max_turns,
                hooks=hooks,
                session=cast("Session", await session_of(turn)),
            )
        except (sdk.InputGuardrailTripwireTriggered, sdk.OutputGuardrailTripwireTriggered) as exc:
            raise AgentError(refused) from exc
        finally:
            running.reset(token)
        said = _said(result)
        return None if said.strip() == now.said.strip() else said

    return agent(**meta)(run)


async def _result(agent_of_sdk: "sdk.Agent[Any]", asked: str, now: Running, **options: Any) -> Any:
    """Runs an agent to its end; calls that need approval are approved here, and asked about when claimed."""
    given: Any = asked
    while True:
        result = await sdk.Runner.run(agent_of_sdk, given, **options)
        if not result.interruptions:
            return result
        given = result.to_state()
        for it in result.interruptions:
            if it.call_id is not None:
                now.approved.add(it.call_id)
            given.approve(it)


def _said(result: Any) -> str:
    """What a run ends with, as text: a structured output as its JSON."""
    output = result.final_output
    if output is None or isinstance(output, str):
        return output or ""
    return to_json(output, indent=2).decode()


def _key(name: str) -> str:
    """An agent's name as the key of ours."""
    bare = "".join(it if it.isascii() and it.isalnum() else "-" for it in name.lower())
    return "-".join(filter(None, bare.split("-")))[:64] or name
