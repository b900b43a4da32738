"""What AgentX clients send, as ours."""

import json
from typing import Any

import pytest

from threadkeep.domain.errors import InvalidRequest
from threadkeep.protocols.agentx.decode import (
    Ack,
    Auth,
    Request,
    SentPart,
    Subscribe,
    Unsubscribe,
    decode,
    files_of,
    text_of,
)


@pytest.mark.parametrize(
    ("frame", "decoded"),
    [
        ({"type": "auth", "headers": {"Authorization": "Bearer t"}}, Auth("Bearer t")),
        ({"type": "auth", "headers": {"authorization": "Bearer t", "Cookie": "a=b"}}, Auth("Bearer t")),
        ({"type": "subscribe", "sessionId": "s"}, Subscribe("s", None)),
        ({"type": "subscribe", "sessionId": "s", "afterCursor": "c"}, Subscribe("s", "c")),
        ({"type": "unsubscribe", "sessionId": "s"}, Unsubscribe("s")),
        ({"__ack": "c"}, Ack()),
        (
            {"type": "image_get_request", "timestamp": 1, "data": {"requestId": "r", "imageId": "i"}},
            Request("image_get", "r", {"requestId": "r", "imageId": "i"}),
        ),
        ({"type": "x_request", "data": {"requestId": 7}}, Request("x", 7, {"requestId": 7})),
        ({"type": "x_request", "data": {"requestId": {}}}, Request("x", "", {"requestId": {}})),
        ({"type": "x_request"}, Request("x", "", {})),
    ],
)
async def test_frame_is_read_as_what_it_means(frame: dict[str, Any], decoded: object):
    assert await decode(json.dumps(frame).encode()) == decoded


@pytest.mark.parametrize(
    "frame",
    [
        {"type": "image_get_response", "data": {}},
        {"type": "_request"},
        {"type": "not a name_request"},
        {"type": f"{'x' * 100}_request"},
        {"type": "auth", "headers": {"Authorization": "Bearer a", "authorization": "Bearer b"}},
        {"type": "auth", "headers": {"X-User": "alice"}},
        {"type": "image_get_request", "data": "text"},
    ],
)
async def test_frame_that_means_nothing_is_refused(frame: dict[str, Any]):
    with pytest.raises(InvalidRequest):
        await decode(json.dumps(frame).encode())


def test_texts_of_parts_are_lines_of_their_own():
    assert text_of("as it is") == "as it is"
    parts = [
        SentPart("text", "Sum up:"),
        SentPart("image"),
        SentPart("text", ""),
        SentPart("text", "a b"),
    ]
    assert text_of(parts) == "Sum up:\na b"
    assert text_of([]) == ""


@pytest.mark.parametrize("kind", ["thinking", "", "x" * 5000])
def test_part_that_would_be_lost_is_refused(kind: str):
    with pytest.raises(InvalidRequest) as refused:
        files_of([SentPart("text", "Look"), SentPart(kind)])
    assert len(refused.value.message) < 200


async def test_request_with_half_a_pair_can_get_a_response():
    """JavaScript cuts an emoji in two and sends one half."""
    raw = b'{"type": "message_send_request", "data": {"requestId": "7", "content": "half \\ud83d"}}'
    request = await decode(raw)
    assert isinstance(request, Request)
    assert (request.name, request.request_id, request.data) == ("message_send", "7", {})
    assert request.refusal is not None
