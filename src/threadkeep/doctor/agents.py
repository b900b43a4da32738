"""Whether the agents in code that the settings name can be loaded."""

from collections.abc import Iterator

from threadkeep.bootstrap import load_agents
from threadkeep.doctor.finding import Finding
from threadkeep.domain.errors import SettingsError
from threadkeep.settings import PREFIX, Settings


def check_agents(settings: Settings) -> Iterator[Finding]:
    """Imports them, as the server does when it starts; nothing of them runs."""
    if not settings.agents:
        return
    try:
        agents = load_agents(settings)
    except SettingsError as exc:
        yield Finding("agents", "problem", exc.message, f"Correct it, or what {PREFIX}AGENTS names.")
    else:
        names = ", ".join(f"{it.key} (version {it.version})" for it in agents)
        yield Finding("agents", "ok", f"Agents in code: {names}.")
