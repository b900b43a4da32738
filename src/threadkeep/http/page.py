"""The web page: built files of the package, served so that a browser fetches each of them once.

All its addresses are relative, so that it works when mounted below a path.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from html import escape
from pathlib import Path
from urllib.parse import quote

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from threadkeep.domain.sharing.share import Sharing
from threadkeep.ports.models import ModelState
from threadkeep.services.sharing.shares import Preview

Installation = Callable[[], Awaitable[str]]
"""The id of the database that this page is for."""

SharePreview = Callable[[str], Awaitable[Preview | None]]
"""What everyone may see of the share that this token opens."""

FOLDER = Path(__file__).parents[1] / "page"

# The page only needs this server; nothing that a model writes can load or run anything.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "
    "connect-src 'self'; frame-src 'self'; worker-src 'self'; manifest-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
# A host application may show us in a frame on its own pages.
EMBEDDED_POLICY = POLICY.replace("frame-ancestors 'none'", "frame-ancestors 'self'")
# The frame in which the page shows pages, images and diagrams that models write: it may run what it is
# handed, without an origin and without a network. `frame-src` of the page keeps it from going elsewhere.
SANDBOX_POLICY = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; font-src data:; media-src data: blob:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'"
)
# The worker that opens the page without its server. Beside the page, it concerns nothing else on the host.
WORKER = "service-worker.js"
WORKER_POLICY = "default-src 'none'; connect-src 'self'"
# Takes the place of one that an earlier start of the server gave: the browser asks for it by itself.
_REMOVAL = """\
addEventListener("install", (event) => event.waitUntil(skipWaiting()));
addEventListener("activate", (event) => event.waitUntil(remove()));
async function remove() {
  const ours = `threadkeep.page ${new URL(registration.scope).pathname} `;
  const names = await caches.keys();
  await Promise.all(names.filter((it) => it.startsWith(ours)).map((it) => caches.delete(it)));
  await registration.unregister();
}
"""
_SAFE = {
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_SANDBOXED = {
    "Content-Security-Policy": SANDBOX_POLICY,
    # In a process of its own, where the browser can: a loop in it then doesn't freeze the page.
    "Document-Isolation-Policy": "isolate-and-require-corp",
    "Cache-Control": "no-cache",  # its policy is not in the hash of its content
}
# Such a file's name contains the hash of its content.
_FOREVER = {"Cache-Control": "public, max-age=31536000, immutable", "Vary": "Accept-Encoding"}
_NOT_INDEXED = {"X-Robots-Tag": "noindex, nofollow", "Cache-Control": "no-store"}
_TYPES = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}
_ENCODINGS = {"br": ".br", "gzip": ".gz"}


def page_routes(
    *,
    model_state: Callable[[], ModelState],
    share_preview: SharePreview,
    installation: Installation,
    embedded: bool = False,
    signs_in: bool = True,
    sharing: Sharing = Sharing.USERS,
    offline: bool = True,
    folder: Path = FOLDER,
) -> list[Route]:
    """The page at `/`, shares, and the page's files; without a built page, `/` redirects to the reference.

    `model_state` is asked with every page: an admin can connect a model meanwhile.
    """
    start = folder / "index.html"
    if not start.is_file():
        return [Route("/", _to_reference)]
    attributes = (
        f'data-embedded="{embedded}" data-signs-in="{signs_in}" '
        f'data-sharing="{sharing}" data-offline="{offline}"'
    )
    before, _, after = start.read_text("utf-8").partition("<html")
    share = _SharePage(before, f'data-model="connected" {attributes}{after}')
    headers = {
        **_SAFE,
        "Content-Security-Policy": EMBEDDED_POLICY if embedded else POLICY,
        "Cache-Control": "no-cache",
    }
    files = {path.name: path for path in (folder / "assets").iterdir()}

    async def get_page(request: Request) -> Response:
        known = f'data-model="{model_state()}" data-installation="{await installation()}"'
        html = f"{before}<html {known} {attributes}{after}"
        return HTMLResponse(html, headers=headers)

    async def get_share(request: Request) -> Response:
        preview = await share_preview(request.path_params["token"])
        html = share.html(preview, await installation())
        return HTMLResponse(html, headers={**headers, **_NOT_INDEXED})

    async def get_asset(request: Request) -> Response:
        path = files.get(request.path_params["name"])
        # A file can be missing if the page was rebuilt under a running server.
        if path is None or path.suffix not in _TYPES or not path.is_file():
            raise HTTPException(404)
        if path.suffix == ".html":
            return FileResponse(path, headers={**_SAFE, **_SANDBOXED}, media_type=_TYPES[path.suffix])
        return _file(path, files, request.headers)

    async def get_worker(request: Request) -> Response:
        worker_headers = {"Content-Security-Policy": WORKER_POLICY, "Cache-Control": "no-cache"}
        path = folder / WORKER
        if offline and path.is_file():
            return FileResponse(path, headers=worker_headers, media_type=_TYPES[".js"])
        return Response(_REMOVAL, headers=worker_headers, media_type=_TYPES[".js"])

    return [
        Route("/", get_page),
        Route(f"/{WORKER}", get_worker),
        Route("/s/{token}", get_share),
        Route("/assets/{name}", get_asset),
    ]


class _SharePage:
    """The page of a share. It lies one level deeper than the page and its files."""

    def __init__(self, before: str, after: str) -> None:
        html = f'{before}<html data-page="share" {after}'.replace('"./', '"../')
        self._before, _, rest = html.partition("<title>")
        self._title, _, self._after = rest.partition("</title>")

    def html(self, preview: Preview | None, installation: str) -> str:
        """The document; with what a link to it shows in other programs, if that may be said to everyone."""
        title = preview.title if preview and preview.title else self._title
        tags = f'<title>{escape(title)}</title><meta name="robots" content="noindex, nofollow" />'
        if preview:
            tags += "".join(
                f'<meta property="og:{name}" content="{escape(value)}" />'
                for name, value in (
                    ("type", "article"),
                    ("site_name", "Threadkeep"),
                    ("title", title),
                    ("description", preview.text),
                )
            )
            tags += f'<meta name="description" content="{escape(preview.text)}" />'
        before = self._before.replace("<html ", f'<html data-installation="{installation}" ', 1)
        return f"{before}{tags}{self._after}"


def _file(path: Path, files: Mapping[str, Path], headers: Headers) -> Response:
    """The file, in the best compression that the browser accepts."""
    accepted = set(re.findall(r"[a-z]+", headers.get("accept-encoding", "").lower()))
    for encoding, ending in _ENCODINGS.items():
        packed = files.get(path.name + ending)
        if packed is not None and encoding in accepted:
            return FileResponse(
                packed,
                headers={**_FOREVER, "Content-Encoding": encoding},
                media_type=_TYPES[path.suffix],
            )
    return FileResponse(path, headers=_FOREVER, media_type=_TYPES[path.suffix])


async def _to_reference(request: Request) -> Response:
    # Not by `url_for`: mounted in a host, that looks for the page among the host's routes.
    return RedirectResponse(f"{quote(request.scope.get('root_path', ''))}/docs")
