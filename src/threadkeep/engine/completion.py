"""A single completion by a model, outside any turn: no tools, no other model, no second try."""

import asyncio
from contextlib import aclosing

from threadkeep.domain.events import Text, ToolCalled
from threadkeep.engine.model_call import ModelCall, reply_events
from threadkeep.engine.spending import ModelSpending
from threadkeep.ports.gateway import GatewayError, ModelMessage, ModelRequest, TextBlock, ToolUse
from threadkeep.ports.models import ConnectedModel


async def complete(
    model: ConnectedModel,
    spending: ModelSpending,
    instruction: str,
    prompt: str,
    *,
    max_tokens: int | None,
    timeout_s: float,
) -> str:
    """The whole reply, in a form that can be stored, charged however it ends.

    TimeoutError if it takes longer than `timeout_s`; 0 means no limit.
    """
    question = ModelMessage("user", (TextBlock(prompt),))
    request = ModelRequest(model.id, instruction, (question,), temperature=0.0, max_tokens=max_tokens)
    limited = await spending.reserve(model.model, request)
    call, is_billed = ModelCall(model.signer), True
    try:
        async with (
            asyncio.timeout(timeout_s or None),
            aclosing(reply_events(model.stream(limited), call, _ignored)) as said,
        ):
            return "".join([event.text async for event in said if isinstance(event, Text)])
    except GatewayError:
        is_billed = not call.is_empty
        raise
    finally:
        if is_billed:
            await spending.charge(call.spent(request, model.id, spending))
        else:
            await spending.release()


async def _ignored(use: ToolUse) -> tuple[ToolUse, ToolCalled]:
    """A call of a tool that the model wasn't offered."""
    return use, ToolCalled(use.id, use.name, "", {})
