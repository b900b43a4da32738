"""What a turn offers to a framework's agent besides its own tools: the client's, and those of MCP servers."""

from threadkeep.agents.turn import Turn
from threadkeep.wire.programs import ServerTool

_OF_SERVER = "__"
"""What a model knows a server's tool by: `server__tool`. Threadkeep's own tools are for its own agents."""


async def offered_tools(turn: Turn) -> list[ServerTool]:
    """The tools of the servers that an admin has added to the agent, and those that the client runs."""
    by_client = [
        ServerTool(it.name, it.description, it.parameters, is_run_by_client=True) for it in turn.client_tools
    ]
    names = {it.name for it in by_client}
    return [*by_client, *(it for it in await turn.tools() if _OF_SERVER in it.name and it.name not in names)]
