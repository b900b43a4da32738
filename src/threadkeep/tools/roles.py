"""The roles of agents: in their workspaces, in the shared folder, and those that we ship."""

import asyncio
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from threadkeep.domain.agent import Agent
from threadkeep.domain.workspace import Workspaces
from threadkeep.ports.roles import Role
from threadkeep.tools.dpml import Resource, compose, read_resources

SHIPPED = Path(__file__).parent / "shipped_roles"
# PromptX's folder in a project; roles are in `resource/domain/<id>` or `resource/role/<id>`.
PROJECT = ".promptx"


class WorkspaceRoles:
    """The roles in the workspaces of agents."""

    def __init__(self, workspaces: Workspaces) -> None:
        self._workspaces = workspaces

    async def read(self, agent: Agent, role_id: str) -> Role:
        """An agent's role: its own, else a shared one, else one that we ship."""
        return await read_role(role_id, self._workspaces.of(agent.id), self._workspaces.shared)


async def read_role(role_id: str, *projects: Path) -> Role:
    """A role from the first of these folders that has it, else one that we ship."""
    return await asyncio.to_thread(_read_role, role_id, projects)


def role_problems(workspaces: Workspaces) -> Iterator[str]:
    """What users' own roles are missing, one line per role."""
    shared = read_resources(workspaces.shared / PROJECT)
    for folder in sorted(workspaces.root.glob("*/")):
        own = read_resources(folder / PROJECT)
        for role in [resource for resource in own if resource.kind == "role"]:
            if missing := compose(role.id, [*own, *shared, *_shipped()]).missing:
                yield f"{role.id} in {role.folder} misses {', '.join(missing)}"


def _read_role(role_id: str, projects: Sequence[Path]) -> Role:
    own = [resource for project in projects for resource in read_resources(project / PROJECT)]
    return compose(role_id, [*own, *_shipped()])


@cache
def _shipped() -> Sequence[Resource]:
    return read_resources(SHIPPED)
