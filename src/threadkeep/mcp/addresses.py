"""Keeps remote servers out of our own network: loopback, private and other special addresses.

A URL is looked at when it is saved. That is not enough, for a name may lead elsewhere tomorrow (DNS
rebinding), so every connection goes to an address that was looked at the moment before.
"""

import asyncio
import socket
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

Address = IPv4Address | IPv6Address

# Names that mean this machine or this network, whatever the resolver says.
_OWN_NAMES = ("localhost", "local", "internal", "intranet", "lan", "home.arpa", "localdomain")
# IPv6 addresses that carry an IPv4 address in their last 32 bits: compatible, mapped and NAT64 ones.
_CARRYING = tuple(map(IPv6Network, ("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96")))


def is_public(address: Address) -> bool:
    """Whether an address is one of the Internet at large."""
    if isinstance(address, IPv6Address) and (inner := _inside(address)) is not None:
        return is_public(inner)
    return address.is_global and not (address.is_multicast or address.is_reserved or _is_site_local(address))


def is_own_host(host: str) -> bool:
    """Whether a host, as a URL writes it, is a special address or a name of our own network."""
    host = host.rstrip(".").lower()
    if (address := _literal(host)) is not None:
        return not is_public(address)
    return "." not in host or any(host == name or host.endswith(f".{name}") for name in _OWN_NAMES)


async def public_addresses(host: str, port: int) -> Sequence[str]:
    """Where a host is; OSError unless every address of it is public."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(str(place[0]).partition("%")[0] for *_, place in found))
    if not addresses or not all(is_public(ip_address(address)) for address in addresses):
        raise PermissionError(
            f"{host} is not on the Internet but on a private or local network. "
            "The operator can allow that with THREADKEEP_MCP_ALLOW_PRIVATE."
        )
    return addresses


def _inside(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address that an IPv6 one stands for."""
    if any(address in network for network in _CARRYING):
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.sixtofour or (address.teredo[1] if address.teredo else None)


def _is_site_local(address: Address) -> bool:
    return isinstance(address, IPv6Address) and address.is_site_local


def _literal(host: str) -> Address | None:
    """The address that a host is, also in the old spellings that resolvers still take: 2130706433, 0x7f.1."""
    try:
        return ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        pass
    try:
        return IPv4Address(socket.inet_aton(host))
    except (OSError, UnicodeError):
        return None
