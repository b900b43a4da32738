"""The marker `@pytest.mark.requirement("REQ-CONV-001-S1", …)`: this test proves these requirements."""

from collections.abc import Generator
from functools import cache

import pytest

from tests.conformance.requirements import read_requirements

Made = pytest.Item | pytest.Collector | list[pytest.Item | pytest.Collector] | None


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "requirement(*ids): the test proves these rows of docs/conformance.md")


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem() -> Generator[None, Made, Made]:
    made = yield
    for item in made if isinstance(made, list) else [made]:
        if isinstance(item, pytest.Item):
            refuse_unknown_requirements(item)
    return made


def refuse_unknown_requirements(item: pytest.Item) -> None:
    for marker in item.iter_markers("requirement"):
        for name in marker.args:
            if name not in known_ids():
                raise pytest.Collector.CollectError(f"{item.nodeid}: unknown requirement {name!r}")


@cache
def known_ids() -> frozenset[str]:
    return frozenset(requirement.id for requirement in read_requirements() if requirement.needs_tests)
