"""The receipt of a turn: what its model received."""

from collections.abc import Mapping
from dataclasses import dataclass

from threadkeep.domain.ids import ConversationId, TurnId


@dataclass(frozen=True, slots=True)
class ComponentReceipt:
    """A part of the system prompt as a receipt names it."""

    name: str
    sha256: str
    length: int
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a model received, by hash: enough to rebuild the very same request."""

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
    """The hash of the tools' descriptions, whose text is stored like the components'."""
    sha256: str = ""
    """The hash of the context: the system prompt and the messages."""
    thoughts: bool = False
    """Whether earlier replies were sent with their reasoning."""
    segments: tuple[str, ...] = ()
    """The hashes of the rendered messages, whose texts are stored like the components'."""
    first_seq: int = 0
    """The number of the first message sent: the next request starts there too, if possible."""
    shortened: tuple[str, ...] = ()
    """The calls whose results are no longer sent whole."""
    outlined: tuple[str, ...] = ()
    """The calls whose results are sent as name, size and id only."""
    prefix_share: float | None = None
    """How much of the request equals the start of the previous one, 0 to 1."""
    cache_key: str | None = None
    output_sha256: str | None = None
    """The hash of the JSON schema of the reply, whose text is stored like the components'."""
    shared_call: int = 0
    """The turn's earlier call with whose messages this one begins; 0 if it shares none."""
    shared: int = 0
    """How many of them; `segments` has those that follow."""
    agents: tuple[str, ...] = ()
    """The other agents inside which the call was made, the innermost first: only who may see into all of them
    may read what it received.
    """


@dataclass(frozen=True, slots=True)
class TurnReceipt:
    """What a turn's model receives: the receipt, and the texts that it refers to by hash."""

    turn_id: TurnId
    conversation_id: ConversationId
    receipt: Receipt
    texts: Mapping[str, str]
    call: int = 1
    """Which model call of the turn it is of; only programs have several receipts."""
