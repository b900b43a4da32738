"""The page is served so that it is quick, safe, and works below any path."""

from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from threadkeep.http.page import POLICY, SANDBOX_POLICY, WORKER_POLICY, page_routes
from threadkeep.ports.models import ModelState
from threadkeep.services.sharing.shares import Preview

HTML = '<html lang="en"><title>Page</title><script src="./assets/index-abc.js"></script></html>'


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
    (assets / "sandbox-abc.html").write_text("sandbox")
    (assets / "icon-abc.png").write_bytes(b"icon")
    (assets / "manifest-abc.webmanifest").write_text("{}")
    (tmp_path / "service-worker.js").write_text("worker")
    return tmp_path


async def share_preview(token: str) -> Preview | None:
    return Preview('Ferry "A" & <b>', "When does it leave? At noon.") if token == "public" else None


async def installation() -> str:
    return "1234abcd"


def client(
    folder: Path,
    *,
    state: ModelState = "connected",
    embedded: bool = False,
    offline: bool = True,
    below: str = "",
) -> httpx.AsyncClient:
    routes = page_routes(
        model_state=lambda: state,
        share_preview=share_preview,
        installation=installation,
        embedded=embedded,
        offline=offline,
        folder=folder,
    )
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


async def test_document_of_the_sandbox_has_no_origin_and_no_network(folder: Path):
    async with client(folder) as web:
        response = await web.get("/assets/sandbox-abc.html")
    assert response.headers["content-security-policy"] == SANDBOX_POLICY
    assert response.headers["cache-control"] == "no-cache"
    sandbox, *directives = SANDBOX_POLICY.split("; ")
    assert sandbox == "sandbox allow-scripts"
    assert "default-src 'none'" in directives
    sources = " ".join(it for it in directives if not it.startswith("frame-ancestors"))
    assert "'self'" not in sources
    assert "*" not in sources


@pytest.mark.parametrize("below", ["", "/chat"])
async def test_worker_is_beside_the_page_and_asked_for_anew(folder: Path, below: str):
    async with client(folder, below=below) as web:
        response = await web.get(f"{below}/service-worker.js")
    assert response.text == "worker"
    assert response.headers["content-type"].startswith("text/javascript")
    assert response.headers["cache-control"] == "no-cache"
    assert response.headers["content-security-policy"] == WORKER_POLICY
    assert "worker-src 'self'" in POLICY


async def test_server_that_is_not_for_offline_use_takes_its_worker_back(folder: Path):
    async with client(folder, offline=False) as web:
        page = await web.get("/")
        worker = await web.get("/service-worker.js")
    assert 'data-offline="False"' in page.text
    assert "registration.unregister()" in worker.text
    assert worker.headers["cache-control"] == "no-cache"


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


async def test_page_of_a_share_finds_its_files_one_level_up_and_is_not_indexed(folder: Path):
    async with client(folder) as web:
        response = await web.get("/s/secret")
    assert 'src="../assets/index-abc.js"' in response.text and 'data-page="share"' in response.text
    assert response.headers["x-robots-tag"] == "noindex, nofollow"
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["referrer-policy"] == "no-referrer"
    assert "<title>Page</title>" in response.text and "og:" not in response.text


async def test_link_that_anyone_may_open_has_a_title_and_a_preview(folder: Path):
    async with client(folder) as web:
        text = (await web.get("/s/public")).text
    assert "<title>Ferry &quot;A&quot; &amp; &lt;b&gt;</title>" in text
    assert '<meta property="og:description" content="When does it leave? At noon." />' in text


async def test_page_and_its_user_are_of_the_same_installation(folder: Path):
    async with client(folder) as web:
        for path in ("/", "/s/public"):
            assert ' data-installation="1234abcd" ' in (await web.get(path)).text
