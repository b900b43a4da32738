"""Where programs of this process reach its API over HTTP."""

from ipaddress import ip_address
from typing import Any


class OwnAddress:
    """The address of the server in this process, as soon as it is known; else where people open the page."""

    def __init__(self, public_url: str | None) -> None:
        self._public_url = public_url
        self._listens_at: str | None = None

    @property
    def url(self) -> str | None:
        """Without a slash at its end; None if nobody has said it, and no request has come yet."""
        found = self._listens_at or self._public_url
        return found.rstrip("/") if found else None

    def listens_at(self, host: str, port: int, path: str = "") -> None:
        """The server listens there, without TLS."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - it is compared
        shown = f"[{host}]" if ":" in host else host
        self._listens_at = f"http://{shown}:{port}{path}"

    def learn(self, scope: Any) -> None:
        """Takes it from a request, unless it is known: where a host has mounted us, nobody else says it."""
        if self._listens_at is not None or scope["type"] != "http" or scope.get("scheme") != "http":
            return
        host, port = scope.get("server") or ("", None)
        if isinstance(port, int) and _is_address(host):
            self.listens_at(host, port, scope.get("root_path", ""))


def _is_address(host: str) -> bool:
    """Whether it is the end of a connection; requests within a process name hosts of their own."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
