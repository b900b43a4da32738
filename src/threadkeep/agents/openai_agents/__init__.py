"""Agents of the OpenAI Agents SDK behind a durable turn: `orders = durable(my_agent)`."""

try:
    import agents as _  # noqa: F401 - whether it is installed
except ModuleNotFoundError as exc:  # pragma: no cover - the tests have it
    raise ModuleNotFoundError(
        "`threadkeep.agents.openai_agents` needs openai-agents 0.24 or newer: "
        '`python -m pip install "openai-agents>=0.24"`.'
    ) from exc

from threadkeep.agents.openai_agents.current import ToolEffect
from threadkeep.agents.openai_agents.durable import durable

__all__ = ["ToolEffect", "durable"]
