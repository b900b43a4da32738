"""The roles of agents: in their workspaces, in the folder that all share, and those that we ship."""

import asyncio
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from threadkeep.domain.agent import Agent
from threadkeep.domain.workspace import Workspaces
from threadkeep.mcp.dpml import Resource, compose, read_resources
from threadkeep.ports.roles import Role

SHIPPED = Path(__file__).parent / "shipped_roles"
# Where PromptX keeps what belongs to a project; roles lie in `resource/domain/<id>` or `resource/role/<id>`.
PROJECT = ".promptx"


class WorkspaceRoles:
    """The roles in the workspaces of agents."""

    def __init__(self, workspaces: Workspaces) -> None:
        self._workspaces = workspaces

    async def read(self, agent: Agent, role_id: str) -> Role:
        """A role of an agent: its own, else one that all agents share, else one that we ship."""
        return await read_role(role_id, self._workspaces.of(agent.id), self._workspaces.shared)


async def read_role(role_id: str, *projects: Path) -> Role:
    """A role from the first of these folders that has it, else one that we ship."""
    return await asyncio.to_thread(_read_role, role_id, projects)


def _read_role(role_id: str, projects: Sequence[Path]) -> Role:
    own = [resource for project in projects for resource in read_resources(project / PROJECT)]
    return compose(role_id, [*own, *_shipped()])


@cache
def _shipped() -> Sequence[Resource]:
    return read_resources(SHIPPED)
