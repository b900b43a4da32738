"""Which files `threadkeep serve --reload` watches."""

import sys
from collections.abc import Collection
from importlib.machinery import PathFinder
from pathlib import Path

from threadkeep.domain.errors import SettingsError
from threadkeep.loopback import is_loopback
from threadkeep.settings import Settings


def watched_places(settings: Settings) -> Collection[Path]:
    """The folders of the agents in code; SettingsError where reloading isn't offered. Imports nothing."""
    if not settings.agents:
        raise SettingsError(
            "--reload watches the files of agents in code. Name them: `--agents shop:orders --reload`."
        )
    if settings.processes > 1:
        raise SettingsError("--reload serves with one process: it doesn't go with --processes.")
    if not is_loopback(settings.host):
        raise SettingsError(f"--reload is for development, on this machine alone, not on {settings.host}.")
    return sorted({_place_of(it.partition(":")[0]) for it in settings.agents})


def _place_of(module: str) -> Path:
    """The folder in which a module's author works; where it is yet to be written, the current one."""
    here = Path.cwd()
    found = PathFinder.find_spec(module.partition(".")[0], [str(here), *sys.path])
    if found is None:
        return here
    if found.submodule_search_locations:
        return Path(next(iter(found.submodule_search_locations)))
    if found.origin is None:
        return here
    file = Path(found.origin)
    return file if "site-packages" in file.parts else file.parent
