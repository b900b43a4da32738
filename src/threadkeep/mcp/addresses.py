"""Keeps remote servers out of our own network: loopback, private and other special addresses.

A URL is checked when it is saved. That is not enough, since a name may resolve differently later (DNS
rebinding), so every connection goes to an address that was checked just before.
"""

import asyncio
import socket
from collections.abc import Sequence
from ipaddress import ip_address

from threadkeep.networks import Network, is_denied, is_no_server, is_public


async def allowed_addresses(
    host: str, port: int, *, allow_private: bool = False, denied: Sequence[Network] = ()
) -> Sequence[str]:
    """A host's addresses; OSError unless all of them are public, and none is in a denied network.

    Where clouds keep a machine's credentials is always denied, as is what no server can have.
    """
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(str(place[0]).partition("%")[0] for *_, place in found))
    found_at = [ip_address(address) for address in addresses]
    if any(is_denied(address, denied) or is_no_server(address) for address in found_at):
        raise PermissionError(f"{host} is on a network blocked by the operator, or where no server can be.")
    if not addresses or not (allow_private or all(map(is_public, found_at))):
        raise PermissionError(
            f"{host} is on a private or local network. The operator can allow that with "
            "THREADKEEP_MCP_ALLOW_PRIVATE."
        )
    return addresses
