"""Agents' MCP servers: which ones may run, what they receive, and the pool that runs them."""

from pathlib import Path

from threadkeep.domain.workspace import Workspaces
from threadkeep.loops import Loops
from threadkeep.mcp.catalog import Catalog
from threadkeep.mcp.limits import Limits
from threadkeep.mcp.pool import Pool
from threadkeep.mcp.processes.programs import ServerEnvironment
from threadkeep.mcp.processes.sandbox import Sandbox
from threadkeep.settings import Settings


def build_catalog(settings: Settings) -> Catalog:
    """Which MCP servers the operator allows."""
    return Catalog(
        settings.mcp_allowed_commands,
        stdio_needs_admin=settings.mcp_stdio == "admin",
        allow_private=settings.mcp_allow_private,
        denied_networks=settings.networks_denied,
    )


def build_server_environment(
    settings: Settings, workspaces: Workspaces, *, closes_ports: bool = False
) -> ServerEnvironment:
    """What MCP servers receive, and what is hidden from them."""
    sandbox = Sandbox(
        settings.mcp_sandbox,
        settings.private_paths,
        tuple(map(Path, settings.mcp_writable)),
        tuple(map(Path, settings.mcp_readable)),
        closes_ports=closes_ports,
    )
    return ServerEnvironment(
        workspaces,
        settings.mcp_environment,
        allow_private=settings.mcp_allow_private,
        denied_networks=settings.networks_denied,
        sandbox=sandbox,
    )


def build_pool(settings: Settings, environment: ServerEnvironment, loops: Loops) -> Pool:
    """The running MCP servers of all agents."""
    limits = Limits(
        most_servers=settings.mcp_max_servers,
        budget_s=settings.mcp_connect_budget_s,
        idle_s=settings.mcp_idle_s,
    )
    return Pool(environment, limits, loops)
