"""What titles and summaries ask of a model: one reply outside any turn."""

from typing import Protocol


class Complete(Protocol):
    """Asks a model; `engine/completion.py` does, at somebody's expense."""

    async def __call__(self, instruction: str, prompt: str, *, max_tokens: int) -> str:
        """The whole reply; TimeoutError if it takes too long."""
        ...
