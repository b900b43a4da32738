"""The tools of agents: our own, and their MCP servers'."""

from threadkeep.bootstrap.adapters import Adapters
from threadkeep.log.replies import written_so_far
from threadkeep.mcp.agent_tools import AgentTools
from threadkeep.mcp.catalog import Catalog
from threadkeep.mcp.promptx_command import PromptXCommand
from threadkeep.ports.retriever import Retriever
from threadkeep.ports.roles import Roles
from threadkeep.ports.tools import ToolServer
from threadkeep.runtime.node import Node
from threadkeep.search import terms
from threadkeep.settings import Settings
from threadkeep.tools.charts import ChartServer
from threadkeep.tools.files import FilesServer
from threadkeep.tools.guide import GuideServer
from threadkeep.tools.history import HistoryServer
from threadkeep.tools.promptx import TOOLS as PROMPTX_TOOLS
from threadkeep.tools.promptx import PromptXServer
from threadkeep.tools.questions import QuestionServer
from threadkeep.tools.results import ResultsServer
from threadkeep.tools.retriever import RetrieverServer


def build_tools(
    settings: Settings, adapters: Adapters, catalog: Catalog, roles: Roles, retriever: Retriever, node: Node
) -> AgentTools:
    """Our own tools, and the agents' MCP servers'."""
    store = adapters.store
    own = (
        _promptx(settings, adapters, roles),
        RetrieverServer(store.documents, retriever),
        HistoryServer(store),
        ResultsServer(store, written_so_far),
        FilesServer(store),
        ChartServer(),
        QuestionServer(),
        GuideServer(node.lose),
    )
    return AgentTools(own, catalog, adapters.pool, store.seen_tools)


def _promptx(settings: Settings, adapters: Adapters, roles: Roles) -> ToolServer:
    """The system's server of roles and memory: our own, or the operator's."""
    if command := settings.promptx_arguments:
        return PromptXCommand(command, PROMPTX_TOOLS, settings.workspaces, adapters.pool)
    return PromptXServer(roles, adapters.store.memories, terms, adapters.clock)
