"""Files in messages: attached, sent, shown, seen in full size."""

import base64
import json
import re
from typing import Any

from playwright.sync_api import Locator, Page, Route, expect

from tests.browser.test_access import violations
from tests.browser.test_queue import box, queued
from tests.browser.test_talking import done, log
from tests.files.making import encode, photograph
from threadkeep.testing import Gate, Say, ScriptedModel, Wait

Content = tuple[str, str, bytes]

PHOTO: Content = ("photo.jpg", "image/jpeg", encode(photograph(640, 480), "JPEG"))
DIAGRAM: Content = ("diagram.png", "image/png", encode(photograph(64, 48), "PNG"))
NOTES: Content = ("notes.md", "text/markdown", b"# Remember the milk")
FALSE: Content = ("false.png", "image/png", b"<!doctype html><script>alert(1)</script>")

TRANSFER = """files => {
    const data = new DataTransfer();
    for (const [name, type, content] of files) {
        const bytes = Uint8Array.from(atob(content), it => it.charCodeAt(0));
        data.items.add(new File([bytes], name, {type}));
    }
    return data;
}"""


def paste(page: Page, *files: Content) -> None:
    """Pastes files where one writes."""
    _dispatch(box(page), "paste", "clipboardData", files)


def drag(page: Page, event: str, *files: Content) -> None:
    """Files are dragged over the page or dropped on it."""
    _dispatch(page.locator("body"), event, "dataTransfer", files)


def _dispatch(place: Locator, event: str, field: str, files: tuple[Content, ...]) -> None:
    kind = "ClipboardEvent" if event == "paste" else "DragEvent"
    sent = [(name, media_type, base64.b64encode(content).decode()) for name, media_type, content in files]
    place.evaluate(
        f"(place, [event, files]) => place.dispatchEvent(new {kind}(event,"
        f" {{ {field}: ({TRANSFER})(files), bubbles: true, cancelable: true }}))",
        [event, sent],
    )


def choose(page: Page, *files: Content) -> None:
    """Chooses files with the button."""
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Attach files").click()
    chooser.value.set_files([{"name": it[0], "mimeType": it[1], "buffer": it[2]} for it in files])


def chips(page: Page) -> Locator:
    """The files of the draft."""
    return page.get_by_role("list", name="Attached files").get_by_role("listitem")


def picture(place: Page | Locator, name: str) -> Locator:
    """An image of a message that is there to be seen."""
    return place.get_by_role("button", name=f"Open {name}").get_by_role("img")


class Held:
    """Uploads of a file that wait until a test lets them go."""

    def __init__(self, page: Page, file_name: str) -> None:
        self._name = file_name.encode()
        self._routes: list[Route] = []
        page.route("**/api/files", self._hold)

    def _hold(self, route: Route) -> None:
        if self._name in (route.request.post_data_buffer or b""):
            self._routes.append(route)
        else:
            route.continue_()

    def let_go(self) -> None:
        for route in self._routes:
            route.continue_()


def test_files_are_attached_sent_once_uploaded_shown_and_viewed(page: Page, model: ScriptedModel):
    held = Held(page, "diagram.png")
    paste(page, PHOTO)
    expect(picture(chips(page), "photo.jpg")).to_be_visible()
    drag(page, "dragenter", DIAGRAM, FALSE, NOTES)
    expect(page.get_by_text("Drop files to attach")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_text("Drop files to attach")).to_be_hidden()
    drag(page, "dragleave")
    drag(page, "dragenter", DIAGRAM, FALSE)
    drag(page, "drop", DIAGRAM, FALSE)
    choose(page, NOTES)
    expect(chips(page)).to_have_count(4)
    refused = chips(page).filter(has_text="false.png")
    expect(refused).to_contain_text("has the name of a PNG image but contains HTML or SVG.")
    expect(page.get_by_text("retry the failed file")).to_be_visible()
    expect(page.get_by_role("button", name="Send")).to_be_disabled()
    assert violations(page) == []
    refused.get_by_role("button", name="Remove false.png").press("Enter")
    chips(page).filter(has_text="notes.md").get_by_role("button", name="Remove notes.md").click()
    expect(box(page)).to_be_focused()

    model.script([Say("A beach.")])
    box(page).fill("What is this?")
    box(page).press("Enter")
    expect(page.get_by_text("Sending…")).to_be_visible()
    expect(box(page)).to_have_value("")
    page.get_by_role("button", name="Cancel").click()
    expect(box(page)).to_have_value("What is this?")
    expect(chips(page)).to_have_count(2)
    box(page).press("Enter")
    assert model.requests == []
    held.let_go()
    done(page)
    expect(chips(page)).to_have_count(0)
    page.reload()
    said = page.get_by_role("article", name="You said")
    expect(said).to_contain_text("What is this?")
    for name in ("photo.jpg", "diagram.png"):
        expect(picture(said, name)).to_have_js_property("complete", value=True)
        expect(picture(said, name)).to_have_attribute("src", re.compile("^blob:"))
    assert violations(page) == []

    opener = said.get_by_role("button", name="Open photo.jpg")
    opener.press("Enter")
    viewer = page.get_by_role("dialog", name="Image: photo.jpg")
    expect(viewer.get_by_role("img")).to_have_js_property("naturalWidth", value=640)
    page.keyboard.press("+")
    expect(viewer.get_by_role("img")).to_have_css("transform", re.compile(r"^matrix\(1\.5, 0, 0, 1\.5"))
    page.keyboard.press("0")
    expect(viewer.get_by_role("button", name="Fit to window")).to_be_disabled()
    assert violations(page) == []
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("dialog", name="Image: diagram.png")).to_contain_text("2 of 2")
    with page.expect_download() as saved:
        page.get_by_role("dialog").get_by_role("button", name="Download").click()
    assert saved.value.suggested_filename == "diagram.png"
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(opener).to_be_focused()


def test_draft_keeps_its_files_an_edit_too_and_a_queued_message_shows_them(page: Page, model: ScriptedModel):
    choose(page, NOTES, PHOTO)
    expect(picture(chips(page), "photo.jpg")).to_be_visible()
    page.reload()
    expect(chips(page)).to_have_count(2)
    _expire_in_draft(page, "notes.md")
    page.reload()
    box(page).fill("Read this")
    box(page).press("Enter")
    expired = chips(page).filter(has_text="notes.md")
    expect(expired).to_contain_text("This file has expired. Attach it again.")
    expect(box(page)).to_have_value("Read this")
    expired.get_by_role("button", name="Remove notes.md").click()
    gate = Gate()
    model.script([Say("I see it.")], [Say("One. "), Wait(gate), Say("Two.")], [Say("Milk.")])
    box(page).press("Enter")
    done(page)

    page.get_by_role("button", name="Edit").click()
    expect(picture(chips(page), "photo.jpg")).to_be_visible()
    box(page).fill("Read that")
    box(page).press("Enter")
    said = page.get_by_role("article", name="You said")
    expect(said).to_contain_text("Read that")
    expect(picture(said, "photo.jpg")).to_be_visible()
    expect(log(page)).to_contain_text("One.")

    choose(page, NOTES)
    expect(page.get_by_text("Files can’t join a running answer")).to_be_visible()
    expect(page.get_by_text("notes.md uploaded")).to_be_attached()
    box(page).press("Control+Enter")
    expect(queued(page)).to_contain_text("notes.md")
    assert violations(page) == []
    page.reload()
    expect(queued(page).get_by_role("button", name="Open notes.md")).to_be_visible()
    gate.open()
    expect(log(page)).to_contain_text("Milk.")
    said.last.get_by_role("button", name="Open notes.md").click()
    preview = page.get_by_role("dialog", name="notes.md")
    expect(preview.locator(".markdown")).to_contain_text("milk")
    assert violations(page) == []
    with page.expect_download() as saved:
        preview.get_by_role("button", name="Download").click()
    assert saved.value.path().read_bytes() == NOTES[2]


def _expire_in_draft(page: Page, file_name: str) -> None:
    """As if a day had passed: the draft names a file that the server no longer has."""
    installation = page.evaluate("document.documentElement.dataset.installation")
    key = f"threadkeep.{installation}.draft-files.new."
    kept: list[dict[str, Any]] = json.loads(page.evaluate("key => localStorage.getItem(key)", key))
    for file in kept:
        if file["fileName"] == file_name:
            file["fileId"] = "00000000-0000-4000-8000-000000000000"
    page.evaluate("([key, kept]) => localStorage.setItem(key, kept)", [key, json.dumps(kept)])
