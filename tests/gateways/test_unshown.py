"""What nobody sees of a reply is counted too: it is billed, even if the reply breaks off."""

import json
from typing import Any

import pytest

from tests.gateways.asking import APIS
from threadkeep.ports.gateway import UnshownDelta
from threadkeep.sse import ServerSentEvent

Frame = tuple[str, dict[str, Any]]
ARGUMENTS = ('{"text": "', "x" * 1000, "中", '"}')
SIZE = sum(len(it.encode()) for it in ARGUMENTS)
HIDDEN = "QUJD" * 400
"""1200 bytes in base64."""


def delta(index: int, **change: Any) -> Frame:
    return "content_block_delta", {"index": index, "delta": change}


def block(index: int, **content: Any) -> Frame:
    return "content_block_start", {"index": index, "content_block": content}


def call(index: int, **function: Any) -> Frame:
    return "", {"choices": [{"delta": {"tool_calls": [{"index": index, "function": function}]}}]}


def arguments(index: int, text: str) -> Frame:
    return "response.function_call_arguments.delta", {"output_index": index, "delta": text}


CASES: dict[str, tuple[str, list[Frame], int]] = {
    "anthropic, arguments": (
        "anthropic",
        [
            block(0, type="tool_use", id="1", name="f"),
            *(delta(0, type="input_json_delta", partial_json=it) for it in ARGUMENTS),
        ],
        SIZE,
    ),
    "anthropic, redacted thoughts": (
        "anthropic",
        [block(0, type="redacted_thinking", data=HIDDEN)],
        1200,
    ),
    "anthropic, thoughts left out": (
        "anthropic",
        [block(0, type="thinking", thinking=""), delta(0, type="signature_delta", signature=HIDDEN)],
        1200,
    ),
    "anthropic, thoughts shown": (
        "anthropic",
        [
            block(0, type="thinking", thinking=""),
            delta(0, type="thinking_delta", thinking="Hm."),
            delta(0, type="signature_delta", signature=HIDDEN),
        ],
        0,
    ),
    "openai, arguments": ("openai", [call(0, name="f"), *(call(0, arguments=it) for it in ARGUMENTS)], SIZE),
    "openai, two calls": (
        "openai",
        [call(at, name="f", arguments=it) for at, it in enumerate(ARGUMENTS)],
        SIZE,
    ),
    "openai, in one piece": ("openai", [call(0, name="f", arguments={"a": 1})], 7),
    "responses, arguments": ("responses", [arguments(0, it) for it in ARGUMENTS], SIZE),
    "responses, hidden thoughts": (
        "responses",
        [
            (
                "response.output_item.done",
                {"output_index": 0, "item": {"type": "reasoning", "id": "r", "encrypted_content": HIDDEN}},
            )
        ],
        1200,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_nobody_sees_is_counted_as_it_arrives(case: str):
    wire, frames, size = CASES[case]
    reader = APIS[wire].reply_reader("")
    events = [
        event
        for name, data in frames
        for event in reader.read(ServerSentEvent(data=json.dumps(data).encode(), event=name.encode()))
    ]
    assert sum(it.size for it in events if isinstance(it, UnshownDelta)) == size
