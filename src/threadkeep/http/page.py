"""The web page: built files of the package, served so that a browser fetches each of them once.

All its addresses are relative, so that it works when mounted below a path.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import quote

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from threadkeep.ports.models import ModelState

FOLDER = Path(__file__).parents[1] / "page"

# The page only needs this server; nothing that a model writes can load or run anything.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "
    "connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
# A host application may show us in a frame on its own pages.
EMBEDDED_POLICY = POLICY.replace("frame-ancestors 'none'", "frame-ancestors 'self'")
_SAFE = {
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
# Such a file's name contains the hash of its content.
_FOREVER = {"Cache-Control": "public, max-age=31536000, immutable", "Vary": "Accept-Encoding"}
_TYPES = {
    ".css": "text/css",
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
    embedded: bool = False,
    signs_in: bool = True,
    folder: Path = FOLDER,
) -> list[Route]:
    """The page at `/` and its files; without a built page, `/` redirects to the API reference.

    `model_state` is asked with every page: an admin can connect a model meanwhile.
    """
    start = folder / "index.html"
    if not start.is_file():
        return [Route("/", _to_reference)]
    attributes = f'data-embedded="{embedded}" data-signs-in="{signs_in}"'
    before, _, after = start.read_text("utf-8").partition("<html")
    headers = {
        **_SAFE,
        "Content-Security-Policy": EMBEDDED_POLICY if embedded else POLICY,
        "Cache-Control": "no-cache",
    }
    files = {path.name: path for path in (folder / "assets").iterdir()}

    async def get_page(request: Request) -> Response:
        html = f'{before}<html data-model="{model_state()}" {attributes}{after}'
        return HTMLResponse(html, headers=headers)

    async def get_asset(request: Request) -> Response:
        path = files.get(request.path_params["name"])
        # A file can be missing if the page was rebuilt under a running server.
        if path is None or path.suffix not in _TYPES or not path.is_file():
            raise HTTPException(404)
        return _file(path, files, request.headers)

    return [Route("/", get_page), Route("/assets/{name}", get_asset)]


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
