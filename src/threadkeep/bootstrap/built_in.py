"""Our own programs, which run the turns of agents without code of their own: see `runtime/programs.py`."""

from collections.abc import Sequence

from threadkeep.agents import Agent
from threadkeep.remote_agents.connection import Reach
from threadkeep.remote_agents.program import ag_ui_program
from threadkeep.settings import Settings


def built_in_programs(settings: Settings) -> Sequence[Agent]:
    """Those that every node has."""
    return (ag_ui_program(Reach(settings.mcp_allow_private, settings.networks_denied)),)
