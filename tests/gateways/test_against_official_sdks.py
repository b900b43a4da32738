"""The same bytes, read by the providers' own clients and by ours, say the same."""

import pytest

from tests.gateways.asking import WIRES, ask, heard, make_gateway
from tests.gateways.official_sdks import ask_anthropic, ask_openai, ask_responses
from threadkeep.testing import (
    Ping,
    Reply,
    Say,
    ScriptedModel,
    Stop,
    Think,
    ThinkUnseen,
    UnknownEvent,
    Usage,
    UseTool,
)

REPLIES: dict[str, Reply] = {
    "one piece": [Say("Hello.")],
    "many pieces": [Say(f"{number} ") for number in range(500)],
    "all kinds of characters": [
        Say("你好\n\r\n"),
        Say("👩‍👩‍👧 \u2028 \x85 \x00 \x7f"),
        Say('"\\ data: x\n\n'),
    ],
    "an empty reply": [],
    "thoughts": [Think("Let me "), Think("see", signature="c2lnbmVk"), Say("Yes.")],
    "two thoughts": [Think("a", signature="s1"), Say("x"), Think("b", signature="s2"), Say("y")],
    "a hidden thought": [ThinkUnseen("ZGF0YQ"), Say("Yes.")],
    "a tool": [Say("One moment."), UseTool("add", {"a": 1, "b": [2, {"c": None}]}, id="call_1")],
    "tools": [
        UseTool("add", {"text": '多 \n "quoted" \\ 👍'}, id="call_1"),
        UseTool("now", {}, id="call_2"),
        UseTool("add", {"number": -1.5e300, "large": 12345678901234567890}, id="call_3"),
    ],
    "a tool without arguments": [UseTool("now", "", id="call_1")],
    "costs": [Say("Yes."), Usage(1000, 20, cache_read=300, cache_write=40)],
    "cut by the limit": [Say("It is"), Stop("max_tokens")],
    "a refusal": [Say("No."), Stop("refusal")],
    "signs of life and news": [Ping(), Say("a"), Ping(), UnknownEvent(), Say("b"), Ping()],
    "five megabytes": [Say("0123456789abcde\n" * 1024 * 64) for _ in range(5)],
}


OFFICIAL = {"anthropic": ask_anthropic, "openai": ask_openai, "responses": ask_responses}


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("name", REPLIES)
async def test_official_client_and_ours_read_the_same(wire: str, name: str):
    reply = REPLIES[name]
    with ScriptedModel(reply) as theirs:
        expected = await OFFICIAL[wire](theirs.url)
    with ScriptedModel(reply) as ours:
        events, error = await ask(make_gateway(wire, ours.url))
    assert error is None
    assert ours.requests[0].sent_bytes == theirs.requests[0].sent_bytes
    ours_heard = heard(events)
    # Anthropic's client has no signature for what is hidden: there it is a block of its own.
    ours_heard.signatures = [it for it in ours_heard.signatures if it and not it.startswith("redacted")]
    assert ours_heard == expected
