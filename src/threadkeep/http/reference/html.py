"""The parts of HTML that the reference page is made of.

Every text of the document passes `escape` (or `marked`, which also marks `code`) on its way.
"""

import json
import re
from html import escape

CODE = re.compile(r"`([^`]+)`")
_COLUMNS = ("Name", "In", "Type", "Default", "Constraints", "Description")


def marked(text: str) -> str:
    """A text with its `code` marked."""
    return CODE.sub(r"<code>\1</code>", escape(text))


def as_json(value: object, indent: int | None = None) -> str:
    """A value as people write it."""
    return json.dumps(value, indent=indent, ensure_ascii=False)


def field_name(name: str, mark: str) -> str:
    """A field, and whether it must be there or may be missing."""
    return f"<code>{escape(name)}</code>" + (f' <em class="{mark}">{mark}</em>' if mark else "")


def sample(title: str, text: str) -> str:
    """A block of code that a keyboard can scroll; a long address breaks before a variable."""
    inside = escape(text, quote=False).replace("/$", "<wbr>/$")  # here, quotes end nothing
    code = f'<pre tabindex="0"><code>{inside}</code></pre>'
    return f'<figure class="{title.lower()}"><figcaption>{title}</figcaption>{code}</figure>'


def code_list(codes: dict[str, list[str]]) -> str:
    """Error codes by their status."""
    items = (
        f"<li><b>{escape(status)}</b> {' '.join(f'<code>{escape(name)}</code>' for name in names)}</li>"
        for status, names in sorted(codes.items())
    )
    return f'<ul class="statuses">{"".join(items)}</ul>'


def table(rows: list[tuple[str, ...]]) -> str:
    """A table of the columns that have something to say."""
    used = [number for number in range(len(_COLUMNS)) if any(row[number] for row in rows)]
    heads = "".join(f'<th scope="col">{_COLUMNS[number]}</th>' for number in used)
    lines = ("".join(_cell(_COLUMNS[number], row[number]) for number in used) for row in rows)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>" if rows else ""


def _cell(column: str, text: str) -> str:
    """A cell; an empty one has no style."""
    return f'<td class="{column.lower()}">{text}</td>' if text else "<td></td>"
