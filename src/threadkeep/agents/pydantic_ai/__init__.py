"""Agents of pydantic-ai behind durable turns: `orders = durable(agent)`."""

try:
    import pydantic_ai.durable_exec as _  # noqa: F401
except ImportError as exc:  # pragma: no cover - the tests have it
    raise ImportError(
        "`threadkeep.agents.pydantic_ai` needs pydantic-ai 2.68 or newer: "
        '`python -m pip install "pydantic-ai-slim>=2.68"`.'
    ) from exc

from threadkeep.agents.pydantic_ai.capability import Durability
from threadkeep.agents.pydantic_ai.served import durable

__all__ = ["Durability", "durable"]
