"""Turn events as values."""

import pytest

from threadkeep.domain.events import EventBody, Text, Thought, ToolCalled, UsageReported, joined
from threadkeep.domain.message import Usage

CALL = ToolCalled("1", "add", "math", {})


@pytest.mark.parametrize(
    ("before", "after", "both"),
    [
        (Text("a"), Text("b"), Text("ab")),
        (Thought("a"), Thought("b"), Thought("ab")),
        (Text("a"), Thought("b"), None),
        (Thought("a"), Text("b"), None),
        (CALL, CALL, None),
    ],
)
def test_only_adjacent_pieces_of_one_kind_are_joined(
    before: EventBody, after: EventBody, both: EventBody | None
):
    assert joined(before, after) == both


def test_usage_is_added_up_and_estimated_where_a_part_is():
    assert Usage(1, 2) + Usage(3, 4) == Usage(4, 6)
    assert sum([Usage(1, 2), Usage(3, 4, estimated=True)], Usage(0, 0)) == Usage(4, 6, estimated=True)
    assert UsageReported.of(Usage(1, 2, estimated=True)).usage == Usage(1, 2, estimated=True)
