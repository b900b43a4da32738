"""Connects to other people's servers: to the address that was checked, and to no other."""

from collections.abc import Sequence

import httpx2

from threadkeep.mcp.addresses import allowed_addresses
from threadkeep.networks import Network
from threadkeep.tls import tls_context


class CheckedTransport(httpx2.AsyncBaseTransport):
    """Connects to the very address that was checked; the name stays for TLS and `Host`."""

    def __init__(self, allow_private: bool, denied: Sequence[Network]) -> None:
        self._allow_private = allow_private
        self._denied = denied
        self._inner = httpx2.AsyncHTTPTransport(verify=tls_context())

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Sends a request to the first reachable address of its host."""
        url = request.url
        try:
            addresses = await allowed_addresses(
                url.host,
                url.port or (443 if url.scheme == "https" else 80),
                allow_private=self._allow_private,
                denied=self._denied,
            )
        except (OSError, UnicodeError) as exc:
            raise httpx2.ConnectError(f"Couldn't connect to {url.host}: {exc}", request=request) from exc
        for address in addresses[:-1]:
            try:
                return await self._send(request, address)
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                continue
        return await self._send(request, addresses[-1])

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._inner.aclose()

    async def _send(self, request: httpx2.Request, address: str) -> httpx2.Response:
        return await self._inner.handle_async_request(
            httpx2.Request(
                request.method,
                request.url.copy_with(host=address),
                headers=request.headers,
                stream=request.stream,
                extensions={**request.extensions, "sni_hostname": request.url.host},
            )
        )
