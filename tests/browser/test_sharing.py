"""Sharing: a link made in the dialog, read on its own page, and revoked."""

from playwright.sync_api import BrowserContext, Page, expect

from tests.browser import tour
from tests.browser.conftest import NARROW
from tests.browser.test_access import violations
from tests.browser.test_talking import done, say
from threadkeep.testing import Say, ScriptedModel, UseTool

IS_ON_TOP = """shown => {
  const { x, y, width, height } = shown.getBoundingClientRect();
  return shown.contains(document.elementFromPoint(x + width / 2, y + height / 2));
}"""


def test_conversation_is_shared_read_by_its_link_and_revoked(
    page: Page, context: BrowserContext, model: ScriptedModel
):
    settings = {"mcpServers": {"chaos": tour.CHAOS_SERVER}}
    agent = tour.made(page, "/api/agents", {"name": "Handy", "settings": settings})
    page.goto(f"/#/new/{agent}")
    page.reload()
    model.script(
        [UseTool("chaos__echo", {"text": "hello"})],
        [Say("It said **hello**.")],
        [Say("Only later.")],
    )
    say(page, "Echo hello")
    done(page)
    page.get_by_role("button", name="Share", exact=True).press("Enter")
    dialog = page.get_by_role("dialog", name="Share conversation")
    expect(dialog.get_by_role("heading", name="Share conversation")).to_be_focused()
    assert violations(page) == []
    expect(dialog.get_by_label("Only the messages")).to_be_checked()
    dialog.get_by_label("Everything the agent did").check()
    dialog.get_by_label("Link works").select_option(label="for 7 days")
    dialog.get_by_role("button", name="Create link").click()
    link = dialog.get_by_label("Link ready")
    expect(link).to_be_focused()
    with_tools = link.input_value()
    dialog.get_by_role("button", name="New link").click()
    dialog.get_by_role("button", name="Create link").click()
    only_said = link.input_value()
    expect(dialog.get_by_role("listitem")).to_have_count(2)
    assert violations(page) == []
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    say(page, "And then?")
    expect(page.get_by_role("log")).to_contain_text("Only later.")

    reader = context.new_page()
    reader.goto(with_tools)
    main = reader.get_by_role("main")
    expect(main.get_by_role("heading", name="Echo hello")).to_be_visible()
    expect(reader).to_have_title("Echo hello · Threadkeep")
    expect(main.get_by_role("article", name="Answer")).to_contain_text("It said hello.")
    expect(main).not_to_contain_text("Only later.")
    expect(main).not_to_contain_text("tools and sources aren’t shown")
    main.locator("summary").click()
    expect(main).to_contain_text("echo")
    expect(main.get_by_role("textbox")).to_have_count(0)
    assert violations(reader) == []
    asks = main.get_by_role("button", name="Replay how this answer came about")
    asks.press("Enter")
    drawer = reader.get_by_role("dialog", name="How this answer came about")
    expect(drawer.get_by_role("heading", name="How this answer came about")).to_be_focused()
    replayed = drawer.get_by_role("group", name="Answer at this moment")
    expect(replayed).to_contain_text("It said hello.")
    reader.keyboard.press("ArrowLeft")
    position = drawer.get_by_role("slider")
    position.press("Home")
    expect(replayed).not_to_contain_text("It said hello.")
    assert violations(reader) == []
    position.press("End")
    expect(replayed).to_contain_text("It said hello.")
    reader.set_viewport_size(NARROW)  # pyright: ignore[reportArgumentType]
    assert reader.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert violations(reader) == []
    reader.keyboard.press("Escape")
    expect(asks).to_be_focused()
    reader.set_viewport_size(NARROW)  # pyright: ignore[reportArgumentType]
    reader.get_by_label("Language").select_option("zh")
    expect(main).to_contain_text("2 条消息")
    assert reader.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert violations(reader) == []
    reader.get_by_label("语言").select_option("en")
    reader.goto(only_said)
    expect(main.get_by_role("article", name="Answer")).to_contain_text("It said hello.")
    expect(main.locator("summary")).to_have_count(0)
    expect(main).to_contain_text("The agent’s tools and sources aren’t shown.")

    page.get_by_role("button", name="Share up to here").first.click()
    expect(dialog).to_contain_text("up to the answer you chose")
    for _ in range(2):
        dialog.get_by_role("button", name="Revoke").first.click()
        asked = page.get_by_role("alertdialog")
        expect(asked).to_contain_text("Revoke this link?")
        asked.get_by_role("button", name="Revoke").click()
    expect(dialog.get_by_role("listitem")).to_have_count(0)
    revoked = page.get_by_text("The link no longer works.").last
    expect(revoked).to_be_visible()
    assert revoked.evaluate(IS_ON_TOP)
    for gone in (with_tools, only_said):
        reader.goto(gone)
        expect(reader.get_by_role("heading", name="This link doesn’t work")).to_be_visible()
    assert violations(reader) == []
