"""Automatic document search before a reply."""

from collections.abc import Sequence

from threadkeep.context.passages import passages_that_fit
from threadkeep.domain.agent import Agent, RetrievalMode
from threadkeep.domain.events import Notice, Retrieval
from threadkeep.domain.message import Message
from threadkeep.domain.model import Model
from threadkeep.ports.retriever import Retriever, to_retrieval_hit

# The maximum share of the model's context for passages.
SHARE_OF_THE_CONTEXT = 4


class Passages:
    """Automatic retrieval: for agents that enable it, and for models without tool support."""

    def __init__(self, retriever: Retriever) -> None:
        self._retriever = retriever

    async def before(self, agent: Agent, asked: Message | None, model: Model) -> Sequence[Notice | Retrieval]:
        """The passages that match the user's message, and problems with the search."""
        by_itself = agent.settings.retrieval_mode is RetrievalMode.AUTO or not model.supports_tools
        if not by_itself or asked is None or not isinstance(asked.content, str):
            return ()
        found = await self._retriever.search(
            agent.id,
            asked.content,
            top_k=agent.settings.retrieval_top_k,
            threshold=agent.settings.retrieval_threshold,
        )
        events: list[Notice | Retrieval] = []
        if found.notice:
            events.append(Notice("RETRIEVAL_DEGRADED", found.notice))
        room = model.context_tokens // SHARE_OF_THE_CONTEXT
        if hits := passages_that_fit([to_retrieval_hit(hit) for hit in found.hits], room):
            events.append(Retrieval(asked.content, hits))
        return events
