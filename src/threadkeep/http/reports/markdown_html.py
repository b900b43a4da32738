"""Markdown as HTML: HTML in it is shown as text, and nothing in it loads anything or runs.

Footnotes, tasks and formulas are by hand: each plugin for them in mdit-py-plugins 0.7 has a rule that takes
quadratic time (10 seconds for 12,000 characters of `[^`), and notes that nothing refers to would be lost.
markdown-it's own tasks would put the box on a line above the text where there are blank lines between items.
"""

import re
from collections.abc import Sequence
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any

from threadkeep.domain.markdown.plain_text import FENCE, FOOTNOTE, FORMULA, REFERENCE

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

MOST_CHARACTERS = 100_000
"""A longer text is shown as it is."""
MOST_CHARACTERS_OF_ALL = 2_000_000
"""Of one report; further texts are shown as they are."""
HIGHEST_HEADING = 3
"""The report itself has the headings above."""

_FORMULA = re.compile(FORMULA, re.DOTALL)
_TASK = re.compile(r"\[([ xX])\][ \t]")
_OPENED = re.compile(r"https?://|mailto:", re.IGNORECASE)


class Typesetter:
    """Typesets the texts of one report, as far as its share of work goes."""

    def __init__(self) -> None:
        self._left = MOST_CHARACTERS_OF_ALL
        self.is_used_up = False
        """Whether a text is shown as it is because others were before it."""

    def html(self, text: str) -> str:
        """A model's text."""
        if len(text) > MOST_CHARACTERS:
            return _plain(text)
        if len(text) > self._left:
            self.is_used_up = True
            return _plain(text)
        self._left -= len(text)
        return markdown_html(text)


def _plain(text: str) -> str:
    return f'<pre class="plain">{escape(text)}</pre>'


def markdown_html(text: str) -> str:
    """A model's text for a report."""
    parser = _parser()
    text, notes = _footnotes(text)
    env: dict[str, Any] = {"notes": {name: number for number, name in enumerate(notes, 1)}}
    tokens = parser.parse(text, env)
    for index, token in enumerate(tokens):
        if token.type == "inline" and index > 1 and tokens[index - 2].type == "list_item_open":
            _mark_task(tokens[index - 2], token)
        if token.type in {"heading_open", "heading_close"}:
            token.tag = f"h{min(6, int(token.tag[1]) + HIGHEST_HEADING - 1)}"
    html = parser.renderer.render(tokens, parser.options, env)
    if not notes:
        return html
    items = "".join(f"<li>{parser.renderInline(note, env)}</li>" for note in notes.values())
    return f'{html}<ol class="footnotes">{items}</ol>'


def _footnotes(text: str) -> tuple[str, dict[str, str]]:
    """The text without its footnotes, and those by their names."""
    kept: list[str] = []
    notes: dict[str, str] = {}
    fence = ""
    for line in text.split("\n"):
        mark = FENCE.match(line)
        if mark and (not fence or mark[1] == fence):
            fence = "" if fence else mark[1]
        note = None if fence else FOOTNOTE.match(line)
        if note:
            notes.setdefault(note[1], line[note.end() :])
        else:
            kept.append(line)
    return "\n".join(kept), notes


def _mark_task(item: "Token", inline: "Token") -> None:
    """An item `[x] done` shows its box as a sign."""
    first = inline.children[0] if inline.children else None
    if first and first.type == "text" and (box := _TASK.match(first.content)):
        first.content = ("☐ " if box[1] == " " else "☑ ") + first.content[box.end() :]
        item.attrSet("class", "task")


def _reference(state: "StateInline", silent: bool) -> bool:
    numbers: dict[str, int] = state.env.get("notes", {})
    found = REFERENCE.match(state.src, state.pos)
    if not found or found[1] not in numbers:
        return False
    if not silent:
        state.push("sup_open", "sup", 1)
        state.push("text", "", 0).content = str(numbers[found[1]])
        state.push("sup_close", "sup", -1)
    state.pos = found.end()
    return True


def _formula(state: "StateInline", silent: bool) -> bool:
    """Its source, set apart: a report has no scripts that could typeset it."""
    found = _FORMULA.match(state.src, state.pos)
    if not found:
        return False
    if not silent:
        token = state.push("code_inline", "code", 0)
        token.content = found[found.lastindex or 0].strip()
        token.attrSet("class", "math block" if found[1] or found[2] else "math")
    state.pos = found.end()
    return True


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt  # noqa: PLC0415 - few requests need it

    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.validateLink = lambda url: bool(_OPENED.match(url))
    parser.inline.ruler.before("escape", "formula", _formula)
    parser.inline.ruler.before("link", "footnote_reference", _reference)
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
