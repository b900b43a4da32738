"""Whatever the provider does, there is one readable error, and what had come is kept."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.gateways.asking import QUESTION, WIRES, Naps, ask, heard, make_gateway, text_of
from threadkeep.gateways import http as gateway_http
from threadkeep.ports.gateway import (
    GatewayUnavailable,
    GatewayUnreachable,
    ModelStopped,
    ModelUsage,
    ReplyBrokeOff,
    Retrying,
    TextDelta,
    ToolUse,
)
from threadkeep.testing import (
    BrokenJson,
    CutOff,
    Fail,
    Gate,
    Hang,
    NoEnd,
    Raw,
    Reply,
    Reset,
    Say,
    ScriptedModel,
    Status,
    UseTool,
    Wait,
    closed_port,
)

BROKE_OFF = "The model's response ended early."

pytestmark = pytest.mark.parametrize("wire", WIRES)


async def test_model_that_refuses_the_connection_is_named_away(wire: str):
    naps = Naps()
    with closed_port() as url:
        events, error = await ask(make_gateway(wire, url, naps=naps))
    assert error
    assert isinstance(error, GatewayUnreachable)
    assert (error.message, error.retryable) == ("Couldn't connect to the model provider.", True)
    assert {type(event) for event in events} == {Retrying}
    assert len(naps.taken) == len(events)


async def test_model_that_closes_without_a_reply_is_asked_again(wire: str):
    with ScriptedModel([Reset()], [Reset()], [Say("Hello.")]) as model:
        events, error = await ask(make_gateway(wire, model.url))
    assert error is None
    closed = "The model provider closed the connection."
    assert [event.error.message for event in events if isinstance(event, Retrying)] == [closed, closed]
    assert text_of(events) == "Hello."


async def test_silence_before_the_first_byte_is_an_error_and_not_asked_again(
    wire: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(gateway_http, "RETRIES_S", 2)  # the silence alone takes longer than retries may
    with ScriptedModel([Hang()]) as model:
        events, error = await ask(make_gateway(wire, model.url, silence_s=2))
        assert await model.requests[0].until_over() == "disconnected"
    assert error
    assert isinstance(error, GatewayUnavailable)
    assert (error.message, error.retryable) == ("The model sent nothing for 2 s.", True)
    assert (events, len(model.requests)) == ([], 1)


async def test_silence_in_the_middle_keeps_what_was_said(wire: str):
    with ScriptedModel([Say("Hel"), Say("lo"), Hang()]) as model:
        events, error = await ask(make_gateway(wire, model.url, silence_s=2))
        assert await model.requests[0].until_over() == "disconnected"
    assert isinstance(error, ReplyBrokeOff)
    assert error.message == "The model sent nothing for 2 s."
    assert text_of(events) == "Hello"


@pytest.mark.parametrize("fault", [Reset(), CutOff()], ids=["reset", "end"])
async def test_reply_that_breaks_off_keeps_what_was_said(wire: str, fault: Reset | CutOff):
    with ScriptedModel([Say("Hel"), Say("lo"), fault]) as model:
        events, error = await ask(make_gateway(wire, model.url))
    assert isinstance(error, ReplyBrokeOff)
    assert (error.message, error.retryable) == (BROKE_OFF, True)
    assert (text_of(events), len(model.requests)) == ("Hello", 1)


async def test_reply_that_breaks_off_in_a_tool_call_calls_nothing(wire: str):
    heads = {
        "anthropic": b"""event: content_block_start
data: {"index": 0, "content_block": {"type": "tool_use", "id": "1", "name": "add"}}

""",
        "openai": b"""data: {"choices": [{"delta": {"tool_calls": [{"id": "1", "function": {"name": "a"}}]}}]}

""",
        "responses": b"""event: response.output_item.added
data: {"output_index": 0, "item": {"type": "function_call", "call_id": "1", "name": "add"}}

""",
    }
    with ScriptedModel(otherwise=[Raw(heads[wire])]) as model:
        events, error = await ask(make_gateway(wire, model.url))
    assert error
    assert error.message == BROKE_OFF
    assert not any(isinstance(event, ToolUse) for event in events)


async def test_empty_response_is_asked_again(wire: str):
    with ScriptedModel([Raw(b"")], [Say("Hello.")]) as model:
        events, error = await ask(make_gateway(wire, model.url))
    assert error is None
    assert text_of(events) == "Hello."


async def test_broken_json_is_an_error(wire: str):
    with ScriptedModel([Say("Hello."), BrokenJson(), Say("Never seen.")]) as model:
        events, error = await ask(make_gateway(wire, model.url))
    assert isinstance(error, ReplyBrokeOff)
    assert (error.message, error.retryable) == ("The model's response couldn't be parsed.", True)
    assert text_of(events) == "Hello."


async def test_endless_event_is_an_error(wire: str):
    with ScriptedModel([Raw(b"data: "), *[Raw(b"x" * 1024 * 1024)] * 17, Hang()]) as model:
        _, error = await ask(make_gateway(wire, model.url))
    assert error
    assert error.message == "The model's response couldn't be parsed."


async def test_reply_without_an_end_is_given_up(wire: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(gateway_http, "MOST_REPLY_BYTES", 1024 * 1024)
    with ScriptedModel([Say("Hello."), *[Say("x" * 100_000)] * 20, Hang()]) as model:
        events, error = await ask(make_gateway(wire, model.url))
        assert await model.requests[0].until_over() == "disconnected"
    assert error
    assert (error.message, error.retryable) == ("The model's response is too long.", True)
    assert text_of(events).startswith("Hello.")
    assert len(text_of(events)) <= 1024 * 1024


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            b"<!doctype html>\n\n<p>Sign in</p>",
            "The model provider returned a web page. Check the gateway's address.",
        ),
        (b'{"error": {"message": "It loads"}}', "The model provider failed: It loads."),
        (b'{\n\n"choices": []}', "The model provider didn't stream its response."),
        (b"OK\n", BROKE_OFF),
    ],
    ids=["page", "error", "answer", "text"],
)
async def test_response_that_is_no_stream_is_named_so(wire: str, body: bytes, message: str):
    with ScriptedModel(otherwise=[Status(200, body=body)]) as model:
        _, error = await ask(make_gateway(wire, model.url))
    assert error
    assert error.message == message


@pytest.mark.parametrize("end", [b"\xff", b"\\ud83d"], ids=["broken UTF-8", "half a surrogate pair"])
async def test_half_a_character_does_not_lose_the_rest(wire: str, end: bytes):
    streams = {
        "anthropic": b"""event: content_block_delta
data: {"index": 0, "delta": {"type": "text_delta", "text": "good%b"}}

event: message_stop
data: {"type": "message_stop"}

""",
        "openai": b"""data: {"choices": [{"delta": {"content": "good%b"}}]}

data: [DONE]

""",
        "responses": b"""event: response.output_text.delta
data: {"delta": "good%b"}

event: response.completed
data: {"response": {}}

""",
    }
    with ScriptedModel([Raw(streams[wire] % end)]) as model:
        events, error = await ask(make_gateway(wire, model.url))
    assert error is None
    assert text_of(events) in ("good\N{REPLACEMENT CHARACTER}", "good?")


async def test_error_in_the_middle_of_the_stream_is_told(wire: str):
    with ScriptedModel([Say("Hel"), Fail("We are over capacity")]) as model:
        events, error = await ask(make_gateway(wire, model.url))
    assert isinstance(error, ReplyBrokeOff)
    assert error.message == "The model provider failed: We are over capacity."
    assert error.retryable
    assert (text_of(events), len(model.requests)) == ("Hel", 1)


async def test_error_as_the_first_event_is_asked_again(wire: str):
    with ScriptedModel([Fail("Overloaded")], [Say("Hello.")]) as model:
        events, error = await ask(make_gateway(wire, model.url))
    assert error is None
    assert [type(event) for event in events] == [Retrying, TextDelta, ModelUsage, ModelStopped]


async def test_lasting_error_in_the_stream_is_not_asked_again(wire: str):
    with ScriptedModel([Fail("Too long.", "invalid_request_error")]) as model:
        events, error = await ask(make_gateway(wire, model.url))
    assert error
    assert not error.retryable
    assert (events, len(model.requests)) == ([], 1)


async def test_empty_reply_is_complete_and_says_nothing(wire: str):
    with ScriptedModel([]) as model:
        events, error = await ask(make_gateway(wire, model.url))
    assert error is None
    assert [type(event) for event in events] == [ModelUsage, ModelStopped]


@pytest.mark.parametrize("written", ['{"a": ', "[1]", '"text"', "null", "{" * 5000, '{"a": NaN}'])
async def test_tool_call_that_cannot_be_read_has_a_problem(wire: str, written: str):
    with ScriptedModel([UseTool("add", written, id="call_1")]) as model:
        events, error = await ask(make_gateway(wire, model.url))
    assert error is None
    assert events[0] == ToolUse("call_1", "add", {}, "The arguments are not a JSON object.")


async def test_only_the_terminal_marker_ends_a_reply(wire: str):
    with ScriptedModel([Say("Hello."), NoEnd()]) as model:
        events, error = await ask(make_gateway(wire, model.url))
    assert text_of(events) == "Hello."
    if wire == "openai":  # the reason for stopping has come, which is all that some servers send
        assert error is None
        assert heard(events).stop_reason == "end_turn"
    else:
        assert error
        assert error.message == BROKE_OFF


async def test_text_of_five_megabytes_arrives_whole(wire: str):
    with ScriptedModel([Say("x" * 5_000_000)]) as model:
        events, error = await ask(make_gateway(wire, model.url))
    assert error is None
    assert len(text_of(events)) == 5_000_000


async def test_slow_reader_holds_the_model_back_and_loses_nothing(wire: str):
    pieces = [Say(f"{number:08} " * 1000) for number in range(1000)]  # 9 MB, more than any buffer
    with ScriptedModel(pieces) as model:
        gateway = make_gateway(wire, model.url, silence_s=3)
        stream = gateway.stream(QUESTION)
        first = await anext(stream)
        await asyncio.sleep(3.5)  # longer than the model may be silent: it is we who are slow
        assert model.requests[0].outcome is None
        rest = [event async for event in stream]
        await gateway.close()
    assert text_of([first, *rest]) == "".join(piece.text for piece in pieces)


# Going away: the provider must notice, since every further token costs.


async def test_cancelling_before_the_first_byte_closes_the_connection(wire: str):
    with ScriptedModel([Hang()]) as model:
        task = asyncio.create_task(ask(make_gateway(wire, model.url)))
        await model.until_requests(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await model.requests[0].until_over() == "disconnected"


async def test_cancelling_in_the_middle_closes_the_connection(wire: str):
    with ScriptedModel([Say("Hel"), Hang()]) as model:
        gateway = make_gateway(wire, model.url)
        stream = gateway.stream(QUESTION)
        assert await anext(stream) == TextDelta("Hel")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await anext(stream)
        await stream.aclose()
        assert await model.requests[0].until_over() == "disconnected"
        await gateway.close()


async def test_closing_the_stream_between_events_closes_the_connection(wire: str):
    gate = Gate()
    with ScriptedModel([Say("Hel"), Wait(gate), Say("lo")]) as model:
        gateway = make_gateway(wire, model.url)
        stream = gateway.stream(QUESTION)
        assert await anext(stream) == TextDelta("Hel")
        await stream.aclose()
        assert await model.requests[0].until_over() == "disconnected"
        assert model.requests[0].sent_text == ["Hel"]
        await gateway.close()


async def test_cancelling_while_waiting_to_ask_again_ends_at_once(wire: str):
    class Forever(Naps):
        async def __call__(self, seconds: float) -> None:
            await asyncio.Event().wait()

    with ScriptedModel([Status(429)]) as model:
        stream = make_gateway(wire, model.url, naps=Forever()).stream(QUESTION)
        assert isinstance(await anext(stream), Retrying)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await anext(stream)
        await stream.aclose()
        assert len(model.requests) == 1


async def test_closing_the_gateway_ends_what_is_under_way(wire: str):
    with ScriptedModel([Say("Hel"), Hang()]) as model:
        gateway = make_gateway(wire, model.url)
        stream = gateway.stream(QUESTION)
        await anext(stream)
        await gateway.close()
        assert await model.requests[0].until_over() == "disconnected"
        await stream.aclose()


@pytest.fixture
async def many() -> AsyncIterator[ScriptedModel]:
    reply: Reply = [Say(f"{number} ") for number in range(20)]
    with ScriptedModel(otherwise=reply) as model:
        yield model


async def test_many_calls_at_once_do_not_mix(wire: str, many: ScriptedModel):
    gateway = make_gateway(wire, many.url)

    async def one() -> str:
        return text_of([event async for event in gateway.stream(QUESTION)])

    said = await asyncio.gather(*(one() for _ in range(200)))
    await gateway.close()
    assert set(said) == {"".join(f"{number} " for number in range(20))}
