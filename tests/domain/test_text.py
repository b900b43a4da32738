"""What messages say about sizes."""

import pytest

from threadkeep.domain.text import size_text


@pytest.mark.parametrize(
    ("size", "told"),
    [
        (0, "0 bytes"),
        (1023, "1023 bytes"),
        (64 * 1024, "64 KB"),
        (10 * 1024**2, "10 MB"),
        (10 * 1024**3, "10 GB"),
        (3 * 1024**4, "3,072 GB"),
    ],
)
def test_limit_reads_as_operators_write_it(size: int, told: str):
    assert size_text(size) == told


def test_one_byte_beyond_a_limit_looks_like_more_than_the_limit():
    assert size_text(10 * 1024**3 + 1) == "10.1 GB"
