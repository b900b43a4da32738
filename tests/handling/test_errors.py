"""Errors as responses: what each tells a client to do."""

import httpx

from tests.conftest import ONLY_SQLITE
from threadkeep.domain.errors import ThreadkeepError
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
    unavailable = {code for code, status in STATUSES.items() if status == 503}
    assert {"GATEWAY_NOT_CONFIGURED", "SECRET_KEY_REQUIRED"} < unavailable
    assert {code for code in unavailable if is_to_be_tried_again(code)} == PASSING


@ONLY_SQLITE
async def test_missing_model_is_not_to_be_tried_again(alice: httpx.AsyncClient):
    response = await alice.post("/api/chat", json={"content": "Why?"})
    assert (response.status_code, response.json()["error"]["code"]) == (503, "GATEWAY_NOT_CONFIGURED")
    assert "retry-after" not in response.headers
