"""What a body may be before anything is made of it: its size, its depth, how many values it holds."""

import threading
from typing import Any

import httpx
import pytest

from tests.conftest import ONLY_SQLITE
from tests.http.calls import new_agent, new_conversation, refusal
from threadkeep.wire import decoding
from threadkeep.wire.json_shape import MOST_VALUES

EMPTY_ARRAYS = b"[" + b"[]," * 3_000_000 + b"[]]"


@ONLY_SQLITE
@pytest.mark.parametrize(
    "path", ["/api/chat", "/api/conversations/{}/messages", "/api/conversations/{}/executions"]
)
async def test_millions_of_values_are_refused_before_they_are_decoded(
    alice: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, path: str
):
    conversation = await new_conversation(alice)
    monkeypatch.delattr(decoding, "decode_body")
    response = await alice.post(path.format(conversation["id"]), content=EMPTY_ARRAYS)
    assert refusal(response, 413, "PAYLOAD_TOO_LARGE")["details"] == {"mostValues": MOST_VALUES}
    deep = await alice.post(path.format(conversation["id"]), content=b'{"a":' * 1_000_000)
    refusal(deep, 422, "INVALID_REQUEST")


@ONLY_SQLITE
async def test_large_body_is_decoded_away_from_the_loop(
    alice: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
):
    threads: list[threading.Thread] = []
    decode = decoding.decode_body

    def noting(raw: bytes, decoder: Any) -> Any:
        threads.append(threading.current_thread())
        return decode(raw, decoder)

    conversation = await new_conversation(alice)
    monkeypatch.setattr(decoding, "decode_body", noting)
    path = f"/api/conversations/{conversation['id']}/messages"
    refusal(await alice.post(path, json={"content": "a" * 200_000}), 400, "MESSAGE_TOO_LONG", "content")
    assert threading.main_thread() not in threads
    assert len(threads) == 1


@ONLY_SQLITE
@pytest.mark.parametrize("length", ["9" * 5_000, f"{2**64}", "0" * 5_000 + "99999999999"])
@pytest.mark.parametrize("kind", ["application/json", "multipart/form-data; boundary=x"])
async def test_length_of_any_number_of_digits_is_too_large(alice: httpx.AsyncClient, length: str, kind: str):
    """Not every server that a host application runs on has looked at it before."""
    agent = await new_agent(alice)
    path = f"/api/agents/{agent['id']}/documents" if "multipart" in kind else "/api/agents"
    headers = {"Content-Length": length, "Content-Type": kind}
    refusal(await alice.post(path, content=b"{}", headers=headers), 413, "PAYLOAD_TOO_LARGE")
