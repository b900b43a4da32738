"""The receipt of a turn: what its model was sent."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ComponentReceipt:
    """A part of the system prompt as a receipt names it."""

    name: str
    sha256: str
    length: int
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a model was sent, by name: enough to build the very same request again."""

    model: str | None
    components: tuple[ComponentReceipt, ...]
    message_ids: tuple[str, ...]
    tools: tuple[str, ...]
    temperature: float | None
    max_tokens: int | None
    zone: str
    token_estimate: int
    dropped_messages: int
    tools_sha256: str | None = None
    """Names the text of the tools' descriptions, which is kept as the components' texts are."""
    sha256: str = ""
    """Names the context, which is the system prompt and the messages, by its content."""
    thoughts: bool = False
    """Whether the reasoning of earlier replies was sent with them."""
