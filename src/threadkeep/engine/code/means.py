"""What the claims of an agent are carried out with: the turn's own, or one that it runs."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from threadkeep.domain.tool_rules import Rules
from threadkeep.engine.journal import CallPaid
from threadkeep.engine.spending import ModelSpending
from threadkeep.engine.tools import Toolbox
from threadkeep.engine.turn_models import TurnModels
from threadkeep.engine.turn_tools import TurnTools
from threadkeep.ports.tools import ToolSession
from threadkeep.wire.programs import OfferedAgent


@dataclass(frozen=True, slots=True)
class AskedFirst:
    """What the owner of an agent without code adds to each of its model calls."""

    system: str = ""
    temperature: float | None = None
    max_tokens: int | None = None
    output: Mapping[str, Any] | None = None
    """The JSON schema of its replies, which `system` asks for."""


async def nothing_first() -> AskedFirst:
    """For agents in code, which say all of it themselves."""
    return AskedFirst()


async def no_agents() -> Sequence[OfferedAgent]:
    """For agents whose models call no others."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentMeans:
    """An agent's models, tools and rules, and who pays."""

    models: Callable[[str | None], TurnModels]
    """The models for one call: the one that the program names, or the agent's."""
    spending: Callable[[str], ModelSpending]
    """Who pays for one call, by its name in the turn."""
    own_call: Callable[[str | None], CallPaid]
    """What the ledger notes of a call that the program made itself, with the cost that it names."""
    tools: TurnTools
    toolbox: Callable[[ToolSession | None], Toolbox]
    """The tools of a session of the turn's own, whose results are stored as those of others."""
    rules: Rules
    result_tokens: int
    """How much of a tool's result a model reads at most."""
    first: Callable[[], Awaitable[AskedFirst]] = nothing_first
    offered: Callable[[], Awaitable[Sequence[OfferedAgent]]] = no_agents
    """The agents that its model may call, as far as the turn's user may use them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundAgent:
    """An agent that the turn's user may use, and that can run here."""

    id: str
    name: str
    key: str | None = None
    """Of one in code."""
    version: int = 1
    most_rounds: int = 0


class OtherAgents(Protocol):
    """The agents that a turn may run besides its own."""

    async def find(self, wanted: str) -> FoundAgent:
        """An agent by its key or id; raises ThreadkeepError if there is none for the turn's user."""
        ...

    async def means(self, ids: Sequence[str]) -> AgentMeans:
        """Those of the first of these agents, which the next one runs, and so on."""
        ...
