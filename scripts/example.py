"""Shows an example page with the packages of this clone, as they would come from npm.

    python -m scripts.example examples/react-chat [ARGUMENT]...

The arguments go to vite, which serves the page.
"""

import hashlib
import os
import sys
import tempfile
from pathlib import Path

from scripts import packages, page


def install(folder: Path) -> None:
    """Puts the example's locked packages in place, and ours beside them."""
    _, npm = page.commands()
    quiet = ("--ignore-scripts", "--no-audit", "--no-fund", "--loglevel", "error")
    stamp = folder / "node_modules" / ".threadkeep"
    with tempfile.TemporaryDirectory() as built:
        tarballs = packages.build(Path(built))
        made_from = hashlib.sha256((folder / "package-lock.json").read_bytes())
        for tarball in tarballs:
            made_from.update(tarball.read_bytes())
        if stamp.is_file() and stamp.read_text() == made_from.hexdigest():
            return
        page.run([*npm, "ci", *quiet], folder=folder)
        ours = ("--no-save", "--no-package-lock", "--prefer-offline", *map(str, tarballs))
        page.run([*npm, "install", *quiet, *ours], folder=folder)
    stamp.write_text(made_from.hexdigest())


def serve(folder: Path, *arguments: str) -> None:
    """Serves the page until it is interrupted."""
    node, _ = page.commands()
    os.chdir(folder)
    os.execvp(node[0], [*node, "node_modules/vite/bin/vite.js", *arguments])


if __name__ == "__main__":
    _, place, *rest = sys.argv
    install(Path(place))
    serve(Path(place), *rest)
