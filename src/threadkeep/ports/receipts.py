"""Storage of what the models received."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from threadkeep.domain.ids import ConversationId, TurnId
from threadkeep.domain.receipt import Receipt


@dataclass(frozen=True, slots=True)
class PriorReceipt:
    """The newest receipt on a conversation's active path."""

    receipt: Receipt
    is_current: bool
    """Whether neither the path nor its compactions have changed since."""


class ReceiptStore(Protocol):
    """What the models received; a turn's receipt is stored with its log."""

    async def get(
        self, conversation_id: ConversationId, turn_id: TurnId
    ) -> tuple[Receipt, Mapping[str, str]] | None:
        """The receipt of a conversation's turn, and its texts."""
        ...

    async def newest(self, conversation_id: ConversationId) -> PriorReceipt | None:
        """The receipt of the newest turn that has one and whose reply is on the active path."""
        ...

    async def forget_texts(self) -> int:
        """Deletes texts that no receipt refers to."""
        ...
