"""Storage of prompt files: some shared by all agents, some per agent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from threadkeep.domain.ids import AgentId
from threadkeep.domain.workspace import PromptComponent


@dataclass(frozen=True, slots=True)
class PromptFile:
    """A component as read from its file; one that all agents share has a name like `shared/RULES.md`.

    Only head and tail of a huge file are read: `unread` counts the bytes between them. `problem` explains to
    people why the text is missing, or that some of it couldn't be decoded.
    """

    name: str
    text: str = ""
    unread: int = 0
    problem: str | None = None


class PromptFiles(Protocol):
    """Prompt files. Reading never fails: an unreadable file has a problem."""

    async def read(self, agent_id: AgentId) -> Sequence[PromptFile]:
        """An agent's files in the order of the components, shared ones first."""
        ...

    async def read_whole(self, agent_id: AgentId) -> Mapping[PromptComponent, str]:
        """An agent's own readable files, whole, for copies; a gigantic one says what is left out."""
        ...

    async def write(self, agent_id: AgentId, component: PromptComponent, text: str) -> None:
        """Replaces an agent's component atomically; an empty text removes it."""
        ...

    async def size(self, agent_id: AgentId) -> int:
        """The bytes of an agent's own files."""
        ...

    async def agent_ids(self) -> Sequence[AgentId]:
        """The agents that have a folder."""
        ...

    async def remove(self, agent_id: AgentId, *, idle_s: float = 0) -> bool:
        """Removes an agent's folder with everything in it; returns whether it did.

        Keeps it if a component was written within `idle_s` seconds.
        """
        ...
