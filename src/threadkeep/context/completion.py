"""A single completion by a model, outside any turn."""

from threadkeep.domain.text import storable
from threadkeep.ports.gateway import Gateway, ModelMessage, ModelRequest, TextBlock, TextDelta


async def complete(
    gateway: Gateway, model: str | None, instruction: str, prompt: str, *, max_tokens: int
) -> str:
    """The whole reply, in a form that can be stored."""
    question = ModelMessage("user", (TextBlock(prompt),))
    request = ModelRequest(model, instruction, (question,), temperature=0.0, max_tokens=max_tokens)
    pieces = [event.text async for event in gateway.stream(request) if isinstance(event, TextDelta)]
    return storable("".join(pieces))
