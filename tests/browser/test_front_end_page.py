"""The chat page that docs/front-end.md shows, in a real browser."""

from contextlib import ExitStack
from pathlib import Path

from playwright.sync_api import Browser, BrowserContext, Request, expect

from tests.browser.conftest import PATIENCE_MS
from tests.browser.relay import relayed
from tests.docs.pages import DOCS, blocks
from tests.docs.walk import Walk
from threadkeep.testing import Gate, Say, Wait

PAGE = DOCS / "front-end.md"


def opened(browser: Browser) -> BrowserContext:
    """A person's browser profile."""
    context = browser.new_context()
    context.set_default_timeout(PATIENCE_MS)
    return context


def test_reply_goes_on_after_the_connection_broke(browser: Browser, tmp_path: Path):
    gate = Gate()
    resumed: list[str] = []

    def asked(request: Request) -> None:
        if "last-event-id" in request.headers:
            resumed.append(request.headers["last-event-id"])

    script = {"Count": [Say("One. "), Wait(gate), Say("Two.")], "more": [Say("Three.")]}
    with ExitStack() as stack, Walk(PAGE, tmp_path, script) as walk, opened(browser) as context:
        walk.all()
        relay = stack.enter_context(relayed(walk.address()))
        client = tmp_path / "web" / "chat.js"
        client.write_text(client.read_text().replace(walk.address(), relay.address))
        context.on("request", asked)
        page = context.new_page()
        page.goto(walk.address("8000"))
        page.get_by_label("Message").fill("Count")
        page.get_by_role("button", name="Send").click()
        log = page.get_by_role("log")
        expect(log).to_have_text("You: Count\nAgent: One. ")
        relay.cut()
        gate.open()
        expect(log).to_have_text("You: Count\nAgent: One. Two.\n")
        assert resumed and set(resumed) == {"3"}
        page.get_by_label("Message").fill("And more")
        page.get_by_role("button", name="Send").click()
        expect(log).to_have_text("You: Count\nAgent: One. Two.\nYou: And more\nAgent: Three.\n")


def test_event_source_follows_a_turn(browser: Browser, tmp_path: Path):
    (follow,) = [it.code for it in blocks(PAGE) if "EventSource" in it.code]
    with Walk(PAGE, tmp_path, {"Count": [Say("One.")]}) as walk, opened(browser) as context:
        walk.all()
        page = context.new_page()
        page.goto(f"{walk.address()}/healthz")  # any page of its origin
        # There it is mounted at /chat; here it stands by itself.
        code = follow.replace("/chat/api", "/api")
        said = page.evaluate(f"() => new Promise((done) => {{ {code}; follow('Count', done); }})")
        assert said == "One."
