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
    segments: tuple[str, ...] = ()
    """Name the messages as they were rendered, which are kept as the components' texts are."""
    first_seq: int = 0
    """The number of the first message that was sent: the next request starts there too, if it can."""
    shortened: tuple[str, ...] = ()
    """The calls whose results were not sent whole, and stay so."""
    outlined: tuple[str, ...] = ()
    """Those of them of which only name, size and id were sent."""
    prefix_share: float | None = None
    """How much of the request equals the start of the previous one, 0 to 1."""
    cache_key: str | None = None
