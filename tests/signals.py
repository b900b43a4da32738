"""Default signals for the tests and for every process that they start.

A program inherits an ignored signal from the one that starts it, so that no test could press Ctrl-C. A shell
that runs a script starts `command &` with SIGINT and SIGQUIT ignored, and nohup ignores SIGHUP. A command
that a test runs in this process ignores SIGINT when it ends.
"""

import signal
from collections.abc import Iterator

import pytest

INHERITED = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM)


def pytest_configure() -> None:
    """Comes first in pytest and in each of its workers."""
    for number in INHERITED:
        if signal.getsignal(number) is signal.SIG_IGN:
            is_interrupt = number is signal.SIGINT
            signal.signal(number, signal.default_int_handler if is_interrupt else signal.SIG_DFL)


@pytest.fixture(autouse=True)
def default_signals() -> Iterator[None]:
    """A test leaves the signals to the next one as it found them."""
    before = {number: signal.getsignal(number) for number in INHERITED}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
