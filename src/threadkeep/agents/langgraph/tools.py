"""Tools of a graph, recorded: shown to every client as tool calls, and run once."""

import asyncio
import base64
import functools
import json
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, cast

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from langgraph.errors import GraphInterrupt, ParentCommand
from langgraph.prebuilt import ToolNode
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command

from threadkeep.agents.errors import Denied, OutcomeUnknown
from threadkeep.agents.foreign import ForeignTool
from threadkeep.agents.langgraph.bridge import wait_for
from threadkeep.agents.langgraph.events import until_shown
from threadkeep.agents.langgraph.graph_run import GraphRun, in_tool, running
from threadkeep.agents.langgraph.messages import text_of
from threadkeep.agents.replies import Shown
from threadkeep.agents.values import encode
from threadkeep.wire.programs import Effect, StepAccess

Execute = Callable[[ToolCallRequest], Coroutine[Any, Any, Any]]

_RECORD = "langgraph"
"""Holds the bytes of what a tool returned, where that is more than a text."""
ASKS = "The tool asks its user."


class ToolSaid(Exception):
    """A tool failed, and its model is to read why."""


def approval_of(name: str, arguments: Mapping[str, Any]) -> str:
    """Identifies a call that a graph wants approved."""
    return json.dumps([name, arguments], sort_keys=True, default=str)


def record_tools() -> None:
    """Makes every ToolNode record the calls of graphs that run in a turn."""
    if getattr(ToolNode, "_is_recorded_by_threadkeep", False):
        return
    node = cast("Any", ToolNode)
    execute_async, execute_sync = node._execute_tool_async, node._execute_tool_sync

    @functools.wraps(execute_async)
    async def recorded_async(self: Any, request: ToolCallRequest, *args: Any, **kwargs: Any) -> Any:
        run = running()
        if run is None or not _is_recorded(request.tool):
            with in_tool():
                return await execute_async(self, request, *args, **kwargs)

        async def execute(it: ToolCallRequest) -> Any:
            return await execute_async(self, it, *args, **kwargs)

        return await call_tool(run, request, execute)

    @functools.wraps(execute_sync)
    def recorded_sync(self: Any, request: ToolCallRequest, *args: Any, **kwargs: Any) -> Any:
        run = running()
        if run is None or not _is_recorded(request.tool) or run.turn.function_run.is_on_its_loop:
            with in_tool():
                return execute_sync(self, request, *args, **kwargs)

        async def execute(it: ToolCallRequest) -> Any:
            return await asyncio.to_thread(execute_sync, self, it, *args, **kwargs)

        return wait_for(call_tool(run, request, execute), run.loop)

    node._execute_tool_async, node._execute_tool_sync = recorded_async, recorded_sync
    node._is_recorded_by_threadkeep = True


def _is_recorded(tool: BaseTool | None) -> bool:
    return tool is not None and (tool.metadata or {}).get("durable") is not False


async def call_tool(run: GraphRun, request: ToolCallRequest, execute: Execute) -> Any:
    """Runs a tool as a recorded call; what went wrong with that is for the model to read."""
    try:
        while True:
            returned = await _call(run, request, execute)
            if not isinstance(returned, _Interrupted):
                return returned
            if returned.now is not None:
                raise returned.now
    except (Denied, OutcomeUnknown) as exc:
        return _message(request, exc.for_model, is_error=True)
    except ToolSaid as exc:
        return _message(request, exc.args[0], is_error=True)


class _Interrupted:
    """The tool has asked its user something; it starts again when that is answered."""

    def __init__(self, now: GraphInterrupt | None) -> None:
        self.now = now
        """Set while nobody has answered."""


async def _call(run: GraphRun, request: ToolCallRequest, execute: Execute) -> Any:
    call, tool = request.tool_call, request.tool
    assert tool is not None
    id_ = call["id"] or approval_of(call["name"], call["args"])
    next_ = run.next_call(run.place(), tool.name, id_)
    # One that asked its user runs again: for clients, that is another call.
    shown_id = id_ if next_.number == 1 else f"{id_}-{next_.number}"
    bubbled: GraphInterrupt | None = None

    async def body(arguments: dict[str, Any]) -> Any:
        nonlocal bubbled
        try:
            made = until_shown(execute(request.override(tool_call={**call, "args": arguments})))
            return _storable(run, await made)
        except GraphInterrupt as exc:
            bubbled = exc
            asked = run.saver.asked_in(next_.key, run.namespace(), cast("Any", exc).args[0])
            return Shown({_RECORD: "interrupt", "asked": asked}, ASKS)
        except ParentCommand as exc:
            command: Any = cast("Any", exc).args[0]
            return Shown(
                {_RECORD: "parent", "value": run.saver.types.dumps_typed(command)}, _texts_of(command)
            )

    described = ForeignTool(
        body,
        name=tool.name,
        description=tool.description,
        parameters=_schema(tool),
        effect=effect_of(run, tool),
        access=_access_of(run, tool, call),
    )

    async def made() -> Any:
        return await next_.turn.call(described, call["args"], call_id=shown_id)

    returned = await run.once(next_.key, made)
    if isinstance(returned, dict) and _RECORD in returned:
        match cast("dict[str, Any]", returned):
            case {"langgraph": "interrupt", "asked": str(asked)}:
                again = run.saver.ask_again(next_.key, run.namespace(), base64.b64decode(asked))
                return _Interrupted(bubbled or (GraphInterrupt(again) if again else None))
            case {"langgraph": "parent", "value": [kind, value]}:
                raise ParentCommand(run.saver.types.loads_typed((kind, base64.b64decode(value))))
            case {"value": [kind, value]}:
                return run.saver.types.loads_typed((kind, base64.b64decode(value)))
            case _:
                pass
    text = returned if isinstance(returned, str) else encode(cast("Any", returned)).decode()
    return _message(request, text)


def effect_of(run: GraphRun, tool: BaseTool) -> Effect:
    """What repeating a tool would do: as the adapter was told, as its metadata says, else a write."""
    return run.effects.get(tool.name) or (tool.metadata or {}).get("effect") or "write"


def _access_of(run: GraphRun, tool: BaseTool, call: Any) -> StepAccess:
    wanted = (approval_of(call["name"], call["args"]), call["id"])
    if any(it in run.saver.now.approvals for it in wanted):
        return "ask"
    return (tool.metadata or {}).get("access") or "allow"


def _schema(tool: BaseTool) -> dict[str, Any]:
    schema = cast("Any", tool.tool_call_schema)
    return cast("dict[str, Any]", schema if isinstance(schema, dict) else schema.model_json_schema())


def _storable(run: GraphRun, returned: Any) -> Any:
    """What a tool returned, as it is recorded: a text as itself, so that its user can read it."""
    if isinstance(returned, ToolMessage) and not returned.artifact and isinstance(returned.content, str):
        if returned.status == "error":
            raise ToolSaid(returned.content)
        return returned.content
    value = {_RECORD: "value", "value": run.saver.types.dumps_typed(returned)}
    return Shown(value, _texts_of(returned))


def _texts_of(returned: Any) -> str:
    """What a model reads of what a tool returned: of a command, what it adds to the messages."""
    if isinstance(returned, ToolMessage):
        return text_of(returned.content)
    if isinstance(returned, Command):
        update = cast("Any", returned).update
        given = cast("dict[str, Any]", update).get("messages", ()) if isinstance(update, dict) else update
        returned = cast("list[Any]", given) if isinstance(given, list) else [given]
    items = cast("list[Any]", returned) if isinstance(returned, list) else []
    return "\n".join(filter(None, map(_texts_of, items)))


def _message(request: ToolCallRequest, content: str, *, is_error: bool = False) -> ToolMessage:
    call = request.tool_call
    return ToolMessage(
        content=content,
        name=call["name"],
        tool_call_id=call["id"] or "",
        status="error" if is_error else "success",
    )
