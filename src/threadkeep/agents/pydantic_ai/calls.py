"""Calls of an agent's tools as calls that every client shows, recorded once."""

from dataclasses import replace
from typing import Any, cast

from pydantic_ai import ModelRetry
from pydantic_ai.durable_exec import (
    DurableOperation,
    DynamicToolsetCallToolParams,
    ToolsetCallToolParams,
)
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.tools import RunContext, ToolDefinition
from pydantic_core import PydanticSerializationError, to_jsonable_python

from threadkeep.agents.errors import Denied, OutcomeUnknown, StepResultInvalid
from threadkeep.agents.foreign import ForeignTool
from threadkeep.agents.pydantic_ai.records import records_of
from threadkeep.agents.replies import Shown
from threadkeep.agents.turn import current_turn
from threadkeep.agents.values import content_hash
from threadkeep.wire.programs import Effect, StepAccess

CallParams = ToolsetCallToolParams | DynamicToolsetCallToolParams

ASKS = "The tool asks for an approval before it runs."
DEFERRED = "The result comes from elsewhere."

_RETURNED = "tool_return"
_APPROVAL = "approval_required"
_KINDS = frozenset(
    (
        _RETURNED,
        _APPROVAL,
        "call_deferred",
        "model_retry",
        "run_cancelled",
        "tool_content_result",
        "tool_failed",
        "validation_error",
    )
)
"""What pydantic-ai records of a call, besides what its tool returned."""


async def call_tool(
    operation: DurableOperation[Any, Any, Any], params: CallParams, effect: Effect, access: StepAccess
) -> Any:
    """One call; the model reads it if the user denied it, or if nobody knows whether it took effect."""
    turn, ctx = current_turn(), params.ctx
    records = records_of(turn)
    definition = _definition(params)
    arguments = _arguments(ctx, params)
    again = params.name, content_hash(arguments)
    call_id = ctx.tool_call_id
    if call_id is not None and call_id in records.deferred:
        call_id = f"{call_id}-approved"

    async def run(given: dict[str, Any]) -> Any:
        wanted = params if given == arguments else replace(params, tool_args=_checked(params, given))
        return _plain(params.name, operation, await operation.handler(wanted))

    tool = ForeignTool(
        run,
        name=params.name,
        description=definition.description or "" if definition is not None else "",
        parameters=definition.parameters_json_schema if definition is not None else None,
        effect=effect,
        access="ask" if ctx.tool_call_approved or again in records.unknown else access,
    )
    try:
        returned = await turn.call(tool, arguments, call_id=call_id)
    except Denied as exc:
        raise ToolFailed(exc.for_model) from None
    except OutcomeUnknown as exc:
        records.unknown.add(again)
        raise ToolFailed(exc.for_model) from None
    if _kind(returned) == _APPROVAL and ctx.tool_call_id is not None:
        records.deferred.add(ctx.tool_call_id)
    return operation.result_codec.load(
        returned if _kind(returned) in _KINDS else {"kind": _RETURNED, "result": returned}
    )


def _definition(params: CallParams) -> ToolDefinition | None:
    if isinstance(params, ToolsetCallToolParams):
        return params.tool.tool_def if params.tool is not None else None
    return params.tool_def


def _arguments(ctx: RunContext[Any], params: CallParams) -> dict[str, Any]:
    """The arguments as the model wrote them: those of the tool are Python values by now."""
    for message in reversed(ctx.messages):
        if isinstance(message, ModelResponse):
            for part in message.parts:
                if isinstance(part, ToolCallPart) and part.tool_call_id == ctx.tool_call_id:
                    return part.args_as_dict()
            break
    return cast("dict[str, Any]", to_jsonable_python(params.tool_args, fallback=str))


def _checked(params: CallParams, given: dict[str, Any]) -> dict[str, Any]:
    """Arguments that the user has changed, as the tool takes them."""
    if isinstance(params, ToolsetCallToolParams) and params.tool is not None:
        return params.tool.args_validator.validate_python(given, context=params.ctx.validation_context)
    return given


def _plain(name: str, operation: DurableOperation[Any, Any, Any], result: Any) -> Any:
    """What is recorded of a call, and what its user reads of it: what the tool returned, if it did."""
    try:
        dumped: Any = operation.result_codec.dump(result)
    except (PydanticSerializationError, TypeError) as exc:
        raise StepResultInvalid(
            f"{name} returned what can't be stored",
            str(exc),
            "Return plain values, dataclasses or pydantic values.",
        ) from exc
    match _kind(dumped):
        case "model_retry":
            raise ModelRetry(dumped["message"])
        case "tool_failed":
            raise ToolFailed(dumped["message"])
        case "tool_return" if _kind(dumped["result"]) not in _KINDS:
            return dumped["result"]
        case "approval_required":
            return Shown(dumped, ASKS)
        case "call_deferred":
            return Shown(dumped, DEFERRED)
        case _:
            return dumped


def _kind(value: Any) -> Any:
    return cast("dict[str, Any]", value).get("kind") if isinstance(value, dict) else None
