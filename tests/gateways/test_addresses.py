"""A host with several addresses is reached through the first that answers."""

import asyncio
import socket
from collections.abc import AsyncIterator, Generator, Sequence
from contextlib import contextmanager, suppress

import httpx2
import pytest

from tests.gateways.test_transport import SIZED, serving
from threadkeep.gateways.addresses import Address, connect_first, resolve
from threadkeep.gateways.transport import StreamTransport
from threadkeep.testing.waiting import PATIENCE_S, until

NEW, OLD = socket.AF_INET6, socket.AF_INET


def addresses(*families: int) -> list[Address]:
    """Addresses of these families, told apart by their numbers."""
    return [Address(family, number) for number, family in enumerate(families)]


class Dialling:
    """Sockets that are connected only as the test says, and what was dialled."""

    def __init__(self, *outcomes: str) -> None:
        self.dialled: list[int] = []
        self.given_up: list[int] = []
        self.sockets: dict[int, socket.socket] = {}
        self._outcomes = outcomes

    async def __call__(self, address: Address) -> socket.socket:
        number: int = address.sockaddr
        self.dialled.append(number)
        outcome = self._outcomes[number]
        try:
            if outcome == "hangs":
                await asyncio.Event().wait()
            if outcome == "stubborn":
                await self._connect_all_the_same()
        except asyncio.CancelledError:
            self.given_up.append(number)
            raise
        if outcome == "refuses":
            raise ConnectionRefusedError(f"{number} refuses")
        self.sockets[number] = socket.socket()
        return self.sockets[number]

    async def _connect_all_the_same(self) -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()

    def close(self) -> None:
        for sock in self.sockets.values():
            sock.close()


async def test_first_address_that_answers_is_used_and_no_further_one_is_dialled():
    dialling = Dialling("answers", "answers")
    assert await connect_first(addresses(NEW, OLD), dialling) is dialling.sockets[0]
    assert dialling.dialled == [0]
    dialling.close()


async def test_address_that_hangs_is_overtaken_and_given_up():
    dialling = Dialling("hangs", "hangs", "answers")
    assert await connect_first(addresses(NEW, OLD, NEW), dialling) is dialling.sockets[2]
    await until(lambda: sorted(dialling.given_up) == [0, 1])
    dialling.close()


async def test_address_that_refuses_makes_way_for_the_next():
    dialling = Dialling("refuses", "refuses", "answers")
    assert await connect_first(addresses(NEW, OLD, NEW), dialling) is dialling.sockets[2]
    dialling.close()


async def test_address_that_refuses_does_not_end_the_attempt_beside_it():
    dialling = Dialling("hangs", "refuses", "hangs", "answers")
    assert await connect_first(addresses(NEW, OLD, NEW, OLD), dialling) is dialling.sockets[3]
    dialling.close()


async def test_connection_that_comes_too_late_is_closed():
    dialling = Dialling("stubborn", "answers")
    assert await connect_first(addresses(NEW, OLD), dialling) is dialling.sockets[1]
    await until(lambda: 0 in dialling.sockets and dialling.sockets[0].fileno() == -1)
    assert dialling.sockets[1].fileno() != -1
    dialling.close()


async def test_when_every_address_refuses_all_of_them_are_named():
    with pytest.raises(OSError, match="0 refuses; 1 refuses"):
        await connect_first(addresses(NEW, OLD), Dialling("refuses", "refuses"))
    with pytest.raises(OSError, match="doesn't resolve to an address"):
        await connect_first([], Dialling())


async def test_families_take_turns():
    dialling = Dialling(*["refuses"] * 5)
    with pytest.raises(OSError, match="refuses"):
        await connect_first(addresses(NEW, NEW, NEW, OLD, OLD), dialling)
    assert dialling.dialled == [0, 3, 1, 4, 2]


async def test_cancelling_gives_every_attempt_up():
    dialling = Dialling("hangs", "hangs")
    connecting = asyncio.create_task(connect_first(addresses(NEW, OLD), dialling))
    await until(lambda: len(dialling.dialled) == 2)
    connecting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await connecting
    await until(lambda: sorted(dialling.given_up) == [0, 1])


async def test_numbers_and_names_are_resolved():
    assert await resolve("127.0.0.1", 80) == [Address(OLD, ("127.0.0.1", 80))]
    assert await resolve("::1", 80) == [Address(NEW, ("::1", 80, 0, 0))]
    assert Address(OLD, ("127.0.0.1", 80)) in await resolve("localhost", 80)


@contextmanager
def black_hole() -> Generator[Address]:
    """An address on this machine that answers nobody: its queue is full."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        callers: list[socket.socket] = []
        try:
            while True:
                callers.append(socket.create_connection(listener.getsockname(), timeout=0.2))
        except TimeoutError:
            yield Address(OLD, listener.getsockname())
        finally:
            for caller in callers:
                caller.close()


@pytest.fixture
async def silent() -> AsyncIterator[Address]:
    with black_hole() as address:
        yield address


async def test_dead_address_does_not_keep_a_request_from_the_live_one(silent: Address):
    async with serving(SIZED) as server:
        port = httpx2.URL(server.url).port
        live = Address(OLD, ("127.0.0.1", port))

        async def both(host: str, port: int) -> Sequence[Address]:
            return [silent, live]

        async with httpx2.AsyncClient(
            transport=StreamTransport(resolve=both), trust_env=False, timeout=PATIENCE_S
        ) as client:
            assert (await client.post("http://models.test/")).text == "hello world"


async def test_connecting_takes_no_longer_than_allowed(silent: Address):
    async def dead(host: str, port: int) -> Sequence[Address]:
        return [silent, silent]

    async with httpx2.AsyncClient(transport=StreamTransport(resolve=dead), timeout=0.05) as client:
        with pytest.raises(httpx2.ConnectTimeout):
            await client.get("http://models.test/")
