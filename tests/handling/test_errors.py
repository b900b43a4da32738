"""Errors as responses: what each tells a client to do."""

import httpx

from tests.conftest import ONLY_SQLITE
from threadkeep.domain.errors import Conflict, ConversationChanging, ThreadkeepError
from threadkeep.handling.errors import STATUSES, error_response

PASSING = {
    "STORAGE_UNAVAILABLE",
    "SIGN_IN_UNAVAILABLE",
    "SHUTTING_DOWN",
    "INTERRUPTED",
    "AGENT_ABSENT",
    "TOO_MANY_CONNECTIONS",
}


def is_to_be_tried_again(code: str) -> bool:
    kind: type[ThreadkeepError] = type("Unavailable", (ThreadkeepError,), {"code": code})
    return "retry-after" in error_response(kind("Not now."), request_id="1").headers


def test_only_what_passes_by_itself_is_to_be_tried_again():
    assert {code for code in STATUSES if is_to_be_tried_again(code)} == PASSING
    assert {code for code, status in STATUSES.items() if status == 503} == PASSING


def test_lost_race_is_to_be_tried_again_and_other_conflicts_are_not():
    assert "retry-after" in error_response(ConversationChanging(), request_id="1").headers
    assert "retry-after" not in error_response(Conflict("It is so."), request_id="1").headers


@ONLY_SQLITE
async def test_missing_model_is_not_to_be_tried_again(alice: httpx.AsyncClient):
    response = await alice.post("/api/chat", json={"content": "Why?"})
    assert (response.status_code, response.json()["error"]["code"]) == (409, "GATEWAY_NOT_CONFIGURED")
    assert "retry-after" not in response.headers
