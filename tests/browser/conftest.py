"""A real browser, a real server and a scripted model."""

import fcntl
import shutil
from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Request,
    expect,
    sync_playwright,
)
from scripts import page as page_build

from tests.serving import Server
from threadkeep.testing import Recorded, Reply, Say, ScriptedModel

# What the page itself never needs, and a browser of tests must not do either.
QUIET = [
    "--no-sandbox",
    # As on a screen with many pixels: widths rounded to whole pixels differ by more than the letters.
    "--font-render-hinting=none",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--no-first-run",
]
# A busy machine is no reason to fail.
PATIENCE_MS = 60_000
expect.set_options(timeout=PATIENCE_MS)
WIDE = {"width": 1280, "height": 800}
NARROW = {"width": 390, "height": 844}


def chromium() -> str:
    """The machine's own browser; `sh scripts/test` installs it where it can.

    First the one without windows, which takes less than half of the processor's time of a whole one.
    """
    for name in ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    pytest.skip("no Chromium here, and it could not be installed: the page is not tested")


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """A browser. Closed with this package, because its loop would disturb asynchronous tests."""
    path = chromium()
    with (page_build.SOURCE / "package.json").open() as taken:
        fcntl.flock(taken, fcntl.LOCK_EX)  # one worker builds, the others find it built
        page_build.build()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=QUIET)
        yield browser
        browser.close()


class Replying(ScriptedModel):
    """A scripted model that is also asked for titles, in between: a title is what the person said first."""

    def reply_to(self, request: Recorded) -> Reply:
        """What the script says, unless a title is asked for."""
        first, *rest = request.body["messages"]
        if first["role"] == "system" and first["content"].startswith("Write a title"):
            asked = rest[0]["content"].removeprefix("User: ").partition("\n")[0]
            return [Say(asked)]
        return super().reply_to(request)

    def start_over(self) -> None:
        """Forgets the test before."""
        self._replies.clear()
        self.requests.clear()


@pytest.fixture(scope="package")
def shared_model() -> Iterator[Replying]:
    """The model of all tests."""
    with Replying() as model:
        yield model


@pytest.fixture
def model(shared_model: Replying) -> ScriptedModel:
    """A model that does what the test writes down."""
    shared_model.start_over()
    return shared_model


def settings_for(model: ScriptedModel) -> dict[str, str]:
    """Settings of a Threadkeep that talks to the scripted model."""
    return {"gateway": "openai", "gateway_url": model.url, "model": "scripted"}


@pytest.fixture(scope="package")
def shared_server(
    browser: Browser, shared_model: Replying, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """Starting one takes longer than most tests."""
    folder = tmp_path_factory.mktemp("server")
    # Tools that are slow to come, on a busy machine, are waited for.
    tools = {"mcp_allowed_commands": "python", "mcp_connect_budget_s": "60"}
    with Server(folder, **settings_for(shared_model), **tools) as server:
        yield server


@pytest.fixture
def server(shared_server: Server, model: ScriptedModel) -> Iterator[Server]:
    """Threadkeep on SQLite, talking to the scripted model; everyone is `local`, who begins with nothing."""
    yield shared_server
    with shared_server.client() as client:
        client.delete("/api/users/local").raise_for_status()
        _empty_the_default_agent(client)


def _empty_the_default_agent(client: httpx.Client) -> None:
    """It belongs to nobody, so its documents do not go with a user."""
    for agent in client.get("/api/agents").json()["items"]:
        path = f"/api/agents/{agent['id']}/documents"
        for document in client.get(path).json()["items"]:
            client.delete(f"{path}/{document['id']}").raise_for_status()


class Watched:
    """What a page must never do: complain, break its policy, or ask another host."""

    def __init__(self, context: BrowserContext, url: str) -> None:
        self.complaints: list[str] = []
        self._url = url
        context.on("request", self._asked)
        context.on("console", self._said)
        context.on("weberror", lambda error: self.complaints.append(str(error.error)))

    def _asked(self, request: Request) -> None:
        if not request.url.startswith((self._url, "data:", "blob:")):
            self.complaints.append(f"asked {request.url}")

    def _said(self, message: ConsoleMessage) -> None:
        # That a server was away or refused something is the browser's own remark.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.complaints.append(message.text)


@pytest.fixture
def context(browser: Browser, server: Server) -> Iterator[BrowserContext]:
    """A person's browser profile; the test fails where a page complained."""
    context = browser.new_context(
        viewport=WIDE,  # pyright: ignore[reportArgumentType]
        locale="en-GB",
        base_url=server.url,
        extra_http_headers=server.headers,
        # Requests that a worker answers would pass by what a test routes; test_offline.py has it.
        service_workers="block",
    )
    context.set_default_timeout(PATIENCE_MS)
    watched = Watched(context, server.url)
    yield context
    context.close()
    assert watched.complaints == []


@pytest.fixture
def unopened(context: BrowserContext) -> Page:
    """For tests that open the page where they begin: loading it twice takes longer than many a test."""
    return context.new_page()


@pytest.fixture
def page(unopened: Page) -> Page:
    """The page, opened."""
    unopened.goto("/")
    return unopened
