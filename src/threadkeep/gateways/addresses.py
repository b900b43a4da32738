"""Connects to whichever of a host's addresses answers first (Happy Eyeballs, RFC 8305)."""

import asyncio
import itertools
import socket
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any

from threadkeep.networks import Address as NetworkAddress
from threadkeep.networks import Network, address_in, is_denied, is_no_server

ATTEMPT_DELAY_S = 0.25
"""How long one address has before the next is tried in parallel, as the RFC recommends."""
RESOLVE_S = 3.0
"""How long an admin who saves a gateway waits for its name to be resolved."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a host can be reached, in the form that sockets take."""

    family: int
    sockaddr: Any


Resolve = Callable[[str, int], Awaitable[Sequence[Address]]]
Dial = Callable[[Address], Coroutine[Any, Any, socket.socket]]


class AddressNotAllowed(OSError):
    """A gateway that an admin saved leads to an address that it must not reach."""


async def resolve(host: str, port: int) -> Sequence[Address]:
    """A host's addresses, in the machine's order of preference."""
    try:
        # A numeric address needs no name server, nor the thread that waits for one.
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except socket.gaierror:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [Address(family, sockaddr) for family, _, _, _, sockaddr in found]


def resolve_allowed(denied: Sequence[Network], resolve: Resolve = resolve) -> Resolve:
    """Resolves names to addresses where a model may be, checked whenever a connection is made.

    A name that was fine when it was saved can lead elsewhere later (DNS rebinding).
    """

    async def resolve_and_check(host: str, port: int) -> Sequence[Address]:
        found = await resolve(host, port)
        for address in found:
            check_address(ip_address(str(address.sockaddr[0]).partition("%")[0]), denied)
        return found

    return resolve_and_check


async def check_host(host: str, port: int, denied: Sequence[Network]) -> None:
    """Raises AddressNotAllowed if a host leads to an address where no model may be; one that nobody knows yet
    passes, since it is checked again with every connection.
    """
    if (address := address_in(host.rstrip("."))) is not None:
        check_address(address, denied)
        return
    try:
        async with asyncio.timeout(RESOLVE_S):
            await resolve_allowed(denied)(host, port)
    except AddressNotAllowed:
        raise
    except (OSError, UnicodeError):  # a timeout is an OSError, too
        return


def check_address(address: NetworkAddress, denied: Sequence[Network]) -> None:
    """Raises AddressNotAllowed where no model may be. Loopback and private addresses are fine."""
    if is_no_server(address):
        raise AddressNotAllowed(
            f"{address} is a link-local, metadata, multicast or unspecified address. No model can be there."
        )
    if is_denied(address, denied):
        raise AddressNotAllowed(f"{address} is on a network blocked by the operator.")


async def dial(address: Address) -> socket.socket:
    """A connected socket."""
    # Names the protocol because asyncio checks it before it disables Nagle's algorithm.
    sock = socket.socket(address.family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, address.sockaddr)
    except BaseException:
        sock.close()
        raise
    return sock


async def connect_first(addresses: Sequence[Address], dial: Dial = dial) -> socket.socket:
    """Dials one address after the other, each a moment after the last; the first connection wins.

    An address that fails gives way to the next at once. Raises OSError if all fail.
    """
    waiting = _alternating(addresses)
    attempts: set[asyncio.Task[socket.socket]] = set()
    errors: list[OSError] = []
    try:
        while waiting or attempts:
            if waiting:
                attempts.add(asyncio.create_task(dial(waiting.pop(0))))
            done, _ = await asyncio.wait(
                attempts,
                timeout=ATTEMPT_DELAY_S if waiting else None,
                return_when=asyncio.FIRST_COMPLETED,
            )
            for attempt in done:
                attempts.remove(attempt)
                try:
                    return attempt.result()
                except OSError as exc:
                    errors.append(exc)
    finally:
        for attempt in attempts:
            attempt.cancel()
            attempt.add_done_callback(_close_connected)
    raise OSError("; ".join(map(str, errors)) or "The host name doesn't resolve to an address.")


def _close_connected(attempt: "asyncio.Task[socket.socket]") -> None:
    """An attempt that lost may have connected before it could be cancelled."""
    if not attempt.cancelled() and attempt.exception() is None:
        attempt.result().close()


def _alternating(addresses: Iterable[Address]) -> list[Address]:
    """Alternates families, starting with the preferred one: all addresses of one may be unreachable."""
    families: dict[int, list[Address]] = {}
    for address in addresses:
        families.setdefault(address.family, []).append(address)
    rounds = itertools.zip_longest(*families.values())
    return [address for each in rounds for address in each if address is not None]
