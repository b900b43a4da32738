"""Pictures of the main screens for the README and the guide.

python -m tests.browser.screens    # writes docs/screens/*.png
"""

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, ViewportSize, expect, sync_playwright
from scripts import page as page_build

from tests.browser.conftest import NARROW, QUIET, WIDE, Replying, chromium
from tests.browser.test_talking import done, say
from tests.serving import Server
from threadkeep.testing import Pause, Reply, Say, ScriptedModel, Think, ToolServer, Usage, UseTool

FOLDER = Path(__file__).parents[2] / "docs/screens"
QUARTERS = ["Q1", "Q2", "Q3", "Q4"]
SOLD = {2025: [118, 132, 127, 150], 2026: [141, 158, 149, 187]}

REPLY = """Sales grew by **20 %** over the year before, from 527 to 635 thousand. The last quarter did best:

| Quarter | 2025 | 2026 | Growth |
|---|---:|---:|---:|
| Q3 | 127 | 149 | 17 % |
| Q4 | 150 | 187 | 25 % |

Growth is $g = \\frac{s_{2026}}{s_{2025}} - 1$; the summer dip is the same in both years."""
CHINESE = """全年销售额同比增长 **20%**，从 52.7 万增至 63.5 万，第四季度增长最快：

1. 第三季度有季节性回落；
2. 第四季度达到 18.7 万，增长 25%。

```python
growth = 635 / 527 - 1   # 0.205
```"""
# High enough for a whole answer.
TALL: ViewportSize = {"width": 1280, "height": 990}
TITLES = [
    "Quarterly report, second draft",
    "合同第四条是什么意思？",
    "Names for the new ferry",
    "Why is the sky blue?",
]

ANALYST = {
    "icon": "chart",
    "color": "teal",
    "starters": ["How did our sales develop in 2026?", "Which customers left us?"],
}
OTHERS = [
    {
        "name": "Lawyer",
        "description": "Reads contracts, and says what they mean.",
        "settings": {"icon": "scale", "color": "violet", "starters": ["Is there a notice period?"]},
    },
]


def sales(year: int) -> dict[str, Any]:
    """What was sold in a year and in the one before, by quarter."""
    series = [{"name": str(it), "data": SOLD[it]} for it in (year - 1, year)]
    chart = {"type": "bar", "title": f"Sales in {year}, thousands", "labels": QUARTERS, "series": series}
    return {"total": sum(SOLD[year]), "before": sum(SOLD[year - 1]), "chart_data": chart}


def refund(order: str) -> str:
    """Pays a customer back."""
    return f"Paid back: {order}."


def send_offer(customer: str) -> str:
    """Sends an offer by mail."""
    return f"Sent to {customer}."


def spoken(text: str) -> Sequence[Say]:
    """A text in pieces."""
    return [Say(text[at : at + 20]) for at in range(0, len(text), 20)]


def replies() -> list[Reply]:
    """What the model does, turn by turn."""
    return [
        [
            Think("The person wants the development over the year: "),
            Pause(0.4),
            Think("get both years."),
            Say("I look at the numbers of both years first."),
            _SALES,
        ],
        [*spoken(REPLY), Usage(304, 160, cache_read=1536)],
        [Think("用中文回答。"), Pause(0.3), Say("我先看两年的数据。"), _SALES],
        [*spoken(CHINESE), Usage(1902, 120)],
    ]


_SALES = UseTool("shop__sales", {"year": 2026})


def open_page(browser: Browser, server: Server, locale: str, *, dark: bool = False) -> Page:
    """The page as a person with this language and theme sees it."""
    context = browser.new_context(
        viewport=WIDE,  # pyright: ignore[reportArgumentType]
        locale=locale,
        base_url=server.url,
        color_scheme="dark" if dark else "light",
        device_scale_factor=2,
    )
    return context.new_page()


def shoot(page: Page, name: str, *, size: ViewportSize | None = None) -> None:
    """Takes a picture when everything is drawn."""
    before = page.viewport_size
    if size:
        page.set_viewport_size(size)
    page.mouse.move(0, 0)  # not over anything that shows it
    page.evaluate("document.fonts.ready")
    page.wait_for_timeout(1000)
    page.screenshot(path=FOLDER / f"{name}.png")
    if before:
        page.set_viewport_size(before)


def main() -> None:
    """Takes all pictures."""
    page_build.build()
    FOLDER.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        Replying(*replies()) as model,
        ToolServer(sales, refund, send_offer, name="shop") as shop,
        Server(Path(folder), **_settings(model)) as server,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=chromium(), args=QUIET)
        page = open_page(browser, server, "en-GB")
        with server.client() as client:
            settings = {**ANALYST, "mcpServers": {"shop": shop.settings}}
            body = {"name": "Analyst", "description": "Knows what was sold, and why.", "settings": settings}
            agent = client.post("/api/agents", json=body).json()["id"]
            client.post(f"/api/agents/{agent}/mcp-servers/shop/test")  # its start is not what is shown
            for other in OTHERS:
                client.post("/api/agents", json=other)
            for title in TITLES:
                client.post(f"/api/agents/{agent}/conversations", json={"title": title})
        page.goto(f"/#/new/{agent}")
        say(page, "How did our sales develop in 2026?")
        done(page)
        shoot(page, "conversation", size=TALL)
        page.get_by_role("button", name="Details").click()
        expect(page.get_by_text("Model call 2")).to_be_visible()
        shoot(page, "turn")
        page.keyboard.press("Escape")
        dark = open_page(browser, server, "en-GB", dark=True)
        dark.goto(page.url)
        done(dark)
        shoot(dark, "conversation-dark", size=TALL)
        page.goto("/#/")
        expect(page.get_by_role("heading", name="Recent conversations")).to_be_visible()
        shoot(page, "home")
        page.goto(f"/#/agents/{agent}")
        page.get_by_role("tab", name="Permissions").click()
        page.get_by_role("radiogroup", name="refund").get_by_role("radio", name="Ask").check(force=True)
        shoot(page, "permissions")
        page.get_by_role("button", name="Save").click()
        page.get_by_role("tab", name="Documents").click()
        _documents(page)
        shoot(page, "documents")
        chinese = open_page(browser, server, "zh-CN")
        chinese.set_viewport_size(NARROW)  # pyright: ignore[reportArgumentType]
        chinese.goto(f"/#/new/{agent}")
        chinese.get_by_role("textbox", name="消息").fill("2026 年的销售情况如何？")
        chinese.get_by_role("button", name="发送").click()
        chinese.get_by_role("button", name="重新生成").wait_for()
        shoot(chinese, "conversation-zh-narrow")
        browser.close()


def _settings(model: ScriptedModel) -> dict[str, str]:
    gateway = {"gateway": "openai", "gateway_url": model.url, "model": "scripted"}
    return {**gateway, "mcp_allow_private": "true"}


def _documents(page: Page) -> None:
    text = "# Returns\n\nA customer may return goods within 30 days.\n\n# Shipping\n\nWe ship on weekdays.\n"
    files = [
        {"name": "handbook.md", "mimeType": "text/markdown", "buffer": text.encode()},
        {"name": "价格表.csv", "mimeType": "text/csv", "buffer": "商品,价格\n茶,12\n咖啡,18\n".encode()},
    ]
    page.locator("input[type=file]").set_input_files(files)  # pyright: ignore[reportArgumentType]
    expect(page.get_by_text(re.compile(r"\d passages?"))).to_have_count(2)
    page.get_by_role("searchbox", name="Test search").fill("When can goods be returned?")
    page.get_by_role("searchbox", name="Test search").press("Enter")
    expect(page.get_by_role("group", name="Results")).to_contain_text("30 days")


if __name__ == "__main__":
    main()
