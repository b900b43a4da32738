"""Our own programs, which run the turns of agents without code of their own: see `runtime/programs.py`."""

from collections.abc import Sequence

from threadkeep.agents import Agent, Turn
from threadkeep.agents.replies import Reply
from threadkeep.domain.agent import ASKING_OTHERS, MOST_ROUNDS
from threadkeep.remote_agents.connection import Reach
from threadkeep.remote_agents.program import ag_ui_program
from threadkeep.settings import Settings
from threadkeep.wire.programs import AgentDeclared


def built_in_programs(settings: Settings) -> Sequence[Agent]:
    """Those that every node has."""
    return (
        Agent(_ask_others, AgentDeclared(ASKING_OTHERS, 1), ()),
        ag_ui_program(Reach(settings.mcp_allow_private, settings.networks_denied)),
    )


async def _ask_others(turn: Turn) -> Reply:
    """An agent without code whose model can call other agents."""
    return await turn.reply_as_configured(turn.settings.get(MOST_ROUNDS, 0))
