"""What agents reply with, in a conversation or outside any: models, tools, and who pays for them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from threadkeep.clock import Clock
from threadkeep.domain.agent import Agent
from threadkeep.domain.turn import BegunWith, Turn
from threadkeep.engine.large_values import Keep, LargeValues
from threadkeep.engine.loop import TurnLimits
from threadkeep.engine.tools import CallingTurn, Toolbox
from threadkeep.engine.turn_models import TurnModels
from threadkeep.ports.models import ConnectedModel, Models
from threadkeep.ports.schemas import Schemas
from threadkeep.ports.tools import Caller, ToolProvider, ToolSession
from threadkeep.runtime.spending import Spending
from threadkeep.services.files import Files
from threadkeep.services.model_choice import ModelChoice


@dataclass(frozen=True, slots=True, kw_only=True)
class Equipment:
    """What a model needs to reply for an agent."""

    models: Models
    choice: ModelChoice
    tools: ToolProvider | None
    schemas: Schemas
    files: Files
    """Prepares the images that tools return."""
    spending: Spending
    clock: Clock

    def turn_models(self, agent: Agent, asked: ConnectedModel, now: str | None = None) -> TurnModels:
        """The model that replies and those after it; a turn stays with the one that it replies with `now`."""
        fallbacks = self.choice.fallbacks(agent, asked)
        ids = [it.id for it in fallbacks]
        if now not in ids:  # it is the one asked for, or was removed since
            return TurnModels(asked, fallbacks)
        at = ids.index(now)
        return TurnModels(fallbacks[at], fallbacks[at + 1 :])

    def session(
        self, caller: Caller, model: ConnectedModel, used: Collection[str] = ()
    ) -> ToolSession | None:
        """The agent's tools, if its model can call any; `used` are servers used on another node."""
        return self.tools.session(caller, used) if self.tools and model.model.supports_tools else None

    def toolbox(self, session: ToolSession | None, turn: Turn, calling: CallingTurn, keep: Keep) -> Toolbox:
        """The tools of a turn; `keep` stores their large values and files."""
        return Toolbox(session, LargeValues(turn.conversation_id, self.clock, keep), self.schemas, calling)


def output_of(agent: Agent, begun_with: BegunWith | None) -> Mapping[str, Any] | None:
    """The JSON schema that a reply must fit: what its request asks for, or else what the agent is set to."""
    asked = begun_with.output if begun_with else None
    return agent.settings.output if asked is None else asked


def limits_of(agent: Agent, *, hands_off: bool = False) -> TurnLimits:
    """The limits that an agent's owner sets."""
    settings = agent.settings
    return TurnLimits(settings.max_iterations, agent.timeout_s, hands_off=hands_off)
