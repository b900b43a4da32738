"""Markdown as HTML: HTML in it is shown as text, and nothing in it loads anything or runs."""

import re
from collections.abc import Sequence
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

MOST_CHARACTERS = 200_000
"""A longer text is shown as it is."""
HIGHEST_HEADING = 3
"""The report itself has the headings above."""

_OPENED = re.compile(r"https?://|mailto:", re.IGNORECASE)


def markdown_html(text: str) -> str:
    """A model's text for a report."""
    if len(text) > MOST_CHARACTERS:
        return f'<pre class="plain">{escape(text)}</pre>'
    parser = _parser()
    tokens = parser.parse(text)
    for token in tokens:
        if token.type in {"heading_open", "heading_close"}:
            token.tag = f"h{min(6, int(token.tag[1]) + HIGHEST_HEADING - 1)}"
    return parser.renderer.render(tokens, parser.options, {})


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt  # noqa: PLC0415 - few requests need it

    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.validateLink = lambda url: bool(_OPENED.match(url))
    parser.add_render_rule("image", _image)
    parser.add_render_rule("link_open", _link)
    return parser


def _image(renderer: object, tokens: Sequence["Token"], index: int, options: Any, env: Any) -> str:
    """A link to it: loading it would reveal to its host who reads the report."""
    token = tokens[index]
    address = str(token.attrs.get("src", ""))
    return f'<a href="{escape(address)}" {_FOREIGN}>{escape(token.content or address)}</a>'


def _link(renderer: object, tokens: Sequence["Token"], index: int, options: Any, env: Any) -> str:
    return f'<a href="{escape(str(tokens[index].attrs.get("href", "")))}" {_FOREIGN}>'


_FOREIGN = 'rel="noopener noreferrer nofollow"'
