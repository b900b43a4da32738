"""System prompts: assembled for every turn, shown to and edited by the agent's owner."""

import logging
from collections.abc import Iterable

from threadkeep.context.prompt import (
    INSTRUCTIONS,
    MOST_PROMPT_CHARACTERS,
    ROLE,
    SUMMARY,
    SUMMARY_HEADING,
    SYSTEM_PROMPT,
    USER_INSTRUCTIONS,
    USER_INSTRUCTIONS_HEADING,
    Prompt,
    Source,
    assemble,
    role_guidance,
    role_in_force,
)
from threadkeep.domain.agent import Agent
from threadkeep.domain.errors import (
    GatewayNotConfigured,
    InvalidRequest,
    ModelNotAllowed,
    ModelNotFound,
    NotFound,
    StorageUnavailable,
)
from threadkeep.domain.events import Notice
from threadkeep.domain.ids import AgentId
from threadkeep.domain.model import Model
from threadkeep.domain.text import check_storable, is_blank
from threadkeep.domain.user import User
from threadkeep.domain.workspace import PromptComponent
from threadkeep.jobs.hourly import ORPHANED_S
from threadkeep.ports.roles import Roles
from threadkeep.services.agents import Agents
from threadkeep.services.model_choice import ModelChoice
from threadkeep.storage.prompt_files import FolderPromptFiles
from threadkeep.storage.store import Store

log = logging.getLogger("threadkeep.prompts")


class Prompts:
    """The use cases of system prompts. Without `roles`, prompts don't mention roles."""

    def __init__(
        self, store: Store, agents: Agents, files: FolderPromptFiles, roles: Roles | None, choice: ModelChoice
    ) -> None:
        self._store = store
        self._agents = agents
        self._files = files
        self._roles = roles
        self._choice = choice

    async def assemble(
        self,
        agent: Agent,
        model: Model | None,
        *,
        activated: str | None = None,
        of_user: str = "",
        instructions: str | None = None,
        summary: str | None = None,
    ) -> Prompt:
        """An agent's current prompt for a model. Unreadable files are left out, with a notice.

        `activated` is the role that the model has activated in the conversation, if any. `of_user` are its
        user's own instructions, and `instructions` those of the request that began the turn.
        """
        files = await self._files.read(agent.id)
        role, role_notices = await self._role(agent, activated, model)
        prompt = assemble(
            [
                *(Source(file.name, file.text, file.unread) for file in files),
                Source(SYSTEM_PROMPT, agent.system_prompt),
                Source(ROLE, role),
                Source(USER_INSTRUCTIONS, USER_INSTRUCTIONS_HEADING + of_user if of_user else ""),
                Source(INSTRUCTIONS, instructions or ""),
                Source(SUMMARY, SUMMARY_HEADING + summary if summary else ""),
            ],
            # By our estimate a character takes at most a token, so some of the window stays free.
            most=min(MOST_PROMPT_CHARACTERS, model.context_tokens) if model else MOST_PROMPT_CHARACTERS,
        )
        broken = [Notice("PROMPT_UNREADABLE", file.problem) for file in files if file.problem]
        return Prompt(prompt.components, (*broken, *role_notices, *prompt.notices))

    async def show(self, user: User, agent_id: str) -> Prompt:
        """An agent's prompt, for its owner and admins."""
        agent = await self._agents.get_open(user, agent_id)
        return await self.assemble(agent, self._own_model(agent))

    async def write(self, user: User, agent_id: str, component: str, text: str) -> Prompt:
        """Replaces one of the agent's own components; a blank text removes it. Later turns see it.

        A long text is stored whole, and truncated with a mark in assembled prompts, like files.
        """
        agent = await self._agents.get_open(user, agent_id)
        which = _component(component)
        check_storable(text, "text")
        await self._agents.note(user, agent.id, "prompt", {"component": which})
        await self._files.write(agent.id, which, "" if is_blank(text) else text)
        await self._agents.note_prompt_bytes(agent.id, await self._files.size(agent.id))
        return await self.assemble(agent, self._own_model(agent))

    async def forget(self, agent_ids: Iterable[AgentId]) -> None:
        """Deletes the folders of agents that were deleted with their owner, or cleared."""
        for agent_id in agent_ids:
            await self._remove(agent_id)

    async def remove_orphans(self) -> int:
        """Removes folders without an agent, such as one that couldn't be deleted before.

        A recent one stays: an import writes an agent's files before it stores the agent.
        """
        removed = 0
        for agent_id in await self._files.agent_ids():
            agent = await self._store.agents.get(agent_id)
            if agent is None or (agent.owner_id is None and not agent.is_default):
                removed += await self._remove(agent_id, idle_s=ORPHANED_S)
        return removed

    async def _remove(self, agent_id: AgentId, *, idle_s: float = 0) -> bool:
        try:
            return await self._files.remove(agent_id, idle_s=idle_s)
        except StorageUnavailable as exc:
            log.warning("%s", exc.message)
            return False

    def _own_model(self, agent: Agent) -> Model | None:
        """The agent's model; None if it can't reply now."""
        try:
            return self._choice.own(agent).model
        except (GatewayNotConfigured, ModelNotFound, ModelNotAllowed):
            return None

    async def _role(
        self, agent: Agent, activated: str | None, model: Model | None
    ) -> tuple[str, list[Notice]]:
        """The prompt's text about the role: how to activate it, or all of it if it is active or can't be
        activated.
        """
        if self._roles is None:
            return "", []
        can_activate = model is None or model.supports_tools
        if can_activate and activated is None:
            return role_guidance(agent.primary_role_id), []
        try:
            role = await self._roles.read(agent, activated or agent.primary_role_id)
        except (NotFound, StorageUnavailable) as exc:
            if can_activate:
                return role_guidance(agent.primary_role_id), []
            return "", [Notice("ROLE_UNAVAILABLE", exc.message)]
        return role_in_force(role) if can_activate else role.text, []


def _component(name: str) -> PromptComponent:
    try:
        return PromptComponent(f"{name.upper().removesuffix('.MD')}.md")
    except InvalidRequest as exc:
        raise InvalidRequest(exc.message, param="component") from None
