"""The page without its server: it opens, shows what the device has, and later sends what was written."""

import json
import re
import shutil
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from playwright.sync_api import Browser, BrowserContext, Error, Locator, Page, expect
from scripts import page as page_build

from tests.browser.conftest import NARROW, PATIENCE_MS, WIDE, settings_for
from tests.browser.going import choose
from tests.browser.test_access import violations
from tests.browser.test_away import STAND_IN, answer_unseen
from tests.browser.test_outbox import UNSENT, enter
from tests.browser.test_sign_in import SECRET, sign_in
from tests.browser.test_talking import done, log, reply, say
from tests.hosts.applications import in_starlette, new_chat
from tests.postgres import free_port
from tests.serving import SOURCE, Server, lasting_port
from threadkeep.http.app import Threadkeep
from threadkeep.testing import Say, ScriptedModel
from threadkeep.testing.waiting import PATIENCE_S

# The release that a tab shows, and those of which the browser has files.
SHOWN = "document.querySelector('script[type=module]').src.match(/([^/.]+)\\.js$/)[1]"
KEPT = """async () => {
    const { active, installing, waiting } = await navigator.serviceWorker.ready;
    if (installing || waiting || active.state !== "activated") return null;
    return caches.keys();
}"""
ADDRESSES = """async () => {
    const caches_ = await Promise.all((await caches.keys()).map((it) => caches.open(it)));
    const requests = await Promise.all(caches_.map((it) => it.keys()));
    return requests.flat().map((it) => new URL(it.url).pathname);
}"""


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A person's browser profile, in which pages may have a worker."""
    options: Any = {"viewport": WIDE, "locale": "en-GB", "service_workers": "allow"}
    context = browser.new_context(**options)
    context.set_default_timeout(PATIENCE_MS)
    yield context
    context.close()


def visit(context: BrowserContext, url: str) -> Page:
    """A tab with the page, whose worker keeps it."""
    page = context.new_page()
    page.goto(url)
    page.wait_for_function("() => navigator.serviceWorker.controller !== null")
    return page


def reload_until(page: Page, condition: str) -> None:
    """The worker shows what it keeps if a busy server takes long to respond: then once more."""
    for _ in range(20):
        page.reload()
        if page.evaluate(condition):
            return
    raise AssertionError(f"still not {condition}")


def until(page: Page, condition: str) -> None:
    """Waits for an asynchronous condition in the page."""
    page.evaluate(
        f"""async () => {{
            for (const start = Date.now(); Date.now() - start < {PATIENCE_MS}; )
                if (await ({condition})()) return;
                else await new Promise((resolve) => setTimeout(resolve, 50));
            throw new Error("still not");
        }}"""
    )


def test_page_can_be_installed_and_opens_without_its_server(
    tmp_path: Path, context: BrowserContext, model: ScriptedModel
):
    with Server(tmp_path, **settings_for(model)) as server:
        page = visit(context, server.url)
        devtools: Any = context.new_cdp_session(page)
        assert devtools.send("Page.getInstallabilityErrors")["installabilityErrors"] == []
        manifest = devtools.send("Page.getAppManifest")
        assert manifest["errors"] == []
        page.evaluate("location.hash = '#/settings'")  # a part that is loaded when it is needed
        expect(page.get_by_role("heading", name="Settings")).to_be_visible()
        context.set_offline(True)
        page.reload()
        expect(page.locator("#root *").first).to_be_attached()
        context.set_offline(False)
        server.kill()
    other = context.new_page()
    other.goto(server.url)
    expect(other.locator("#root *").first).to_be_attached()
    addresses = page.evaluate(ADDRESSES)
    assert "/" in addresses
    assert [it for it in addresses if it != "/" and not it.startswith("/assets/")] == []
    assert [it for it in addresses if it.endswith(".html")] == []
    with pytest.raises(Error):
        other.goto(f"{server.url}/s/a-share")


def released(place: Path, name: str) -> Path:
    """The package with the page of another release, in which each file has another name."""
    package = place / name / "threadkeep"
    package.mkdir(parents=True)
    for child in (SOURCE / "threadkeep").iterdir():
        if child.name != "page":
            (package / child.name).symlink_to(child)
    built = package / "page"
    shutil.copytree(page_build.BUILT, built, ignore=shutil.ignore_patterns("*.br", "*.gz"))
    assets = built / "assets"
    names = {it.name for it in assets.iterdir() if it.suffix in {".js", ".css"}}
    hashed = re.compile("|".join(map(re.escape, sorted(names, key=len, reverse=True))))

    def rename(old: str) -> str:
        stem, _, ending = old.rpartition(".")
        return f"{stem}{name}.{ending}"

    for path in (*built.glob("*.*"), *assets.glob("*.js"), *assets.glob("*.css")):
        text = hashed.sub(lambda found: rename(found[0]), path.read_text("utf-8"))
        if path.name == "service-worker.js":
            text = re.sub(r"`[0-9a-f]{12}`", f"`{name}`", text)
        path.unlink()
        path.with_name(rename(path.name) if path.name in names else path.name).write_text(text, "utf-8")
    return package.parent


def test_new_release_replaces_the_old_one_whole_and_an_open_tab_keeps_its_own(
    tmp_path: Path, context: BrowserContext, model: ScriptedModel
):
    settings = settings_for(model)
    with Server(tmp_path, *lasting_port(), **settings) as server:
        old = visit(context, server.url)
        first = old.evaluate(SHOWN)
        server.kill()
    port = str(server.port)
    with Server(tmp_path, "--port", port, source=released(tmp_path, "second"), **settings) as server:
        new = context.new_page()
        new.goto(server.url)
        reload_until(new, f"{SHOWN} === '{first}second'")
        until(new, f"async () => (await ({KEPT})())?.some((it) => it.endsWith(' second'))")
        assert len(new.evaluate(KEPT)) == 2
        server.kill()
    new.reload()
    assert new.evaluate(SHOWN) == f"{first}second"
    # The tab of the release before finds what it has not loaded yet, which no server has any more.
    old.evaluate("location.hash = '#/settings'")
    expect(old.get_by_role("heading", name="Settings")).to_be_visible()
    assert old.evaluate(SHOWN) == first
    with Server(tmp_path, "--port", port, source=released(tmp_path, "third"), **settings) as server:
        reload_until(new, f"{SHOWN} === '{first}third'")
        until(new, f"async () => (await ({KEPT})())?.some((it) => it.endsWith(' third'))")
        kept = [it.rpartition(" ")[2] for it in new.evaluate(KEPT)]
        assert kept == ["second", "third"]


def test_server_that_is_not_for_offline_use_removes_what_the_browser_has(
    tmp_path: Path, context: BrowserContext, model: ScriptedModel
):
    with Server(tmp_path, *lasting_port(), **settings_for(model)) as server:
        page = visit(context, server.url)
        server.kill()
    with Server(tmp_path, "--port", str(server.port), offline="false", **settings_for(model)):
        reload_until(page, "async () => !(await navigator.serviceWorker.getRegistration())")
        page.reload()  # until then, the worker may keep what the tab loads
        until(page, "async () => !(await caches.keys()).length")


AWAY = "No connection · showing what this device has"
OFFLINE = "Offline · showing what this device has"
SWITCH = "Keep conversations on this device"
COPIES = """async () => {
    const found = (await indexedDB.databases()).find((it) => it.name.startsWith("threadkeep.copies."));
    if (!found) return [];
    const database = await new Promise((resolve) => {
        const request = indexedDB.open(found.name);
        request.onsuccess = () => resolve(request.result);
    });
    const copies = await new Promise((resolve) => {
        const request = database.transaction("copies").objectStore("copies").getAll();
        request.onsuccess = () => resolve(request.result);
    });
    database.close();
    return copies;
}"""


def until_kept(page: Page, *ids: str) -> None:
    """Waits until the device has these conversations with their replies, and no others."""
    paths = [f"/api/conversations/{it}" for it in sorted(ids)]
    wanted = json.dumps(json.dumps(paths, separators=(",", ":")))
    until(
        page,
        f"""async () => {{
            const kept = (await ({COPIES})()).filter((it) => it.path.includes("conversations/"));
            // A copy of a running turn has its reply already, without the text.
            const isWhole = ({{ json }}) => {{
                const {{ activeTurnId, messages }} = JSON.parse(json);
                return activeTurnId === null && messages.at(-1)?.role === "assistant";
            }};
            return kept.every(isWhole) && JSON.stringify(kept.map((it) => it.path).sort()) === {wanted};
        }}""",
    )


def id_in(page: Page) -> str:
    return page.url.rpartition("/")[2]


def status(page: Page) -> Locator:
    return page.locator("main > .offline")


def questions(server: Server) -> Iterator[str]:
    """What the user said, in all conversations."""
    with server.client() as client:
        for conversation in client.get("/api/conversations").json()["items"]:
            found = client.get(f"/api/conversations/{conversation['id']}/messages").json()["items"]
            yield from (it["content"] for it in found if it["role"] == "user")


def test_conversation_is_read_without_the_server_and_what_is_written_is_sent_once(
    tmp_path: Path, context: BrowserContext, model: ScriptedModel
):
    model.script([Say("Mass attracts mass.")])
    settings = settings_for(model)
    with Server(tmp_path, *lasting_port(), **settings) as server:
        page = visit(context, server.url)
        say(page, "What is gravity?")
        done(page)
        conversation = id_in(page)
        until_kept(page, conversation)
        address = page.url
        page.close()
        server.kill()
    page = context.new_page()
    page.goto(server.url)
    expect(status(page)).to_have_text(AWAY)
    page.get_by_role("navigation").get_by_role("link", name="What is gravity?").press("Enter")
    expect(log(page)).to_contain_text("Mass attracts mass.")
    assert violations(page) == []
    page.set_viewport_size(NARROW)  # pyright: ignore[reportArgumentType]
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]
    page.set_viewport_size(WIDE)  # pyright: ignore[reportArgumentType]
    page.goto(f"{server.url}/#/c/0198c0de-0000-7000-8000-000000000000")
    expect(page.get_by_text("This conversation isn’t on this device.")).to_be_visible()
    assert violations(page) == []
    page.goto(address)
    enter(page, "And light?")
    expect(page.get_by_text(UNSENT)).to_be_visible()
    page.close()
    page = context.new_page()
    page.goto(server.url)
    expect(status(page)).to_be_visible()
    enter(page, "Something new")
    expect(page.get_by_text(UNSENT)).to_be_visible()
    page.goto(address)
    expect(page.get_by_text(UNSENT)).to_be_visible()
    page.get_by_role("textbox", name="Message").fill("A draft")
    model.script([Say("It bends.")], [Say("It begins.")])
    with Server(tmp_path, "--port", str(server.port), **settings) as server:
        expect(reply(page)).to_contain_text("It b")
        done(page)
        expect(status(page)).to_have_count(0)
        expect(page.get_by_role("textbox", name="Message")).to_have_value("A draft")
        expect(page.get_by_role("navigation").get_by_role("link", name="Something new")).to_be_visible()
        # A conversation is in the list before its message has arrived.
        deadline = time.monotonic() + PATIENCE_S
        while len(list(questions(server))) < 3 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert sorted(questions(server)) == ["And light?", "Something new", "What is gravity?"]


def test_network_that_is_gone_and_comes_back_is_noticed_without_a_reload(
    tmp_path: Path, context: BrowserContext, model: ScriptedModel
):
    model.script([Say("Mass attracts mass.")])
    with Server(tmp_path, **settings_for(model)) as server:
        page = visit(context, server.url)
        say(page, "What is gravity?")
        done(page)
        context.set_offline(True)
        expect(status(page)).to_have_text(OFFLINE)
        page.evaluate("location.hash = '#/usage'")
        expect(page.get_by_text("Can’t reach the server.")).to_be_visible()
        context.set_offline(False)
        expect(status(page)).to_have_count(0)
        expect(page.get_by_text("Can’t reach the server.")).to_have_count(0)
        expect(page.get_by_text("Back online")).to_be_attached()


def test_nothing_is_kept_of_who_signs_in_unless_they_want_it_and_until_they_sign_out(
    tmp_path: Path, context: BrowserContext, model: ScriptedModel
):
    model.script([Say("Mass attracts mass.")])
    with Server(tmp_path, **settings_for(model), jwt_secret=SECRET) as server:
        page = visit(context, server.url)
        sign_in(page, "alice")
        say(page, "What is gravity?")
        done(page)
        conversation = id_in(page)
        page.evaluate("location.hash = '#/settings'")
        switch = page.get_by_role("switch", name=SWITCH)
        expect(switch).not_to_be_checked()
        assert page.evaluate(COPIES) == []
        switch.press("Space")
        expect(switch).to_be_checked()
        assert violations(page) == []
        page.go_back()
        until_kept(page, conversation)
        page.go_forward()
        expect(page.get_by_text("On this device now: 1 conversation")).to_be_visible()
        switch.press("Space")
        expect(page.get_by_text("Deleted from this device.")).to_be_visible()
        assert page.evaluate(COPIES) == []
        switch.press("Space")
        page.go_back()
        until_kept(page, conversation)
        other = context.new_page()
        other.goto(page.url)
        expect(log(other)).to_contain_text("Mass attracts mass.")
        choose(page, "Profile: alice", "Sign out")
        expect(other.get_by_label("Access token")).to_be_visible()
        until(other, f"async () => !(await ({COPIES})()).length")
        sign_in(other, "bob")
        other.evaluate("location.hash = '#/settings'")
        expect(other.get_by_role("switch", name=SWITCH)).not_to_be_checked()
        server.kill()
    other.close()
    page.goto(server.url)
    expect(page.get_by_role("heading", name="Can’t reach the server.")).to_be_visible()


def test_kept_conversations_are_shown_without_a_sign_in_and_gone_once_one_is_needed(
    tmp_path: Path, context: BrowserContext, model: ScriptedModel
):
    model.script([Say("Mass attracts mass.")])
    settings = {**settings_for(model), "jwt_secret": SECRET}
    with Server(tmp_path, *lasting_port(), **settings) as server:
        page = visit(context, server.url)
        sign_in(page, "alice")
        page.evaluate("location.hash = '#/settings'")
        page.get_by_role("switch", name=SWITCH).click()
        page.evaluate("location.hash = '#/'")
        say(page, "What is gravity?")
        done(page)
        until_kept(page, id_in(page))
        address = page.url
        page.close()
        server.kill()
    page = context.new_page()
    page.goto(address)
    expect(log(page)).to_contain_text("Mass attracts mass.")
    enter(page, "And light?")
    expect(page.get_by_text(UNSENT)).to_be_visible()
    model.script([Say("It bends.")])
    with Server(tmp_path, "--port", str(server.port), **settings):
        expect(page.get_by_label("Access token")).to_be_visible()
        until(page, f"async () => !(await ({COPIES})()).length")
        sign_in(page, "alice")
        page.get_by_role("navigation").get_by_role("link", name="What is gravity?").click()
        expect(reply(page)).to_have_text("It bends.")


def test_conversation_that_was_deleted_elsewhere_leaves_the_device(
    tmp_path: Path, context: BrowserContext, model: ScriptedModel
):
    model.script([Say("Mass attracts mass.")], [Say("It bends.")])
    with Server(tmp_path, **settings_for(model)) as server:
        page = visit(context, server.url)
        say(page, "What is gravity?")
        done(page)
        first = id_in(page)
        until_kept(page, first)  # who leaves it sooner leaves a copy of the running turn
        page.evaluate("location.hash = '#/'")
        say(page, "And light?")
        done(page)
        second = id_in(page)
        until_kept(page, first, second)
        with server.client() as client:
            client.delete(f"/api/conversations/{first}").raise_for_status()
            until_kept(page, second)
            page.close()  # no longer told of anything
            client.delete(f"/api/conversations/{second}").raise_for_status()
        page = context.new_page()
        page.goto(server.url)
        until_kept(page)


# Android's browsers have notifications of workers only; a browser without windows has none at all.
ANDROID = """
window.Notification = class {
    static permission = "granted";
    constructor() { throw new TypeError("Illegal constructor"); }
};
ServiceWorkerRegistration.prototype.showNotification =
    async (title, { body, data }) => void told.push({ title, body, data });
localStorage.setItem("threadkeep.notifications", "on");
"""
CLICK = """(data) => {
    const notification = { close: () => {}, data };
    const waitUntil = (work) => work.catch(() => {});  // a tab is focused only after a real click
    dispatchEvent(Object.assign(new Event("notificationclick"), { notification, waitUntil }));
}"""


def test_notification_of_the_worker_leads_to_its_conversation(
    tmp_path: Path, context: BrowserContext, model: ScriptedModel
):
    context.add_init_script(STAND_IN + ANDROID)
    with Server(tmp_path, **settings_for(model)) as server:
        page = visit(context, server.url)
        answer_unseen(model, "What is gravity?", page)
        page.wait_for_function("() => told.length === 1")
        (told,) = page.evaluate("told")
        assert (told["title"], told["body"]) == ("What is gravity?", "Your answer is ready.")
        address = page.url
        page.evaluate("location.hash = '#/settings'")
        expect(page.get_by_role("heading", name="Settings")).to_be_visible()
        (worker,) = context.service_workers
        worker.evaluate(CLICK, told["data"])
        expect(page).to_have_url(address)


@contextmanager
def hosted(chat: Threadkeep, port: int) -> Generator[str]:
    """An application of somebody else's, which has its own sign-in and Threadkeep below a path."""
    config = uvicorn.Config(
        in_starlette(chat, "/chat"), port=port, log_level="critical", timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/chat/"
    finally:
        server.should_exit = True
        thread.join()


def test_below_a_path_nothing_is_sent_in_the_name_of_whoever_signed_in_meanwhile(
    tmp_path: Path, context: BrowserContext, model: ScriptedModel
):
    port = free_port()
    settings = settings_for(model)
    cookie: Any = {"name": "session", "value": "alice", "domain": "127.0.0.1", "path": "/"}
    context.add_cookies([cookie])
    model.script([Say("Mass attracts mass.")])
    with hosted(new_chat(tmp_path, **settings), port) as url:
        page = visit(context, url)
        assert page.evaluate("async () => (await navigator.serviceWorker.ready).scope") == url
        page.evaluate("location.hash = '#/settings'")
        page.get_by_role("switch", name=SWITCH).click()
        page.evaluate("location.hash = '#/'")
        say(page, "What is gravity?")
        done(page)
        until_kept(page, id_in(page))
        address = page.url
        page.close()
    page = context.new_page()
    page.goto(address)
    expect(log(page)).to_contain_text("Mass attracts mass.")
    enter(page, "And light?")
    expect(page.get_by_text(UNSENT)).to_be_visible()
    bobs: Any = {**cookie, "value": "bob"}
    context.add_cookies([bobs])
    with hosted(new_chat(tmp_path, **settings), port) as url:
        expect(page.get_by_role("heading", name="What can I help with?")).to_be_visible()
        until_kept(page)
        model.script([Say("It bends.")])
        context.add_cookies([cookie])
        page.goto(address)
        page.reload()
        expect(reply(page)).to_have_text("It bends.")
        assert [it.body["messages"][-1]["content"] for it in model.requests].count("And light?") == 1
