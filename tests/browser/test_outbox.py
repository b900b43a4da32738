"""What is sent while the server can't be reached is kept in the browser, and sent once."""

import os
import signal
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Error, Page, Route, expect

from tests.browser.conftest import QUIET, chromium, settings_for
from tests.browser.going import choose
from tests.browser.test_approvals import asked, new_conversation, note
from tests.browser.test_sign_in import SECRET, sign_in
from tests.browser.test_talking import done, log, reply, say
from tests.serving import Server, lasting_port
from threadkeep.testing import Gate, Say, ScriptedModel, Wait

UNSENT = "Not sent yet. We’ll keep trying."


@contextmanager
def cut(context: BrowserContext, *paths: str) -> Generator[None]:
    """Nothing that changes something below these paths reaches the server."""

    def break_off(route: Route) -> None:
        route.continue_() if route.request.method == "GET" else route.abort("connectionrefused")

    for path in paths:
        context.route(path, break_off)
    yield
    for path in paths:
        context.unroute(path, break_off)


def messages(page: Page) -> list[str]:
    """What was said in all conversations, by the user."""
    return [it["content"] for it in _all_messages(page) if it["role"] == "user"]


def _all_messages(page: Page) -> Iterator[Any]:
    for conversation in page.request.get("/api/conversations").json()["items"]:
        yield from page.request.get(f"/api/conversations/{conversation['id']}/messages").json()["items"]


def enter(page: Page, text: str) -> None:
    page.get_by_role("textbox", name="Message").fill(text)
    page.keyboard.press("Enter")


def test_message_survives_a_killed_server_and_a_killed_browser(
    tmp_path: Path, model: ScriptedModel, browser: Browser
):
    model.script([Say("Hello.")], [Say("Here again.")])
    profile = tmp_path / "profile"
    kind = browser.browser_type
    options: dict[str, Any] = {"executable_path": chromium(), "args": QUIET, "locale": "en-GB"}
    with Server(tmp_path, *lasting_port(), **settings_for(model)) as server:
        person = kind.launch_persistent_context(profile, base_url=server.url, **options)
        page = person.new_page()
        page.goto("/")
        say(page, "Hi")
        done(page)
        address = page.url
        server.kill()
    enter(page, "Are you there?")
    expect(page.get_by_text(UNSENT)).to_be_visible()
    expect(page.get_by_role("textbox", name="Message")).to_have_value("")
    expect(page.get_by_text("Answering…")).to_have_count(0)
    _kill(person)
    with suppress(Error):  # it may have noticed already that the browser is gone
        person.close()
    with Server(tmp_path, "--port", str(server.port), **settings_for(model)):
        person = kind.launch_persistent_context(profile, base_url=server.url, **options)
        page = person.new_page()
        page.goto(address)
        expect(reply(page)).to_have_text("Here again.")
        expect(page.get_by_text(UNSENT)).to_have_count(0)
        assert messages(page) == ["Hi", "Are you there?"]
        person.close()


def _kill(person: BrowserContext) -> None:
    """Kills somebody's browser, as a crash does."""
    assert person.browser
    devtools: Any = person.browser.new_browser_cdp_session()
    processes = devtools.send("SystemInfo.getProcessInfo")["processInfo"]
    (process,) = [it["id"] for it in processes if it["type"] == "browser"]
    os.kill(process, signal.SIGKILL)


def test_first_message_whose_responses_are_lost_makes_one_conversation_and_one_turn(
    page: Page, context: BrowserContext, model: ScriptedModel
):
    model.script([Say("Hello.")])
    lost: list[str] = []

    def lose(route: Route) -> None:
        if route.request.method != "POST" or route.request.url in lost:
            return route.continue_()
        lost.append(route.request.url)
        route.fetch()
        return route.abort("connectionreset")

    context.route("**/conversations", lose)
    context.route("**/messages", lose)
    enter(page, "Hi")
    expect(page.get_by_text(UNSENT)).to_be_visible()
    page.reload()
    expect(reply(page)).to_have_text("Hello.")
    done(page)
    assert len(lost) == 2
    assert messages(page) == ["Hi"]
    expect(page.get_by_role("article", name="You")).to_have_count(1)


def test_messages_to_a_turn_that_runs_wait_in_two_tabs_and_are_sent_once(
    page: Page, context: BrowserContext, model: ScriptedModel
):
    gate = Gate()
    model.script([Say("One."), Wait(gate)], [Say("Two.")], [Say("Three.")])
    say(page, "1?")
    expect(log(page)).to_contain_text("One.")
    with cut(context, "**/messages"):
        enter(page, "2?")
        enter(page, "3?")
        other = context.new_page()
        other.goto(page.url)
        for tab in (page, other):
            expect(tab.get_by_role("article", name="Queued message")).to_have_count(2)
            expect(tab.get_by_text(UNSENT).first).to_be_visible()
        page.reload()
        expect(page.get_by_role("article", name="Queued message")).to_have_count(2)
    page.evaluate("dispatchEvent(new Event('online'))")
    for tab in (page, other):
        expect(tab.get_by_text(UNSENT)).to_have_count(0)
        expect(tab.get_by_role("article", name="Queued message")).to_have_count(2)
    gate.open()
    expect(reply(page)).to_have_text("Three.")
    assert messages(page) == ["1?", "2?", "3?"]


def test_message_that_is_refused_or_taken_back_returns_to_the_composer(
    page: Page, context: BrowserContext, model: ScriptedModel
):
    model.script([Say("One.")], [Say("Elsewhere.")])
    say(page, "1?")
    done(page)
    box = page.get_by_role("textbox", name="Message")
    conversation = page.url.rpartition("/")[2]
    with cut(context, "**/messages"):
        enter(page, "Taken back")
        page.get_by_role("button", name="Cancel").click()
        expect(box).to_have_value("Taken back")
        expect(page.get_by_role("article", name="You")).to_have_count(1)
        enter(page, "Too late")
        expect(page.get_by_text(UNSENT)).to_be_visible()
        # The conversation goes on elsewhere meanwhile.
        path = f"/api/conversations/{conversation}/messages?wait=true"
        page.request.post(path, data={"content": "2?"})
    page.get_by_role("button", name="Retry").click()
    expect(page.get_by_role("alert")).to_contain_text("continued in another tab")
    expect(box).to_have_value("Too late")
    page.get_by_role("button", name="Show latest").click()
    expect(reply(page)).to_have_text("Elsewhere.")
    with cut(context, "**/messages"):
        page.keyboard.press("Control+a")
        enter(page, "Nowhere to go")
        expect(page.get_by_text(UNSENT)).to_be_visible()
        page.request.delete(f"/api/conversations/{conversation}")
        page.goto("/#/usage")
        page.reload()
        expect(page.get_by_role("heading", name="Usage")).to_be_visible()
    toast = page.get_by_text("Its text is back in the composer.")
    page.evaluate("dispatchEvent(new Event('online'))")
    expect(toast).to_be_visible()
    page.get_by_role("button", name="Open", exact=True).click()
    expect(box).to_have_value("Nowhere to go")


def test_decision_on_a_request_survives_a_reload(page: Page, context: BrowserContext, model: ScriptedModel):
    new_conversation(page)
    model.script(note("buy tea"), [Say("It is noted.")])
    say(page, "Note it")
    with cut(context, "**/approvals/*"):
        page.get_by_role("button", name="Allow once").click()
        expect(asked(page).get_by_text(UNSENT)).to_be_visible()
        page.reload()
        expect(asked(page).get_by_text(UNSENT)).to_be_visible()
    page.evaluate("dispatchEvent(new Event('online'))")
    expect(reply(page)).to_have_text("It is noted.")


def test_message_takes_along_a_file_whose_upload_broke_off(
    page: Page, context: BrowserContext, model: ScriptedModel
):
    model.script([Say("I see.")])
    uploads: list[Route] = []

    def hold_first(route: Route) -> None:
        uploads.append(route)
        if len(uploads) > 1:
            route.abort("connectionreset")

    context.route("**/api/files", hold_first)
    notes = {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"remember the milk"}
    page.locator("input[type=file]").set_input_files(notes)  # pyright: ignore[reportArgumentType]
    tray = page.get_by_role("list", name="Attached files")
    expect(tray.get_by_role("listitem")).to_have_count(1)
    enter(page, "Read this")
    expect(tray).to_have_count(0)
    uploads[0].abort("connectionreset")
    expect(page.get_by_text(UNSENT)).to_be_visible()
    page.reload()
    expect(page.get_by_text("notes.txt")).to_be_visible()
    context.unroute("**/api/files", hold_first)
    page.evaluate("dispatchEvent(new Event('online'))")
    expect(reply(page)).to_have_text("I see.")
    assert any("remember the milk" in str(it.body["messages"]) for it in model.requests)


class TestWithSignIn:
    """Entries are their user's own."""

    @pytest.fixture
    def server(self, tmp_path: Path, browser: Browser, model: ScriptedModel) -> Iterator[Server]:
        """Threadkeep with sign-in."""
        with Server(tmp_path, **settings_for(model), jwt_secret=SECRET) as server:
            yield server

    def test_entry_waits_for_its_user_and_signing_out_asks(
        self, page: Page, context: BrowserContext, model: ScriptedModel
    ):
        model.script([Say("Hello Alice.")])
        sign_in(page, "alice")
        with cut(context, "**/api/agents/*/conversations"):
            enter(page, "From Alice")
            expect(page.get_by_text(UNSENT)).to_be_visible()
            choose(page, "Profile: alice", "Sign out")
            dialog = page.get_by_role("alertdialog")
            expect(dialog).to_contain_text("deletes 1 unsent message")
            dialog.get_by_role("button", name="Cancel").click()
            expect(page.get_by_text(UNSENT)).to_be_visible()
            # Her token ends, and somebody else signs in.
            page.evaluate("sessionStorage.clear()")
            page.reload()
            sign_in(page, "bob")
            expect(page.get_by_text("From Alice")).to_have_count(0)
        choose(page, "Profile: bob", "Sign out")
        sign_in(page, "alice")
        expect(reply(page)).to_have_text("Hello Alice.")
        expect(log(page)).to_contain_text("From Alice")


def test_another_server_at_the_same_address_gets_nothing(
    tmp_path: Path, model: ScriptedModel, browser: Browser
):
    model.script([Say("Hello.")], [Say("Here again.")])
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    ours.mkdir()
    theirs.mkdir()
    with Server(ours, **settings_for(model)) as server:
        context = browser.new_context(base_url=server.url, locale="en-GB")
        page, other = context.new_page(), context.new_page()
        page.goto("/")
        say(page, "Hi")
        done(page)
        address = page.url
        other.goto("/")
        other.get_by_role("textbox", name="Message").fill("half a thought")
        other.wait_for_timeout(500)  # a draft is written when its user pauses
        server.stop()
    enter(page, "Are you there?")
    expect(page.get_by_text(UNSENT)).to_be_visible()
    same = ("--port", str(server.port))
    with Server(theirs, *same, **settings_for(model)):
        # The tab gives way to the stranger's page, which knows nothing of ours.
        expect(page.get_by_role("heading", name="Conversation not found")).to_be_visible(timeout=60_000)
        expect(page.get_by_text("Are you there?")).to_have_count(0)
        other.goto("/")
        expect(other.get_by_role("textbox", name="Message")).to_have_value("")
        assert messages(other) == []
        assert "Are you there?" not in str(model.requests)
    with Server(ours, *same, **settings_for(model)):
        page.goto("/")
        page.goto(address)
        expect(reply(page)).to_have_text("Here again.", timeout=60_000)
        assert messages(page) == ["Hi", "Are you there?"]
        other.goto("/")
        expect(other.get_by_role("textbox", name="Message")).to_have_value("half a thought")
    context.close()


def test_what_was_written_to_a_deleted_conversation_is_not_lost(page: Page, model: ScriptedModel):
    model.script([Say("Hello.")], [Say("Here again.")])
    say(page, "Hi")
    done(page)
    page.get_by_role("textbox", name="Message").fill("a long thought")
    page.wait_for_timeout(500)  # a draft is written when its user pauses
    page.goto("/#/")
    (conversation,) = page.request.get("/api/conversations").json()["items"]
    page.request.delete(f"/api/conversations/{conversation['id']}")
    page.goto(f"/#/c/{conversation['id']}")
    page.reload()
    written = page.get_by_role("region", name="You had written this here. It hasn’t been sent.")
    expect(written).to_contain_text("a long thought")
    expect(written.get_by_role("button", name="Copy")).to_be_visible()
    written.get_by_role("button", name="Use in a new conversation").click()
    expect(page.get_by_role("textbox", name="Message")).to_have_value("a long thought")
    page.keyboard.press("Enter")
    expect(reply(page)).to_have_text("Here again.")
