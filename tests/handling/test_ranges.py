"""Which bytes a request asks for, whatever it writes into its headers."""

import pytest

from threadkeep.domain.errors import RangeNotSatisfiable
from threadkeep.handling.ranges import requested_range

ETAG = '"abc"'


@pytest.mark.parametrize(
    ("header", "part"),
    [
        ("bytes=0-0", (0, 1)),
        ("bytes=0-", (0, 10)),
        ("bytes=9-", (9, 10)),
        ("bytes=4-99", (4, 10)),
        ("bytes=-3", (7, 10)),
        ("bytes=-99", (0, 10)),
        ("Bytes= 2-3 ", (2, 4)),
    ],
)
def test_one_range_is_taken(header: str, part: tuple[int, int]):
    assert requested_range({"range": header}, ETAG, 10) == part


@pytest.mark.parametrize(
    "header",
    [
        "",
        "bytes",
        "bytes=",
        "bytes=-",
        "bytes=a-b",
        "bytes=5-2",
        "bytes=0-1,3-4",
        "lines=0-1",
        "bytes=--1",
        "bytes=1-2-3",
        "bytes=٠-١",
        f"bytes={'9' * 5000}-",
        "bytes=0x1-0x2",
    ],
)
def test_nonsense_is_no_range(header: str):
    assert requested_range({"range": header}, ETAG, 10) is None


@pytest.mark.parametrize("header", ["bytes=10-", "bytes=10-20", "bytes=-0", f"bytes={'9' * 18}-"])
def test_range_after_the_end_is_refused(header: str):
    with pytest.raises(RangeNotSatisfiable):
        requested_range({"range": header}, ETAG, 10)


@pytest.mark.parametrize("condition", ['"other"', 'W/"abc"', "Wed, 21 Oct 2015 07:28:00 GMT", ""])
def test_part_of_another_version_is_not_sent(condition: str):
    assert requested_range({"range": "bytes=0-1", "if-range": condition}, ETAG, 10) is None
