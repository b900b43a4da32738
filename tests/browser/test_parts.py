"""A reply stands in the order in which it arrived: live, after a reload, and when the turn's log is gone."""

import contextlib
import re
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from playwright.sync_api import TimeoutError as TookTooLong

from tests.browser.conftest import PATIENCE_MS, WIDE, settings_for
from tests.browser.going import open_new
from tests.browser.test_talking import done, log, say
from tests.serving import Server, lasting_port
from threadkeep.testing import Gate, Say, ScriptedModel, Think, UseTool, Wait
from threadkeep.testing.waiting import PATIENCE_S

EASEL = {"command": "python", "args": ["-I", "-S", str(Path(__file__).parent / "easel.py")]}
TOOLS = {"mcp_allowed_commands": "python", "mcp_connect_budget_s": "60"}
# A chart describes itself at length as soon as it is drawn.
READ_ORDER = """reply => [...reply.querySelectorAll(".markdown, .notice-line, .chart, [role=group]")]
    .map(it => it.matches(".chart") ? "chart" : it.getAttribute("aria-label") ?? it.innerText.trim())"""


def order(page: Page) -> list[str]:
    """What stands in the latest reply, from top to bottom."""
    return page.get_by_role("article", name="Reply").last.evaluate(READ_ORDER)


def expect_order(page: Page, shown: Sequence[str]) -> None:
    """Waits until the latest reply shows this and nothing else."""
    is_shown = f"""shown => {{
        const reply = [...document.querySelectorAll("article.reply")].at(-1);
        return reply && JSON.stringify(({READ_ORDER})(reply)) === JSON.stringify(shown);
    }}"""
    with contextlib.suppress(TookTooLong):  # the comparison says what is shown instead
        page.wait_for_function(is_shown, arg=shown)
    assert order(page) == list(shown)


def open_activity(page: Page) -> None:
    """Opens the line of the latest reply's first activity."""
    page.get_by_role("article", name="Reply").last.get_by_role("group", name="Activity").first.locator(
        "summary"
    ).first.click()


@pytest.fixture
def page(unopened: Page) -> Page:
    """Opened by each test, where it begins."""
    return unopened


def new_conversation(page: Page, **settings: Any) -> Page:
    """The page at a new conversation with an agent that can draw and take notes."""
    body = {"name": "Painter", "settings": {"mcpServers": {"easel": EASEL}, **settings}}
    agent = page.request.post("/api/agents", data=body).json()["id"]
    page.request.post(f"/api/agents/{agent}/mcp-servers/easel/test")
    open_new(page, agent)
    return page


class Drawing:
    """A drawing that takes until the test finishes it."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self.call = UseTool("easel__draw", {"port": listener.getsockname()[1]})

    def finish(self) -> None:
        """Hangs up, for which the tool waits."""
        connection, _ = self._listener.accept()
        connection.close()


@pytest.fixture
def drawing() -> Iterator[Drawing]:
    """A call of a tool that takes until the test finishes it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(PATIENCE_S)
        yield Drawing(listener)


def test_text_thoughts_and_tools_stay_in_the_order_of_their_arrival(
    page: Page, model: ScriptedModel, drawing: Drawing
):
    new_conversation(page)
    gates = [Gate(), Gate(), Gate()]
    model.script(
        [Say("First the "), Wait(gates[0]), Say("note."), UseTool("easel__note", {"text": "one"})],
        [Think("Now a drawing."), Wait(gates[1]), drawing.call],
        [Wait(gates[2]), Say("Here it is.")],
    )
    say(page, "Draw")
    expect_order(page, ["First the"])
    gates[0].open()
    expect_order(page, ["First the note.", "Activity"])
    line = page.get_by_role("group", name="Activity").locator("summary")
    expect(line).to_have_text("Now a drawing.")
    gates[1].open()
    expect(line).to_have_text(re.compile("^Running draw"))
    expect_order(page, ["First the note.", "Activity"])
    drawing.finish()
    drawn = ["First the note.", "Activity", "chart"]
    expect_order(page, drawn)
    expect(line).to_have_text(re.compile("Ran note, draw"))
    page.reload()  # in the middle of the turn
    expect_order(page, drawn)
    gates[2].open()
    done(page)
    expect_order(page, [*drawn, "Here it is."])
    page.reload()
    expect_order(page, [*drawn, "Here it is."])


def test_text_of_two_model_calls_is_copied_apart(page: Page, model: ScriptedModel):
    new_conversation(page)
    model.script([Say("First."), UseTool("easel__note", {"text": "one"})], [Say("Second.")])
    say(page, "Go")
    done(page)
    (conversation,) = page.request.get("/api/conversations").json()["items"]
    reply = page.request.get(f"/api/conversations/{conversation['id']}/messages").json()["items"][-1]
    assert reply["content"] == "First.\n\nSecond."
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    reply_shown = page.get_by_role("article", name="Reply")
    reply_shown.get_by_role("button", name="Copy").last.click()
    expect(reply_shown.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == reply["content"]


def test_calls_made_together_are_steps_of_one_line_as_the_model_made_them(
    page: Page, model: ScriptedModel, drawing: Drawing
):
    new_conversation(page)
    calls = [drawing.call, UseTool("easel__note", {"text": "two"})]
    model.script([Say("Both."), *calls], [Say("Done.")])
    say(page, "Draw")
    open_activity(page)
    expect(page.get_by_role("group", name="Tool call: note")).to_contain_text("done")
    expect_order(page, ["Both.", "Activity", "Tool call: draw", "Tool call: note"])
    drawing.finish()
    done(page)
    expect_order(page, ["Both.", "Activity", "Tool call: draw", "Tool call: note", "chart", "Done."])
    page.reload()
    expect_order(page, ["Both.", "Activity", "chart", "Done."])


def test_stopped_reply_keeps_its_order_and_says_which_tool_was_interrupted(
    page: Page, model: ScriptedModel, drawing: Drawing
):
    new_conversation(page)
    model.script([Say("A moment."), drawing.call])
    say(page, "Draw")
    line = page.get_by_role("group", name="Activity").locator("summary")
    expect(line).to_have_text(re.compile("^Running draw"))
    line.focus()
    page.keyboard.press("Escape")
    expect(log(page)).to_contain_text("Stopped.")
    for _ in range(2):
        expect(line).to_contain_text("interrupted")
        expect_order(page, ["A moment.", "Activity"])
        expect(page.get_by_role("button", name="Retry")).to_be_visible()
        page.reload()


def test_late_chart_does_not_move_what_one_reads(page: Page, model: ScriptedModel, drawing: Drawing):
    page.set_viewport_size({"width": 900, "height": 500})
    new_conversation(page)
    notes = [UseTool("easel__note", {"text": f"note {number}"}) for number in range(20)]
    gate = Gate()
    model.script([Say("Many notes."), drawing.call, *notes], [Wait(gate), Say("Done.")])
    say(page, "Draw")
    open_activity(page)
    cards = page.get_by_role("group", name="Tool call: note")
    expect(cards.filter(has_text="done")).to_have_count(20)
    page.locator(".scroller").evaluate(
        "(it, card) => it.scrollTop = card.offsetTop", cards.nth(2).element_handle()
    )
    expect(page.get_by_role("button", name="Jump to latest")).to_be_visible()
    before = _top(cards.nth(8))
    drawing.finish()
    expect(log(page).locator(".chart canvas")).to_be_attached()
    assert abs(_top(cards.nth(8)) - before) <= 1
    gate.open()
    done(page)


SHIFTS = """() => {
    window.shifts = [];
    new PerformanceObserver((list) => window.shifts.push(...list.getEntries().map((it) => it.value)))
        .observe({ type: "layout-shift", buffered: false });
}"""


def test_turn_with_tools_moves_nothing_that_is_shown(page: Page, model: ScriptedModel, drawing: Drawing):
    new_conversation(page)
    gates = [Gate(), Gate(), Gate()]
    model.script(
        [
            Think("First a note."),
            Wait(gates[0]),
            Say("First the note."),
            UseTool("easel__note", {"text": "one"}),
        ],
        [Think("Now a drawing."), Wait(gates[1]), drawing.call],
        [Think("Nearly."), Wait(gates[2]), Say("Here it is.\n\nAnd more.")],
    )
    say(page, "Draw")
    expect(log(page)).to_contain_text("First a note.")
    page.evaluate(SHIFTS)
    for gate, shown in zip(gates[:2], ("Now a drawing.", "Running draw"), strict=True):
        gate.open()
        expect(log(page)).to_contain_text(shown)
    drawing.finish()
    expect(log(page)).to_contain_text("Nearly.")
    expect(log(page).locator(".chart canvas")).to_be_visible()
    gates[2].open()
    done(page)
    page.wait_for_timeout(300)  # whatever comes late comes now
    shifts: list[float] = page.evaluate("window.shifts")
    assert sum(shifts) <= 0.02, shifts


def _top(element: Locator) -> float:
    box = element.bounding_box()
    assert box
    return box["y"]


def test_order_and_timeline_outlive_the_log(tmp_path: Path, model: ScriptedModel, browser: Browser):
    model.script(
        [Say("First the note."), UseTool("easel__note", {"text": "one"})],
        [Think("Now a drawing."), UseTool("easel__draw", {})],
        [Say("Here it is.")],
    )
    shown = [
        "First the note.",
        "Activity",
        "chart",
        "Here it is.",
    ]
    settings = {**settings_for(model), **TOOLS}
    with Server(tmp_path, *lasting_port(), **settings) as server:
        page = browser.new_page(
            viewport=WIDE,  # pyright: ignore[reportArgumentType]
            base_url=server.url,
            locale="en-GB",
            extra_http_headers=server.headers,
        )
        page.set_default_timeout(PATIENCE_MS)
        say(new_conversation(page), "Draw")
        done(page)
        expect_order(page, shown)
        spans = _timeline(page)
        assert spans == ["Model call 1", "note: one", "Model call 2", "draw", "Model call 3"]
    # The server trims logs when it starts, too.
    with Server(tmp_path, "--port", str(server.port), turn_log_ttl_hours="0", **settings):
        _until_trimmed(page)
        page.reload()
        expect_order(page, shown)
        assert _timeline(page) == spans
        page.close()


def _timeline(page: Page) -> list[str]:
    """The bars of the latest turn, in order."""
    page.get_by_role("button", name="Details").last.click()
    drawer = page.get_by_role("dialog", name="Answer details")
    expect(drawer.locator(".timeline li")).not_to_have_count(0)
    titles = drawer.locator(".timeline .title").all_inner_texts()
    drawer.get_by_role("button", name="Close").click()
    return titles


def _until_trimmed(page: Page) -> None:
    """Waits until the events of the latest turn are made from its message."""
    (conversation,) = page.request.get("/api/conversations").json()["items"]
    messages = page.request.get(f"/api/conversations/{conversation['id']}/messages").json()["items"]
    events = f"/api/turns/{messages[-1]['turnId']}/events"
    while '"replayed":true' not in page.request.get(events).text():
        page.wait_for_timeout(50)
