"""Errors of providers' SDKs, in the words of our own calls."""

from typing import Any

import msgspec
import pytest

from threadkeep.agents.model_errors import model_failed
from threadkeep.domain.errors import BudgetExceeded, OutputInvalid, ThreadkeepError
from threadkeep.ports.gateway import GatewayError
from threadkeep.protocols.openai.errors import status_of, told

KEY = "sk-proj-0123456789abcdef0123456789abcdef"


class APIStatusError(Exception):
    """As the SDKs of several providers have it."""

    def __init__(self, status_code: int, body: Any) -> None:
        super().__init__(f"Error code: {status_code} - {body}")
        self.status_code = status_code
        self.body = body


class APIConnectionError(Exception):
    """No connection."""


def said(error: BaseException) -> tuple[str, str | None, bool]:
    failed = model_failed(error)
    assert failed is not None
    return str(failed), failed.turn_code, failed.is_retryable


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (
            APIStatusError(401, {"message": f"Incorrect API key provided: {KEY}"}),
            ("The model provider rejected the API key.", "AGENTX_ERROR", False),
        ),
        (
            APIStatusError(529, {"type": "error", "error": {"message": "Overloaded"}}),
            ("The model provider is busy (529): Overloaded.", "AGENTX_ERROR", True),
        ),
        (
            APIStatusError(500, f"<html>{KEY}"),
            ("The model provider failed (500).", "AGENTX_ERROR", True),
        ),
        (
            APIStatusError(429, {"message": "You are out of credit.", "type": "insufficient_quota"}),
            ("The model provider rejected the request (429): You are out of credit.", "AGENTX_ERROR", False),
        ),
        (
            ExceptionGroup("all failed", [ValueError("first"), APIConnectionError("last")]),
            ("Couldn't connect to the model provider.", "AGENTX_ERROR", True),
        ),
    ],
)
def test_an_error_of_a_provider_is_told_as_our_own_calls_tell_it(
    error: Exception, told: tuple[str, str, bool]
):
    assert said(error) == told


@pytest.mark.parametrize(
    ("error", "retryable"),
    [
        (BudgetExceeded("The budget of this user is used up."), False),
        (OutputInvalid("The reply has no `id`."), False),
        (GatewayError("The model provider is busy (429).", retryable=True), True),
        (GatewayError("The model provider rejected the request (400): Too long."), False),
    ],
)
def test_what_our_own_address_says_keeps_its_code(error: ThreadkeepError, retryable: bool):
    body = msgspec.to_builtins(told(error))["error"]
    assert said(APIStatusError(status_of(error), body)) == (error.message, error.code, retryable)


def test_an_error_that_no_provider_sent_is_none_of_a_model():
    assert model_failed(KeyError("order")) is None
