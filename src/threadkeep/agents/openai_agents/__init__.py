"""Agents of the OpenAI Agents SDK behind a durable turn: `orders = durable(my_agent)`."""

try:
    import agents as _sdk  # noqa: F401 - whether it is there
except ModuleNotFoundError as exc:
    if exc.name != "agents":
        raise
    raise ModuleNotFoundError(
        "`threadkeep.agents.openai_agents` needs the package `openai-agents`: "
        "`pip install 'threadkeep[openai-agents]'`.",
        name="agents",
    ) from exc

from threadkeep.agents.openai_agents.durable import durable

__all__ = ["durable"]
