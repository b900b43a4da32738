"""What to run so that this installation has one of the package's extras."""

import json
import sys
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from typing import Any
from urllib.parse import unquote, urlsplit

from threadkeep.version import __version__


def adding(extra: str) -> str:
    """The command. It names what this was installed from: the package's name alone would fetch another's."""
    origin = _origin()
    source, editable = _source(origin), bool(origin.get("dir_info", {}).get("editable"))
    if editable and Path(sys.prefix) == Path(source) / ".venv":
        return f"sh {quote(f'{source}/scripts/env')} run"
    what = f"threadkeep[{extra}] @ {source}" if "://" in source else f"{source}[{extra}]"
    if _is_passing():
        return f"uvx --from {quote(what)} threadkeep serve"
    installer = f"{quote(sys.executable)} -m pip install"
    if find_spec("pip") is None:
        installer = f"uv pip install --python {quote(sys.executable)}"
    return f"{installer} {'-e ' if editable else ''}{quote(what)}"


def _origin() -> dict[str, Any]:
    """What pip or uv wrote down about it (PEP 610); nothing if it came from an index, or a folder."""
    try:
        text = distribution("threadkeep").read_text("direct_url.json")
    except PackageNotFoundError:
        return {}
    return json.loads(text) if text else {}


def _source(origin: dict[str, Any]) -> str:
    """The folder, wheel or address that it was installed from."""
    url = str(origin.get("url", f"file:///path/to/threadkeep-{__version__}-py3-none-any.whl"))
    parts = urlsplit(url)
    return unquote(parts.path) if parts.scheme == "file" else url


def _is_passing() -> bool:
    """Whether `uvx` made this environment, for one command."""
    return any(part.startswith(("archive-v", "environments-v")) for part in Path(sys.prefix).parts)
