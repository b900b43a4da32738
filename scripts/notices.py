"""Writes the licences of what the page contains: the texts of the npm packages in its bill of materials.

    python scripts/notices.py FILE

The packages must be in web/node_modules. The same packages give the same bytes.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sbom import ROOT, bundled

WEB = ROOT / "web"
NAMED = ("licen", "notice", "copying", "unlicense")
HEAD = """\
Third-party notices

Threadkeep's page contains parts of these packages from npm, each under its own licence. npm's registry has
their sources under these names and versions.
"""


def notices() -> str:
    """The whole text. What npm left out is for other platforms, and in no page."""
    lock = json.loads((WEB / "package-lock.json").read_text("utf-8"))
    folders = sorted(WEB / place for place, _ in bundled(lock) if (WEB / place).is_dir())
    return "\n".join((HEAD, *map(_entry, folders)))


def _entry(folder: Path) -> str:
    """One package. Where it brings no text, its manifest is all that says its licence."""
    manifest = json.loads((folder / "package.json").read_text("utf-8"))
    texts = [it.read_text("utf-8", errors="replace").strip() for it in _texts(folder)]
    licence = _licence(manifest) or ("its own text" if texts else None)
    if licence is None:
        raise SystemExit(f"{manifest['name']} says no licence: don't bundle it.")
    texts = texts or [
        f"Copyright: {_authors(manifest)}. Its licence's text is that of the others under {licence}."
    ]
    title = f"{manifest['name']} {manifest['version']} ({licence})"
    return "\n\n".join((f"{'=' * 80}\n{title}", *texts)) + "\n"


def _texts(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.name.lower().startswith(NAMED):
            yield path


def _licence(manifest: dict[str, Any]) -> str | None:
    said = manifest.get("license") or manifest.get("licenses")
    return " OR ".join(it["type"] for it in said) if isinstance(said, list) else said


def _authors(manifest: dict[str, Any]) -> str:
    people = [manifest.get("author"), *(manifest.get("contributors") or ())]
    names = (it.get("name") if isinstance(it, dict) else it for it in people if it)
    return ", ".join(dict.fromkeys(map(str, names))) or "see its sources"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(notices(), "utf-8")
