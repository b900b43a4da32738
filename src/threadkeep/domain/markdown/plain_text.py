"""Markdown as the text that a reader sees, for excerpts: without marks, link targets and table rules.

A formula keeps its source without its signs; a footnote is a line, and nothing refers to it.

Line by line and with patterns that never go back over what they have read, so that it costs the same for
any text. What it doesn't know stays as it is. By hand because every search hit needs it, and clients import
it: markdown-it takes two to four times as long for usual texts and up to a thousand times for hostile ones.
"""

import re
from collections.abc import Iterator

FENCE = re.compile(r" {0,3}(```|~~~)")
FOOTNOTE = re.compile(r"\A {0,3}\[\^([^\[\]\s]++)\]:[ \t]*+")
REFERENCE = re.compile(r"\[\^([^\[\]\s]++)\]")
# Money isn't a formula: no blank follows a formula's first `$` or precedes its last, and no digit follows it.
FORMULA = (
    r"\$\$((?:[^$\\]++|\\.)+)\$\$|\\\[((?:[^\\]++|\\[^\[\]])+)\\\]|\\\(((?:[^\\]++|\\[^()])+)\\\)"
    r"|\$(?![\s$])((?:[^$\\]++|\\.)+)(?<=\S)\$(?![\d$])"
)
# A line across the page, one below a table's head or a heading, or one that only begins or ends a formula.
_RULE = re.compile(r"(?:[ \t:]*+[-*_|]){3}[ \t|:*_-]*+|[ \t]*+(?:=++|\$\$|\\[\[\]])[ \t]*+")
_QUOTE = re.compile(r"\A[ \t]*+>[ \t>]*+")
_HEADING = re.compile(r"\A {0,3}#{1,6}[ \t]++|\A {0,3}#{1,6}\Z")
_BULLET = re.compile(r"\A[ \t]*+[-*+][ \t]++(?:\[[ xX]\][ \t]++)?")
_CELL_END = re.compile(r"(?<!\\)\|")
# Marks don't count in code, in a formula, or right after a backslash.
_LITERAL = re.compile(r"`{1,3}([^`]++)`{1,3}|" + FORMULA + r"|\\([!-/:-@\[-`{-~])")
_LINK = re.compile(r"!?\[([^\[\]]*+)\]\([^()\s\0]*+(?:[ \t]+\"[^\"\0]*+\")?\)")
_EMPHASIS = re.compile(
    r"(?:\*{1,3}(?=\S)([^*]++)(?<=\S)\*{1,3}|~~(?=\S)([^~]++)(?<=\S)~~"
    r"|(?<![^\W_])_{1,3}(?=\S)([^_]++)(?<=\S)_{1,3}(?![^\W_]))"
)


def plain_text(markdown: str) -> str:
    """The text of a message in Markdown, with its lines but without empty ones."""
    return "\n".join(line for line in _lines(markdown) if line and not line.isspace())


def _lines(markdown: str) -> Iterator[str]:
    fence = ""
    for line in markdown.replace("\0", "").splitlines():
        mark = FENCE.match(line)
        if mark and (not fence or mark[1] == fence):
            fence = "" if fence else mark[1]
        elif fence:
            yield line
        elif not _RULE.fullmatch(line):
            yield _inline(_without_block_marks(line))


def _without_block_marks(line: str) -> str:
    line = FOOTNOTE.sub("", _QUOTE.sub("", line))
    if heading := _HEADING.match(line):
        return _without_closing_marks(line[heading.end() :].rstrip())
    if line.lstrip().startswith("|"):
        return " · ".join(cell.strip() for cell in _CELL_END.split(line.strip(" \t|")))
    return _BULLET.sub("• ", line)


def _without_closing_marks(heading: str) -> str:
    text = heading.rstrip("#")
    return text.rstrip() if not text or text[-1] in " \t" else heading


def _inline(line: str) -> str:
    literals: list[str] = []

    def put_aside(match: re.Match[str]) -> str:
        literals.append(match[match.lastindex or 0].strip() or match[0])
        return "\0"

    line = REFERENCE.sub("", _LITERAL.sub(put_aside, line))
    line = _LINK.sub(r"\1", _LINK.sub(r"\1", line))  # a link may be around an image
    for _ in range(2):  # bold around italic
        line = _EMPHASIS.sub(lambda match: match[1] or match[2] or match[3], line)
    restored = iter(literals)
    return re.sub("\0", lambda _: next(restored), line)
