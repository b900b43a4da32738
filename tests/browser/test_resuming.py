"""Never losing it: reloads, lost connections, a killed server, two tabs."""

from pathlib import Path

from playwright.sync_api import Browser, BrowserContext, Page, Route, expect

from tests.browser.conftest import settings_for
from tests.browser.test_talking import done, log, reply, say
from tests.serving import Server, lasting_port
from threadkeep.testing import Gate, Say, ScriptedModel, Wait


def test_stream_goes_on_after_a_reload(page: Page, model: ScriptedModel):
    gate = Gate()
    model.script([Say("One. "), Wait(gate), Say("Two.")])
    say(page, "Count")
    expect(log(page)).to_contain_text("One.")
    page.reload()
    expect(log(page)).to_contain_text("One.")
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    gate.open()
    done(page)
    expect(reply(page)).to_have_text("One. Two.")


def test_turn_goes_on_while_the_page_is_closed(context: BrowserContext, model: ScriptedModel):
    gate = Gate()
    model.script([Say("One. "), Wait(gate), Say("Two.")])
    first = context.new_page()
    first.goto("/")
    say(first, "Count")
    expect(log(first)).to_contain_text("One.")
    first.close()
    gate.open()
    second = context.new_page()
    second.goto("/")
    second.get_by_role("navigation").get_by_role("link", name="Count").click()
    expect(reply(second)).to_have_text("One. Two.")


def test_lost_network_is_shown_and_nothing_is_doubled(
    page: Page, context: BrowserContext, model: ScriptedModel
):
    gates = [Gate(), Gate()]
    model.script([Say("One. "), Wait(gates[0]), Say("Two. "), Wait(gates[1]), Say("Three.")])
    # The first connection breaks after what it has brought; further ones stand.
    broken = False

    def cut(route: Route) -> None:
        nonlocal broken
        if broken:
            route.continue_()
        else:
            broken = True
            route.abort("connectionreset")

    page.route("**/api/turns/*/events", cut)
    say(page, "Count")
    expect(log(page)).to_contain_text("One.")
    context.set_offline(True)
    gates[0].open()
    context.set_offline(False)
    expect(log(page)).to_contain_text("Two.")
    gates[1].open()
    done(page)
    expect(reply(page)).to_have_text("One. Two. Three.")
    expect(page.get_by_text("Reconnecting")).to_have_count(0)


def test_two_tabs_stay_in_step(page: Page, context: BrowserContext, model: ScriptedModel):
    model.script([Say("Hello.")])
    say(page, "Hi")
    done(page)
    other = context.new_page()
    other.goto(page.url)
    expect(log(other)).to_contain_text("Hello.")
    gate = Gate()
    model.script([Say("Again "), Wait(gate), Say("hello.")])
    say(page, "Once more")
    expect(log(other)).to_contain_text("Once more")
    expect(log(other)).to_contain_text("Again")
    other.get_by_role("button", name="Stop").wait_for()
    gate.open()
    done(page)
    done(other)
    for tab in (page, other):
        expect(reply(tab)).to_have_text("Again hello.")


def test_agent_that_does_not_continue_keeps_the_text_and_one_click_continues(
    tmp_path: Path, model: ScriptedModel, browser: Browser
):
    model.script([Say("Once upon a time"), Wait(Gate())], [Say("there was a fox.")])
    with Server(tmp_path, *lasting_port(), **settings_for(model)) as server:
        page = browser.new_page(locale="en-GB", base_url=server.url)
        body = {"name": "Teller", "settings": {"onCrash": "interrupt"}}
        agent = page.request.post("/api/agents", data=body).json()["id"]
        page.goto(f"/#/new/{agent}")
        say(page, "A story")
        expect(log(page)).to_contain_text("Once upon a time")
        server.kill()
    expect(page.get_by_text("Reconnecting")).to_be_visible()
    with Server(tmp_path, "--port", str(server.port), **settings_for(model)):
        expect(log(page).get_by_role("alert")).to_contain_text("interrupted")
        expect(log(page)).to_contain_text("Once upon a time")
        page.get_by_role("button", name="Continue", exact=True).click()
        expect(log(page)).to_contain_text("there was a fox.")
        expect(log(page)).to_contain_text("Once upon a time")
        page.close()
