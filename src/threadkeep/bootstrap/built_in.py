"""Our own programs, which run the turns of agents without code of their own: see `runtime/programs.py`."""

from collections.abc import Sequence

from threadkeep.agents import Agent
from threadkeep.settings import Settings


def built_in_programs(_: Settings) -> Sequence[Agent]:
    """Those that every node has."""
    return ()
