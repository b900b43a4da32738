"""Model calls of a program, through our gateways: streamed, priced, within budgets."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import aclosing
from dataclasses import replace as changed
from typing import Any

import msgspec
from msgspec import ValidationError
from msgspec.structs import replace

from threadkeep.context.attachments import files_in, with_contents
from threadkeep.context.call_ids import CallIds
from threadkeep.context.outputs import asking_for, with_repair
from threadkeep.domain.errors import BudgetExceeded, InvalidRequest, OutputInvalid, ThreadkeepError
from threadkeep.domain.events import EventBody, Notice, Text, Thought
from threadkeep.domain.ids import PayloadId
from threadkeep.domain.message import Usage
from threadkeep.domain.outputs.json_text import json_in
from threadkeep.domain.outputs.schema import check_output_schema
from threadkeep.engine.asking import ModelAsking
from threadkeep.engine.code.claims import OpenClaim
from threadkeep.engine.code.means import AgentMeans, AskedFirst
from threadkeep.engine.code.running import RunningCode
from threadkeep.engine.code.tool_calls import ToolCalls
from threadkeep.engine.code.voices import VoiceTaken
from threadkeep.engine.journal import StepBegun, StepEnded
from threadkeep.engine.model_call import ModelCall
from threadkeep.engine.outputs import cannot_be_repaired, invalid, text_of
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
    OUTPUT_INVALID,
    ModelClaim,
    ModelMessageItem,
    ModelReply,
    ModelToolCall,
    ProgramError,
)

_CODES = {BudgetExceeded.code: BUDGET_EXCEEDED, OutputInvalid.code: OUTPUT_INVALID}


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
        code = _CODES.get(exc.code, MODEL_FAILED)
        ended = self._code.failed(open_, ProgramError(exc.code, exc.message), code, is_progress=True)
        retryable = isinstance(exc, OutputInvalid) or (isinstance(exc, GatewayError) and exc.retryable)
        return replace(ended, retryable=retryable)

    async def _reply(
        self, claim: ModelClaim, begun: StepBegun, asking: ModelAsking, request: ModelRequest
    ) -> ModelReply:
        """A reply; one that isn't the JSON that was asked for is asked for again, once, and shown whole."""
        code, schema = self._code, request.output
        call = await self._call(claim, begun, asking, request)
        used = asking.unreported or Usage(0, 0)
        if schema is None:
            return _reply_of(call, asking.model, used)
        if (problem := await self._problem(schema, call)) is not None:
            finished = call.finished(0)
            if (error := cannot_be_repaired(finished, problem)) is not None:
                raise error
            self._restart(begun, asking)
            messages = with_repair(request.messages, finished.reply(), problem)
            call = await self._call(claim, begun, asking, changed(request, messages=messages))
            used += asking.unreported or Usage(0, 0)
            if (problem := await self._problem(schema, call)) is not None:
                raise invalid(problem)
        said = text_of(call.finished(0))
        if claim.show and said:
            code.say(begun.step_id, Text(said))
        reply = _reply_of(call, asking.model, used)
        is_value = claim.output is None and not reply.tool_calls and reply.stop_reason != "refusal"
        return replace(reply, output=msgspec.json.decode(json_in(said))) if is_value else reply

    async def _problem(self, schema: Mapping[str, Any], call: ModelCall) -> str | None:
        """Why a reply isn't JSON of a schema; a model may also call tools, or refuse."""
        finished = call.finished(0)
        if finished.tool_uses or finished.stop_reason == "refusal":
            return None
        return await self._code.around.check_output(schema, text_of(finished))

    def _restart(self, begun: StepBegun, asking: ModelAsking) -> None:
        """What a call has said no longer counts: it is made again."""
        for reported in self._code.reported(asking):
            self._code.outlet.emit(reported)
        self._code.voices.repeat(begun.step_id)

    async def _call(
        self, claim: ModelClaim, begun: StepBegun, asking: ModelAsking, request: ModelRequest
    ) -> ModelCall:
        code = self._code

        async def call_tool(use: ToolUse) -> tuple[ToolUse, None]:
            return await self._ids.settle(clean_use(use)), None

        def restart() -> Iterator[EventBody]:
            self._restart(begun, asking)
            return iter(())

        async with aclosing(asking.reply(request, call_tool, restart)) as said:
            async for step in said:
                match step:
                    case ModelCall():
                        return step
                    case Text() if request.output is not None:
                        pass  # it is said once it fits
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
        if claim.output is not None:
            system = asking_for(check_output_schema(claim.output, "output"), system)
        return ModelRequest(
            model="",
            system=system,
            messages=tuple(map(_message, claim.messages)),
            tools=tuple(tools),
            temperature=first.temperature if claim.temperature is None else claim.temperature,
            max_tokens=min(filter(None, (first.max_tokens, claim.max_tokens)), default=None),
            output=first.output if claim.output is None else claim.output,
            cache_key=self._code.turn.conversation_id,
        )

    async def _with_files(self, request: ModelRequest) -> ModelRequest:
        ids = {PayloadId(it.content_id) for it in files_in(request.messages)}
        return with_contents(request, await self._code.around.load(ids)) if ids else request


def _reply_of(call: ModelCall, model: str, used: Usage) -> ModelReply:
    finished = call.finished(0)
    return ModelReply(
        text=text_of(finished),
        tool_calls=tuple(ModelToolCall(it.id, it.name, dict(it.arguments)) for it in finished.tool_uses),
        model=model,
        stop_reason=call.stop_reason,
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
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
