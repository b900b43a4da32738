"""Agents by their names: `module:name`."""

import importlib
import sys
import traceback
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from threadkeep.agents.agent import Agent, check_keys
from threadkeep.agents.errors import AgentsNotLoaded

_OURS = Path(__file__).parent


def load(place: str) -> list[Agent]:
    """The agent, or the list of agents, that a module has under a name: `shop:orders`."""
    found = find(place)
    agents = (
        [found] if isinstance(found, Agent) or not isinstance(found, Iterable) else list(cast("Any", found))
    )
    for it in agents:
        if not isinstance(it, Agent):
            raise AgentsNotLoaded(
                f"`{place}` is {_described(it)}, not an agent. Write `@agent()` above a function."
            )
    if not agents:
        raise AgentsNotLoaded(f"`{place}` is empty: it names no agent.")
    return agents


def find(place: str) -> Any:
    """What a module has under a name: `shop:orders`."""
    module_name, colon, name = place.partition(":")
    if not colon or not module_name or not name:
        raise AgentsNotLoaded(f"{place!r} doesn't name agents. Write the module and the name: `shop:orders`.")
    module = _import(module_name)
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            raise AgentsNotLoaded(f"`{module_name}` ({_file(module)}) has no `{name}`.")
        found = getattr(found, part)
    return found


def load_all(places: Iterable[str]) -> list[Agent]:
    """All agents of several places; refuses two with one key."""
    agents = list(dict.fromkeys(agent for place in places for agent in load(place)))
    try:
        check_keys(agents)
    except ValueError as exc:
        raise AgentsNotLoaded(str(exc)) from exc
    return agents


def recorded_module(name: str) -> Any:
    """A module in which a step's exception was defined; None if it can't be imported any more.

    The step may have imported it when it first ran, in a process that is gone.
    """
    if name not in sys.modules and all(map(str.isidentifier, name.split("."))):
        with suppress(Exception):  # whatever the module does
            importlib.import_module(name)
    return sys.modules.get(name)


def _import(name: str) -> Any:
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as exc:
        if exc.name is not None and (name == exc.name or name.startswith(f"{exc.name}.")):
            raise AgentsNotLoaded(
                f"There is no module `{exc.name}`, neither in {folder} nor among the installed packages."
            ) from exc
        raise AgentsNotLoaded(_failure(name, exc)) from exc
    except BaseException as exc:
        if isinstance(exc, KeyboardInterrupt):
            raise
        raise AgentsNotLoaded(_failure(name, exc)) from exc


def _failure(name: str, error: BaseException) -> str:
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, SyntaxError) and error.filename:
        where = f"{error.filename}, line {error.lineno}"
        return f"`{name}` can't be imported: {where}: {type(error).__name__}: {error.msg}"
    places = [it for it in traceback.extract_tb(error.__traceback__) if "importlib" not in it.filename]
    places = [it for it in places if Path(it.filename).parent != _OURS]
    where = f"{places[-1].filename}, line {places[-1].lineno}: " if places else ""
    return f"`{name}` can't be imported: {where}{what}"


def _file(module: Any) -> str:
    return getattr(module, "__file__", None) or "no file"


def _described(found: object) -> str:
    kind = type(found).__name__
    name = getattr(found, "__name__", None)
    return f"the {kind} `{name}`" if name else f"a {kind}"
