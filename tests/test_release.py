"""What `make release` refuses; what it proves, it proves when it runs."""

import subprocess
import threading
from pathlib import Path

import pytest
from scripts import packages, page, release

CHANGELOG = """# Changelog

## Unreleased

- Agents sing.

## 0.1.0 (2026-11-17)

- The first.
"""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "0.2.0"\n')
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    git(tmp_path, "init", "--quiet")
    commit(tmp_path)
    return tmp_path


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=test", "-c", "user.email=test@example.com")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


def commit(folder: Path) -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "as it is")


def test_committed_tree_with_a_new_version_is_released_with_its_notes(clone: Path):
    assert release.refusal(clone) is None
    assert release.notes(clone) == "- Agents sing."


@pytest.mark.parametrize("name", ["pyproject.toml", "new.py"])
def test_dirty_tree_is_refused_by_name(clone: Path, name: str):
    with (clone / name).open("a") as file:
        file.write("# changed\n")
    assert name in (release.refusal(clone) or "")


def test_version_that_is_released_is_refused(clone: Path):
    git(clone, "tag", "v0.2.0")
    assert release.refusal(clone) == "0.2.0 is released. Give pyproject.toml the next version."
    (clone / "pyproject.toml").write_text('[project]\nversion = "0.1.0"\n')
    commit(clone)
    assert release.refusal(clone) == "0.1.0 is released. Give pyproject.toml the next version."


def test_release_of_nothing_is_refused(clone: Path):
    (clone / "CHANGELOG.md").write_text(CHANGELOG.replace("- Agents sing.", ""))
    commit(clone)
    assert release.refusal(clone) == "CHANGELOG.md says nothing under Unreleased."


def test_npm_packages_have_the_version_as_npm_writes_it():
    assert packages.npm_version("0.2.0.dev0") == "0.2.0-dev.0"
    assert packages.npm_version("0.2.0rc1") == "0.2.0-rc.1"
    assert packages.npm_version("0.2.0") == "0.2.0"


def test_two_builds_in_one_clone_build_one_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    built: list[str] = []
    begun, goes_on = threading.Event(), threading.Event()

    def build() -> None:
        begun.set()
        assert goes_on.wait(30)
        built.append("page")

    monkeypatch.setattr(page, "SOURCE", tmp_path)
    monkeypatch.setattr(page, "is_built", lambda: bool(built))
    monkeypatch.setattr(page, "_build", build)
    both = [threading.Thread(target=page.build) for _ in range(2)]
    both[0].start()
    assert begun.wait(30)
    both[1].start()
    both[1].join(0.2)
    assert both[1].is_alive()  # it waits for the first one
    goes_on.set()
    for it in both:
        it.join(30)
    assert built == ["page"]
