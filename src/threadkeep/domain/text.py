"""Rules for every text that a person or a model writes."""

import json
import re
import unicodedata
from typing import Literal

from threadkeep.domain.errors import InvalidRequest

# Everything invisible on its own: white space of every script (Unicode White_Space), zero-width characters
# and invisible fillers. The database's CHECK constraints are built from it.
BLANK_CHARACTERS = (
    "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680"
    "\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
    "\u180e\u200b\u200c\u200d\u200e\u200f\u2060\u2061\u2062\u2063\u2064\ufeff"
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
)

# Invisible characters and those that reorder others: users must approve exactly what they see.
# The page has the same ones (web/src/turn/hidden-characters.ts).
_DECEIVING = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)


def visible(text: str) -> str:
    """A text in which nothing hides: deceiving characters are written as JSON writes them."""
    return _DECEIVING.sub(lambda found: json.dumps(found[0])[1:-1], text)


def is_blank(text: str) -> bool:
    """Whether a text has nothing visible."""
    return not text.strip(BLANK_CHARACTERS)


def check_storable(text: str, param: str) -> str:
    """Refuses characters that databases can't store: NUL and lone surrogates."""
    if "\x00" in text:
        raise InvalidRequest("Text can't contain NUL characters.", param=param)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidRequest("Text can't contain half of a surrogate pair.", param=param) from None
    return text


def normalized(form: Literal["NFC", "NFKC", "NFKD"], text: str, *, most: int) -> str:
    """The beginning of a text in a Unicode normal form.

    Cut first, because normalizing can take quadratic time: it sorts a letter's marks, however many it has.
    """
    return unicodedata.normalize(form, text[:most])


def storable(text: str) -> str:
    """A text from a model or a tool, with characters replaced that databases can't store."""
    if "\x00" in text:
        text = text.replace("\x00", "\ufffd")
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def one_line(text: str) -> str:
    """A text without line breaks, such as a name or a title."""
    return " ".join(part for it in text.splitlines() if (part := it.strip()))


def size_text(size: int) -> str:
    """A number of bytes as messages about limits say it, rounded up: 500 bytes, 64 KB, 1.5 MB, 10 GB."""
    for power, unit in ((3, "GB"), (2, "MB"), (1, "KB")):
        if size >= 1024**power:
            tenths = -(-size * 10 // 1024**power)  # rounded up, so that what is beyond a limit looks like it
            return f"{tenths / 10:,.1f}".removesuffix(".0") + f" {unit}"
    return f"{size} bytes"


def check_line(text: str, param: str, *, most: int) -> str:
    """A short text such as a name or a title: not blank, not too long."""
    if is_blank(text):
        raise InvalidRequest(f"`{param}` can't be blank.", param=param)
    if len(text) > most:
        raise InvalidRequest(f"`{param}` can have at most {most} characters.", param=param)
    return check_storable(text, param)
