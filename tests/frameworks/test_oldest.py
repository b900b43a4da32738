"""`make crash` tests the oldest releases that this package allows."""

import re
import tomllib

from tests.frameworks.oldest import LOCK, ROOT

EXTRAS = ("langgraph", "openai-agents", "pydantic-ai")


def test_the_oldest_releases_that_are_tested_are_those_that_the_extras_allow():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    allowed = dict(it.split(">=") for name in EXTRAS for it in project["optional-dependencies"][name])
    for path in (LOCK, LOCK.with_suffix(".in")):
        pinned = dict(re.findall(r"(?m)^([\w-]+)(?:\[.*\])?==([\d.]+)", path.read_text()))
        for package, version in allowed.items():
            assert release(pinned[package]) == release(version), (path.name, package)


def release(version: str) -> list[int]:
    """A version without the zeros at its end."""
    parts = [int(it) for it in version.split(".")]
    while parts and not parts[-1]:
        parts.pop()
    return parts
