import subprocess
import sys
from pathlib import Path

import pytest

from tests.compat import SKIPPED
from tests.conformance.__main__ import PAGE, Proof, proofs_in, render, requirement_row
from tests.conformance.requirements import Requirement, read_requirements

pytest_plugins = ["pytester"]


@pytest.fixture
def sample(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeini("""
        [pytest]
        addopts = -p tests.conformance.plugin
        asyncio_default_fixture_loop_scope = function
    """)
    return pytester


def test_page_is_up_to_date(request: pytest.FixtureRequest) -> None:
    config = request.config
    if config.args == config.getini("testpaths") and not (config.option.keyword or config.option.markexpr):
        # All tests are here already, but for those of unchanged suites, whose rows are as they were.
        wanted = render(read_requirements(), proofs_in(request.session.items))
        skipped = [path for suite in config.stash[SKIPPED] for path in suite.tests]
        if not skipped:
            assert PAGE.read_text("utf-8") == wanted, "Run `make conformance`."
        rows = [line for line in PAGE.read_text("utf-8").splitlines() if "::test_" in line]
        outdated = {line for line in rows if not any(path in line for path in skipped)} - {
            *wanted.splitlines()
        }
        assert outdated == set(), "Run `make conformance`."
        return
    command = [sys.executable, "-m", "tests.conformance", "--check"]
    root = Path(__file__).parents[2]
    check = subprocess.run(command, cwd=root, capture_output=True, encoding="utf-8", check=False)
    assert check.returncode == 0, check.stdout + check.stderr


def test_every_requirement_has_a_row() -> None:
    rows = {line.split(" | ")[0].strip("|* ") for line in PAGE.read_text("utf-8").splitlines()}
    assert {requirement.id for requirement in read_requirements()} - rows == set()


def test_row_says_what_is_proven_where() -> None:
    requirement = Requirement("FR-001", "003-chatbot-persistence", "a | b")
    proofs = {Proof("FR-001", "tests/test_a.py::test_b", "sqlite")}
    link = "[`tests/test_a.py::test_b`](../tests/test_a.py)"
    assert requirement_row(requirement, proofs) == f"| FR-001 | a \\| b | {link} | passing | not yet |"


def test_test_proves_requirements_where_it_runs(sample: pytest.Pytester) -> None:
    items = sample.getitems("""
        import pytest

        @pytest.mark.requirement("FR-001", "FR-002")
        def test_anywhere(): ...

        @pytest.mark.requirement("FR-003")
        @pytest.mark.parametrize("database", ["sqlite", pytest.param("postgres", marks=pytest.mark.skip)])
        def test_on_a_database(database): ...

        @pytest.mark.requirement("FR-004")
        @pytest.mark.xfail
        def test_expected_to_fail(): ...

        @pytest.mark.parametrize("role", [pytest.param("bot", marks=pytest.mark.requirement("FR-015"))])
        def test_role(role): ...
    """)
    assert sorted((proof.requirement, proof.database) for proof in proofs_in(items)) == [
        ("FR-001", "postgres"),
        ("FR-001", "sqlite"),
        ("FR-002", "postgres"),
        ("FR-002", "sqlite"),
        ("FR-003", "sqlite"),
        ("FR-015", "postgres"),
        ("FR-015", "sqlite"),
    ]


@pytest.mark.parametrize("unknown", ["FR-999", "REQ-CONV-001"])
def test_unknown_requirement_is_a_collection_error(sample: pytest.Pytester, unknown: str) -> None:
    sample.makepyfile(f"import pytest\n@pytest.mark.requirement({unknown!r})\ndef test_it(): ...")
    result = sample.runpytest("--collect-only")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"*.py::test_it: unknown requirement '{unknown}'*"])
