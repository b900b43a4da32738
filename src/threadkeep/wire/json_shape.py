"""Measures a JSON text's depth and size on its bytes, before decoding it.

Decoding many small values blocks the interpreter, in any thread. Counting handles one part at a time as they
arrive, with steps that are single calls.
"""

from array import array
from itertools import accumulate

from threadkeep.domain.errors import InvalidRequest, PayloadTooLarge
from threadkeep.domain.text import size_text

MOST_NESTING = 100  # far below what Python or a database can handle, far above what anybody needs
MOST_VALUES = 50_000
MOST_VALUES_OF_A_HISTORY = 500_000
"""For clients that send a whole conversation with each message; most of it is never decoded."""

_PART_BYTES = 16 * 1024
_OPENING, _CLOSING = b"[{", b"]}"
_BRACKETS = _OPENING + _CLOSING
_NO_BRACKETS = bytes(set(range(256)) - set(_BRACKETS))
_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=-_\\"
_STEPS = bytes.maketrans(_BRACKETS, bytes([1, 1, 255, 255]))  # 255 is -1 in a signed byte


def check_shape(text: bytes) -> None:
    """Refuses a JSON text that is nested too deeply or has too many values."""
    JsonShape().add(text)


class JsonShape:
    """The shape of a JSON text that arrives in parts."""

    def __init__(self, most_values: int = MOST_VALUES, *, most_text: int | None = None) -> None:
        """`most_text` limits all but files in base64."""
        self._most_values = most_values
        self._most_text = most_text
        self._text = 0
        self._depth = 0
        self._values = 1
        self._in_string = False
        self._cut_off = b""

    def add(self, part: bytes) -> None:
        """Counts the next part."""
        for start in range(0, len(part), _PART_BYTES):
            self._count(part[start : start + _PART_BYTES])

    def _count(self, part: bytes) -> None:
        if self._most_text is not None:
            self._count_text(part, self._most_text)
        outside = self._outside_strings(self._cut_off + part)
        moves = outside.translate(_STEPS, _NO_BRACKETS)
        opened = moves.count(1)
        self._values += opened + outside.count(b",")
        if self._values > self._most_values:
            raise PayloadTooLarge(
                f"The request body can contain at most {self._most_values} values.",
                details={"mostValues": self._most_values},
            )
        if self._depth + opened > MOST_NESTING:
            deepest = max(accumulate(array("b", moves), initial=self._depth))
            if deepest > MOST_NESTING:
                raise too_deep()
        self._depth += 2 * opened - len(moves)

    def _count_text(self, part: bytes, most: int) -> None:
        """Counts a part, unless it is in the middle of a file."""
        if not self._in_string or part.translate(None, _BASE64):
            self._text += len(part)
        if self._text > most:
            raise PayloadTooLarge(
                f"The request body is too large. Without its files, it can have at most {size_text(most)}.",
                details={"most": most},
            )

    def _outside_strings(self, part: bytes) -> bytes:
        # A backslash escapes the next character, even in the next part.
        has_half = (len(part) - len(part.rstrip(b"\\"))) % 2
        self._cut_off = b"\\" * has_half
        pieces = part[: len(part) - has_half].replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        outside = b"".join(pieces[self._in_string :: 2])
        self._in_string ^= len(pieces) % 2 == 0
        return outside


def too_deep() -> InvalidRequest:
    """The error for a text that is nested too deeply."""
    return InvalidRequest(f"The request body is nested too deeply. The limit is {MOST_NESTING} levels.")
