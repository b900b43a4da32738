"""Copies of agents."""

from collections.abc import Mapping
from dataclasses import fields, replace

from threadkeep.domain.agent import MOST_NAME_CHARACTERS, Agent, AgentDraft, Visibility
from threadkeep.domain.errors import AgentInCode
from threadkeep.domain.ids import AgentId
from threadkeep.domain.mcp import McpServer
from threadkeep.domain.user import User
from threadkeep.services.agents import Agents
from threadkeep.storage.prompt_files import FolderPromptFiles

_SUFFIX = " copy"


class AgentCopies:
    """The use case of copying an agent."""

    def __init__(self, agents: Agents, files: FolderPromptFiles) -> None:
        self._agents = agents
        self._files = files

    async def make(self, user: User, agent_id: str) -> Agent:
        """Makes a private copy of an agent that the user may change, checked like any new agent.

        It has the prompt with its files, the settings and the MCP servers, and what runs it; no documents,
        memories or conversations.
        """
        source = await self._agents.get_open(user, agent_id)
        if source.code is not None:
            raise AgentInCode("This agent is a program. Copy its code, and give the copy another key.")
        copy = await self._agents.checked(user, _draft(self._agents.as_it_runs(source), user))
        # Files first, as in an import: an existing copy has its files.
        await self._copy_files(source.id, copy.id)
        await self._agents.add(user, copy, "duplicate", {"name": copy.name, "from": source.id})
        await self._agents.note_prompt_bytes(copy.id, await self._files.size(copy.id))
        return copy

    async def _copy_files(self, source_id: AgentId, copy_id: AgentId) -> None:
        for component, text in (await self._files.read_whole(source_id)).items():
            await self._files.write(copy_id, component, text)


def _draft(source: Agent, user: User) -> AgentDraft:
    draft = AgentDraft(**{field.name: getattr(source, field.name) for field in fields(AgentDraft)})
    servers = source.settings.mcp_servers
    if source.owner_id != user.id:
        servers = _without_secrets(servers)
        draft = replace(draft, remote=draft.remote and draft.remote.without_secrets())
    return replace(
        draft,
        name=source.name[: MOST_NAME_CHARACTERS - len(_SUFFIX)].rstrip() + _SUFFIX,
        visibility=Visibility.PRIVATE,
        settings=replace(source.settings, mcp_servers=servers),
    )


def _without_secrets(servers: Mapping[str, McpServer]) -> dict[str, McpServer]:
    """Somebody else's servers without secrets: an admin may copy them, but must not use their secrets."""
    return {name: it.without_secrets() if it.secrets else it for name, it in servers.items()}
