"""Tools of the SDK as recorded calls, which every client shows."""

import json
from collections.abc import Awaitable, Callable
from typing import Any, cast

from agents import FunctionTool
from agents.tool_context import ToolContext

from threadkeep.agents.errors import Denied, OutcomeUnknown, StepResultInvalid, StepResultTooLarge
from threadkeep.agents.foreign import ForeignTool
from threadkeep.agents.openai_agents.current import Running, ToolEffect, recording, running, step_name
from threadkeep.agents.openai_agents.values import as_stored
from threadkeep.agents.turn import Turn
from threadkeep.wire.programs import Effect

Invoke = Callable[[ToolContext[Any], str], Awaitable[Any]]


def record_tool(tool: FunctionTool) -> None:
    """From now on, the calls of a tool inside a turn are recorded. It stays the same object."""
    invoke = tool.on_invoke_tool
    if getattr(invoke, "_threadkeep_recorded", False):
        return

    async def on_invoke_tool(context: ToolContext[Any], arguments: str) -> Any:
        now = recording()
        if now is None:
            return await invoke(context, arguments)
        return await _Call(tool, invoke, context, arguments, *now).result()

    cast("Any", on_invoke_tool)._threadkeep_recorded = True
    tool.on_invoke_tool = on_invoke_tool


class _Call:
    """One call of a tool."""

    def __init__(
        self,
        tool: FunctionTool,
        invoke: Invoke,
        context: ToolContext[Any],
        arguments: str,
        turn: Turn,
        run: Running,
    ) -> None:
        self._tool = tool
        self._invoke = invoke
        self._context = context
        self._arguments = arguments
        self._turn = turn
        self._run = run

    async def result(self) -> Any:
        """What the tool returned, or the sentence that the model reads instead."""
        effect = effect_of(self._tool, self._run)
        needs_approval = self._context.tool_call_id in self._run.approved
        try:
            if effect != "scope":
                return await self._recorded(effect, needs_approval)
            if needs_approval and not await self._approve():
                return Denied().for_model
            return await self._inside_scope()
        except (Denied, OutcomeUnknown) as exc:
            return exc.for_model
        except (StepResultInvalid, StepResultTooLarge) as exc:
            return f"The tool has run, but its result can't be read: {exc}"

    async def _recorded(self, effect: Effect, needs_approval: bool) -> Any:
        given = _parsed(self._arguments)

        async def call(arguments: dict[str, Any]) -> Any:
            text = self._arguments if arguments == given else json.dumps(arguments, ensure_ascii=False)
            if text is not self._arguments:
                cast("Any", self._context)._function_tool_arguments = None  # those that the user has edited
            return as_stored(await self._invoke(self._context, text))

        call_id = self._context.tool_call_id
        if given is None:  # the tool itself says what is wrong with it
            return await self._turn.step(lambda: call({}), name=self._tool.name, key=call_id, effect=effect)
        shown = ForeignTool(
            call,
            name=self._tool.name,
            description=self._tool.description,
            parameters=self._tool.params_json_schema,
            effect=effect,
            access="ask" if needs_approval else "allow",
        )
        return await self._turn.call(shown, given, call_id=call_id)

    async def _approve(self) -> bool:
        return await self._turn.approve(f"May {self._tool.name} run? {self._arguments}")

    async def _inside_scope(self) -> Any:
        """Runs it as code of the turn: what it does is recorded, not what it returns."""
        inner = Running(self._run.effects, is_nested=True, agent=self._run.agent, approved=self._run.approved)
        token = running.set(inner)
        try:
            with self._turn.scope(f"{step_name(self._tool.name)}/{self._context.tool_call_id}"):
                return await self._invoke(self._context, self._arguments)
        finally:
            running.reset(token)


def effect_of(tool: FunctionTool, run: Running) -> ToolEffect:
    """What a repetition of a tool would do: as its owner says, else as its MCP server, if that is trusted."""
    if tool.name in run.effects:
        return run.effects[tool.name]
    if cast("Any", tool)._is_agent_tool:
        return "scope"
    if not run.trusts_annotations or tool.mcp_annotations is None:
        return "write"
    hints = tool.mcp_annotations.model_dump(by_alias=True)
    if hints.get("readOnlyHint"):
        return "read"
    return "idempotent" if hints.get("idempotentHint") else "write"


def _parsed(arguments: str) -> dict[str, Any] | None:
    """The arguments that a model gave; None if they are none."""
    try:
        given: Any = json.loads(arguments) if arguments else {}
    except ValueError:
        return None
    return cast("dict[str, Any]", given) if isinstance(given, dict) else None
