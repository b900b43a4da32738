"""Runs agents of `openai-agents` against a server: one JSON command per line in, one answer per line out."""

import asyncio
import json
import os
import sys
import traceback
from typing import Any

from agents import (
    Agent,
    HostedMCPTool,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIConversationsSession,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    function_tool,
    input_guardrail,
)
from agents.guardrail import GuardrailFunctionOutput
from openai import AsyncOpenAI

MODELS = {"responses": OpenAIResponsesModel, "completions": OpenAIChatCompletionsModel}
QUIET = RunConfig(tracing_disabled=True)  # traces would go to OpenAI

sessions: dict[str, OpenAIConversationsSession] = {}


@function_tool
def locate(near: str) -> str:
    """Where the user is."""
    return f"Bern, near {near}"


@input_guardrail(run_in_parallel=False)
async def polite(_context: Any, _agent: Any, given: Any) -> GuardrailFunctionOutput:
    """Lets only the polite pass; earlier messages don't matter."""
    return GuardrailFunctionOutput(output_info=None, tripwire_triggered="damn" in str(given[-1:]))


def desk(command: dict[str, Any]) -> HostedMCPTool:
    """The server of our agent whose tools ask; it only has a name here."""
    config: Any = {"type": "mcp", "server_label": "desk"}
    return HostedMCPTool(config, on_approval_request=lambda _: {"approve": command["approve"]})


def client(command: dict[str, Any]) -> AsyncOpenAI:
    """The client with the two lines that change."""
    return AsyncOpenAI(base_url=f"{command['url']}/v1", api_key=command["key"], max_retries=0)


def agent(command: dict[str, Any]) -> Agent[Any]:
    """An agent as the command describes it."""
    model = MODELS[command.get("api", "responses")](model=command["agent"], openai_client=client(command))
    name = command.get("name", "Assistant")
    handoffs = [agent({**command, "name": "Expert", "handoff": False})] if command.get("handoff") else []
    return Agent(
        name=name,
        instructions=f"You are {name}.",
        model=model,
        model_settings=ModelSettings(**command.get("settings", {})),
        tools=[
            *([locate] if command.get("tools") else []),
            *([desk(command)] if "approve" in command else []),
        ],
        handoffs=handoffs,
        input_guardrails=[polite] if command.get("guarded") else [],
    )


def session(command: dict[str, Any]) -> OpenAIConversationsSession | None:
    """The session of a name, made when it is first used."""
    name = command.get("session")
    if name is None:
        return None
    return sessions.setdefault(name, OpenAIConversationsSession(openai_client=client(command)))


async def run(command: dict[str, Any]) -> dict[str, Any]:
    """One run of an agent, to its end."""
    options: dict[str, Any] = {
        "run_config": QUIET,
        "session": session(command),
        "conversation_id": command.get("conversation"),
        "previous_response_id": command.get("previous"),
        "auto_previous_response_id": command.get("chained", False),
    }
    deltas: list[str] = []
    if command.get("stream"):
        result: Any = Runner.run_streamed(agent(command), command["input"], **options)
        raw = [it.data async for it in result.stream_events() if it.type == "raw_response_event"]
        deltas = [it.delta for it in raw if it.type == "response.output_text.delta"]
    else:
        result = await Runner.run(agent(command), command["input"], **options)
    return {
        "output": result.final_output,
        "deltas": deltas,
        "items": [it.type for it in result.new_items],
        "responses": [it.response_id for it in result.raw_responses],
        "list": result.to_input_list(),
        "tokens": result.context_wrapper.usage.total_tokens,
        "agent": result.last_agent.name,
    }


async def session_items(command: dict[str, Any]) -> dict[str, Any]:
    """What a session has."""
    kept = session(command)
    assert kept is not None
    return {"items": await kept.get_items(command.get("limit")), "id": kept.session_id}


async def session_add(command: dict[str, Any]) -> None:
    """Adds items to a session."""
    kept = session(command)
    assert kept is not None
    await kept.add_items(command["items"])


async def session_pop(command: dict[str, Any]) -> Any:
    """Takes the newest item back."""
    kept = session(command)
    assert kept is not None
    return await kept.pop_item()


async def session_clear(command: dict[str, Any]) -> None:
    """Forgets a session."""
    kept = session(command)
    assert kept is not None
    await kept.clear_session()


async def snippet(command: dict[str, Any]) -> list[str]:
    """What a program of the documentation, with a function `ask`, replies."""
    os.environ["THREADKEEP_KEY"] = command["key"]
    names: dict[str, Any] = {}
    exec(command["code"], names)
    return [await names["ask"](it) for it in command["questions"]]


COMMANDS = {
    "snippet": snippet,
    "run": run,
    "session_items": session_items,
    "session_add": session_add,
    "session_pop": session_pop,
    "session_clear": session_clear,
}


async def answer(command: dict[str, Any]) -> None:
    """Carries a command out and tells what came of it."""
    told: dict[str, Any] = {"number": command["number"]}
    try:
        told["result"] = await COMMANDS[command["command"]](command)
    except Exception as exc:  # the test decides what it means
        told["error"] = f"{type(exc).__name__}: {exc}\n{traceback.format_exc()}"
    print(json.dumps(told, default=str), flush=True)


async def main() -> None:
    """Reads commands until the input ends."""
    print("ready", flush=True)
    loop = asyncio.get_running_loop()
    tasks: set[asyncio.Task[None]] = set()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        task = asyncio.create_task(answer(json.loads(line)))
        tasks.add(task)
        task.add_done_callback(tasks.discard)


asyncio.run(main())
