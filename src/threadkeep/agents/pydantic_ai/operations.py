"""The operations of an agent's run as steps of the turn."""

import itertools
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from contextvars import ContextVar
from typing import Any, Literal, cast

from pydantic_ai.durable_exec import (
    BoundDurableOperation,
    DurableOperation,
    DurableOperationBackend,
    DynamicToolsetCallToolParams,
    EventStreamHandlerId,
    ModelRequestId,
    ModelRequestParams,
    ToolsetCallToolId,
    ToolsetCallToolParams,
    ToolsetGetInstructionsId,
    ToolsetGetToolsId,
    ToolsetValidateToolArgumentsId,
)
from pydantic_ai.exceptions import ModelAPIError, ModelConnectionError
from pydantic_ai.messages import ModelResponse, TextPart, ThinkingPart
from pydantic_ai.tools import ToolDefinition

from threadkeep.agents.pydantic_ai.calls import call_tool
from threadkeep.agents.pydantic_ai.messages import content_of
from threadkeep.agents.pydantic_ai.model_errors import TRANSIENT, rebuilt, recorded
from threadkeep.agents.pydantic_ai.records import records_of
from threadkeep.agents.replies import Result, Usage
from threadkeep.agents.tool import EFFECTS, check_effect
from threadkeep.agents.turn import Turn, current_turn
from threadkeep.wire.programs import Effect, StepAccess

Operation = DurableOperation[Any, Any, Any]

RETRIES = 2
"""How often a model is asked again whose answer broke off."""

is_shown: ContextVar[bool] = ContextVar("is_shown", default=False)
"""Whether what a model says now is for the turn's user."""


class Rules:
    """What a tool's metadata says of its calls: `{"effect": "read", "access": "ask"}`."""

    def __init__(self, effect: Effect = "write", access: StepAccess = "allow") -> None:
        self.effect: Effect = effect
        self.access: StepAccess = access

    @staticmethod
    def of(definition: ToolDefinition | None) -> "Rules | Literal[False]":
        """Those of a tool; False if its calls aren't to be steps."""
        metadata = (definition.metadata if definition is not None else None) or {}
        if metadata.get("durable") is False:
            return False
        effect = metadata.get("effect") or _annotated(metadata)
        access = metadata.get("access", "allow")
        check_effect(effect, access)
        return Rules(effect, access)


def _annotated(metadata: dict[str, Any]) -> Effect:
    """What an MCP server says of its tool."""
    annotations = cast("dict[str, Any]", metadata.get("annotations") or {})
    if annotations.get("readOnlyHint"):
        return EFFECTS[0]
    return EFFECTS[1] if annotations.get("idempotentHint") else EFFECTS[2]


class Operations(DurableOperationBackend[Any]):
    """Makes a step of each operation."""

    def __init__(self) -> None:
        self._places = Counter[str]()
        self.plain_request: Operation | None = None
        """Asks a model without a stream."""

    def bind(self, operation: Operation) -> BoundDurableOperation[Any, Any, Any]:
        """An operation that is a step when it is called."""
        id_ = operation.operation_id
        if isinstance(id_, ModelRequestId) and not id_.streaming:
            self.plain_request = operation
        place = str(id_)
        self._places[place] += 1  # two toolsets can have the same id, or none
        return _Bound(operation, self, f"{place} {self._places[place]}")

    def config_for_tool(
        self, operation: Operation, *, tool: object | None, tool_name: str
    ) -> "Rules | Literal[False]":
        """What the tool's metadata says."""
        rules = Rules.of(getattr(tool, "tool_def", None))
        is_validation = isinstance(operation.operation_id, ToolsetValidateToolArgumentsId)
        return rules if rules is False or not is_validation else Rules("read")

    def registrations(self) -> Sequence[Callable[..., object]]:
        """None: steps are made when they are called."""
        return ()

    async def ask_model(self, operation: Operation, params: ModelRequestParams) -> Any:
        """One call of a model, which is shown while it answers."""
        turn = current_turn()
        records = records_of(turn)
        id_ = cast("ModelRequestId", operation.operation_id)

        attempts = itertools.count()

        async def model() -> AsyncGenerator[object]:
            is_last = next(attempts) == RETRIES
            try:
                response, is_streamed = await self._response(operation, params)
            except ModelAPIError as exc:
                if isinstance(exc, TRANSIENT) and not is_last:
                    raise
                yield Result({"failed": recorded(exc)})
                return
            if not is_streamed and _is_for_user(turn, params):
                await _show_whole(turn, response)
            used = response.usage
            yield Usage(
                response.model_name or id_.model_name,
                used.input_tokens - used.cache_read_tokens,
                used.output_tokens,
                used.cache_read_tokens,
            )
            yield Result({"response": operation.result_codec.dump(response), "streamed": is_streamed})

        kept = await turn.step(
            model,
            name="model",
            key=[params.model_id, content_of(params)],
            effect="idempotent",
            title=id_.model_name,
            retries=RETRIES,
        )
        if "failed" in kept:
            raise rebuilt(kept["failed"])
        records.responses += 1
        if not kept["streamed"] and id_.model_name not in records.unstreamed:
            records.unstreamed.add(id_.model_name)
            await turn.notice(f"The model {id_.model_name} doesn't stream: what it says is shown at once.")
        return operation.result_codec.load(kept["response"])

    async def _response(self, operation: Operation, params: ModelRequestParams) -> tuple[ModelResponse, bool]:
        token = is_shown.set(_is_for_user(current_turn(), params))
        try:
            if operation is self.plain_request:
                return await operation.handler(params), False
            try:
                return _whole(await operation.handler(params)), True
            except (NotImplementedError, AssertionError):  # what models that can't stream raise
                assert self.plain_request is not None
                return await self.plain_request.handler(params), False
        finally:
            is_shown.reset(token)


def _is_for_user(turn: Turn, params: ModelRequestParams) -> bool:
    """Whether the user reads what the model writes: not what it tells another agent, and not JSON, which is
    said once it is known to be right.
    """
    is_data = params.model_request_parameters.output_mode in ("native", "prompted")
    return params.run_context.run_id == turn.id and not is_data


def _whole(response: ModelResponse) -> ModelResponse:
    """A response, unless its stream ended early, which pydantic-ai takes for its end.

    It says `stop` then, as for servers that never say why they end; those report what was used, though.
    """
    is_over = "finish_reason" in (response.provider_details or {}) or response.finish_reason not in (
        None,
        "stop",
    )
    if response.provider_name == "openai" and not is_over and not response.usage.output_tokens:
        raise ModelConnectionError(response.model_name or "", "The model's answer broke off.")
    return response


class _Bound(BoundDurableOperation[Any, Any, Any]):
    def __init__(self, operation: Operation, operations: Operations, place: str) -> None:
        self._operation = operation
        self._operations = operations
        self._place = place

    @property
    def operation(self) -> Operation:
        """What it does."""
        return self._operation

    async def __call__(self, params: Any, *, config: object | None = None) -> Any:
        """Does it, as a step."""
        operation = self._operation
        match operation.operation_id:
            case ModelRequestId():
                return await self._operations.ask_model(operation, params)
            case ToolsetCallToolId():
                rules = config if isinstance(config, Rules) else Rules()
                return await call_tool(operation, params, rules.effect, rules.access)
            case EventStreamHandlerId():
                return await operation.handler(params)
            case ToolsetGetToolsId() | ToolsetGetInstructionsId():
                return await self._step("tools", "read", self._place, params)
            case ToolsetValidateToolArgumentsId():
                return await self._step("check", "read", [self._place, _call_of(params)], params)
            case _:
                return await self._step("operation", "write", self._place, params)

    async def _step(self, name: str, effect: Effect, key: object, params: Any) -> Any:
        codec = self._operation.result_codec

        async def run() -> Any:
            return codec.dump(await self._operation.handler(params))

        return codec.load(await current_turn().step(run, name=name, key=key, effect=effect, hidden=True))


def _call_of(params: ToolsetCallToolParams | DynamicToolsetCallToolParams) -> str | None:
    return params.ctx.tool_call_id


async def _show_whole(turn: Turn, response: ModelResponse) -> None:
    """Shows what a model said that doesn't stream."""
    for part in response.parts:
        if isinstance(part, ThinkingPart):
            await turn.think(part.content)
        elif isinstance(part, TextPart):
            await turn.say(part.content)
