"""Where another process finds what a test uses: `module:name`."""

import sys
from collections.abc import Iterator
from types import ModuleType


class NotImportable(ValueError):
    """Another process can't load it: it isn't at the top of a module."""


def place_of(found: object, what: str) -> str:
    """The module and the name of an agent or a function; `what` says what it is if it has none."""
    for module in _modules_with(found):
        for name, value in vars(module).items():
            if value is found:
                return f"{module.__name__}:{name}"
    name = getattr(found, "__qualname__", repr(found))
    raise NotImportable(
        f"{what} can't be loaded by another process, which `kill=True` needs: put `{name}` at the top of a "
        "module that can be imported, not into a function or into the program itself."
    )


def _modules_with(found: object) -> Iterator[ModuleType]:
    """The loaded modules, its own first."""
    own = sys.modules.get(getattr(found, "__module__", None) or "")
    others = (it for it in list(sys.modules.values()) if it is not own)
    for module in (own, *others):
        if isinstance(module, ModuleType) and module.__name__ != "__main__":
            yield module
