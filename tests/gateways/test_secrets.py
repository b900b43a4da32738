"""The API key is in the request's header, and nowhere else."""

import logging
import traceback

import pytest

from tests.gateways.asking import KEY, WIRES, ask, make_gateway
from threadkeep.domain.errors import SettingsError
from threadkeep.ports.gateway import Retrying
from threadkeep.testing import Fail, Hang, Raw, Reply, Reset, Say, ScriptedModel, Status, closed_port

ECHO = f"The key {KEY} in the header x-api-key: {KEY}\nis bad, {KEY}{KEY}"

FAULTS: dict[str, Reply] = {
    "400": [Status(400, ECHO)],
    "401": [Status(401, ECHO)],
    "429": [Status(429, ECHO)],
    "plain text": [Status(500, body=ECHO.encode())],
    "cut within the key": [Status(400, "x" * 290 + KEY)],
    "error in the stream": [Say("Hello."), Fail(ECHO, "invalid_request_error")],
    "error first": [Fail(ECHO)],
    "reset": [Reset()],
    "hang": [Hang()],
    "not JSON": [Raw(f"event: message_start\ndata: {ECHO}\n\n".encode())],
}


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("name", FAULTS)
async def test_key_is_in_no_error_and_no_log(wire: str, name: str, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG)
    with ScriptedModel(otherwise=FAULTS[name]) as model:
        events, error = await ask(make_gateway(wire, model.url, silence_s=2))
    assert error
    assert KEY in str(model.requests[0].headers)
    told = [error.message, repr(error), *traceback.format_exception(error), caplog.text]
    told += [event.message for event in events if isinstance(event, Retrying)]
    for part in told:
        assert KEY not in part
        assert KEY[:10] not in part


@pytest.mark.parametrize("wire", WIRES)
async def test_key_is_in_no_log_when_the_model_is_away(wire: str, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG)
    with closed_port() as url:
        _, error = await ask(make_gateway(wire, url))
    assert error
    assert "couldn't connect" in caplog.text
    assert KEY not in caplog.text + "".join(traceback.format_exception(error))


@pytest.mark.parametrize("wire", WIRES)
async def test_key_is_not_shown_by_the_gateway(wire: str):
    gateway = make_gateway(wire, "https://models.test")
    assert KEY not in repr(gateway) + str(gateway) + repr(vars(gateway)["_endpoint"])
    await gateway.close()


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("key", ["sk-secret\nx-evil: 1", "sk-secret\x00", "sk-密钥", "sk-sec\u2028ret"])
def test_key_that_no_header_can_carry_is_refused_unseen(wire: str, key: str):
    with pytest.raises(SettingsError) as refused:
        make_gateway(wire, "https://models.test", key=key)
    assert "sk-" not in str(refused.value)


@pytest.mark.parametrize("wire", WIRES)
async def test_key_goes_where_the_provider_wants_it(wire: str):
    with ScriptedModel() as model:
        await ask(make_gateway(wire, model.url, key=f"  {KEY}\n"))
        await ask(make_gateway(wire, model.url, key=""))
    first, second = model.requests
    if wire == "anthropic":
        assert first.headers["x-api-key"] == KEY
        assert first.headers["anthropic-version"] == "2023-06-01"
    else:
        assert first.headers["authorization"] == f"Bearer {KEY}"
    assert not {"x-api-key", "authorization"} & second.headers.keys()


@pytest.mark.parametrize("wire", WIRES)
async def test_redirect_does_not_carry_the_key_away(wire: str):
    with ScriptedModel() as elsewhere, ScriptedModel() as model:
        model.script([Status(307, headers={"location": f"{elsewhere.url}/v1/messages"})])
        _, error = await ask(make_gateway(wire, model.url))
        assert error
        assert (
            error.message == "The model provider redirected the request (307). Check the gateway's address."
        )
        assert not elsewhere.requests
