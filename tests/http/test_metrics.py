"""`GET /metrics`: the numbers of the process, for this machine and for admins."""

import re

import httpx
import pytest

from tests.conftest import ONLY_SQLITE, SECRET, Api
from tests.talking import Talk
from threadkeep.domain.user import User, UserId, UserRole
from threadkeep.http.metrics import render
from threadkeep.http.sign_in.access_tokens import issue_token
from threadkeep.metrics import Histogram
from threadkeep.testing import Say, ScriptedModel


def value(text: str, line: str) -> float:
    found = re.search(rf"^{re.escape(line)} (\S+)$", text, re.MULTILINE)
    assert found, text
    return float(found[1])


async def test_turns_tokens_and_times_are_counted(talk: Talk, model: ScriptedModel):
    model.script([Say("Because.")])
    await talk.ask(await talk.conversation(), "Why?")
    response = await talk.client.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    text = response.text
    assert value(text, 'threadkeep_turns_ended_total{status="COMPLETED"}') == 1
    assert value(text, 'threadkeep_tokens_total{kind="output"}') > 0
    assert value(text, "threadkeep_turns_running") == 0
    assert value(text, "threadkeep_event_lag_seconds_count") >= 1
    for kind in ("read", "write"):
        assert value(text, f'threadkeep_store_seconds_count{{kind="{kind}"}}') >= 1
    # Buckets count everything up to their bound, and the last one everything.
    whole = value(text, "threadkeep_event_lag_seconds_count")
    assert value(text, 'threadkeep_event_lag_seconds_bucket{le="+Inf"}') == whole
    assert "Because" not in text


@ONLY_SQLITE
async def test_every_line_is_in_the_text_format(talk: Talk):
    for line in "".join(render(await talk.app.services())).splitlines():
        assert re.fullmatch(
            r"# (HELP|TYPE) \S+ .+|\w+(\{\w+=\"[^\"]*\"(,\w+=\"[^\"]*\")*\})? [0-9.e+-]+", line
        )


def test_value_on_a_bound_belongs_below_it():
    histogram = Histogram((1.0, 2.0))
    for seconds in (0.5, 1.0, 1.5, 9.0):
        histogram.observe(seconds)
    assert (histogram.counts, histogram.total) == ([2, 1, 1], 12.0)


@ONLY_SQLITE
@pytest.mark.parametrize(
    ("client", "headers", "status"),
    [
        ("127.0.0.1", {}, 200),
        ("::1", {}, 200),
        ("10.0.0.7", {}, 401),
        ("127.0.0.1", {"X-Forwarded-For": "10.0.0.7"}, 401),
        ("10.0.0.7", {"Authorization": "user"}, 403),
        ("10.0.0.7", {"Authorization": "admin"}, 200),
    ],
)
async def test_strangers_see_no_metrics(api: Api, client: str, headers: dict[str, str], status: int):
    sent = dict(headers)
    if role := sent.get("Authorization"):
        user = User(UserId("ops"), UserRole.ADMIN if role == "admin" else UserRole.USER)
        sent["Authorization"] = f"Bearer {issue_token(SECRET, user, 60)}"
    transport = httpx.ASGITransport(app=api.app, client=(client, 1))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as caller:
        assert (await caller.get("/metrics", headers=sent)).status_code == status
