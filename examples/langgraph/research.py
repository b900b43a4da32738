"""A LangGraph agent that answers questions about a lease: it plans, searches and writes.

Its model is scripted, so that it runs without a key; any chat model of LangChain can stand in its place.
"""

from typing import Annotated, Any, TypedDict

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode

CLAUSES = {
    "notice": "§ 4 Either side ends the lease with three months' notice.",
    "deposit": "§ 7 The deposit is two months' rent.",
}
MODEL = "scripted"


class State(TypedDict):
    """What the nodes hand on."""

    messages: Annotated[list[AnyMessage], add_messages]


@tool(response_format="content_and_artifact")
def search_lease(word: str) -> tuple[str, dict[str, Any]]:
    """Finds the clause of the lease that has a word in it."""
    if word not in CLAUSES:
        raise LookupError(f"The lease says nothing about {word!r}.")
    source = {"title": "Lease", "fileName": "lease.pdf", "page": 2, "snippet": CLAUSES[word]}
    return CLAUSES[word], source


def build(word: str) -> Any:
    """The graph for a question about one word of the lease."""
    plan = AIMessage(
        "I look it up.",
        tool_calls=[{"name": "search_lease", "args": {"word": word}, "id": "call-1"}],
        usage_metadata={"input_tokens": 20, "output_tokens": 5, "total_tokens": 25},
    )
    answer = AIMessage(
        f"{CLAUSES.get(word, '')} [1]",
        usage_metadata={"input_tokens": 40, "output_tokens": 15, "total_tokens": 55},
    )
    model = GenericFakeChatModel(messages=iter([plan, answer]))

    async def think(state: State) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    graph: Any = StateGraph(State)
    graph.add_node("plan", think)
    graph.add_node("search", ToolNode([search_lease], handle_tool_errors=False))
    graph.add_node("write", think)
    for before, after in ((START, "plan"), ("plan", "search"), ("search", "write"), ("write", END)):
        graph.add_edge(before, after)
    return graph.compile()
