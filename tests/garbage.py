"""What was loaded before the first test stays until the last: nobody looks through it again for garbage.

Each full collection would go through all modules and thousands of tests, which took a seventh of the time.
"""

import gc
from collections.abc import Generator

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """While modules are loaded and tests are found, and once they are."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()
