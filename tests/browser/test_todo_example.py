"""The to-do application with its chat, as a person sees it."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.hosts.todo_example import running_todo
from threadkeep.testing import Say, ScriptedModel, UseTool


@pytest.fixture
def server(browser: Browser, tmp_path: Path, model: ScriptedModel) -> Iterator[SimpleNamespace]:
    """The application; the page of the chat is built by then."""
    with running_todo(tmp_path, gateway="openai", gateway_url=model.url, model="scripted") as url:
        yield SimpleNamespace(url=url, headers={})


def test_person_signs_in_and_has_the_chat_add_a_task(page: Page, model: ScriptedModel):
    model.script([UseTool("tasks__add_task", {"title": "Buy oat milk"})], [Say("It is on your list.")])
    page.goto("/chat/")  # which is for those who are signed in
    expect(page.get_by_text("Sign in to the application first")).to_be_visible()
    page.goto("/")
    page.get_by_label("Name").fill("alice")
    page.get_by_label("Password").fill("correct horse")
    page.get_by_role("button", name="Register").click()
    expect(page.get_by_role("heading", name="Tasks of alice")).to_be_visible()
    tasks = page.get_by_role("list", name="Tasks").get_by_role("listitem")
    expect(tasks).to_have_count(0)
    chat = page.frame_locator("iframe[title=Chat]")
    expect(chat.get_by_role("heading", level=1)).to_contain_text("Todo")  # the application's own agent
    chat.get_by_role("textbox", name="Message").fill("Put oat milk on my list")
    chat.get_by_role("button", name="Send").click()
    expect(chat.get_by_role("article", name="Reply").last).to_contain_text("It is on your list.")
    expect(chat.get_by_role("group", name="Activity")).to_contain_text("Ran add_task")
    expect(tasks).to_contain_text(["Buy oat milk"])
    # And both are there when they come back
    page.get_by_role("button", name="Sign out").click()
    page.get_by_label("Name").fill("alice")
    page.get_by_label("Password").fill("correct horse")
    page.get_by_role("button", name="Sign in").click()
    expect(tasks).to_contain_text(["Buy oat milk"])
    chat.get_by_role("navigation", name="Conversations").get_by_role("link").first.click()
    expect(chat.get_by_role("log", name="Conversation")).to_contain_text("It is on your list.")
