"""What CI may leave out: only suites whose inputs are what they were when they passed."""

import subprocess
from pathlib import Path

import pytest

from tests import compat
from tests.compat import SUITES, Suite

pytest_plugins = ["pytester"]

SUITE = Suite("foreign", ("tests/foreign",), ("src/*.py",))
FILES = {
    "pyproject.toml": "",
    "src/one.py": "ONE = 1",
    "src/deep/two.py": "TWO = 2",
    "tests/foreign/test_it.py": "from tests.serving.node import Node\nfrom tests.talking import say",
    "tests/serving/node.py": "from tests.serving import ports",
    "tests/serving/ports.py": "from src.one import ONE",
    "tests/serving/conftest.py": "",
    "tests/serving/other.py": "",
    "tests/talking/say.py": "",
}


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one suite, which has passed."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "-c", "user.name=a", "-c", "user.email=a@localhost", "commit", "-qm", "All")
    monkeypatch.setattr(compat, "ROOT", tmp_path)
    monkeypatch.setattr(compat, "LOCK", tmp_path / "compat.lock")
    compat.write_down([SUITE])
    return tmp_path


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


def test_suite_is_skipped_while_nothing_has_changed_and_the_reason_names_what_and_since_when(
    repository: Path,
):
    (repository / "README.md").write_text("Not looked at.")
    (repository / "src/deep/two.py").write_text("NOR = 'this'")
    (repository / "tests/serving/other.py").write_text("NOR = 'this'")
    reason = compat.why_skipped(SUITE)
    assert reason is not None
    assert reason.startswith("foreign: nothing changed in ")
    assert "src/*.py" in reason
    assert f"since {git(repository, 'log', '--format=%h').strip()};" in reason


@pytest.mark.parametrize(
    "name",
    [
        "pyproject.toml",
        "src/one.py",
        "src/new.py",
        "tests/serving/node.py",
        "tests/serving/ports.py",
        "tests/serving/conftest.py",
        "tests/talking/say.py",
    ],
)
def test_suite_runs_when_an_input_changes_or_comes(repository: Path, name: str):
    with (repository / name).open("a") as file:
        file.write("\n# changed")
    assert compat.why_skipped(SUITE) is None
    assert len(compat.changed(SUITE)) == 1


def test_suite_runs_when_its_tests_change(repository: Path):
    (repository / "tests/foreign/test_it.py").write_text("")
    assert "tests/foreign" in compat.changed(SUITE)


def test_suite_runs_when_an_input_goes(repository: Path):
    (repository / "src/one.py").unlink()
    assert compat.changed(SUITE) == ["src/*.py"]


def test_suite_runs_that_has_never_passed(repository: Path):
    (repository / "compat.lock").unlink()
    assert compat.why_skipped(SUITE) is None


def test_everything_runs_without_git(repository: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", "")
    assert compat.why_skipped(SUITE) is None


def test_pytest_skips_the_tests_of_such_a_suite_and_no_others(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
):
    suite = Suite("foreign", ("foreign",), ())
    monkeypatch.setattr(compat, "SUITES", [suite])
    monkeypatch.setattr(compat, "why_skipped", {suite: "the reason"}.get)
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function")
    pytester.makepyfile(**{"foreign/test_it": "def test_a(): ...", "test_own": "def test_b(): ..."})
    run = pytester.runpytest("-p", "tests.compat", "--skip-unchanged")
    run.assert_outcomes(passed=1)
    run.stdout.fnmatch_lines(["skipped: the reason"])
    pytester.runpytest("-p", "tests.compat").assert_outcomes(passed=2)


def test_only_the_postgresql_half_of_a_test_on_both_databases_is_a_twin(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
):
    suite = Suite("above", ("above",), (), twins_only=True)
    monkeypatch.setattr(compat, "SUITES", [suite])
    monkeypatch.setattr(compat, "why_skipped", {suite: "the reason"}.get)
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function")
    both = pytest_test("test_both", "sqlite-1", "sqlite-2", "postgres-1", "postgres-2")
    alone = pytest_test("test_alone", "postgres")
    pytester.makepyfile(**{"above/test_above": f"import pytest\n{both}{alone}def test_none(): ..."})
    pytester.makepyfile(**{"below/test_below": f"import pytest\n{both}"})
    run = pytester.runpytest("-p", "tests.compat", "--skip-unchanged", "-v")
    run.assert_outcomes(passed=4 + 2 + 1 + 1, deselected=2)
    assert "above.py::test_both[postgres" not in run.stdout.str()
    pytester.runpytest("-p", "tests.compat").assert_outcomes(passed=10)


def pytest_test(name: str, *ids: str) -> str:
    """The source of a test with these parameters."""
    return f'@pytest.mark.parametrize("database", {[*ids]})\ndef {name}(database): ...\n'


def test_every_suite_has_tests_and_looks_at_what_is_there():
    paths = {path for suite in SUITES for path in suite.inputs}
    assert {path for path in paths if not any(compat.ROOT.glob(path))} == set()
