"""A page that stays open while its server is updated: what it doesn't know or can't load breaks nothing."""

import json
import re
from typing import Any

from playwright.sync_api import Page, Route, expect

from tests.browser.test_talking import done, reply, say
from threadkeep.testing import Say, ScriptedModel, Think

NEW_EVENT = {"type": "hologram", "at": 1, "shape": {"points": [1, 2, 3]}}
NEW_PART = {"type": "hologram", "shape": {"points": [1, 2, 3]}, "iteration": 1}
ONE_CONVERSATION = re.compile(r"/api/conversations/[0-9a-f-]{36}(/messages)?(\?.*)?$")


def as_newer_server(page: Page) -> None:
    """From now on, the server sends what this page has never heard of, everywhere."""

    def extend_stream(route: Route) -> None:
        response = route.fetch()
        events = [json.loads(it) for it in re.findall(r"^data: (.*)$", response.text(), re.MULTILINE)]
        extended = [it for event in events for it in (event | {}, NEW_EVENT | {"turn_id": event["turn_id"]})]
        frames = [
            f"id: {seq}\nevent: {event['type']}\ndata: {json.dumps(event | {'seq': seq})}\n\n"
            for seq, event in enumerate(extended[:-1], 1)  # nothing follows the end of a turn
        ]
        route.fulfill(response=response, body="".join(frames))

    def extend_messages(route: Route) -> None:
        if route.request.method != "GET":
            return route.fallback()
        response = route.fetch()
        found: dict[str, Any] = response.json()
        for message in found.get("messages", found.get("items", [])):
            message["parts"] = [NEW_PART, *message["parts"], NEW_PART]
            message["hologram"] = True
        return route.fulfill(response=response, json=found)

    page.route("**/api/turns/*/events", extend_stream)
    page.route(ONE_CONVERSATION, extend_messages)


def test_page_skips_what_a_newer_server_sends_and_shows_the_rest(page: Page, model: ScriptedModel):
    as_newer_server(page)
    model.script([Think("Let me think."), Say("Things "), Say("fall.")], [Say("Always.")])
    say(page, "What is gravity?")
    done(page)
    expect(reply(page)).to_have_text("Things fall.")
    page.reload()
    done(page)
    expect(reply(page)).to_have_text("Things fall.")
    say(page, "Always?")
    expect(reply(page)).to_have_text("Always.")
    done(page)
    expect(page.get_by_role("alert")).to_have_count(0)


def test_page_whose_files_are_gone_offers_to_reload_and_keeps_what_was_typed(page: Page):
    box = page.get_by_role("textbox", name="Message")
    box.fill("Half a thought")
    page.route("**/assets/*", lambda route: route.fulfill(status=404))
    page.evaluate("location.hash = '#/settings'")
    expect(page.get_by_role("alert")).to_contain_text("It may have been updated.")
    page.unroute("**/assets/*")
    page.get_by_role("button", name="Reload").click()
    expect(page.get_by_role("heading", level=1, name="Settings")).to_be_visible()
    page.go_back()
    expect(box).to_have_value("Half a thought")
