"""Model calls of a program, through our gateways: streamed, priced, within budgets."""

import asyncio
from collections.abc import Iterator
from contextlib import aclosing
from typing import Any

import msgspec
from msgspec import ValidationError
from msgspec.structs import replace

from threadkeep.context.attachments import files_in, with_contents
from threadkeep.context.call_ids import CallIds
from threadkeep.context.outputs import asking_for
from threadkeep.domain.errors import BudgetExceeded, InvalidRequest, ThreadkeepError
from threadkeep.domain.events import EventBody, Notice, Text, Thought
from threadkeep.domain.ids import PayloadId
from threadkeep.engine.asking import ModelAsking
from threadkeep.engine.code.claims import OpenClaim
from threadkeep.engine.code.means import AgentMeans, AskedFirst
from threadkeep.engine.code.running import RunningCode
from threadkeep.engine.code.tool_calls import ToolCalls
from threadkeep.engine.code.voices import VoiceTaken
from threadkeep.engine.journal import StepBegun, StepEnded
from threadkeep.engine.model_call import ModelCall
from threadkeep.engine.tools import clean_use
from threadkeep.ports.gateway import (
    Block,
    GatewayError,
    ModelMessage,
    ModelRequest,
    TextBlock,
    ToolSpec,
    ToolUse,
    ToolUseBlock,
)
from threadkeep.wire.programs import (
    BUDGET_EXCEEDED,
    MODEL_FAILED,
    ModelClaim,
    ModelMessageItem,
    ModelReply,
    ModelToolCall,
    ProgramError,
)


class ModelCalls:
    """Carries out a program's model calls, also several at once."""

    def __init__(self, code: RunningCode, tools: ToolCalls) -> None:
        self._code = code
        self._tools = tools
        made = ModelMessage("assistant", tuple(ToolUseBlock(id_, "", {}) for id_ in code.state.calls))
        self._ids = CallIds((made,), code.around.tools.taken_ids)

    async def carry_out(self, claim: ModelClaim, open_: OpenClaim) -> None:
        """Asks a model; the reply, or why there is none, is recorded with what it cost."""
        code = self._code
        begun = code.begun(open_, "model", "model", "idempotent")
        means = await code.agents.means(claim.scope)
        spending = means.spending(begun.step_id)
        begun = replace(begun, is_reserved=spending.is_limited)
        code.voices.restart(begun.step_id)
        code.outlet.emit(begun)
        try:
            models = means.models(claim.model)
        except ThreadkeepError as exc:
            code.end(self._failed(open_, exc))
            return
        number = code.model_call_number(begun)
        asking = ModelAsking(models, spending, unreported=None)
        try:
            if claim.server_tools:
                await self._tools.open(claim.scope)
            request = self._asked(claim, means, await means.first())
            agents = [it.agent_id or "" for it in code.agents.chain(claim.scope)]
            code.outlet.emit(code.receipts.receipt(number, asking.model, request, agents))
            reply = await self._reply(claim, begun, asking, await self._with_files(request))
            ended = await code.ok(open_, reply, is_progress=True)
            await code.voices.spoken(begun.step_id)
        except asyncio.CancelledError:
            await asking.settle()
            if open_.is_given_up:
                code.end(code.failed(open_, None, status="cancelled"), *code.reported(asking))
                code.voices.end(begun.step_id)
            else:  # the turn ends, or goes on elsewhere: the provider bills this call all the same
                for reported in code.reported(asking):
                    code.outlet.emit(reported)
            raise
        except ThreadkeepError as exc:
            await asking.settle()
            ended = self._failed(open_, exc)
        except VoiceTaken as exc:
            error = ProgramError("VoiceTaken", str(exc))
            ended = code.failed(open_, error, MODEL_FAILED, is_progress=True)
        code.end(ended, *code.reported(asking))
        code.voices.end(begun.step_id)

    def _failed(self, open_: OpenClaim, exc: ThreadkeepError) -> StepEnded:
        code = BUDGET_EXCEEDED if isinstance(exc, BudgetExceeded) else MODEL_FAILED
        ended = self._code.failed(open_, ProgramError(exc.code, exc.message), code, is_progress=True)
        return replace(ended, retryable=isinstance(exc, GatewayError) and exc.retryable)

    async def _reply(
        self, claim: ModelClaim, begun: StepBegun, asking: ModelAsking, request: ModelRequest
    ) -> ModelReply:
        code = self._code

        async def call_tool(use: ToolUse) -> tuple[ToolUse, None]:
            return await self._ids.settle(clean_use(use)), None

        def restart() -> Iterator[EventBody]:
            for reported in code.reported(asking):
                code.outlet.emit(reported)
            code.voices.repeat(begun.step_id)
            return iter(())

        async with aclosing(asking.reply(request, call_tool, restart)) as said:
            async for step in said:
                match step:
                    case ModelCall():
                        return _reply_of(step, asking)
                    case Text() | Thought():
                        if claim.show:
                            code.say(begun.step_id, step)
                    case Notice():
                        code.outlet.emit(step)
                    case _:  # which model replies instead belongs to this call alone
                        pass
        raise AssertionError("a reply ends with its call")

    def _asked(self, claim: ModelClaim, means: AgentMeans, first: AskedFirst) -> ModelRequest:
        """What a model is asked, without the contents of files."""
        tools = [ToolSpec(it.name, it.description, it.parameters) for it in claim.tools]
        if claim.server_tools:
            names = {it.name for it in tools}
            tools += [it for it in means.tools.specs if it.name not in names]
        system = "\n\n".join(filter(None, (first.system, claim.system)))
        system = system if claim.output is None else asking_for(claim.output, system)
        return ModelRequest(
            model="",
            system=system,
            messages=tuple(map(_message, claim.messages)),
            tools=tuple(tools),
            temperature=first.temperature if claim.temperature is None else claim.temperature,
            max_tokens=min(filter(None, (first.max_tokens, claim.max_tokens)), default=None),
            cache_key=self._code.turn.conversation_id,
        )

    async def _with_files(self, request: ModelRequest) -> ModelRequest:
        ids = {PayloadId(it.content_id) for it in files_in(request.messages)}
        return with_contents(request, await self._code.around.load(ids)) if ids else request


def _reply_of(call: ModelCall, asking: ModelAsking) -> ModelReply:
    finished = call.finished(0)
    blocks = finished.blocks
    used = asking.unreported
    return ModelReply(
        text="".join(it.text for it in blocks if isinstance(it, TextBlock)),
        tool_calls=tuple(ModelToolCall(it.id, it.name, dict(it.arguments)) for it in finished.tool_uses),
        model=asking.model,
        stop_reason=call.stop_reason,
        input_tokens=used.input_tokens if used else 0,
        output_tokens=used.output_tokens if used else 0,
        blocks=tuple(msgspec.to_builtins(it) for block in finished.reply() for it in block.blocks),
    )


def _message(item: ModelMessageItem) -> ModelMessage:
    """A message as the program wrote it, or as an earlier reply had it."""
    if isinstance(item.content, str):
        return ModelMessage(item.role, (TextBlock(item.content),))
    return ModelMessage(item.role, tuple(map(_block, item.content)))


def _block(block: dict[str, Any]) -> Block:
    try:
        return msgspec.convert(block, Block)
    except ValidationError as exc:
        raise InvalidRequest(
            f"A block of a message for the model isn't valid: {exc}.", param="messages"
        ) from exc
