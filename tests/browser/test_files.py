"""Files of the page that are made from ours are as they should be."""

from scripts import page_types

from tests.browser import recordings


def test_types_of_the_page_are_those_of_the_api():
    assert page_types.FILE.read_text("utf-8") == page_types.types(), "run: python scripts/page_types.py"


def test_recorded_logs_are_those_that_the_server_folds():
    assert recordings.FILE.read_text("utf-8") == recordings.recordings(), (
        "run: python -m tests.browser.recordings"
    )
