"""Receipts: what the models received, for the users of those turns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from threadkeep.context.attachments import files_in
from threadkeep.context.prompt import SUMMARY, SUMMARY_HEADING
from threadkeep.context.rendering import messages_of
from threadkeep.domain.errors import TurnNotFound
from threadkeep.domain.ids import AgentId
from threadkeep.domain.receipt import Receipt
from threadkeep.domain.user import User
from threadkeep.ports.gateway import DocumentBlock, ImageBlock
from threadkeep.services.turns import Turns
from threadkeep.storage.store import Store


@dataclass(frozen=True, slots=True)
class ShownReceipt:
    """A receipt with the texts that the user may read, by their hash."""

    receipt: Receipt
    texts: Mapping[str, str]
    summary: str | None
    files: Sequence[ImageBlock | DocumentBlock]
    """The images and PDFs that the model received as files."""


class Receipts:
    """The use cases of receipts."""

    def __init__(self, store: Store, turns: Turns) -> None:
        self._store = store
        self._turns = turns

    async def get(self, user: User, turn_id: str, call: int = 1) -> ShownReceipt:
        """The receipt of a model call of one of the user's turns; with the prompt's text only if the agent is
        theirs.
        """
        turn = await self._turns.get(user, turn_id)
        found = await self._store.receipts.get_call(turn.conversation_id, turn.id, call)
        conversation = await self._store.conversations.get(user.id, turn.conversation_id)
        if found is None or conversation is None:
            raise TurnNotFound
        receipt, texts = found
        agent = await self._store.agents.get(conversation.agent_id)
        inside = [await self._store.agents.get(AgentId(it)) for it in receipt.agents]
        is_open = all(it is not None and it.is_open_to(user) for it in (agent, *inside))
        summaries = [
            texts[component.sha256].removeprefix(SUMMARY_HEADING)
            for component in receipt.components
            if component.name == SUMMARY
        ]
        return ShownReceipt(
            receipt,
            texts if is_open else {},
            summaries[-1] if summaries else None,
            list(files_in(messages_of(texts[it] for it in receipt.segments))),
        )
