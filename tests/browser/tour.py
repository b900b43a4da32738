"""Every screen of the page, and how one gets there."""

import re
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Locator, Page, expect

from tests.browser.going import choose, open_agent
from tests.browser.test_talking import done, log, say
from tests.mcp.running import CHAOS
from threadkeep.testing import Fail, Say, ScriptedModel, Think, UseTool

RICH = """# Title

A [link](https://example.org), `code` and $x^2$.

| a | b |
|---|---|
| 1 | 2 |

```python
def f(): ...
```

- [x] done
"""
CHAOS_SERVER = {"command": "python", "args": ["-I", "-S", str(CHAOS), "good"]}
HANDBOOK = b"# Returns\n\nA customer may return goods within 30 days.\n\n# Shipping\n\nWe ship on weekdays.\n"

Screen = Callable[[Page, ScriptedModel], None]


def welcome(page: Page, _: ScriptedModel) -> None:
    """Where one begins."""
    expect(page.get_by_role("textbox", name="Message")).to_be_visible()


def conversation(page: Page, model: ScriptedModel) -> None:
    """An answer with everything that Markdown has, and the thoughts before it."""
    model.script([Think("Well."), Say(RICH)])
    say(page, "Everything, please")
    done(page)
    page.get_by_role("group", name="Activity").locator("summary").click()
    expect(log(page)).to_contain_text("Well.")


def tell_nothing(page: Page) -> None:
    """What others do reaches the page only when it asks."""
    page.route("**/api/me/events", lambda route: route.abort())


def branches(page: Page, model: ScriptedModel) -> None:
    """A question and an answer with versions, one being edited, and a path that has moved meanwhile."""
    model.script([Say("First.")], [Say("Second.")], [Say("Third.")])
    box = page.get_by_role("textbox", name="Message")
    say(page, "Choose")
    done(page)
    page.get_by_role("button", name="Edit").click()
    box.fill("Choose well")
    box.press("Enter")
    expect(log(page)).to_contain_text("Second.")
    done(page)
    page.get_by_role("button", name="Regenerate").click()
    expect(log(page)).to_contain_text("Third.")
    done(page)
    tell_nothing(page)
    page.reload()
    expect(log(page)).to_contain_text("Third.")
    (conversation,) = page.request.get("/api/conversations").json()["items"]
    path = f"/api/conversations/{conversation['id']}"
    asked = page.request.get(f"{path}/messages").json()["items"][0]
    page.request.post(f"{path}/path", data={"messageId": asked["siblings"]["ids"][0]})
    page.get_by_role("button", name="Edit").click()
    box.press("Enter")
    expect(page.get_by_role("button", name="Show latest")).to_be_visible()


def failure(page: Page, model: ScriptedModel) -> None:
    """An answer that broke off, and again when its call was restarted."""
    model.script(*[[Say("Half"), Fail("overloaded")]] * 2)
    say(page, "And now fail")
    expect(log(page).get_by_role("alert")).to_be_visible()


def details(page: Page, model: ScriptedModel) -> None:
    """What happened in a turn."""
    conversation(page, model)
    open_details(page)


def open_details(page: Page) -> None:
    """Opens the drawer of the latest turn."""
    page.get_by_role("button", name="Details").click()
    expect(page.get_by_text("Model call 1")).to_be_visible()


def tools(page: Page, model: ScriptedModel) -> None:
    """Steps of tools, one open, with a chart and a file."""
    agent = made(page, "/api/agents", {"name": "Handy", "settings": {"mcpServers": {"chaos": CHAOS_SERVER}}})
    page.goto(f"/#/new/{agent}")
    page.reload()
    calls = [UseTool(f"chaos__{name}", {}) for name in ("chart", "picture", "fail")]
    model.script(calls, [Say("Here they are.")])
    say(page, "Use your tools")
    done(page)
    # First, because it comes late: what one opens would be scrolled away by it.
    expect(log(page).locator(".chart canvas")).to_be_visible()
    page.get_by_role("group", name="Activity").locator("summary").click()
    page.get_by_role("group", name="Tool call: fail").locator("summary").click()
    expect(page.get_by_role("group", name="Files").get_by_role("button")).to_be_visible()


def sources(page: Page, model: ScriptedModel) -> None:
    """An answer from a document."""
    documents(page, model)
    query = "When can goods be returned?"
    model.script([UseTool("search_documents", {"query": query})], [Say("Within 30 days [1].")])
    page.get_by_role("button", name="Start chat").click()
    say(page, query)
    done(page)
    expect(page.get_by_role("group", name="Sources")).to_contain_text("handbook.md")


def summary(page: Page, _: ScriptedModel) -> None:
    """A conversation whose earlier part is summarized."""
    conversation_id = long_conversation(page)
    made(page, f"/api/conversations/{conversation_id}/compact", {"keepLast": 4})
    page.goto(f"/#/c/{conversation_id}")
    page.get_by_role("group", name="Summary of earlier messages").locator("summary").click()


def found(page: Page, _: ScriptedModel) -> None:
    """Messages in which a word was said."""
    long_conversation(page)
    expect(search(page, "Question", 6)).to_have_count(3)


def search(page: Page, query: str, count: int = 1) -> Locator:
    """Looks for a word until it is found so often: messages are made searchable behind the turns."""
    looked = page.request.get("/api/search", params={"q": query})
    while sum(it["messageId"] is not None for it in looked.json()["items"]) < count:
        page.wait_for_timeout(100)
        looked = page.request.get("/api/search", params={"q": query})
    expect(page.get_by_role("main")).to_be_visible()
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Search or run a command").fill(query)
    return page.get_by_role("option").filter(has=page.locator(".snippet"))


def gone(page: Page, _: ScriptedModel) -> None:
    """A conversation that is not there."""
    page.goto("/#/c/0198c0de-0000-7000-8000-000000000000")
    expect(page.get_by_role("heading", name="Conversation not found", level=1)).to_be_visible()


def briefings(page: Page, _: ScriptedModel) -> None:
    """The inbox."""
    agent = made(page, "/api/agents", {"name": "Watch"})
    body = {"agentId": agent, "userId": "local", "title": "Review耗时超标", "summary": "中位耗时30小时"}
    for priority in ("P0", "P1", "P2", "P3"):
        made(page, "/api/briefings", {**body, "priority": priority})
    page.goto("/#/briefings")
    page.reload()
    expect(page.get_by_role("button", name="Continue")).to_have_count(4)


def briefing_card(page: Page, model: ScriptedModel) -> None:
    """A conversation about a briefing."""
    briefings(page, model)
    page.get_by_role("button", name="Continue").first.click()
    expect(log(page).get_by_role("article", name="Briefing: Review耗时超标")).to_be_visible()


def usage(page: Page, model: ScriptedModel) -> None:
    """What was spent."""
    conversation(page, model)
    choose(page, "Profile", "Usage")
    page.get_by_text("By day").click()
    expect(page.get_by_role("table", name="By day")).to_be_visible()


def agents(page: Page, _: ScriptedModel) -> None:
    """All agents, and what can be done with one."""
    made(page, "/api/agents", {"name": "Advisor", "description": "Gives advice."})
    page.goto("/#/agents")
    page.get_by_role("button", name="More actions for Advisor").click()
    expect(page.get_by_role("menuitem", name="Share")).to_be_visible()


def my_settings(page: Page, _: ScriptedModel) -> None:
    """Who one is, language and theme."""
    page.goto("/#/settings")
    expect(page.get_by_text(re.compile(r"Threadkeep \d"))).to_be_visible()


def running(page: Page, model: ScriptedModel) -> None:
    """What runs or waits, for operators."""
    approval(page, model)
    page.goto("/#/running")
    expect(page.get_by_role("row", name=re.compile("Waits for a person"))).to_be_visible()


def keys(page: Page, _: ScriptedModel) -> None:
    """API keys: one for everything, one for one agent."""
    agent = made(page, "/api/agents", {"name": "Advisor"})
    made(page, "/api/keys", {"name": "Nightly report", "scopes": ["read"]})
    limited = {"agents": [agent], "budgetMonth": "12.50", "expiresAt": "2999-01-01T00:00:00Z"}
    made(page, "/api/keys", {"name": "Web shop", "scopes": ["chat"], **limited})
    page.goto("/#/keys")
    expect(page.get_by_text("Only for Advisor")).to_be_visible()


def key_form(page: Page, _: ScriptedModel) -> None:
    """A new key, limited to some agents."""
    made(page, "/api/agents", {"name": "Advisor"})
    page.reload()
    page.goto("/#/keys")
    page.get_by_role("button", name="New key").click()
    page.get_by_role("radio", name="Only some").check()
    expect(page.get_by_role("checkbox", name="Advisor")).to_be_visible()


def new_key(page: Page, model: ScriptedModel) -> None:
    """A key, shown once, and programs that use it."""
    key_form(page, model)
    page.get_by_role("textbox", name="Name").fill("Web shop")
    page.get_by_role("checkbox", name="Advisor").check()
    page.get_by_role("button", name="Create key").click()
    expect(page.get_by_role("radio", name="TypeScript")).to_be_visible()


def settings(tab: str) -> Screen:
    """A tab of an agent's settings."""

    def show(page: Page, _: ScriptedModel) -> None:
        open_agent(page, tab)
        expect(page.get_by_text("Loading…")).to_have_count(0)

    return show


def server_form(page: Page, model: ScriptedModel) -> None:
    """Adding an MCP server."""
    settings("Tools")(page, model)
    page.get_by_role("button", name="Add server").click()
    page.get_by_role("textbox", name="Or paste MCP JSON").fill("no JSON")
    expect(page.get_by_text("This isn’t valid MCP JSON.")).to_be_visible()


def documents(page: Page, _: ScriptedModel) -> None:
    """Documents of an agent, one of them broken, files that it did not take, and a search."""
    agent = made(page, "/api/agents", {"name": "Librarian"})
    page.goto(f"/#/agents/{agent}")
    page.get_by_role("tab", name="Documents").click()
    chooser = page.locator("input[type=file]")
    ready = page.get_by_role("listitem").filter(has_text=re.compile("^handbook.md"))
    chooser.set_input_files({"name": "handbook.md", "mimeType": "text/markdown", "buffer": HANDBOOK})
    expect(ready).to_contain_text("ready")
    files = [
        {"name": "broken.pdf", "mimeType": "application/pdf", "buffer": b"%PDF-1.7 nonsense"},
        {"name": "photo.png", "mimeType": "image/png", "buffer": b"\x89PNG\r\n\x1a\n\x00\x00"},
        {"name": "handbook (1).md", "mimeType": "text/markdown", "buffer": HANDBOOK},
    ]
    chooser.set_input_files(files)  # pyright: ignore[reportArgumentType]
    refused = page.get_by_role("list", name="Uploads").get_by_role("listitem")
    expect(refused.filter(has_text="photo.png")).to_contain_text("This file type isn’t supported.")
    expect(refused.filter(has_text="handbook (1).md")).to_contain_text("already has this file")
    expect(refused).to_have_count(2)
    expect(page.get_by_role("listitem").filter(has_text="broken.pdf")).to_contain_text("failed")
    page.get_by_role("searchbox", name="Test search").fill("When can I return it?")
    page.keyboard.press("Enter")
    expect(page.get_by_role("group", name="Results")).to_contain_text("30 days")


def approval(page: Page, model: ScriptedModel) -> None:
    """A turn that waits for the user to allow a call."""
    settings = {"mcpServers": {"chaos": CHAOS_SERVER}, "tools": {"chaos.picture": {"access": "ask"}}}
    agent = made(page, "/api/agents", {"name": "Careful", "settings": settings})
    page.goto(f"/#/new/{agent}")
    page.reload()
    model.script([Say("I need a picture first."), UseTool("chaos__picture", {})])
    say(page, "Draw something")
    expect(log(page).get_by_role("button", name="Allow once")).to_be_visible()


def put_away(action: str, title: str) -> Screen:
    """Conversations that are archived or deleted, the menu of one beside them."""

    def show(page: Page, _: ScriptedModel) -> None:
        agent = made(page, "/api/agents", {"name": "Brief"})
        for name in ("Ferry", "Tea", "A report with a title that is longer than the list is wide"):
            made(page, f"/api/agents/{agent}/conversations", {"title": name})
        for name in ("Ferry", "Tea"):
            choose(page, f"Actions for {name}", action)
        choose(page, "Profile", title)
        page.reload()  # toasts go by themselves, at any moment
        expect(page.get_by_role("main").get_by_role("listitem")).to_have_count(2)

    return show


def row_menu(page: Page, _: ScriptedModel) -> None:
    """What can be done with a conversation."""
    agent = made(page, "/api/agents", {"name": "Brief"})
    made(page, f"/api/agents/{agent}/conversations", {"title": "Ferry"})
    page.get_by_role("button", name="Actions for Ferry").click()


def profile_menu(page: Page, _: ScriptedModel) -> None:
    """What is the user's own."""
    page.get_by_role("button", name="Profile").click()


def palette(page: Page, _: ScriptedModel) -> None:
    """Everything by a few letters."""
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    page.keyboard.press("Control+k")
    expect(page.get_by_role("combobox", name="Search or run a command")).to_be_focused()


def new_agent(page: Page, _: ScriptedModel) -> None:
    """Making an agent."""
    page.goto("/#/agents/new")
    expect(page.get_by_role("button", name="Create agent")).to_be_visible()


SCREENS: dict[str, Screen] = {
    "welcome": welcome,
    "conversation": conversation,
    "branches": branches,
    "failure": failure,
    "details": details,
    "tools": tools,
    "sources": sources,
    "summary": summary,
    "found": found,
    "gone": gone,
    "briefings": briefings,
    "briefing card": briefing_card,
    "usage": usage,
    "agents": agents,
    "my settings": my_settings,
    "running turns": running,
    "keys": keys,
    "key form": key_form,
    "new key": new_key,
    "general": settings("General"),
    "prompt": settings("Prompt"),
    "server form": server_form,
    "documents": documents,
    "permissions": settings("Permissions"),
    "limits": settings("Advanced"),
    "new agent": new_agent,
    "approval": approval,
    "deleted": put_away("Delete", "Recently deleted"),
    "row menu": row_menu,
    "profile menu": profile_menu,
    "palette": palette,
}


def made(page: Page, path: str, body: dict[str, Any]) -> str:
    """Makes something over HTTP; its id."""
    response = page.request.post(path, data=body)
    assert response.ok, response.text()
    return response.json()["id"]


def long_conversation(page: Page) -> str:
    """A conversation of twelve messages; its id."""
    agent = made(page, "/api/agents", {"name": "Brief", "settings": {"compactionThreshold": 4}})
    conversation_id = made(page, f"/api/agents/{agent}/conversations", {})
    path = f"/api/conversations/{conversation_id}/messages?wait=true"
    for number in range(6):
        page.request.post(
            path, data={"content": f"Question {number}"}, headers={"Accept": "application/json"}
        )
    return conversation_id
