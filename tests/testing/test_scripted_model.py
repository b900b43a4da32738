"""The scripted model itself: what other tests rely on."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.gateways.asking import QUESTION, WIRES, ask, make_gateway, text_of
from threadkeep.ports.gateway import TextDelta
from threadkeep.testing import Gate, Pause, Recorded, Reply, Say, ScriptedModel, Wait

pytestmark = pytest.mark.parametrize("wire", WIRES)


async def test_gate_holds_the_reply_until_the_test_opens_it(wire: str):
    gate = Gate()
    with ScriptedModel([Say("a"), Wait(gate), Say("b")]) as model:
        gateway = make_gateway(wire, model.url)
        stream = gateway.stream(QUESTION)
        assert await anext(stream) == TextDelta("a")
        await gate.reached()
        assert model.requests[0].sent_text == ["a"]
        gate.open()
        assert await anext(stream) == TextDelta("b")
        await stream.aclose()
        await gateway.close()


async def test_replies_may_depend_on_the_request(wire: str):
    def echo(request: Recorded) -> Reply:
        return [Say(f"{request.wire} {request.number} {request.body['model']}"), Pause(0)]

    with ScriptedModel([Say("first")], otherwise=echo) as model:
        assert text_of((await ask(make_gateway(wire, model.url)))[0]) == "first"
        assert text_of((await ask(make_gateway(wire, model.url)))[0]) == f"{wire} 2 scripted"
        assert await model.requests[1].until_over() == "finished"


async def test_request_that_breaks_the_rules_is_refused_in_the_provider_s_words(wire: str):
    path = {"anthropic": "/v1/messages", "openai": "/v1/chat/completions", "responses": "/v1/responses"}[wire]
    empty = "input" if wire == "responses" else "messages"
    with ScriptedModel() as model:
        async with httpx.AsyncClient(base_url=model.url, trust_env=False) as client:
            response = await client.post(path, json={"model": "m", empty: [], "stream": True})
            assert response.status_code == 400
            assert response.json()["error"]["type"] == "invalid_request_error"
            assert "must not be empty" in response.json()["error"]["message"]
            assert (await client.get("/elsewhere")).status_code == 404
        assert [request.outcome for request in model.refused] == ["refused"]


async def test_model_can_go_away_and_come_back(wire: str):
    with ScriptedModel() as model:
        with model.away():
            _, error = await ask(make_gateway(wire, model.url))
            assert error
        events, error = await ask(make_gateway(wire, model.url))
        assert (text_of(events), error) == ("OK.", None)


@pytest.fixture
def process_url() -> Iterator[str]:
    """A model in a process of its own."""
    process = subprocess.Popen(
        [sys.executable, "-m", "threadkeep.testing", "--pieces", "5", "--rate", "50", "--time"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert process.stdout
    yield process.stdout.readline().strip()
    process.terminate()
    process.communicate()


async def test_model_runs_in_a_process_of_its_own(wire: str, process_url: str):
    events, error = await ask(make_gateway(wire, process_url))
    assert error is None
    moments = [float(moment) for moment in text_of(events).split()]
    assert len(moments) == 5
    assert moments == sorted(moments)
    assert 0 < time.monotonic() - moments[0] < 60
