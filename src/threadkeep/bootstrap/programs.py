"""The agents that are programs: loads those that the settings name, stores them as their code declares."""

import logging
from collections.abc import Iterable
from dataclasses import replace

from threadkeep.agents import Agent, AgentsNotLoaded, load_all
from threadkeep.domain.agent import AgentCode, AgentDraft, AgentIcon, AgentSettings, Visibility
from threadkeep.domain.errors import InvalidRequest, SettingsError
from threadkeep.services.agents import Agents
from threadkeep.settings import Settings
from threadkeep.wire.programs import AgentDeclared

log = logging.getLogger("threadkeep.bootstrap")

_ALWAYS = ("name", "description", "primaryRoleId", "systemPrompt")
"""What only code says, even if it leaves it out: an agent in code has no prompt of its own."""


def load_agents(settings: Settings) -> list[Agent]:
    """The agents in code that the settings name; SettingsError with the file and line of what is wrong."""
    try:
        return load_all(settings.agents)
    except AgentsNotLoaded as exc:
        raise SettingsError(str(exc)) from exc


async def declare_programs(agents: Agents, declarations: Iterable[AgentDeclared]) -> None:
    """Stores what each of this process's programs declares; SettingsError if that can't be."""
    for declaration in declarations:
        try:
            draft = _draft(declaration, agents.default_settings)
            stored = await agents.declare(draft, _code(declaration))
        except (InvalidRequest, ValueError) as exc:
            raise SettingsError(f"The agent `{declaration.key}` can't be stored: {exc}") from exc
        if stored is None:
            log.warning("an admin has deleted the agent `%s`; nobody can talk to it", declaration.key)


def _code(declaration: AgentDeclared) -> AgentCode:
    own = {
        "model": declaration.model,
        "settings.starters": declaration.starters,
        "settings.icon": declaration.icon,
    }
    return AgentCode(
        declaration.key,
        declaration.version,
        declared=(*_ALWAYS, *(name for name, value in own.items() if value)),
        timeout_s=declaration.timeout_s,
        max_steps=declaration.max_steps,
    )


def _draft(declaration: AgentDeclared, default: AgentSettings) -> AgentDraft:
    settings = replace(
        default,
        generation_timeout_s=(
            default.generation_timeout_s if declaration.timeout_s is None else declaration.timeout_s
        ),
        starters=declaration.starters,
        icon=AgentIcon(declaration.icon) if declaration.icon else default.icon,
    )
    return AgentDraft(
        declaration.name or declaration.key,
        description=declaration.description,
        model=declaration.model,
        visibility=Visibility(declaration.visibility),
        settings=settings,
    )
