"""`threadkeep open`: opens the page in a browser, signed in with the data folder's token."""

import argparse
import html
import os
import webbrowser
from http import HTTPStatus
from pathlib import Path

import httpx2

from threadkeep.cli.commands import runs
from threadkeep.client.errors import NotReached
from threadkeep.domain.data_folder import OPEN_PAGE
from threadkeep.domain.errors import Unauthenticated
from threadkeep.http.sign_in.local_token import read_token
from threadkeep.settings import Settings

RESPONSE_S = 10.0

_PAGE = """<!doctype html><meta charset="utf-8"><title>Threadkeep</title>
<meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0; url={url}">
<a href="{url}">Threadkeep</a>
"""


def add_open(command: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    runs(command, _open)
    command.add_argument("--port", type=int, help="the server's port (8710)")
    command.add_argument("--print", action="store_true", help="print the address instead of opening it")


def _open(settings: Settings, given: argparse.Namespace) -> int:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    url = f"http://{host}:{settings.port}/"
    token = None if settings.signs_in else read_token(settings.data)
    if not _is_let_in(url, token, signs_in=settings.signs_in):
        place = settings.data.absolute()
        problem = (
            f"doesn't accept the token in {place}" if token else f"requires its token, which isn't in {place}"
        )
        raise Unauthenticated(
            f"The server at {url} {problem}. Run this in the folder where you started the server, or name "
            "its data folder with --data."
        )
    rules = settings.sign_in_rules
    address = f"{url}#token={token}" if token else rules.public_url.text if rules.public_url else url
    if given.print:
        print(address)
    elif not webbrowser.open(_way_to(settings.data, address) if token else address):
        print(f"Couldn't open a browser. The page is at {address}")
    return 0


def _is_let_in(url: str, token: str | None, *, signs_in: bool) -> bool:
    """Whether the server accepts our token, or needs none; people sign in on the page."""
    path = "healthz" if signs_in else "api/me"
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        response = httpx2.get(f"{url}{path}", headers=headers, timeout=RESPONSE_S, trust_env=False)
    except httpx2.HTTPError as exc:
        raise NotReached(
            f"No server is running at {url}. Start it with `threadkeep serve`, or name its port with --port."
        ) from exc
    return response.status_code != HTTPStatus.UNAUTHORIZED


def _way_to(data: Path, address: str) -> str:
    """A local page that redirects there: everybody on a machine can see a browser's arguments."""
    file = data / OPEN_PAGE
    file.unlink(missing_ok=True)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as page:
        page.write(_PAGE.format(url=html.escape(address)))
    return file.absolute().as_uri()
