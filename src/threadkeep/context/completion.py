"""A single completion by a model, outside any turn."""

from threadkeep.domain.text import storable
from threadkeep.ports.gateway import ModelMessage, ModelRequest, TextBlock, TextDelta
from threadkeep.ports.models import ConnectedModel


async def complete(model: ConnectedModel, instruction: str, prompt: str, *, max_tokens: int) -> str:
    """The whole reply, in a form that can be stored."""
    question = ModelMessage("user", (TextBlock(prompt),))
    request = ModelRequest(model.id, instruction, (question,), temperature=0.0, max_tokens=max_tokens)
    pieces = [event.text async for event in model.stream(request) if isinstance(event, TextDelta)]
    return storable("".join(pieces))
