"""Which addresses stay on this machine."""

from ipaddress import ip_address


def is_loopback(host: str) -> bool:
    """Whether a host name or address means this machine only."""
    host = host.strip("[]").lower()
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
