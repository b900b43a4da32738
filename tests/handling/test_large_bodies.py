"""Large bodies: on the disk, within each user's and the node's budget, and never in one's way for long."""

import asyncio
import base64
import mmap
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from starlette.requests import Request

from threadkeep.domain.errors import (
    InvalidRequest,
    PayloadTooLarge,
    RateLimited,
    RequestTimeout,
    StorageUnavailable,
    TooManyConnections,
)
from threadkeep.domain.ids import UserId
from threadkeep.handling import bodies, large_bodies
from threadkeep.handling.bodies import body_parts
from threadkeep.handling.large_bodies import Body, LargeBodies
from threadkeep.wire.json_shape import JsonShape

ALICE, BOB, CAROL = UserId("alice"), UserId("bob"), UserId("carol")
MOST = 1_000
HELD = 100
PART = b"x" * 60


@pytest.fixture(autouse=True)
def small_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_bodies, "HELD_BYTES", HELD)


async def fill(body: Body, size: int) -> None:
    for _ in range(0, size, len(PART)):
        await body.add(PART)


async def test_large_body_is_on_the_disk_and_small_one_in_memory():
    node = LargeBodies(MOST)
    with node.of(ALICE) as small, node.of(ALICE) as large:
        await small.add(b'{"a": 1}')
        assert small.taken == 0 and isinstance(await small.content(), bytes)
        for part in (b'{"a": "', *[PART] * 10, b'", "b": {"c": 1}}'):
            await large.add(part)
            assert sum(map(len, large._parts)) <= HELD  # pyright: ignore[reportPrivateUsage]
        assert isinstance(await large.content(), mmap.mmap)
        decoded = await node.decode(ALICE, large, msgspec.json.Decoder(dict[str, msgspec.Raw]))
    # What was not decoded yet stays readable.
    assert msgspec.json.decode(decoded["b"]) == {"c": 1}
    assert msgspec.json.decode(decoded["a"]) == PART.decode() * 10


async def test_user_who_sends_much_is_refused_and_nobody_else():
    node = LargeBodies(MOST)
    with node.of(ALICE) as first, node.of(ALICE) as second:
        await fill(first, MOST)
        with pytest.raises(RateLimited):
            await fill(second, 2 * MOST)
        with node.of(ALICE) as small, node.of(BOB) as others:
            await small.add(PART)
            await fill(others, MOST)
    with node.of(ALICE) as again:
        await fill(again, MOST)


async def test_node_takes_only_so_much_from_all_users():
    node = LargeBodies(MOST)
    users = [UserId(f"user {number}") for number in range(large_bodies.BODIES_OF_A_NODE + 1)]
    holding = [node.of(user) for user in users]
    held = [it.__enter__() for it in holding]
    for body in held[:-1]:
        await fill(body, MOST - HELD)
    with pytest.raises(TooManyConnections):
        await fill(held[-1], 2 * MOST)
    for it in holding:
        it.__exit__(None, None, None)
    assert not node._by_user  # pyright: ignore[reportPrivateUsage]


async def test_full_disk_is_told(monkeypatch: pytest.MonkeyPatch):
    def full() -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(large_bodies, "_File", full)
    node = LargeBodies(MOST)
    with node.of(ALICE) as body, pytest.raises(StorageUnavailable, match="No space left"):
        await fill(body, MOST)


@pytest.mark.parametrize("backslashes", range(5))
async def test_nul_is_found_in_a_body_on_the_disk(backslashes: int):
    node = LargeBodies(MOST)
    with node.of(ALICE) as body:
        for part in (b'{"a": "', PART, PART, b"\\" * backslashes + b'u0000"}'):
            await body.add(part)
        decoding = node.decode(ALICE, body, msgspec.json.Decoder(dict[str, str]))
        if backslashes % 2:
            with pytest.raises(InvalidRequest, match="NUL"):
                await decoding
        else:
            assert (await decoding)["a"].endswith("u0000")


class Sender:
    """A client that sends parts, each after some seconds; the clock goes on only then."""

    def __init__(self, *parts: tuple[float, bytes]) -> None:
        self._parts = [*parts]

    async def receive(self) -> dict[str, Any]:
        if not self._parts:
            return {"type": "http.request", "body": b"", "more_body": False}
        seconds, part = self._parts.pop(0)
        await asyncio.sleep(seconds)
        return {"type": "http.request", "body": part, "more_body": True}

    async def received(self, wait_s: float) -> Sequence[bytes]:
        request = Request({"type": "http", "method": "POST", "headers": []}, self.receive)
        parts = body_parts(request, 10**9, wait_s, PayloadTooLarge("Too large."))
        return [part async for part in parts if part]


async def test_who_has_sent_much_may_stall_no_longer_than_others(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bodies, "SLOWEST_BYTES_A_SECOND", 1_000)
    much = b"x" * 1_000_000  # which once allowed for a thousand seconds
    with pytest.raises(RequestTimeout):
        await Sender((0, much), (5, b"x")).received(0.1)
    with pytest.raises(RequestTimeout):  # a byte now and then doesn't help
        await Sender((0, much), *[(0.04, b"x")] * 5).received(0.1)
    slow_but_steady = [(0.04, b"x" * 100)] * 5
    assert len(await Sender(*slow_but_steady).received(0.1)) == 5


def shaped(text: bytes, most_text: int, piece: int = 1_000) -> None:
    shape = JsonShape(most_text=most_text)
    for start in range(0, len(text), piece):
        shape.add(text[start : start + piece])


@pytest.mark.parametrize("escaped", [False, True])
def test_only_files_may_be_larger_than_text(escaped: bool):
    file = base64.b64encode(bytes(range(256)) * 400)
    if escaped:
        file = file.replace(b"/", b"\\/")
    body = b'{"text": "Look", "file": "data:image/png;base64,' + file + b'"}'
    shaped(body, most_text=5_000)
    with pytest.raises(PayloadTooLarge):
        shaped(b'{"text": "' + b"Lorem ipsum " * 10_000 + b'"}', most_text=5_000)
    with pytest.raises(PayloadTooLarge):
        shaped(b"[" + b"1," * 10_000 + b"1]", most_text=5_000)
