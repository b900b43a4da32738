"""Times that nobody can write are shown as the nearest that can be written."""

from datetime import UTC
from zoneinfo import ZoneInfo

import pytest

from tests.context.histories import card
from threadkeep.context.cards import CardStyle
from threadkeep.domain.times import LATEST_MS, nearest_time, time_in


@pytest.mark.parametrize(
    ("given", "shown"),
    [(-1, 0), (-(2**70), 0), (5, 5), (LATEST_MS + 1, LATEST_MS), (2**53, LATEST_MS), (2**70, LATEST_MS)],
)
def test_time_out_of_range_is_the_nearest(given: int, shown: int):
    assert nearest_time(given) == shown
    assert int(time_in(given).timestamp() * 1000) == pytest.approx(shown, abs=1)


@pytest.mark.parametrize("zone", [UTC, ZoneInfo("Asia/Shanghai"), ZoneInfo("America/New_York")])
@pytest.mark.parametrize("at", [-(2**53), 0, LATEST_MS, 2**53])
def test_card_of_any_time_is_rendered_in_any_zone(zone: ZoneInfo, at: int):
    assert CardStyle(zone).render(card(sent_at=at))[:6] in {"[简报 19", "[简报 99"}
