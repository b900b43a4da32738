"""Whatever a model writes: nothing runs, nothing breaks the layout, nothing freezes, nobody else is asked.

That no other host is asked and no policy is broken is checked for every page by the fixture `context`.
"""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.going import choose
from tests.browser.test_talking import done, log, reply, say
from threadkeep.testing import Say, ScriptedModel

HOSTILE = """<script>window.harmed = 1</script>
<img src=x onerror="window.harmed = 2">
<iframe src="https://evil.example"></iframe>

[click](javascript:window.harmed=3) [data](data:text/html,<script>window.harmed=4</script>)
![pixel](https://evil.example/pixel.png)

$\\href{javascript:window.harmed=5}{x}$ $\\htmlStyle{position:fixed}{y}$ $\\includegraphics{https://evil.example/a}$
"""


def test_nothing_that_a_model_writes_runs_or_is_loaded(page: Page, model: ScriptedModel):
    model.script([Say(HOSTILE)])
    say(page, "Attack")
    done(page)
    expect(reply(page)).to_contain_text("<script>window.harmed = 1</script>")
    expect(reply(page).locator(".formula")).to_have_count(3)
    links: list[str] = reply(page).locator("a").evaluate_all("all => all.map(it => it.href)")
    assert not [link for link in links if link.startswith(("javascript:", "data:"))]
    assert reply(page).locator("img, iframe, script").count() == 0
    assert page.evaluate("window.harmed") is None


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("x" * 100_000, id="a line of 100,000 characters"),
        pytest.param(
            "| a " * 300 + "|\n" + "|---" * 300 + "|\n" + ("| b " * 300 + "|\n") * 30, id="a huge table"
        ),
        pytest.param("[" * 20_000, id="brackets"),
        pytest.param("*a " * 9_000, id="stars"),
        pytest.param("> " * 2_000 + "deep", id="deep quotes"),
        pytest.param("$\\frac{1}{$ and $$\\begin{matrix}$$ and \\[ \\unknown \\]", id="broken formulas"),
        pytest.param("مرحبا بالعالم\n\nשלום עולם\n\nHello", id="right to left"),
        pytest.param("```\n" + "code " * 20_000 + "\n```", id="a long line of code"),
        pytest.param("👩‍👩‍👧‍👦" * 2_000, id="emoji"),
        pytest.param("# " * 500 + "\n\n" + "- " * 500, id="nested marks"),
    ],
)
def test_strange_text_neither_breaks_the_layout_nor_freezes(page: Page, model: ScriptedModel, text: str):
    model.script([Say(text)], [Say("Still here.")])
    say(page, "Strange")
    done(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    assert log(page).evaluate("it => it.scrollWidth <= it.clientWidth + 1")
    say(page, "And now?")
    expect(reply(page)).to_have_text("Still here.")


def test_title_of_emoji_and_markup_is_shown_as_it_is(page: Page):
    say(page, "Hi")
    done(page)
    choose(page, "More actions", "Rename")
    title = "👩‍👩‍👧‍👦🏳️‍🌈" * 8 + "<b>x</b>"
    page.get_by_role("textbox", name="Title").fill(title)
    page.keyboard.press("Enter")
    expect(page.get_by_role("navigation", name="Conversations").get_by_role("link")).to_have_text([title])
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
