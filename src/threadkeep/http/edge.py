"""The outermost layer: which hosts and origins may call us, and request ids."""

import logging
import re
import secrets
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from threadkeep.domain.errors import Forbidden, HeadersTooLarge, ThreadkeepError
from threadkeep.domain.text import size_text
from threadkeep.handling.bodies import Incoming, has_body
from threadkeep.handling.discarding import Discarding
from threadkeep.http.protocols import error_at
from threadkeep.loopback import is_loopback
from threadkeep.program_log import Subject, begin_subject
from threadkeep.settings import Settings
from threadkeep.version import __version__

log = logging.getLogger("threadkeep.http")

MOST_HEADER_BYTES = 64 * 1024
# A name has at most 253 characters, plus a port and a scheme. Longer ones aren't cached.
MOST_HOST_CHARACTERS = 300

_REQUEST_ID = re.compile(r"[\w.:-]{1,100}", re.ASCII)
_DEFAULT_PORTS = {"http": 80, "ws": 80, "https": 443, "wss": 443}
_READING = {"GET", "HEAD", "OPTIONS"}
_OTHER_SITES = {b"cross-site", b"same-site"}
_DATA_PATHS = ("/api/", "/v1/", "/mcp")
_FILE_PATHS = ("/api/artifacts/", "/api/files/")
_HEADERS = ((b"threadkeep-version", __version__.encode()), (b"x-content-type-options", b"nosniff"))


class Edge:
    """Checks `Host` and `Origin`, so that no other web page can talk to its visitor's Threadkeep."""

    def __init__(self, app: ASGIApp, settings: Settings, *, embedded: bool) -> None:
        self._app = app
        self._serves = lru_cache(maxsize=256)(_host_check(settings, embedded=embedded))
        self._discarding = Discarding()
        self._origins = {_origin(origin) for origin in settings.cors_origins}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in {"http", "websocket"}:
            await self._app(scope, receive, send)
            return
        headers: dict[bytes, bytes] = dict(reversed(scope["headers"]))  # the first of two equal names counts
        given = headers.get(b"x-request-id", b"").decode("latin-1")
        request_id = given if _REQUEST_ID.fullmatch(given) else new_request_id()
        scope.setdefault("state", {})["request_id"] = request_id
        scope["route"] = None  # a host that mounts us has set its own
        # Not reset: the request has its own task, and uvicorn may still log something after us.
        begin_subject(Subject(request_id))
        status = 0
        incoming = None
        if scope["type"] == "http" and has_body(scope, headers):
            incoming = Incoming(receive, is_asked_for=b"expect" in headers)
            receive = incoming.receive

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], *our_headers(request_id)]
            elif incoming is not None and not message.get("more_body") and incoming.is_unread:
                # The response precedes the body: if we closed the connection now, it would be lost.
                await send({**message, "more_body": True})
                await incoming.discard(self._discarding)
                message = {"type": "http.response.body"}
            await send(message)

        started = time.perf_counter()
        refusal = self._refusal(scope, headers)
        if refusal is None:
            await self._app(scope, receive, send_with_headers)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": refusal.message})
        else:
            response = error_at(scope, refusal, request_id)
            await response(scope, receive, send_with_headers)
        if log.isEnabledFor(logging.INFO):
            took = round((time.perf_counter() - started) * 1000, 1)
            method = scope.get("method", "WS")
            # Not the path itself: it can contain anything.
            route = getattr(scope["route"], "path", None) or "(none)"
            seen = {"method": method, "route": route, "status": status, "duration_ms": took}
            log.info("%s %s %s %.1f ms", *seen.values(), extra={"fields": seen})

    def _refusal(self, scope: Scope, headers: Mapping[bytes, bytes]) -> ThreadkeepError | None:
        if _header_bytes(scope) > MOST_HEADER_BYTES:
            return headers_too_large()
        host = headers.get(b"host", b"").decode("latin-1")
        if len(host) > MOST_HOST_CHARACTERS or not self._serves(host):
            return Forbidden(
                f"This server doesn't accept requests for the host {_shown(host)}. The operator can add "
                "the name to THREADKEEP_ALLOWED_HOSTS.",
                param="Host",
            )
        origin = headers[b"origin"].decode("latin-1") if b"origin" in headers else None
        is_ours = origin is not None and self._is_ours(origin, host)
        if origin is None and headers.get(b"sec-fetch-dest") == b"image":
            # An image of a page that may read from us: browsers send no origin for it.
            is_ours = self._is_listed(headers.get(b"referer", b"").decode("latin-1"))
        writes = scope["type"] == "websocket" or scope["method"] not in _READING
        if not writes and not is_ours and _comes_from_another_site(scope, headers):
            return Forbidden(
                "Pages of other sites can't read from this server. The operator can add their origin to "
                "THREADKEEP_CORS_ORIGINS.",
                param="Sec-Fetch-Site",
            )
        if writes and origin is not None and not is_ours:
            return Forbidden(
                f"Pages from {_shown(origin)} can't call this server. The operator can add the origin to "
                "THREADKEEP_CORS_ORIGINS.",
                param="Origin",
            )
        return None

    def _is_listed(self, referer: str) -> bool:
        return len(referer) <= MOST_HOST_CHARACTERS and _origin(referer) in self._origins

    def _is_ours(self, origin: str, host: str) -> bool:
        parsed = _origin(origin) if len(origin) <= MOST_HOST_CHARACTERS else None
        if parsed is None:
            return False
        # Behind a proxy that terminates TLS, we are called by http while the page is https: name and port
        # decide, with the page's scheme for a missing port.
        return parsed in self._origins or parsed[1:] == (_origin(f"{parsed[0]}://{host}") or ())[1:]


def _comes_from_another_site(scope: Scope, headers: Mapping[bytes, bytes]) -> bool:
    """Whether a browser says that another site's page wants our data. Only browsers say this.

    Anybody may link to the page. A file is saved when a person clicks on its link, also in a report, whose
    sandbox makes it another site.
    """
    path: str = scope["path"].removeprefix(scope.get("root_path", ""))  # a host may have mounted us
    if scope["method"] == "OPTIONS" or not (path.startswith(_DATA_PATHS) or path == "/metrics"):
        return False
    if headers.get(b"sec-fetch-site") not in _OTHER_SITES:
        return False
    is_clicked = headers.get(b"sec-fetch-mode") == b"navigate" and headers.get(b"sec-fetch-user") == b"?1"
    return not (is_clicked and path.startswith(_FILE_PATHS))


def new_request_id() -> str:
    """An id for a request without one."""
    return secrets.token_hex(8)


def our_headers(request_id: str) -> list[tuple[bytes, bytes]]:
    """The headers of every response."""
    return [*_HEADERS, (b"x-request-id", request_id.encode())]


def headers_too_large() -> HeadersTooLarge:
    """The error for an address and headers that are too large together."""
    return HeadersTooLarge(
        f"The URL and headers together can have at most {size_text(MOST_HEADER_BYTES)}.",
        details={"most": MOST_HEADER_BYTES},
    )


def _header_bytes(scope: Scope) -> int:
    """The approximate size of the address and the headers on the wire."""
    address = len(scope.get("raw_path") or scope["path"]) + len(scope["query_string"])
    return address + sum(len(name) + len(value) + 4 for name, value in scope["headers"])


def _shown(name: str) -> str:
    return repr(name) if len(name) <= MOST_HOST_CHARACTERS else f"{name[:MOST_HOST_CHARACTERS]!r}…"


def _host_check(settings: Settings, *, embedded: bool) -> Callable[[str], bool]:
    """Which hosts are ours: loopback, configured ones, and IP addresses if strangers may connect."""
    configured = {name.lower() for name in settings.allowed_hosts}
    if (public_url := settings.sign_in_rules.public_url) is not None:
        configured.add(public_url.host)
    # A host application checks its own names unless the operator lists ours.
    if embedded and not configured:
        return lambda host: _host_name(host) is not None
    open_to_strangers = settings.signs_in and not is_loopback(settings.host)

    def serves(host: str) -> bool:
        name = _host_name(host)
        if name is None:
            return False
        # DNS rebinding needs a name, so it can't forge an address in `Host`.
        return is_loopback(name) or name in configured or (open_to_strangers and _is_address(name))

    return serves


def _host_name(host: str) -> str | None:
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _origin(origin: str) -> tuple[str, str, int] | None:
    """Scheme, host and port of an origin; None for `null` and invalid ones."""
    try:
        parts = urlsplit(origin)
        port = parts.port or _DEFAULT_PORTS.get(parts.scheme)
    except ValueError:
        return None
    return (parts.scheme, parts.hostname, port) if parts.hostname and port else None
