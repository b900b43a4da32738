"""Whether what a command printed is what a page shows. `…` stands for anything."""

import json
import re
from typing import Any, cast

ANYTHING = "…"


def agrees_as_text(shown: str, printed: str) -> bool:
    """Line by line but for spaces at the ends; a line that is only `…` stands for any number of lines."""
    return _matches(_trimmed(shown), _trimmed(printed))


def agrees_as_json(shown: str, printed: str) -> bool:
    """The same values; `"…": "…"` stands for further fields, `"…"` at the end of a list for more items."""
    expected, found = _values(shown), _values(printed)
    return len(expected) == len(found) and all(map(_same, expected, found))


def _same(shown: Any, found: Any) -> bool:
    match shown:
        case str():
            return shown == ANYTHING or (isinstance(found, str) and _matches(shown, found))
        case dict():
            fields = cast("dict[str, Any]", shown)
            if not isinstance(found, dict):
                return False
            values = cast("dict[str, Any]", found)
            named = fields.keys() - {ANYTHING}
            complete = ANYTHING in fields or named == values.keys()
            return complete and all(name in values and _same(fields[name], values[name]) for name in named)
        case [*items, "…"]:
            return isinstance(found, list) and all(map(_same, items, cast("list[Any]", found)))
        case list():
            items = cast("list[Any]", shown)
            others = cast("list[Any]", found) if isinstance(found, list) else None
            return others is not None and len(items) == len(others) and all(map(_same, items, others))
        case _:
            return shown == found


def _matches(shown: str, found: str) -> bool:
    return bool(re.fullmatch(".*".join(map(re.escape, shown.split(ANYTHING))), found, re.DOTALL))


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def _values(text: str) -> list[Any]:
    """One JSON value after another, as several commands print them."""
    decoder, values, rest = json.JSONDecoder(), list[Any](), text.strip()
    while rest:
        value, end = decoder.raw_decode(rest)
        values.append(value)
        rest = rest[end:].lstrip()
    return values
