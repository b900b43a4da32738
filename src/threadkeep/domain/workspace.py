"""Workspaces: a folder for each agent, where its prompt, its roles and the files of its servers lie."""

from dataclasses import dataclass
from pathlib import Path

from threadkeep.domain.ids import AgentId

AGENTS = "agents"
CACHE = ".cache"
"""What servers have fetched, in the folder of their agent: it can be fetched again."""


@dataclass(frozen=True, slots=True)
class Workspaces:
    """Where the agents' folders are: below the data folder. Whoever puts something into one makes it."""

    data: Path

    @property
    def root(self) -> Path:
        """The folder in which all of them are."""
        return self.data / AGENTS

    @property
    def shared(self) -> Path:
        """What all agents have in common."""
        return self.root / "shared"

    def of(self, agent_id: AgentId) -> Path:
        """The folder of one agent."""
        return self.root / agent_id


def is_cached(path: Path) -> bool:
    """Whether a path within the data folder is something that a server can fetch again."""
    return len(path.parts) > 3 and (path.parts[0], path.parts[2]) == (AGENTS, CACHE)
