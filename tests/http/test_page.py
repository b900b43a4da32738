"""The page is served so that it is quick, safe, and works below any path."""

from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from threadkeep.http.page import POLICY, page_routes
from threadkeep.ports.models import ModelState

HTML = '<html lang="en"><script src="./assets/index-abc.js"></script></html>'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A built page."""
    assets = tmp_path / "assets"
    assets.mkdir()
    (tmp_path / "index.html").write_text(HTML)
    (assets / "index-abc.js").write_text("plain")
    (assets / "index-abc.js.gz").write_bytes(b"packed with gzip")
    (assets / "index-abc.js.br").write_bytes(b"packed with brotli")
    (assets / "font-abc.woff2").write_bytes(b"font")
    (assets / "icon-abc.png").write_bytes(b"icon")
    (assets / "manifest-abc.webmanifest").write_text("{}")
    return tmp_path


def client(
    folder: Path, *, state: ModelState = "connected", embedded: bool = False, below: str = ""
) -> httpx.AsyncClient:
    routes = page_routes(model_state=lambda: state, embedded=embedded, folder=folder)
    app = Starlette(routes=[Mount(below, routes=routes)])
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost")


async def test_page_has_a_strict_policy_and_is_asked_for_anew(folder: Path):
    async with client(folder) as web:
        response = await web.get("/")
    assert response.headers["content-type"].startswith("text/html")
    assert response.headers["content-security-policy"] == POLICY
    assert response.headers["cache-control"] == "no-cache"
    assert "unsafe" not in POLICY
    assert "http" not in POLICY


@pytest.mark.parametrize("state", ["none", "demonstration", "connected"])
async def test_page_knows_which_model_replies(folder: Path, state: ModelState):
    async with client(folder, state=state) as web:
        text = (await web.get("/")).text
    assert f'<html data-model="{state}" ' in text


@pytest.mark.parametrize("embedded", [True, False])
async def test_page_knows_whether_an_application_signs_people_in(folder: Path, embedded: bool):
    async with client(folder, embedded=embedded) as web:
        text = (await web.get("/")).text
    assert f'data-embedded="{embedded}"' in text


@pytest.mark.parametrize(
    ("accepted", "encoding", "body"),
    [
        ("gzip, deflate, br", "br", b"packed with brotli"),
        ("gzip", "gzip", b"packed with gzip"),
        ("identity", None, b"plain"),
        ("", None, b"plain"),
    ],
)
async def test_files_come_packed_and_are_kept_for_good(
    folder: Path, accepted: str, encoding: str | None, body: bytes
):
    async with (
        client(folder) as web,
        web.stream("GET", "/assets/index-abc.js", headers={"Accept-Encoding": accepted}) as response,
    ):
        raw = b"".join([piece async for piece in response.aiter_raw()])
    assert raw == body
    assert response.headers.get("content-encoding") == encoding
    assert response.headers["content-type"].startswith("text/javascript")
    assert "immutable" in response.headers["cache-control"]
    assert response.headers["vary"] == "Accept-Encoding"


async def test_only_files_of_the_page_are_given(folder: Path):
    (folder / "secret.txt").write_text("secret")
    async with client(folder) as web:
        for name in ("other.js", "..%2findex.html", "..%2fsecret.txt", "index-abc.js.gz", "", "%00"):
            assert (await web.get(f"/assets/{name}")).status_code == 404
        for name, kind in (
            ("font-abc.woff2", "font/woff2"),
            ("icon-abc.png", "image/png"),
            ("manifest-abc.webmanifest", "application/manifest+json"),
        ):
            assert (await web.get(f"/assets/{name}")).headers["content-type"] == kind


async def test_page_works_below_a_path(folder: Path):
    async with client(folder, below="/chat") as web:
        page = await web.get("/chat/")
        assert (await web.get(page.url.join("./assets/font-abc.woff2"))).text == "font"


async def test_without_a_built_page_one_is_led_to_the_reference(tmp_path: Path):
    async with client(tmp_path, below="/chat") as web:
        response = await web.get("/chat/")
    assert response.headers["location"] == "/chat/docs"


async def test_file_that_is_gone_since_the_start_is_not_found(folder: Path):
    async with client(folder) as web:
        (folder / "assets" / "index-abc.js").unlink()
        response = await web.get("/assets/index-abc.js")
    assert response.status_code == 404
