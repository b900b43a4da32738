"""Workspaces: a folder for each agent, with its prompt, its roles and its servers' files."""

from dataclasses import dataclass
from pathlib import Path

from threadkeep.domain.choice import Choice
from threadkeep.domain.ids import AgentId

AGENTS = "agents"
CACHE = ".cache"
"""What servers have downloaded, in the folder of their agent: they can download it again."""
PERSONAL = "promptx-users"
"""The folders of single users, in the folder of an agent that runs a PromptX for each of them."""
RESOURCES = ".promptx/resource"
LAYOUTS = ("domain", "role")
LINKED_FOLDERS = tuple(f"{RESOURCES}/{layout}" for layout in LAYOUTS)
"""An agent's roles, which a user's folder links to."""


class PromptComponent(Choice):
    """The files that make up a system prompt, in its order."""

    IDENTITY = "IDENTITY.md"
    ROLE = "ROLE.md"
    RULES = "RULES.md"
    TOOLS = "TOOLS.md"
    USER = "USER.md"
    MEMORY = "MEMORY.md"


@dataclass(frozen=True, slots=True)
class Workspaces:
    """The agents' folders, below the data folder. Code that writes into one creates it."""

    data: Path

    @property
    def root(self) -> Path:
        """The folder that contains all of them."""
        return self.data / AGENTS

    @property
    def shared(self) -> Path:
        """The folder that all agents share."""
        return self.root / "shared"

    def of(self, agent_id: AgentId) -> Path:
        """The folder of one agent."""
        return self.root / agent_id
