"""What an address of the network is: public, near or special, in whatever disguise."""

import socket
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# Names that mean this machine or this network, whatever the resolver says.
_OWN_NAMES = ("localhost", "local", "internal", "intranet", "lan", "home.arpa", "localdomain")
# IPv6 addresses that carry an IPv4 address in their last 32 bits: compatible, mapped and NAT64 ones.
_CARRYING = tuple(map(IPv6Network, ("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96")))
# Registered as global, or global to some versions of Python, and yet a cloud's own (Azure's host, Oracle's in
# 192.0.0.0/24), the nearest relay (6to4), this network's NAT64, or unassigned.
_NEAR = tuple(
    map(ip_network, ("168.63.129.16/32", "192.88.99.0/24", "192.0.0.0/24", "64:ff9b:1::/48", "3fff::/20"))
)
# Where clouds give a machine its credentials, if not on a link-local address: Azure, Oracle, Alibaba, Amazon.
_METADATA = tuple(
    map(ip_network, ("168.63.129.16/32", "192.0.0.0/24", "100.100.100.200/32", "fd00:ec2::254/128"))
)
# No host that a server could be on: this network (the unspecified address too), and reserved ones.
_NO_HOST = tuple(map(ip_network, ("0.0.0.0/8", "240.0.0.0/4")))


def is_public(address: Address) -> bool:
    """Whether an address is on the public Internet."""
    if isinstance(address, IPv6Address) and (inner := _inside(address)) is not None:
        return is_public(inner)
    is_special = address.is_multicast or address.is_reserved or _is_site_local(address)
    return address.is_global and not is_special and not is_denied(address, _NEAR)


def is_denied(address: Address, networks: Sequence[Network]) -> bool:
    """Whether an address, or the one embedded in it, is in one of these networks."""
    inner = _inside(address) if isinstance(address, IPv6Address) else None
    return any(address in it or (inner is not None and inner in it) for it in networks)


def is_no_server(address: Address) -> bool:
    """Whether no server of anybody's can be there: metadata, other link-local, multicast, unspecified."""
    if address.is_loopback:
        return False
    if isinstance(address, IPv6Address) and (inner := _inside(address)) is not None:
        return is_no_server(inner)
    is_special = address.is_link_local or address.is_multicast or address.is_unspecified
    return is_special or is_denied(address, (*_METADATA, *_NO_HOST))


def is_denied_host(host: str, networks: Sequence[Network]) -> bool:
    """Whether a host, as a URL writes it, is an address in one of these networks."""
    address = address_in(host.rstrip(".").lower())
    return address is not None and is_denied(address, networks)


def is_own_host(host: str) -> bool:
    """Whether a host, as a URL writes it, is a special address or a name of our own network."""
    host = host.rstrip(".").lower()
    if (address := address_in(host)) is not None:
        return not is_public(address)
    return "." not in host or any(host == name or host.endswith(f".{name}") for name in _OWN_NAMES)


def address_in(host: str) -> Address | None:
    """The address in a host, including old spellings that resolvers still accept: 2130706433, 0x7f.1."""
    try:
        return ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        pass
    try:
        return IPv4Address(socket.inet_aton(host))
    except (OSError, UnicodeError):
        return None


def _inside(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address embedded in an IPv6 one."""
    if any(address in network for network in _CARRYING):
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.sixtofour or (address.teredo[1] if address.teredo else None)


def _is_site_local(address: Address) -> bool:
    return isinstance(address, IPv6Address) and address.is_site_local
