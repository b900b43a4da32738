"""Where it is kept what the models were sent."""

from collections.abc import Mapping
from typing import Protocol

from threadkeep.domain.ids import ConversationId, TurnId
from threadkeep.domain.receipt import Receipt
from threadkeep.domain.turn import Turn


class ReceiptStore(Protocol):
    """What the models were sent."""

    async def add(self, turn: Turn, receipt: Receipt, texts: Mapping[str, str]) -> None:
        """Keeps a turn's receipt, once, with the texts that it names by their hash."""
        ...

    async def get(
        self, conversation_id: ConversationId, turn_id: TurnId
    ) -> tuple[Receipt, Mapping[str, str]] | None:
        """The receipt of a conversation's turn, and its texts."""
        ...

    async def newest(self, conversation_id: ConversationId) -> Receipt | None:
        """The receipt of the newest turn that has one and whose reply is on the active path."""
        ...

    async def forget_texts(self) -> int:
        """Removes the texts that no receipt names any more."""
        ...
