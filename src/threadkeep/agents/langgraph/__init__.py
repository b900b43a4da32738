"""LangGraph's graphs and LangChain's agents behind a durable turn: `durable(graph)`."""

try:
    from threadkeep.agents.langgraph.adapter import Custom, Input, Replied, durable
    from threadkeep.agents.langgraph.graph_run import ask_agent, step
except ModuleNotFoundError as exc:
    if exc.name is None or not exc.name.startswith(("langgraph", "langchain")):
        raise
    raise ModuleNotFoundError(
        f"`threadkeep.agents.langgraph` needs LangGraph; {exc.name} isn't installed. "
        'Install it: `python -m pip install "langgraph>=1.2"`.',
        name=exc.name,
    ) from None

__all__ = ["Custom", "Input", "Replied", "ask_agent", "durable", "step"]
