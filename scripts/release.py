"""Builds a release into dist/ and proves it: `make release`.

From the commit, not from the folder, in two places, which must give the same bytes: wheel, source archive and
npm tarballs. Then it looks at the wheel's metadata and the licences of its page, installs it without an
index, runs it with `uvx`, and tests the tarballs. Only what passes comes to dist/, with SHA256SUMS and
RELEASE-NOTES.md.
"""

import hashlib
import io
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from zipfile import ZipFile

from scripts import page

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
TOOLS = ROOT / "build" / "release-tools"
TESTS = ("tests/packages", "tests/docs/test_typescript.py", "tests/browser/test_react_chat.py")
START_S = 60
PORT_TRIES_S = 0.1


def main() -> None:
    """Builds, proves, and only then writes."""
    if why := refusal(ROOT):
        raise SystemExit(f"No release: {why}")
    version = project_version(ROOT)
    page.install()
    with tempfile.TemporaryDirectory(prefix="threadkeep-release-") as folder:
        place = Path(folder)
        say(f"building {version} twice, from commit {_git(ROOT, 'rev-parse', '--short', 'HEAD')}")
        built, again = (_built(place / name) for name in ("one", "two"))
        _compare(built, again)
        wheel = next(it for it in built if it.suffix == ".whl")
        _prove_metadata(built, wheel)
        wheelhouse = place / "wheelhouse"
        _prove_installation(wheel, wheelhouse, place / "clean", version)
        _prove_uvx(wheel, wheelhouse, place / "uvx")
        say("the npm packages in fresh projects of Node and vite")
        _run([sys.executable, "-m", "pytest", "-q", *TESTS], ROOT)
        _write(built, version)


def refusal(root: Path) -> str | None:
    """Why there can be no release of what is in this folder, if so."""
    if changed := _git(root, "status", "--porcelain"):
        return f"the tree differs from its commit. Commit, or remove:\n{changed}"
    version = project_version(root)
    if version in released(root):
        return f"{version} is released. Give pyproject.toml the next version."
    if not notes(root):
        return "CHANGELOG.md says nothing under Unreleased."
    return None


def project_version(root: Path) -> str:
    """The version of what is built."""
    return tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["version"]


def released(root: Path) -> set[str]:
    """The versions that the changelog or a tag says are released."""
    said = re.findall(r"^## (\d\S*)", (root / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    return {*said, *(tag.removeprefix("v") for tag in _git(root, "tag").split())}


def notes(root: Path) -> str:
    """What the changelog says of this release."""
    _, _, rest = (root / "CHANGELOG.md").read_text("utf-8").partition("\n## Unreleased\n")
    return re.split(r"^## ", rest, maxsplit=1, flags=re.MULTILINE)[0].strip()


def say(line: str) -> None:
    """One line a step."""
    print(f"release: {line}", flush=True)


def _built(place: Path) -> list[Path]:
    """All files of the release, built from the commit in a folder of its own."""
    source, out = place / "source", place / "dist"
    packed = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(source)
    # Other than the rest, what builds the page is too large to be copied. The cut typeface is written anew.
    shutil.copytree(
        page.SOURCE / "node_modules",
        source / "web" / "node_modules",
        symlinks=True,
        copy_function=_link,
        ignore=shutil.ignore_patterns(".typeface", ".vite*"),
    )
    environment = {**os.environ, "SOURCE_DATE_EPOCH": _git(ROOT, "log", "-1", "--format=%ct")}
    for target in ("wheel", "sdist"):
        command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(out)]
        _run(command, source, environment)
    _run([sys.executable, "-m", "scripts.packages", str(out)], source, environment)
    shutil.rmtree(source)
    return sorted(out.iterdir())


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # on another disk
        shutil.copy2(source, target)


def _compare(built: Sequence[Path], again: Sequence[Path]) -> None:
    assert [it.name for it in built] == [it.name for it in again]
    other = [one.name for one, two in zip(built, again, strict=True) if one.read_bytes() != two.read_bytes()]
    if other:
        raise SystemExit(f"Two builds differ in: {', '.join(other)}")
    say(f"the same bytes both times: {', '.join(it.name for it in built)}")


def _prove_metadata(built: Sequence[Path], wheel: Path) -> None:
    python = [str(it) for it in built if it.name.endswith((".whl", ".tar.gz"))]
    _run([str(_tools() / "twine"), "check", "--strict", *python], ROOT)
    (sdist,) = (it for it in built if it.name.endswith(".tar.gz"))
    with tarfile.open(sdist) as archive:
        assert not [it for it in archive.getnames() if "node_modules" in it], (
            "the source archive has npm's packages"
        )
    with ZipFile(wheel) as archive:
        names = archive.namelist()
        (bill,) = (it for it in names if it.endswith("/sboms/threadkeep.cdx.json"))
        components = json.loads(archive.read(bill))["components"]
        for needed in ("py.typed", "weights.lock", "page/index.html", "page/third-party-notices.txt"):
            assert f"threadkeep/{needed}" in names, f"the wheel lacks {needed}"
        texts = archive.read("threadkeep/page/third-party-notices.txt").decode()
    on_page = [it for it in components if it["purl"].startswith("pkg:npm/") and it["scope"] == "required"]
    missing = [it["name"] for it in on_page if f"\n{it['name']} {it['version']} (" not in texts]
    assert not missing, f"no licence in the wheel for {missing}"
    say(f"metadata, bill of materials and the licences of {len(on_page)} packages on the page")


def _prove_installation(wheel: Path, wheelhouse: Path, place: Path, version: str) -> None:
    python = [sys.executable, "-m"]
    quiet = ["--quiet", "--disable-pip-version-check"]
    _run(
        [*python, "pip", "download", *quiet, "--only-binary", ":all:", "-d", str(wheelhouse), str(wheel)],
        ROOT,
    )
    _run([*python, "venv", str(place)], ROOT)
    environment = _bare(place, place / "bin")
    from_folder = ["--no-index", "--find-links", str(wheelhouse), f"threadkeep=={version}"]
    _run([str(place / "bin" / "python"), "-m", "pip", "install", *quiet, *from_folder], place, environment)
    installed = next((place / "lib").glob("python*/site-packages"))
    size = sum(it.stat().st_size for it in installed.rglob("*") if it.is_file()) >> 20
    seconds = _serves([str(place / "bin" / "threadkeep")], place, environment)
    count = len(list(wheelhouse.iterdir()))
    say(f"{count} wheels, installed {size} MB; without git and node it serves the page in {seconds:.1f} s")


def _prove_uvx(wheel: Path, wheelhouse: Path, place: Path) -> None:
    place.mkdir()
    environment = _bare(place, _tools()) | {"UV_PYTHON": sys.executable, "UV_PYTHON_DOWNLOADS": "never"}
    from_folder = ["--no-index", "--find-links", str(wheelhouse), "--from", str(wheel)]
    command = [str(_tools() / "uvx"), "--quiet", *from_folder, "threadkeep"]
    seconds = _serves(command, place, environment)
    say(f"uvx --from {wheel.name} threadkeep serve: the page in {seconds:.1f} s")


def _bare(home: Path, programs: Path) -> Mapping[str, str]:
    """The environment of somebody without git and node, and without any configuration."""
    system = home / "system"
    system.mkdir()
    for found in Path("/usr/bin").iterdir():
        if not found.name.startswith(("git", "node", "npm", "npx")):
            (system / found.name).symlink_to(found)
    path = f"{programs}{os.pathsep}{system}"
    return {"PATH": path, "HOME": str(home), "LANG": "C.UTF-8", "PIP_CONFIG_FILE": os.devnull}


def _serves(threadkeep: Sequence[str], folder: Path, environment: Mapping[str, str]) -> float:
    """Starts the server, looks at its page and stops it; how long that took to come."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [*threadkeep, "serve", "--port", str(port), "--data", str(folder / "data")]
    begun = time.monotonic()
    with _process(command, folder, environment) as process:
        url = f"http://127.0.0.1:{port}"
        while not _responds(f"{url}/healthz"):
            if process.poll() is not None or time.monotonic() > begun + START_S:
                raise SystemExit(f"{' '.join(command)}: didn't start")
            time.sleep(PORT_TRIES_S)
        with urllib.request.urlopen(url) as response:
            assert "data-model=" in response.read().decode(), "that isn't the page"
        return time.monotonic() - begun


@contextmanager
def _process(
    command: Sequence[str], folder: Path, environment: Mapping[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, cwd=folder, env=environment)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(START_S)


def _responds(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return response.status == 200
    except OSError:
        return False


def _tools() -> Path:
    """Where twine and uv are, in an environment of their own."""
    lock = ROOT / "requirements" / "release.lock"
    made_from = TOOLS / "release.lock"
    if not made_from.is_file() or made_from.read_bytes() != lock.read_bytes():
        say("installing twine and uv (requirements/release.lock)")
        _run([sys.executable, "-m", "venv", "--clear", str(TOOLS)], ROOT)
        pip = [
            str(TOOLS / "bin" / "python"),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ]
        _run([*pip, "--require-hashes", "-r", str(lock)], ROOT)
        shutil.copy(lock, made_from)
    return TOOLS / "bin"


def _write(built: Sequence[Path], version: str) -> None:
    """Replaces the last release in dist/."""
    DIST.mkdir(exist_ok=True)
    for old in DIST.glob("threadkeep-*"):
        old.unlink()
    for file in built:
        shutil.copy(file, DIST)
    sums = (f"{hashlib.sha256(it.read_bytes()).hexdigest()}  {it.name}\n" for it in built)
    (DIST / "SHA256SUMS").write_text("".join(sums), "utf-8")
    (DIST / "RELEASE-NOTES.md").write_text(f"# Threadkeep {version}\n\n{notes(ROOT)}\n", "utf-8")
    say(f"in {DIST}: {', '.join(sorted(it.name for it in DIST.iterdir()))}")


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=root, capture_output=True, text=True, check=True
    ).stdout.strip()


def _run(command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None) -> None:
    """One step; what it says is only shown if it fails."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{done.stdout}\n{' '.join(command)}: failed")


if __name__ == "__main__":
    main()
