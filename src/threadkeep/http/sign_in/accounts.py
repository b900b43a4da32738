"""Which account of this machine a connection comes from, according to the Linux kernel."""

import asyncio
import sys
from collections import OrderedDict
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

from threadkeep.http.sign_in.socket_owner import socket_owner

Address = tuple[str, int]

TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
MOST_CONNECTIONS = 4096
TRIES = 3
"""A table that changes during reading may omit a line."""

_UID, _INODE = 7, 9
_NO_PROCESS = "0"


class Accounts:
    """Looks each connection up once, and recognizes it by the identity of its address tuple."""

    def __init__(self, tables: Sequence[Path] = TABLES) -> None:
        self._tables = tables
        self._seen: OrderedDict[Address, tuple[Address, int | None]] = OrderedDict()
        self.are_known = tables[0].exists()
        """Whether this system reports accounts."""

    async def of(self, client: Address, server: Address) -> int | None:
        """The account whose process holds the other end; None if no process holds it now."""
        kept = self._seen.get(client)
        if kept is not None and kept[0] is client:
            return kept[1]
        try:
            account = _ask(client, server)
        except (OSError, ValueError):  # not every kernel can be asked for one socket
            account = await asyncio.to_thread(self._find, client, server)
        self._seen[client] = client, account
        self._seen.move_to_end(client)
        if len(self._seen) > MOST_CONNECTIONS:
            self._seen.popitem(last=False)
        return account

    def _find(self, client: Address, server: Address) -> int | None:
        return next((it for _ in range(TRIES) if (it := self._look(client, server)) is not None), None)

    def _look(self, client: Address, server: Address) -> int | None:
        for table, ends in zip(self._tables, _spelt(client, server), strict=True):
            try:
                text = table.read_text()
            except OSError:
                continue
            at = text.find(ends) if ends else -1
            if at >= 0:
                fields = text[text.rfind("\n", 0, at) + 1 :].split("\n", 1)[0].split()
                # The kernel reports a connection that its process has released as root's.
                return int(fields[_UID]) if fields[_INODE] != _NO_PROCESS else None
        return None


def _ask(client: Address, server: Address) -> int | None:
    """The same, from the kernel directly; OSError or ValueError if it doesn't know."""
    return socket_owner(ip_address(client[0]), client[1], ip_address(server[0]), server[1])


def _spelt(client: Address, server: Address) -> tuple[str, str]:
    """Both ends as in the IPv4 and IPv6 tables; empty for a table that can't have them."""
    try:
        near, far = ip_address(client[0]), ip_address(server[0])
    except ValueError:
        return "", ""
    ports = client[1], server[1]
    if isinstance(near, IPv4Address) and isinstance(far, IPv4Address):
        # A program may reach our IPv4 address through an IPv6 socket.
        mapped = IPv6Address(f"::ffff:{near}"), IPv6Address(f"::ffff:{far}")
        return _line(near, far, *ports), _line(*mapped, *ports)
    return "", _line(near, far, *ports)


def _line(
    near: IPv4Address | IPv6Address, far: IPv4Address | IPv6Address, near_port: int, far_port: int
) -> str:
    return f" {_hex(near)}:{near_port:04X} {_hex(far)}:{far_port:04X} "


def _hex(address: IPv4Address | IPv6Address) -> str:
    """Words of four bytes as this machine reads them."""
    packed = address.packed
    words = (packed[at : at + 4] for at in range(0, len(packed), 4))
    return "".join(f"{int.from_bytes(word, sys.byteorder):08X}" for word in words)
