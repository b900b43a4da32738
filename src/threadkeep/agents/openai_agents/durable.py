"""Makes an agent of ours of one of the SDK's."""

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import agents as sdk
from pydantic_core import to_json, to_jsonable_python

from threadkeep.agents.agent import Agent, agent
from threadkeep.agents.errors import AgentError, StepLimit
from threadkeep.agents.media import DEFAULT_FILES
from threadkeep.agents.offered import offered_tools
from threadkeep.agents.openai_agents.current import Running, ToolEffect, running
from threadkeep.agents.openai_agents.guardrails import record_guardrails
from threadkeep.agents.openai_agents.hooks import PreparingHooks
from threadkeep.agents.openai_agents.models import RecordedProvider, record_model
from threadkeep.agents.openai_agents.preparing import prepare
from threadkeep.agents.openai_agents.sessions import past_of
from threadkeep.agents.replies import StructuredReply
from threadkeep.agents.turn import Turn
from threadkeep.domain.file import FileKind

REFUSED = "This agent doesn't reply to that."
UNRECORDED = (
    "A model was called in a way that isn't recorded: if the turn is interrupted, it is called again."
)
TRIPWIRES = (
    sdk.InputGuardrailTripwireTriggered,
    sdk.OutputGuardrailTripwireTriggered,
    sdk.ToolInputGuardrailTripwireTriggered,
    sdk.ToolOutputGuardrailTripwireTriggered,
)
"""What a guardrail raises that ends the turn."""
MOST_ROUNDS = 10
"""How many calls of a model a turn has, unless `max_turns` says otherwise: what the SDK has."""


def durable(
    agent_of_sdk: "sdk.Agent[Any]",
    /,
    *,
    context: Callable[[Turn], Any] | None = None,
    effects: Mapping[str, ToolEffect] | None = None,
    agents: "Sequence[sdk.Agent[Any]]" = (),
    trust_annotations: bool = False,
    run_config: "sdk.RunConfig | None" = None,
    max_turns: int | None = MOST_ROUNDS,
    hooks: "sdk.RunHooks[Any] | None" = None,
    refused: str = REFUSED,
    files: Sequence[FileKind] = DEFAULT_FILES,
    **meta: Any,
) -> Agent:
    """An agent of the OpenAI Agents SDK as an agent whose turns survive crashes, pauses and deploys.

    `context` makes what the SDK calls the run's context, whenever the turn runs from the top. `effects` says
    by the names of tools what a repetition would do: read, idempotent, write, or scope for one whose own
    calls are recorded instead of itself. A tool without one is a write; with `trust_annotations`, what its
    MCP server says of it. `agents` are those that tools run. `refused` is what the user reads if a guardrail
    ends the turn. `files` are those that the models take as they are; of others, they get the text.
    `run_config`, `max_turns` and `hooks` are those of `Runner.run`; `meta` is what `@agent` takes.
    """
    for it in (agent_of_sdk, *agents):
        prepare(it)
    config = run_config or sdk.RunConfig()
    if isinstance(config.model, sdk.Model):
        record_model(config.model)
    record_guardrails((*(config.input_guardrails or ()), *(config.output_guardrails or ())))
    config = dataclasses.replace(config, model_provider=RecordedProvider(config.model_provider))
    meta.setdefault("name", agent_of_sdk.name)
    meta.setdefault("key", _key(agent_of_sdk.name))

    async def run(turn: Turn) -> str | StructuredReply | None:
        now = Running(effects or {}, trust_annotations, offered=await offered_tools(turn))
        token = running.set(now)
        past, asked = await past_of(turn, files)
        try:
            made = context(turn) if context is not None else None
            result = await _result(
                agent_of_sdk,
                asked,
                now,
                context=await made if inspect.isawaitable(made) else made,
                run_config=config,
                max_turns=max_turns,
                hooks=PreparingHooks(hooks),
                session=past.session,
            )
        except TRIPWIRES as exc:
            raise AgentError(refused) from exc
        except sdk.MaxTurnsExceeded as exc:
            raise StepLimit(str(exc)) from exc
        finally:
            running.reset(token)
            past.keep()
            for end in now.at_end:
                await end()
        output = None
        if not isinstance(result.final_output, str | None):
            output = turn.state["output"] = to_jsonable_python(result.final_output)
        if len(result.raw_responses) > now.replies:
            await turn.notice(UNRECORDED)
        said = _said(result)
        text = None if turn.is_shown and said.strip() == now.said.strip() else said
        return text if output is None else StructuredReply(output, text)

    return agent(**meta)(run)


async def _result(agent_of_sdk: "sdk.Agent[Any]", asked: Any, now: Running, **options: Any) -> Any:
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
