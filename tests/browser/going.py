"""Ways that many tests take through the page."""

from playwright.sync_api import Page


def choose(page: Page, menu: str, item: str) -> None:
    """Opens a menu and takes an item of it."""
    page.get_by_role("button", name=menu).click()
    page.get_by_role("menu").get_by_text(item, exact=True).click()


def open_new(page: Page, agent: str) -> None:
    """Loads the page at a new conversation with an agent, of which it may not know yet."""
    was_open = page.url != "about:blank"
    page.goto(f"/#/new/{agent}")
    if was_open:
        page.reload()


def open_agent(page: Page, tab: str) -> None:
    """Opens a tab of the default agent's settings."""
    agents = page.request.get("/api/agents").json()["items"]
    (default,) = [it["id"] for it in agents if it["isDefault"]]
    page.goto(f"/#/agents/{default}")
    page.get_by_role("tab", name=tab).click()
