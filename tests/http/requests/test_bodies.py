"""What a body may be before anything is made of it: its size, its depth, how many values it holds."""

import json
import threading
from typing import Any, cast

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import ONLY_SQLITE
from tests.http.calls import new_agent, new_conversation, refusal
from threadkeep.domain.errors import InvalidRequest, PayloadTooLarge, ThreadkeepError
from threadkeep.http.requests import decoding, json_shape
from threadkeep.http.requests.json_shape import MOST_NESTING, MOST_VALUES, JsonShape, check_shape

EMPTY_ARRAYS = b"[" + b"[]," * 3_000_000 + b"[]]"
values = st.recursive(
    st.none() | st.integers() | st.text(alphabet='[]{},:"\\ a字', max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(alphabet='[{,"\\', max_size=3), inner, max_size=4)
    ),
    max_leaves=30,
)


def inside(value: Any) -> list[Any] | None:
    if isinstance(value, dict):
        return list(cast("dict[str, Any]", value).values())
    return cast("list[Any]", value) if isinstance(value, list) else None


def depth(value: Any) -> int:
    inner = inside(value)
    return 0 if inner is None else 1 + max(map(depth, inner), default=0)


def count(value: Any) -> int:
    """Values, an object's names not counted; an empty one counts what stands in it as one."""
    inner = inside(value)
    return 1 if inner is None else 1 + (sum(map(count, inner)) or 1)


def is_refused(text: bytes, error: type[ThreadkeepError], part: int) -> bool:
    shape = JsonShape()
    try:
        for start in range(0, len(text), part):
            shape.add(text[start : start + part])
    except error:
        return True
    return False


@given(values, st.integers(1, 40))
def test_depth_and_values_are_counted_as_a_parser_would_in_whatever_parts(value: Any, part: int):
    text = json.dumps(value, ensure_ascii=False).encode()
    with pytest.MonkeyPatch.context() as patch:
        for most in (depth(value), depth(value) - 1):
            patch.setattr(json_shape, "MOST_NESTING", most)
            assert is_refused(text, InvalidRequest, part) == (most < depth(value))
        patch.setattr(json_shape, "MOST_NESTING", 100)
        for most in (count(value), count(value) - 1):
            patch.setattr(json_shape, "MOST_VALUES", most)
            assert is_refused(text, PayloadTooLarge, part) == (most < count(value))


def test_brackets_within_texts_are_no_depth():
    check_shape(json.dumps({"content": '[{"' * 100_000}).encode())
    with pytest.raises(InvalidRequest):
        check_shape(b"[" * (MOST_NESTING + 1))


@ONLY_SQLITE
@pytest.mark.parametrize(
    "path", ["/api/chat", "/api/conversations/{}/messages", "/api/conversations/{}/executions"]
)
async def test_millions_of_values_are_refused_before_they_are_decoded(
    alice: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, path: str
):
    conversation = await new_conversation(alice)
    monkeypatch.delattr(decoding, "decode_body")
    answer = await alice.post(path.format(conversation["id"]), content=EMPTY_ARRAYS)
    assert refusal(answer, 413, "PAYLOAD_TOO_LARGE")["details"] == {"mostValues": MOST_VALUES}
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
