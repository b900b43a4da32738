"""Our own address, as clients reach it, and theirs."""

from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address
from urllib.parse import quote

from starlette.requests import Request


def own_path(request: Request, path: str) -> str:
    """One of our paths for clients, even if we are mounted below another path."""
    return f"{quote(request.scope.get('root_path', ''))}{path}"


def own_url(request: Request, path: str) -> str:
    """The same with scheme and host. A proxy that terminates TLS says so."""
    forwarded = request.headers.get("x-forwarded-proto", "").partition(",")[0].strip().lower()
    scheme = forwarded if forwarded in {"http", "https"} else request.url.scheme
    return f"{scheme}://{request.url.netloc}{own_path(request, path)}"


def client_address(request: Request, trusted_proxies: Sequence[IPv4Network | IPv6Network]) -> str:
    """The address that a request comes from; behind trusted proxies, the one that the outermost names."""
    address = request.client.host if request.client else ""
    forwarded = ",".join(request.headers.getlist("x-forwarded-for")).split(",")
    while forwarded and _is_in(address, trusted_proxies) and (named := forwarded.pop().strip()):
        address = named
    return address


def _is_in(address: str, networks: Sequence[IPv4Network | IPv6Network]) -> bool:
    try:
        found = ip_address(address)
    except ValueError:
        return False
    return any(found in network for network in networks)
