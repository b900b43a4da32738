"""Builds web/packages/client and web/packages/react as npm packages: tarballs in dist/.

    python -m scripts.packages [FOLDER]

The same sources give the same bytes.
"""

import json
import re
import shutil
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from scripts.page import ROOT, SOURCE, commands, install, run

# In this order: one that uses another comes after it.
NAMES = ("client", "react")
FOLDER = ROOT / "dist"


def build(folder: Path = FOLDER) -> list[Path]:
    """Builds the tarballs into a folder; where they are."""
    install()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        return [_packed(_staged(name, Path(place)), folder) for name in NAMES]


def version() -> str:
    """The project's version, which its packages have, too."""
    return npm_version(tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"])


def npm_version(version: str) -> str:
    """A version of Python as npm writes it: `0.2.0.dev0` is `0.2.0-dev.0`."""
    return re.sub(r"\.?(dev|a|b|rc)(\d+)$", r"-\1.\2", version)


def _staged(name: str, place: Path) -> Path:
    """A folder with all that a package carries."""
    source, staged = SOURCE / "packages" / name, place / name
    staged.mkdir()
    shutil.copy(source / "README.md", staged)
    shutil.copy(ROOT / "LICENSE", staged)
    manifest = json.loads((source / "package.json").read_text("utf-8"))
    (staged / "package.json").write_text(json.dumps(_published(manifest), indent=2) + "\n", "utf-8")
    _compile(source, staged)
    return staged


def _published(manifest: dict[str, Any]) -> dict[str, Any]:
    """A manifest as others read it: with a version, and built files in place of the sources."""
    built = {name: _built(path) for name, path in manifest.pop("exports").items()}
    del manifest["private"]
    peers = manifest.get("peerDependencies", {})
    ours = {name: version() for name in peers if name.startswith("@threadkeep/")}
    return {
        "name": manifest.pop("name"),
        "version": version(),
        **manifest,
        **({"peerDependencies": peers | ours} if peers else {}),
        "engines": {"node": ">=20"},
        "files": ["dist"],
        "exports": built,
    }


def _built(path: str) -> dict[str, str]:
    stem = path.replace("./src/", "./dist/").removesuffix(".ts")
    return {"types": f"{stem}.d.ts", "default": f"{stem}.js"}


def _compile(source: Path, staged: Path) -> None:
    """Modules for node and browsers, and their types."""
    config: dict[str, Any] = {
        "extends": str(SOURCE / "tsconfig.json"),
        "compilerOptions": {
            "noEmit": False,
            "declaration": True,
            "rewriteRelativeImportExtensions": True,
            "rootDir": str(source / "src"),
            "outDir": str(staged / "dist"),
            "types": [],
            "verbatimModuleSyntax": False,  # imports of nothing but types disappear
            # The package beside it as it is published, not its sources.
            "paths": {"@threadkeep/*": [str(staged.parent / "*" / "dist" / "index.d.ts")]},
        },
        "include": [str(source / "src")],
    }
    file = staged.parent / f"{source.name}.tsconfig.json"
    file.write_text(json.dumps(config), "utf-8")
    node, _ = commands()
    run([*node, "node_modules/typescript/bin/tsc", "--project", str(file)])


def _packed(staged: Path, folder: Path) -> Path:
    """The tarball of a folder; npm gives every file in it the same time."""
    _, npm = commands()
    run([*npm, "pack", "--silent", "--pack-destination", str(folder.resolve())], folder=staged)
    return folder / f"threadkeep-{staged.name}-{version()}.tgz"


if __name__ == "__main__":
    for tarball in build(*map(Path, sys.argv[1:])):
        print(tarball)
