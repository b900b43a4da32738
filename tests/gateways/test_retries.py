"""Asking again: only before the first token, not for long, and never behind the user's back."""

from email.utils import formatdate

import pytest

from tests.gateways.asking import WIRES, Naps, ask, make_gateway, text_of
from threadkeep.ports.gateway import GatewayUnavailable, Retrying
from threadkeep.testing import Say, ScriptedModel, Status

pytestmark = pytest.mark.parametrize("wire", WIRES)


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 520, 529])
async def test_passing_trouble_is_announced_and_asked_again(wire: str, status: int):
    naps = Naps()
    with ScriptedModel([Status(status, "Slow down")], [Status(status)], [Say("Hello.")]) as model:
        events, error = await ask(make_gateway(wire, model.url, naps=naps))
    assert error is None
    assert isinstance(events[0], Retrying)
    assert f"({status}): Slow down. Retrying in 0.8 s." in events[0].message
    assert isinstance(events[1], Retrying)
    assert text_of(events) == "Hello."
    assert naps.taken == [0.75, 1.5]
    assert len({request.content for request in model.requests}) == 1


async def test_after_twenty_seconds_of_pauses_nobody_asks_again(wire: str):
    naps = Naps()
    with ScriptedModel(otherwise=[Status(529, "Overloaded", retry_after="0")]) as model:
        events, error = await ask(make_gateway(wire, model.url, naps=naps))
    assert isinstance(error, GatewayUnavailable)
    assert (error.message, error.retryable) == ("The model provider is busy (529): Overloaded.", True)
    assert naps.taken == [0.75, 1.5, 3, 6]  # the next would be 12
    assert [type(event) for event in events] == [Retrying] * 4


async def test_pause_that_nobody_would_wait_for_ends_the_call_at_once_and_says_when(wire: str):
    naps = Naps()
    with ScriptedModel([Status(429, "Slow down", retry_after="3600")]) as model:
        events, error = await ask(make_gateway(wire, model.url, naps=naps))
    assert isinstance(error, GatewayUnavailable)
    message = "The model provider is busy (429): Slow down. Try again in 60 min."
    assert (error.message, error.retryable, error.after_s) == (message, True, 3600)
    assert (events, naps.taken) == ([], [])


async def test_pauses_are_counted_together(wire: str):
    naps = Naps()
    with ScriptedModel(otherwise=[Status(503, retry_after="8")]) as model:
        _, error = await ask(make_gateway(wire, model.url, naps=naps))
    assert naps.taken == [8, 8]
    assert error
    assert error.message.endswith(" Try again in 8 s.")


@pytest.mark.parametrize("status", [400, 404, 413, 422])
async def test_lasting_refusal_is_told_and_not_asked_again(wire: str, status: int):
    with ScriptedModel([Status(status, "No such model: scripted")]) as model:
        events, error = await ask(make_gateway(wire, model.url))
    assert error
    assert error.message == f"The model provider rejected the request ({status}): No such model: scripted."
    assert not error.retryable
    assert (events, len(model.requests)) == ([], 1)


@pytest.mark.parametrize(
    ("refusal", "told"),
    [
        (Status(401, "Incorrect key sk-…"), "The model provider rejected the API key."),
        (
            Status(403, "Country, region, or territory not supported"),
            "The model provider doesn't accept this API key in this region or at this address: "
            "Country, region, or territory not supported.",
        ),
    ],
    ids=["wrong", "of another region"],
)
async def test_refused_key_is_told_and_not_tried_again(wire: str, refusal: Status, told: str):
    with ScriptedModel([refusal]) as model:
        events, error = await ask(make_gateway(wire, model.url))
    assert error
    assert (error.message, error.retryable) == (told, False)
    assert (events, len(model.requests)) == ([], 1)


NOW = 1_800_000_000


@pytest.mark.parametrize(
    ("after", "pause"),
    [
        ("7", 7),
        ("0", 0.75),
        ("1.5", 1.5),
        ("19.5", 19.5),
        ("9" * 400, 0.75),
        (formatdate(NOW + 5, usegmt=True), 5),
        (formatdate(NOW - 5, usegmt=True), 0.75),
        ("soon", 0.75),
        ("-3", 0.75),
        ("1e", 0.75),
        ("Thu, 99 Foo 2026", 0.75),
        ("", 0.75),
    ],
)
async def test_pause_that_the_provider_asks_for_is_kept_within_reason(wire: str, after: str, pause: float):
    naps = Naps()
    with ScriptedModel([Status(429, retry_after=after)], [Say("Hello.")]) as model:
        _, error = await ask(make_gateway(wire, model.url, naps=naps, now=NOW))
    assert error is None
    assert naps.taken == [pause]


async def test_pause_in_milliseconds_is_understood(wire: str):
    naps = Naps()
    headers = {"retry-after-ms": "1250"}
    with ScriptedModel([Status(429, retry_after="9", headers=headers)], [Say("Hello.")]) as model:
        await ask(make_gateway(wire, model.url, naps=naps))
    assert naps.taken == [1.25]


async def test_spent_quota_is_not_asked_again(wire: str):
    body = b'{"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}}'
    with ScriptedModel([Status(429, body=body)]) as model:
        _, error = await ask(make_gateway(wire, model.url))
    assert error
    assert not error.retryable
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b'{"error": "plain words"}', ": plain words."),
        (b'{"message": "at the top"}', ": at the top."),
        (b'{"object": "error", "message": "as vLLM has it", "code": 400}', ": as vLLM has it."),
        (b'{"detail": [{"loc": ["body"], "msg": "no"}]}', ': [{"loc": ["body"], "msg": "no"}].'),
        (b'[{"error": {"message": "in a list"}}]', ": in a list."),
        (b"just\n  text!", ": just text!"),
        (b"<html><body>502 Bad Gateway</body></html>", "."),
        (b"", "."),
        (b"null", "."),
        (b"[]", "."),
        (b'{"error": {"message": null}}', "."),
        (b'{"error": {"message": "nul \\u0000"}}', ": nul \N{REPLACEMENT CHARACTER}."),
        (b"[" * 60_000, None),
        (b"x" * 5_000_000, None),
        (b"\xff\xfe", None),
    ],
)
async def test_error_of_any_shape_is_readable_and_short(wire: str, body: bytes, told: str | None):
    with ScriptedModel([Status(418, body=body)]) as model:
        _, error = await ask(make_gateway(wire, model.url))
    assert error
    assert told is None or error.message == f"The model provider rejected the request (418){told}"
    assert len(error.message) < 350
    assert "\x00" not in error.message
