"""What this process checks certificates with."""

import ssl
from functools import cache

import httpx2


@cache
def tls_context() -> ssl.SSLContext:
    """Checks certificates as httpx2 does; shared, because loading the authorities takes 50 ms."""
    context = httpx2.create_ssl_context()
    context.set_alpn_protocols(["http/1.1"])
    return context
