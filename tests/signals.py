"""Default signals for the tests and for every process that they start.

A shell that runs a script starts `command &` with SIGINT and SIGQUIT ignored, and nohup ignores SIGHUP. A
program inherits an ignored signal from the one that starts it, so that no test could press Ctrl-C.
"""

import signal

INHERITED = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM)


def pytest_configure() -> None:
    """Comes first in pytest and in each of its workers."""
    for number in INHERITED:
        if signal.getsignal(number) is signal.SIG_IGN:
            is_interrupt = number is signal.SIGINT
            signal.signal(number, signal.default_int_handler if is_interrupt else signal.SIG_DFL)
