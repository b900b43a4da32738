"""A report speaks its reader's language and writes times of their zone."""

import httpx
import pytest

from tests.conftest import Api
from tests.http.calls import new_conversation, refusal, stored
from tests.making import keep_turn
from threadkeep.http.reports.words import duration, reader_of

NOON = 1_800_000_000_000  # 15 January 2027, 08:00 in UTC


def test_times_are_the_readers_own():
    assert reader_of("en", None).moment(NOON) == "15 January 2027, 08:00 UTC"
    assert reader_of("en", "Asia/Tokyo").moment(NOON) == "15 January 2027, 17:00"
    assert reader_of("zh", "Asia/Shanghai").moment(NOON) == "2027年1月15日 16:00"
    assert [duration(it) for it in (40, 1854, 61_000)] == ["40 ms", "1.9 s", "1 min 1 s"]


@pytest.mark.parametrize("zone", ["Nowhere/At all", "../../etc/passwd", "/etc/passwd", ""])
def test_unknown_time_zone_is_refused(zone: str):
    with pytest.raises(ValueError, match="no time zone"):
        reader_of("en", zone)


async def test_report_is_in_the_readers_language(api: Api, alice: httpx.AsyncClient):
    conversation = await new_conversation(alice)
    await keep_turn(api.store, await stored(api, conversation), "When?", "At noon.", NOON)
    path = f"/api/conversations/{conversation['id']}/report"
    asked = {"format": "html", "lang": "zh", "timeZone": "Asia/Shanghai"}
    text = (await alice.get(path, params=asked)).text
    assert '<html lang="zh-CN">' in text and "导出于" in text and "2027年1月15日 16:00</time>" in text
    refusal(
        await alice.get(path, params={**asked, "timeZone": "Nowhere"}), 422, "INVALID_REQUEST", "timeZone"
    )
