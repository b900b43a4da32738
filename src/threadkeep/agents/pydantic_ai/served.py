"""An agent of pydantic-ai as an agent of Threadkeep."""

import inspect
import json
import logging
import re
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, cast

from pydantic import TypeAdapter
from pydantic_ai.agent import AbstractAgent, AgentRunResult
from pydantic_ai.exceptions import FallbackExceptionGroup, ModelAPIError, ModelHTTPError
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, UserContent
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ExternalToolset

from threadkeep.agents.agent import Agent, agent
from threadkeep.agents.errors import AgentError
from threadkeep.agents.media import DEFAULT_FILES, Media
from threadkeep.agents.model_errors import model_failed
from threadkeep.agents.offered import offered_tools
from threadkeep.agents.pydantic_ai.capability import Durability
from threadkeep.agents.pydantic_ai.messages import converted, dump, load, prompt_of
from threadkeep.agents.pydantic_ai.records import records_of
from threadkeep.agents.replies import StructuredReply
from threadkeep.agents.turn import Turn
from threadkeep.domain.file import FileKind
from threadkeep.wire.programs import ServerTool

log = logging.getLogger("threadkeep.agents")

STATE = "pydantic_ai"
MOST_STATE_BYTES = 6 * 1024 * 1024
"""How much of a branch's messages is kept exactly; a state can have a little more."""


def durable(
    given: AbstractAgent[Any, Any],
    *,
    deps: Callable[[Turn], Any] | None = None,
    files: Sequence[FileKind] = DEFAULT_FILES,
    **meta: Any,
) -> Agent:
    """The agent, served by Threadkeep: each model call and each tool call is a recorded step.

    `deps` makes the run's dependencies from its turn; it runs again whenever the turn continues, so it gives
    handles, not data that it reads. `files` are those that its model takes as they are; of others, it gets
    the text. The rest is what `@agent` takes.
    """
    names = _names(given, meta)

    async def run(turn: Turn) -> StructuredReply | None:
        return await _run(given, turn, deps, files)

    return agent(**{**names, **meta})(run)


def _names(given: AbstractAgent[Any, Any], meta: dict[str, Any]) -> dict[str, Any]:
    """The key, the name and the description that an agent brings along."""
    name = given.name
    if name is None and "key" not in meta:
        raise ValueError(
            "This agent has no name, and Threadkeep knows agents by a key. Give it one: "
            '`Agent(…, name="orders")`, or `durable(agent, key="orders")`.'
        )
    key = re.sub(r"[^a-z0-9]+", "-", (name or "").lower()).strip("-")
    called = (name or meta["key"]).replace("_", " ").replace("-", " ").strip()
    found = {"key": key, "name": called[:1].upper() + called[1:]}
    description = given.description
    return {**found, "description": description} if isinstance(description, str) else found


async def _run(
    given: AbstractAgent[Any, Any],
    turn: Turn,
    deps: Callable[[Turn], Any] | None,
    files: Sequence[FileKind],
) -> StructuredReply | None:
    media = Media(turn)
    history, prompt = await _asked(turn, media, files)
    made = deps(turn) if deps is not None else None
    if inspect.isawaitable(made):
        made = await made
    try:
        result = await _result(given, turn, history, prompt, made)
    except (ModelAPIError, FallbackExceptionGroup) as exc:
        failed = model_failed(exc)
        last = exc.exceptions[-1] if isinstance(exc, FallbackExceptionGroup) else exc
        model = last.model_name if isinstance(last, ModelAPIError) else "?"
        status = f", status {last.status_code}" if isinstance(last, ModelHTTPError) else ""
        log.error("turn %s: the model %s failed: %s%s", turn.id, model, type(last).__name__, status)
        raise failed or AgentError(f"The model {model} gave no answer.") from exc
    structured = await _tell(turn, result)
    at = turn.now().isoformat()
    messages = [media.cut(it) for it in dump(result.all_messages())]
    turn.state[STATE] = {"turn": turn.id, "at": at, "messages": _kept(messages)}
    return structured


async def _result(
    given: AbstractAgent[Any, Any],
    turn: Turn,
    history: list[ModelMessage],
    prompt: str | list[UserContent],
    deps: Any,
) -> AgentRunResult[Any]:
    is_durable = Durability.from_agent(given) is not None
    return await given.run(
        prompt,
        message_history=history,
        deps=deps,
        run_id=turn.id,
        conversation_id=turn.conversation.id,
        toolsets=_offered(turn, await offered_tools(turn)),
        capabilities=None if is_durable else [Durability(name=given.name or turn.id)],
    )


async def _asked(
    turn: Turn, media: Media, files: Sequence[FileKind]
) -> tuple[list[ModelMessage], str | list[UserContent]]:
    """The messages before the turn's own, and that."""
    exact = await _exact(turn, media)
    if exact is not None and not turn.files:
        return exact, turn.text
    given = await turn.history(as_context=True, files=files)
    await media.load_of(given if exact is None else given[-1:])
    prompt: str | list[UserContent] = turn.text
    context = converted(given, media)
    if context and isinstance(last := context[-1], ModelRequest):
        context.pop()
        prompt = prompt_of(last) or prompt
    return context if exact is None else exact, prompt


async def _exact(turn: Turn, media: Media) -> list[ModelMessage] | None:
    """The messages before, as pydantic-ai has made them; None if the last reply isn't this agent's."""
    state = cast("dict[str, Any] | None", turn.state.get(STATE))
    if state is None:
        return None
    before = await turn.history(limit=1)
    if not before:
        return None
    reply = before[-1]
    is_own = reply["turnId"] == state["turn"]
    # A fork has copies of turns, made when their originals were.
    is_copy = datetime.fromisoformat(reply["createdAt"]) <= datetime.fromisoformat(state["at"])
    if not is_own and not is_copy:
        return None
    return load([await media.whole(it) for it in state["messages"]])


def _offered(turn: Turn, tools: Sequence[ServerTool]) -> Sequence[AbstractToolset[Any]] | None:
    """What the turn offers besides the agent's own tools."""
    records_of(turn).offered.update(it.name for it in tools)
    definitions = [
        ToolDefinition(name=it.name, description=it.description, parameters_json_schema=it.parameters)
        for it in tools
    ]
    return [ExternalToolset(definitions)] if definitions else None


async def _tell(turn: Turn, result: AgentRunResult[Any]) -> StructuredReply | None:
    """Says the output, unless the model has just said it; a structured one is for the turn's end."""
    responses = [it for it in result.new_messages() if isinstance(it, ModelResponse)]
    if len(responses) > records_of(turn).responses:
        await turn.notice(
            "A model was called in a way that isn't recorded: if the turn is interrupted, it is called again."
        )
    output = result.output
    if isinstance(output, str):
        if not turn.is_shown or not responses or _said(responses[-1]) != output.strip():
            await turn.say(output)
        return None
    value = TypeAdapter[Any](Any).dump_python(output, mode="json")
    turn.state["output"] = value
    return StructuredReply.of(value)


def _said(response: ModelResponse) -> str:
    return "".join(it.content for it in response.parts if isinstance(it, TextPart)).strip()


def _kept(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The newest messages, from a question on, that a state has room for."""
    sizes = [len(json.dumps(it)) for it in messages]
    total = sum(sizes)
    start = 0
    while total > MOST_STATE_BYTES and start < len(messages):
        total -= sizes[start]
        start += 1
        while start < len(messages) and not _is_question(messages[start]):
            total -= sizes[start]
            start += 1
    return messages[start:]


def _is_question(message: dict[str, Any]) -> bool:
    return any(it["part_kind"] == "user-prompt" for it in message.get("parts", ())) or "parts" not in message
