"""Markdown of a model in a report: typeset, and harmless whatever it says."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadkeep.http.reports.markdown_html import MOST_CHARACTERS, Typesetter, markdown_html

ALLOWED = "p|h[3-6]|strong|em|s|a|ul|ol|li|blockquote|pre|code|table|thead|tbody|tr|th|td|hr|br|sup"
TAG = re.compile(rf"</?(?:{ALLOWED})(?: (?:href|class|rel|style|start)=\"[^\"<>]*\")*(?: /)?>")


def test_markdown_is_typeset():
    text = "# Ferries\n\n**At noon**, ~~not~~ `12:00`.\n\n- one\n- two\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n"
    html = markdown_html(text)
    assert "<h3>Ferries</h3>" in html  # below the report's own headings
    assert "<strong>At noon</strong>, <s>not</s> <code>12:00</code>." in html
    assert html.count("<li>") == 2 and html.count("<td") == 2


def test_footnotes_tasks_and_formulas_are_set():
    html = markdown_html("Tides[^m] at $E=mc^2$, for $5 or $6.\n\n- [ ] go\n- [x] see\n\n[^m]: The *moon*.\n")
    assert 'Tides<sup>1</sup> at <code class="math">E=mc^2</code>, for $5 or $6.' in html
    assert '<li class="task">☐ go</li>' in html and '<li class="task">☑ see</li>' in html
    assert html.endswith('<ol class="footnotes"><li>The <em>moon</em>.</li></ol>')


def test_images_are_links_and_nothing_loads():
    html = markdown_html("![a ferry](https://example.org/f.png)")
    assert html.strip() == (
        '<p><a href="https://example.org/f.png" rel="noopener noreferrer nofollow">a ferry</a></p>'
    )


@pytest.mark.parametrize(
    "address", ["javascript:alert(1)", "data:text/html,x", "vbscript:x", "//host", "/api/me"]
)
def test_links_lead_to_other_sites_or_nowhere(address: str):
    assert "<a " not in markdown_html(f"[x]({address}) <{address}> ![y]({address})")


def test_very_long_text_is_shown_as_it_is():
    typesetter = Typesetter()
    html = typesetter.html("<" * (MOST_CHARACTERS + 1))
    assert html.startswith('<pre class="plain">&lt;') and "<" not in html[20:-6]
    assert not typesetter.is_used_up


def test_texts_after_many_others_are_shown_as_they_are(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("threadkeep.http.reports.markdown_html.MOST_CHARACTERS_OF_ALL", 10)
    typesetter = Typesetter()
    assert typesetter.html("*first*") == "<p><em>first</em></p>\n"
    assert typesetter.html("*second*") == '<pre class="plain">*second*</pre>'
    assert typesetter.html("*3*") == "<p><em>3</em></p>\n"
    assert typesetter.is_used_up


PIECES = [
    "<script>", "[x](", "](", ")", "![", '"', "'", "`", "```\n", "\n", "javascript:", "https://a", "> ", "- ",
    "# ", "|", "---", "*", "<b onclick=x>", "&lt;", "\\", "<!--", '[a]: https://x "t"\n', "x",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_nothing_but_typesetting_gets_through(text: str):
    rest = TAG.sub("", markdown_html(text))
    assert "<" not in rest and ">" not in rest
