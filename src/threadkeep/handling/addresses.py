"""Our own address, as clients reach it."""

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
