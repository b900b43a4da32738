"""The built-in server `retriever`: searches the agent's own documents, and no others."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from threadkeep.domain.agent import Agent
from threadkeep.domain.mcp import RETRIEVER
from threadkeep.domain.tool_rules import ToolEffect
from threadkeep.ports.retriever import Retriever, to_retrieval_hit
from threadkeep.ports.tools import Caller, Progress, Returned, Tool
from threadkeep.storage.documents.documents import SqlDocuments

TIMEOUT_S = 30.0
MOST_HITS = 20

SEARCH_DOCUMENTS = Tool(
    server=RETRIEVER,
    name="search_documents",
    description="Searches the documents of this agent, by words and by meaning, and gives the passages that "
    "fit best. Ask in the language of the documents. Cite what you use by its number, such as [1].",
    input_schema={
        "type": "object",
        "properties": {
            "query": {"type": "string", "minLength": 1, "description": "What to search for."},
            "top_k": {
                "type": "integer",
                "minimum": 1,
                "maximum": MOST_HITS,
                "description": "How many passages at most.",
            },
        },
        "required": ["query"],
        "additionalProperties": False,
    },
    timeout_s=TIMEOUT_S,
    is_own=True,
    effect=ToolEffect.READ,
)


class RetrieverServer:
    """Documents as a tool; inactive if the agent has none that are ready."""

    name = RETRIEVER

    def __init__(self, documents: SqlDocuments, retriever: Retriever) -> None:
        self._documents = documents
        self._retriever = retriever

    def offers(self, agent: Agent) -> Sequence[Tool]:
        """The same for every agent: documents may come later."""
        return (SEARCH_DOCUMENTS,)

    async def tools(self, caller: Caller) -> Sequence[Tool]:
        """`search_documents`, if there is something to search."""
        return (SEARCH_DOCUMENTS,) if await self._documents.has_ready(caller.agent.id) else ()

    async def call(
        self, caller: Caller, name: str, arguments: Mapping[str, Any]
    ) -> AsyncGenerator[Progress | Returned]:
        """Searches with the agent's settings; the model may ask for more or fewer passages."""
        settings, query = caller.agent.settings, str(arguments["query"])
        found = await self._retriever.search(
            caller.agent.id,
            query,
            top_k=min(
                arguments.get("top_k") or settings.retrieval_top_k, max(MOST_HITS, settings.retrieval_top_k)
            ),
            threshold=settings.retrieval_threshold,
        )
        if found.notice:
            yield Progress(0, message=found.notice)
        if not found.hits:
            yield Returned("ok", result="No matching passages in the documents.")
            return
        yield Returned("ok", query=query, hits=tuple(map(to_retrieval_hit, found.hits)))
